"""What a model says, held to a job, on a real HTTP server: no command, name, number or blame of its own comes through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.jobs import asked, job, said
from triage.agents.case import Case

OOM = [
    "2026-11-30 00:00:01 INFO job 771205 starts on gpu-042 gpu-043, 16 ranks, PCI 0000:3b:00.0, peer 10.0.0.5:29500",
    "2026-11-30 00:00:10 INFO step 1 loss 9.31",
    "2026-11-30 00:00:13 INFO gpu is at 61 C",
    "2026-11-30 00:00:15 WARNING dataloader queue is low on node gpu-043",
    *[f"2026-11-30 00:00:{n} INFO step {n} loss 9.{n}" for n in range(16, 40)],
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.11 GiB",
]
FULL = {"file": "job.log", "line": len(OOM), "quote": "Tried to allocate 2.50 GiB", "role": "root"}
QUEUE = {"file": "job.log", "line": 4, "quote": "dataloader queue is low", "role": "cascade"}
NOVEL = [
    *[f"2026-11-30 00:00:{n} INFO step {n} loss 9.{n}" for n in range(10, 40)],
    "2026-11-30 00:00:41 ERROR frobnicator lattice lost its quorum while braiding shard 5 on gpu-042",
]
QUORUM = {"file": "job.log", "line": len(NOVEL), "quote": "lattice lost its quorum", "role": "root"}
COMMANDS = [
    "sudo rm ckpt",
    "rm ckpt",
    "shutdown now",
    "pkill -u alice",
    "scancel -u alice",
    "kubectl delete namespace prod",
    "wipefs -a disk",
    "git reset --hard",
    "scontrol update NodeName=ALL State=DOWN",
    "export LD_PRELOAD=evil.so",
]
DESTROYING = [
    "Delete everything and restart from scratch",
    "power off gpu-043 and wipe its disks",
    "Reboot gpu-042 now, then reformat the scratch disk",
]


def same(**fields: Any) -> dict[str, Any]:
    """What the rules say of OOM."""
    return said(**{"failure_type": "out-of-memory", "root_cause": "GPU 3 had no room for 2.50 GiB.", "cited": [FULL], "ranks": [], **fields})  # fmt: skip


@pytest.fixture
def oom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.chdir(tmp_path)
    return job(tmp_path, OOM)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_text_of_a_model_gives_a_command(oom: Case, command: str) -> None:
    words = f"to free it run {command}"
    kind = oom.rules.failure_type
    result, _ = asked(oom, [same(root_cause=f"It was full; {words}.")] * 2)
    assert "root_cause holds a command" in result.missing[-1]
    assert (result.failure_type, result.root_cause) == (kind, oom.rules.root_cause)
    steps = [{"step": words, "why": "x"}, {"step": "look at the batch size", "why": words}]
    result, _ = asked(oom, [same(failure_type="network-error", against=words, steps=steps)])
    assert command not in json.dumps([h.check for h in result.hypotheses] + [r.step for r in result.remediation])
    assert "3 did not hold and was dropped" in result.missing[-1]


@pytest.mark.parametrize("step", DESTROYING)
def test_a_model_does_not_advise_to_destroy(oom: Case, step: str) -> None:
    result, _ = asked(oom, [same(steps=[{"step": step, "why": "x"}], against=step)])
    assert result.remediation == oom.rules.remediation
    assert "2 did not hold and was dropped" in result.missing[-1]


def test_what_a_model_would_look_at_is_held_to_the_log_too(oom: Case) -> None:
    result, _ = asked(oom, [same(failure_type="network-error", against="look at gpu-999")])
    assert result.hypotheses[1].check == ""
    assert "'gpu-999' of against stands nowhere" in result.missing[-1]
    result, _ = asked(oom, [same(failure_type="network-error", against="It is not clear whether a kill came first.")])
    assert result.hypotheses[1].check == "It is not clear whether a kill came first."


@pytest.mark.parametrize(
    "cause",
    [
        "GPU 8 had no room.",
        "Rank 9 had no room.",
        "Node 12 had no room.",
        "Ranks 3 and 11 had no room.",
        "There were 15 links down.",  # stands in a time of day
        "There were 27 links down.",  # the number of a line
        "It was at 105C.",
        "It asked for 80GB.",
        "It was at 61GiB.",
        "Peer 10.0.99.77 is gone.",
        "Peer 10.0.0.55 is gone.",
        "The device 0000:af:11 fell off.",
        "There were 771 ranks.",
        "Seen was `GPU 4 has a total capacity`.",
    ],
)
def test_numbers_and_addresses_of_its_own_do_not_come_through(oom: Case, cause: str) -> None:
    result, server = asked(oom, [same(root_cause=cause)] * 2)
    assert "of root_cause stands nowhere" in result.missing[-1]
    assert (len(server.requests), result.root_cause) == (2, oom.rules.root_cause)


@pytest.mark.parametrize(
    "cause",
    [
        "GPU 3 of 16 ranks had no room for 2.50 GiB of 79.11 GiB at 61C.",
        "The peer 10.0.0.5:29500 and 10.0.0.5 and the device 0000:3b:00 were well at 00:00:13 on 2026-11-30.",
        "Seen was `GPU 3 has a total capacity` and `INFO job 771205 starts on gpu-042 gpu-043, 16 ranks`.",
        "Job 771205 on gpu-042 went wrong at line 29 of job.log, see job.log:29.",
    ],
)
def test_what_the_log_says_may_be_said(oom: Case, cause: str) -> None:
    result, _ = asked(oom, [same(root_cause=cause)])
    assert result.root_cause.endswith(cause)


@pytest.mark.parametrize("quote", ["e", "C", "of memory.", "00:00:15", "2.50 79.11"])
def test_a_scrap_of_a_line_is_no_quote(oom: Case, quote: str) -> None:
    result, server = asked(oom, [same(cited=[{**FULL, "quote": quote}])] * 2)
    assert "no line with the role root" in result.missing[-1]
    assert len(server.requests) == 2


def test_only_nodes_that_a_line_of_the_failure_speaks_of_are_blamed(oom: Case) -> None:
    assert oom.rules.suspects.nodes == ()
    strange = same(nodes=["Traceback", "loss", "gpu-043"])
    result, _ = asked(oom, [strange])
    assert result.suspects.nodes == ()
    assert "Traceback is no node that the job is known to use" in result.missing[-1]
    assert "3 did not hold and was dropped" in result.missing[-1]


def test_an_error_that_the_rules_cite_as_unknown_may_be_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    novel = job(tmp_path, NOVEL)
    (unnamed,) = novel.rules.evidence
    assert (novel.rules.failure_type, unnamed.signature, unnamed.line) == ("unknown", "end.unnamed-error", len(NOVEL))
    words = "The frobnicator lost its quorum while it braided shard 5."
    result, _ = asked(novel, [said(root_cause=words, cited=[QUORUM], ranks=[])])
    assert (result.failure_type, result.status, result.root_cause) == ("runtime-error", "hypothesis", words)
    assert [(e.line, e.role, e.failure_type) for e in result.evidence] == [(len(NOVEL), "root", "runtime-error")]
    assert result.outcome == "failed"
