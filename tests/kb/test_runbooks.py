"""kb/runbooks/ and kb/actions.yaml: complete, in their form, and what a broken one is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from triage import kb
from triage.domain import RunbookStep, When
from triage.errors import KnowledgeError
from triage.runbooks import SECTIONS, load_actions, load_runbook, open_names, problems, runbooks

LOOK = {"step": "Look at {node}", "why": "it tells", "risk": "read-only", "command": "ssh {node} uptime"}
CHANGE = {"step": "Change it", "why": "it was wrong", "risk": "reversible"}
GOOD: dict[str, Any] = {
    "title": "A title",
    "action": "restart",
    "references": ["https://example.org"],
    "confirm": [LOOK],
    "act": [CHANGE],
    "verify": [CHANGE],
    "escalate": [{**LOOK, "when": {"scheduler": ["slurm", "none"], "spread": "one-node"}}],
}


def written(folder: Path, document: Any, name: str = "gpu-lost") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def test_every_failure_type_has_one_that_is_sound() -> None:
    books = runbooks()
    assert set(books.of) == set(kb.taxonomy().types)
    assert {name: list(problems(book)) for name, book in books.of.items() if any(problems(book))} == {}
    assert set(books.doing) == set(kb.taxonomy().actions)


def test_the_advice_of_the_field_is_in_the_fitting_runbook() -> None:
    said = {
        name: " ".join(s.step + s.command for section in SECTIONS for s in getattr(book, section))
        for name, book in runbooks().of.items()
    }
    for word in (
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
        "--kill-on-bad-exit=1 --wait=60",
        "CUDA_LAUNCH_BLOCKING=1",
        "train_step",
        "NCCL_NET_GDR_LEVEL",
        "kill-switch",
        "copy_parallel",
        "sync-batch-norm",
    ):
        assert word in said["hang"]
    for word in ("NCCL_NET_GDR_LEVEL", "NCCL_IB_GID_INDEX=3", "NCCL_IB_TC", "NCCL_IB_TIMEOUT=22"):
        assert word in said["network-error"]
    assert "num_workers=0" in said["dataloader-killed"]


def test_a_good_one_is_read_whole(tmp_path: Path) -> None:
    book = load_runbook(written(tmp_path, GOOD))
    assert (book.id, book.failure_type, book.action) == ("gpu-lost", "gpu-lost", "restart")
    assert book.confirm == (RunbookStep("Look at {node}", "it tells", "read-only", "ssh {node} uptime"),)
    assert book.escalate[0].when == When(scheduler=("slurm", "none"), spread=("one-node",))
    assert list(problems(book)) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"confirm": [{**LOOK, "command": "ssh {nod} uptime"}]}, "confirm, step 1: placeholder 'nod' is not one of"),
        ({"confirm": [{**LOOK, "step": "Look at {where}"}]}, "placeholder 'where'"),
        ({"act": [CHANGE, {**CHANGE, "risk": "none"}]}, "act, step 2: risk 'none' is not one of"),
        ({"act": [{"step": "x", "why": "y", "command": "reboot"}]}, "act, step 1: a step without an id: it lacks risk"),
        ({"act": [{**CHANGE, "why": ""}]}, "a step needs step and why"),
        ({"act": [{**CHANGE, "command": "sh -c 'kill {pid}'"}]}, "a placeholder stands inside quotes"),
        ({"act": [{**CHANGE, "when": {"sheduler": "slurm"}}]}, "no field is called sheduler (did you mean scheduler?)"),
        ({"act": [{**CHANGE, "when": {"scheduler": "condor"}}]}, "when scheduler 'condor' is not one of"),
        ({"act": [{**CHANGE, "when": {"component": "nothing"}}]}, "when component 'nothing'"),
        ({"act": [{**CHANGE, "when": "slurm"}]}, "when must name conditions: scheduler"),
        ({"act": ["reboot"]}, "act must be a list of steps"),
        ({"action": "pray"}, "action 'pray' is not one of"),
        ({"fetch": ["the {thing}"]}, "fetch: placeholder 'thing'"),
        ({"prove": []}, "no field is called prove"),
    ],
)
def test_a_broken_one_is_refused_with_file_and_place(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = written(tmp_path, {**GOOD, **change})
    with pytest.raises(KnowledgeError) as caught:
        load_runbook(path)
    assert str(path) in str(caught.value) and says in str(caught.value)


def test_a_file_must_be_named_for_its_type(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="failure type 'gpu-lots' is not one of"):
        load_runbook(written(tmp_path, GOOD, "gpu-lots"))
    with pytest.raises(KnowledgeError, match="expected one runbook, found list"):
        load_runbook(written(tmp_path, []))


def test_actions_must_all_be_there(tmp_path: Path) -> None:
    doing = {name: [] for name in kb.taxonomy().actions}
    assert load_actions(written(tmp_path, doing)) == dict.fromkeys(doing, ())
    with pytest.raises(KnowledgeError, match="no steps for 'wait'"):
        load_actions(written(tmp_path, {name: [] for name in doing if name != "wait"}))
    with pytest.raises(KnowledgeError, match="action 'pray'"):
        load_actions(written(tmp_path, {**doing, "pray": []}))


def test_what_loads_but_is_unsound_is_told(tmp_path: Path) -> None:
    book = load_runbook(written(tmp_path, GOOD))
    destroys = RunbookStep("Reset it", "x", "destructive", "reset {gpu}")
    for changed, says in (
        (replace(book, verify=(), act=(destroys,)), "act: 'Reset it' destroys something, and no verify step follows"),
        (replace(book, escalate=()), "it has no escalate step"),
        (replace(book, confirm=book.act), "confirm: 'Change it' is reversible; looking and asking change nothing"),
        (replace(book, confirm=book.escalate), "no confirm step fits every scheduler"),
        (replace(book, references=()), "it has no references"),
        (replace(book, act=(replace(destroys, when=When(component=("lustre",))),)), "has the component lustre"),
    ):
        assert any(says in problem for problem in problems(changed)), says


def test_braces_that_are_no_placeholder_stay() -> None:
    assert open_names("ps aux | awk '{print $2}' | kubectl get -o jsonpath={.items[*]} {pod}") == ("pod",)
