"""Where to look next: what would settle a cause, by commands of this job on its own scheduler that only read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.diagnose.test_suspects import _parsed
from tests.helpers import job
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.diagnose.names import each_node
from triage.domain import Diagnosis
from triage.errors import KnowledgeError
from triage.evidence.match import Matcher
from triage.runbooks import fetches, load_fetches, load_runbook, runbooks

UNSAID = "the flux capacitor failed to reach 88 mph, aborting"
OF_SCHEDULERS: Mapping[str, tuple[str, str]] = {
    "slurm": (
        "SLURM_JOB_ID=4711\nSLURM_JOB_NODELIST=n[03-04]",
        "scontrol show job 4711 | grep -E 'StdOut|StdErr|WorkDir'",
    ),
    "pbs": ("PBS_JOBID=4711.head", "qstat -xf 4711.head"),
    "lsf": ("LSB_JOBID=4711", "bjobs -l 4711"),
    "flux": ("FLUX_JOB_ID=f2x", "flux job eventlog -p guest.output f2x"),
}


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def fetched(d: Diagnosis) -> dict[str, str]:
    return {step.step: step.command for step in d.remediation if step.step.startswith("Fetch ")}


@pytest.mark.parametrize("name", OF_SCHEDULERS)
def test_the_commands_are_those_of_the_jobs_own_scheduler(knowledge: Knowledge, name: str) -> None:
    said, command = OF_SCHEDULERS[name]
    d = judge(job(f"{said}\n{UNSAID}"), knowledge)
    assert d.status == "unknown"
    assert fetched(d)["Fetch the logs of every rank, stdout and stderr"] == command
    assert any(f"`{command}`" in note for note in d.missing)


def test_all_nodes_that_the_job_names_are_looked_at_around_the_time_of_failure(knowledge: Knowledge) -> None:
    said, _ = OF_SCHEDULERS["slurm"]
    d = judge(job(_parsed(f"{said}\n[2026-03-04 02:00:10] {UNSAID}")), knowledge)
    looked = fetched(d)["Fetch the kernel log of every node of the job around 2026-03-04 02:00"]
    assert looked == "for n in n03 n04; do echo == $n; ssh -n $n dmesg -T | tail -n 200; done"


def test_of_one_node_the_command_names_it_and_without_any_it_stays_in_words(knowledge: Knowledge) -> None:
    one = judge(job(f"SLURM_JOB_ID=4711\nSLURM_JOB_NODELIST=n03\n{UNSAID}"), knowledge)
    assert "ssh n03 dmesg -T" in fetched(one).values()
    none = judge(job(UNSAID), knowledge)
    assert (
        fetched(none)[
            "Fetch the kernel log of every node of the job around the time of failure (`ssh <node> dmesg -T`)"
        ]
        == ""
    )
    assert not any("sacct" in note or "kubectl" in note for note in none.missing)


def test_very_many_nodes_are_unfolded_by_slurm_and_odd_names_are_left_out() -> None:
    many = [f"gpu{n:03d}.cluster" for n in range(1, 65)]
    assert each_node(many, "slurm") == "$(scontrol show hostnames 'gpu[001-064]')"
    assert each_node(many, "lsf") == ""
    assert each_node(["n1", "$(reboot)", "-oProxyCommand=x", "n2"], "slurm") == "n1 n2"


# What the programs of a pipe may be; behind `scontrol`, `flux` and others, the words that make them show something.
SHOWS = re.compile(
    r"scontrol show |sacct |kubectl (-n \S+ |)(logs|describe|get) |qstat |tracejob |pbsnodes \{node\}|bjobs -l |bhist -l |bhosts -l |qacct -j |qhost "
    r"|flux job eventlog |flux resource list |dmesg -T|journalctl |nvidia-smi -q|ps -eo |ibstat|grep |tail |echo "
)


def test_every_way_only_reads() -> None:
    for name, fetch in fetches().items():
        assert fetch.ways, name
        for way in fetch.ways:
            loop = way.command.removeprefix("for n in {each}; do ").removesuffix("; done")
            for part in re.split(r"[;|] ", re.sub(r"'[^']*'", "x", loop)):
                run = re.sub(r"^ssh (-n )?(\{node\}|\$n) (timeout 60 )?", "", part)
                assert SHOWS.match(run), part


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"a": {"what": "it"}}, "a: expected what and a list of ways"),
        ({"a": {"what": "it", "ways": ["x"]}}, "a: a way needs a command"),
        ({"a": {"what": "the {thing}", "ways": []}}, "placeholder 'thing'"),
        ({"a": {"what": "it", "ways": [{"command": "ssh {node} rm -rf /"}]}}, "does more than read"),
        ({"a": {"what": "it", "ways": [{"command": "sh -c 'cat {file}'"}]}}, "stands inside quotes"),
        ({"a": {"what": "it", "ways": [{"command": "x", "when": {"scheduler": "cron"}}]}}, "'cron' is not one of"),
        ([], "expected things to fetch"),
    ],
)
def test_a_broken_list_is_refused_with_file_and_place(tmp_path: Path, document: object, says: str) -> None:
    path = tmp_path / "fetch.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    with pytest.raises(KnowledgeError) as caught:
        load_fetches(path)
    assert str(path) in str(caught.value) and says in str(caught.value)


def test_a_runbook_names_what_is_there_and_says_what_it_tells(tmp_path: Path) -> None:
    path = tmp_path / "gpu-lost.yaml"
    book = {
        "title": "A title",
        "action": "restart",
        "fetch": [{"look": "kernel-log", "tells": "an Xid"}, "its core file"],
    }
    path.write_text(yaml.safe_dump(book), "utf-8")
    first, second = load_runbook(path).fetch
    assert first.text.endswith("(an Xid)") and first.ways == fetches()["kernel-log"].ways
    assert (second.text, second.ways) == ("its core file", ())
    for wrong in ({"look": "the-stars"}, {"see": "kernel-log"}):
        path.write_text(yaml.safe_dump({**book, "fetch": [wrong]}), "utf-8")
        with pytest.raises(KnowledgeError, match="fetch"):
            load_runbook(path)
