"""What is started for a world, and what its output proves."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from triage.errors import UsageError
from triage.recover.hosts import draining, named
from triage.recover.node_jobs import MARK, Check, by_node, by_srun, chosen, result, rounds_of, script


def line(**told: object) -> str:
    return f"0: {MARK}{json.dumps({'ok': True, 'rank': 0, 'world': 2, 'host': 'a', **told})}\n"


def test_srun_gets_one_step_for_the_world_and_ssh_a_process_for_each_rank() -> None:
    check = Check("nccl", ranks=2, timeout=30)
    (step,) = by_srun(check, ("gpu01", "gpu02"), 29600)
    assert step[0] == "srun"
    assert {"--nodes=2", "--nodelist=gpu[01-02]", "--ntasks-per-node=2", "--kill-on-bad-exit=1"} <= set(step)
    assert step[-6:] == ("--backend", "nccl", "--store", "gpu01:29600", "--timeout", "30")

    started = by_node(check, ("gpu01", "gpu02"), 29600, lambda node, argv: ["ssh", node, shlex.join(argv)])
    assert [words[1] for words in started] == ["gpu01", "gpu01", "gpu02", "gpu02"]
    assert [words[2].split("--rank ")[1][0] for words in started] == ["0", "1", "2", "3"]


def test_a_world_passes_only_when_every_rank_says_so() -> None:
    check = Check("gloo")
    both = line(gbps=8.0) + line(rank=1, gbps=6.0)
    assert result(check, ("a", "b"), [0], both, 1.0).passed
    assert result(check, ("a", "b"), [0], both, 1.0).gbps == 6.0
    assert not result(check, ("a", "b"), [0], line(), 1.0).passed
    assert not result(check, ("a", "b"), [1], both, 1.0).passed
    assert not result(check, ("a", "b"), [None], "", 1.0).passed


@pytest.mark.parametrize(
    ("codes", "output", "said"),
    [
        ([1], line() + line(ok=False, host="b", error="DistNetworkError: no route"), "b: DistNetworkError: no route"),
        ([1], line(ok=False, wrong=3, host="b"), "wrong data came through: b"),
        ([None], "", "no end within its time"),
        ([1], f'{MARK}{{"ok": false, "wrong": 1}}', "wrong data came through: ?"),
        ([1], MARK + '{"a":' * 9999, "exit code 1"),
        ([1], "boom\nsrun: error: n1: task 0: Exited with exit code 1\n", "exit code 1: boom"),
        ([2], "srun: error: Unable to allocate resources\n", "exit code 2: srun: error: Unable to allocate resources"),
        ([1], "0: TRIAGE-CHECK {cut", "exit code 1"),
    ],
)
def test_why_a_world_failed_is_said(codes: list[int | None], output: str, said: str) -> None:
    assert result(Check("gloo"), ("a", "b"), codes, output, 1.0).said == said


def test_a_printed_round_leaves_results_that_are_read_again(tmp_path: Path) -> None:
    check = chosen("sh -c 'exit 0'")
    worlds = [(("a", "b"), (("true",),)), (("c", "d"), (("sh", "-c", "exit 3"),))]
    subprocess.run(["bash", "-c", script(1, worlds)], cwd=tmp_path, check=True)
    outputs = [path.read_text() for path in sorted(tmp_path.glob("*.out"))]
    (played,) = rounds_of(check, outputs)
    assert [(ran.world, ran.passed) for ran in played] == [(("a", "b"), True), (("c", "d"), False)]
    with pytest.raises(UsageError, match="TRIAGE-WORLD"):
        rounds_of(check, ["something else"])


@pytest.mark.parametrize("text", ["", "a;reboot", "$(id)", "--all", "a b|c", "n[1-", "../x", "`id`"])
def test_what_is_no_list_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no list of nodes"):
        named(text)


def test_lists_of_nodes_and_how_they_are_drained() -> None:
    assert named("n[08-10], login") == ("n08", "n09", "n10", "login")
    argv, undo = draining("slurm", ("n08", "n09"), "triage:ecc-error")
    assert argv == ("scontrol", "update", "NodeName=n[08-09]", "State=DRAIN", "Reason=triage:ecc-error")
    assert undo == "scontrol update NodeName='n[08-09]' State=RESUME"
    assert draining("kubernetes", ("n1",), "triage:x")[1] == "kubectl uncordon n1"
    for scheduler in ("pbs", "lsf", "sge", "flux"):
        assert all(draining(scheduler, ("n1",), "triage:x"))
    assert draining("", ("n1",), "triage:x") == ((), "")
    assert draining("slurm", ("n1; rm -rf /",), "triage:x") == ((), "")


@pytest.mark.parametrize("rate", ["1e400", "NaN", "-1", "1" + "0" * 400, '"x"'])
def test_a_bandwidth_that_is_none_is_left_out(rate: str) -> None:
    told = f'{MARK}{{"ok": true, "gbps": {rate}}}\n'
    ran = result(Check("gloo"), ("a", "b"), [0], told * 2, 1.0)
    assert (ran.passed, ran.gbps) == (True, None)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("srun: error: Unable to allocate resources: Invalid account\n", "exit code 1: srun: error: Unable to allocate"),
        (line(ok=False, error="ModuleNotFoundError: No module named 'torch'"), "a: ModuleNotFoundError"),
        ("slurmstepd: error: execve(): dcgmi: No such file or directory\nsrun: error: a: task 0: Exited with exit code 2\n", "exit code 1: slurmstepd: error: execve()"),
    ],
)  # fmt: skip
def test_a_world_that_the_launcher_does_not_start_has_not_begun(output: str, said: str) -> None:
    ran = result(Check("gloo"), ("a", "b"), [1], output, 1.0)
    assert not ran.begun
    assert ran.said.startswith(said)
    assert result(Check("gloo"), ("a", "b"), [1], line(ok=False, error="NCCL timeout"), 1.0).begun
