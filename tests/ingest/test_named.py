"""Numbers and hosts in the names of files, seen beside what the lines say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers import lines, log_file
from triage.domain import LogFile
from triage.ingest.names import place
from triage.ingest.together import together


def named(name: str, text: str, kind: str = "job") -> LogFile:
    found = place(name)
    made = log_file(text, name, kind, rank=found.rank, node=found.node)
    return replace(made, lines=lines(text, name, rank=found.rank))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("85.out", "0: comm 0x5 rank 0 nranks 16 cudaDev 0"),
        ("job.67.out", "world_size: 8"),
        ("92.out", "IndexError: list index out of range"),
        ("rank_9.log", "comm 0x5 rank 1 nranks 8 cudaDev 1"),
    ],
)
def test_a_number_that_is_no_rank_is_taken_off_the_file_and_its_lines(name: str, text: str) -> None:
    (file,) = together([named(name, text)])
    assert file.rank is None
    assert [line.rank for line in file.lines] == [None]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["rank_3.log"], "starting"),
        (["rank_3.log"], "comm 0x5 rank 3 nranks 8 cudaDev 3"),
        (["slurm-771.4.out"], "starting"),
        (["3.log", "4.log"], "starting"),
        (["job.0.out", "job.1.out"], "world_size: 2"),
    ],
)
def test_ranks_that_names_mean_stay(names: list[str], text: str) -> None:
    assert all(f.rank is not None for f in together([named(name, text) for name in names]))


def test_a_line_that_names_the_number_itself_keeps_it() -> None:
    (file,) = together([named("5.log", "[rank5]: ready\nplain")])
    assert [line.rank for line in file.lines] == [5, None]


@pytest.mark.parametrize(
    ("said", "kind", "name", "node"),
    [
        ("Node:             gke-a-7/10.0.3.7", "kubernetes", "75_gke-a-7.dmesg", "gke-a-7"),
        ("10m Normal Scheduled pod/w-3 Successfully assigned ml/w-3 to ip-10-0-3-7.ec2.internal", "kubernetes", "ip-10-0-3-7_dmesg", "ip-10-0-3-7"),
        ("Node:             gke-a-7/10.0.3.7", "kubernetes", "gke-a-71.dmesg", None),
    ],
)  # fmt: skip
def test_a_kernel_log_is_of_the_host_that_its_name_holds(said: str, kind: str, name: str, node: str | None) -> None:
    found = together([named("pod.txt", said, kind), replace(named(name, "oops", "kernel"), node=None)])
    assert (found[1].node or "").split(".")[0] == (node or "")
    assert [line.node for line in found[1].lines] == [found[1].node]


def test_folders_with_the_same_of_each_node_are_nodes_without_a_manifest_too() -> None:
    pods = [log_file("x", f"hang/train-{n}/pyspy-1.txt", "stacks") for n in range(2)]
    mixed = [log_file("x", "run/stacks/pyspy-7.txt", "stacks"), log_file("x", "run/states/ps.txt", "processes")]
    assert [f.node for f in together(pods)] == ["train-0", "train-1"]
    assert [f.node for f in together(mixed)] == [None, None]
