"""Incident files of others and of our own: what is read, what is derived, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triage import kb
from triage.errors import KnowledgeError
from triage.retrieve import import_labels
from triage.retrieve.importer import read_import

RECORD: dict[str, Any] = {
    "id": "XX-7",
    "org": "Example Lab",
    "date": "2024-05-06T07:08:09Z",
    "title": {"ko": "노드 장애", "en": "Training stopped after the shared filesystem failed"},
    "summary": {"en": "A job stopped. It printed \"OSError: [Errno 5] Input/output error: '/data/x'\"."},
    "symptoms_text": {"en": 'Ranks waited. The state of one was "D" and `read(3, 0x7ff, 4096)` never came back.'},
    "root_cause": "third-party",
    "trigger": {"en": "A storage server rebooted."},
    "symptoms": ["training-job-failed", "nccl-timeout"],
    "components": ["shared-filesystem", "PyTorch", "pytorch"],
    "remediation": [{"text": {"en": "Restarted the server"}}, "Resubmitted the job", {"text": {}}],
    "lessons": {"en": "Watch the storage."},
    "impact": {"scope": "One job", "users": "unknown"},
    "detection": {"en": "By eye"},
    "sources": [
        {"url": "https://example.org/a", "kind": "blog"},
        {"url": "javascript:alert(1)"},
        "https://example.org/b",
    ],
    "url": "https://example.org/cases/XX-7",
    "severity": "unknown",
}


def write(folder: Path, text: str, name: str = "x.json") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


# ------------------------------------------------------------------------------------------------ records of others
def test_a_record_becomes_an_incident(tmp_path: Path) -> None:
    (incident,) = read_import(write(tmp_path, json.dumps(RECORD)), kb.taxonomy())
    assert (incident.id, incident.org, incident.date) == ("XX-7", "Example Lab", "2024-05-06")
    assert incident.title == "Training stopped after the shared filesystem failed"
    assert (incident.failure_type, incident.root_cause_class) == ("storage-error", "dependency-failure")
    assert incident.root_cause == "A storage server rebooted."
    assert incident.components == ("filesystem", "pytorch")
    assert incident.error_strings == ("read(3, 0x7ff, 4096)", "OSError: [Errno 5] Input/output error: '/data/x'")
    assert incident.remediation == ("Restarted the server", "Resubmitted the job")
    assert incident.facts == ("One job", "By eye")
    assert [s.url for s in incident.sources] == [f"https://example.org/{end}" for end in ("a", "b", "cases/XX-7")]
    assert incident.outcome == "none"


def test_one_object_a_list_and_lines_hold_the_same(tmp_path: Path) -> None:
    other = {**RECORD, "id": "XX-8"}
    expected = read_import(write(tmp_path, json.dumps([RECORD, other], indent=2)))
    assert [i.id for i in expected] == ["XX-7", "XX-8"]
    lines = "\n".join(json.dumps(r, ensure_ascii=False) for r in (RECORD, other)) + "\n\n"
    assert read_import(write(tmp_path, "\ufeff" + lines, "x.jsonl")) == expected


def test_missing_parts_stay_empty(tmp_path: Path) -> None:
    (incident,) = read_import(
        write(tmp_path, '{"id": "A-1", "title": "Something broke", "lessons": null}'), kb.taxonomy()
    )
    assert incident.symptoms == incident.title == "Something broke"
    assert (incident.failure_type, incident.root_cause_class, incident.root_cause) == ("unknown", "unknown", "")
    assert incident.components == incident.remediation == incident.sources == incident.facts == ()


def test_another_language_serves_where_english_is_missing(tmp_path: Path) -> None:
    record = {"id": "A-1", "title": {"en": "", "ko": "학습이 멈췄다"}, "summary": {"ko": "요약"}}
    (incident,) = read_import(write(tmp_path, json.dumps(record)))
    assert (incident.title, incident.symptoms) == ("학습이 멈췄다", "요약")


def test_what_a_terminal_or_database_cannot_take_is_gone(tmp_path: Path) -> None:
    text = r'{"id": "A\n1", "title": "red \u001b[31malert\u0007 \ud800", "summary": "one\ntwo"}'
    (incident,) = read_import(write(tmp_path, text))
    assert (incident.id, incident.title, incident.symptoms) == ("A 1", "red  [31malert", "one\ntwo")


PAGE = """XX-12 Some Lab · 2023-02-01ai-infra
A job ran on 8 nodes. It died with "RuntimeError: CUDA error: an illegal memory access was encountered".
A second paragraph.
Symptom ? Training job failureGPU unavailable
Root cause ? Software bug
It was seen in the log.
–
Test kernels before a long run.
same root cause · shared NCCL, PyTorch
"""


def test_a_copied_page_is_read(tmp_path: Path) -> None:
    first, second = read_import(write(tmp_path, PAGE + PAGE.replace("XX-12", "XX-13"), "x.txt"), kb.taxonomy())
    assert (first.id, first.org, first.date, second.id) == ("XX-12", "Some Lab", "2023-02-01", "XX-13")
    assert first.title == "Training job failure; GPU unavailable (software bug)"
    assert (first.failure_type, first.root_cause_class) == ("cuda-error", "software-bug")
    assert first.symptoms.endswith("A second paragraph.")
    assert first.components == ("nccl", "pytorch")
    assert (first.facts, first.lessons) == (("It was seen in the log.",), "Test kernels before a long run.")


@pytest.mark.parametrize(
    ("prefix", "name", "failure_type", "root_cause_class"),
    [
        ("000", "IL-0125", "cuda-error", "hardware-failure"),
        ("001", "IL-0428", "hang", "unknown"),
        ("002", "IL-0239", "nvlink-error", "hardware-failure"),
        ("004", "IL-0426", "storage-error", "dependency-failure"),
    ],
)
def test_the_seeds_are_read(shared: Path, prefix: str, name: str, failure_type: str, root_cause_class: str) -> None:
    (path,) = shared.glob(f"seeds/{prefix}_*.txt")
    (incident,) = read_import(path, kb.taxonomy())
    assert (incident.id, incident.failure_type, incident.root_cause_class) == (name, failure_type, root_cause_class)
    assert incident.org
    assert len(incident.symptoms) > 1000
    assert not any("가" <= char <= "힣" for char in incident.title + incident.symptoms + incident.lessons)


def test_the_guide_among_the_seeds_is_no_incident(shared: Path) -> None:
    (path,) = shared.glob("seeds/003_*.txt")
    with pytest.raises(KnowledgeError, match="not a file of incidents; known: "):
        read_import(path)


# ------------------------------------------------------------------------------------------------ our own format
def test_the_shipped_incidents_come_back_as_they_are() -> None:
    files = sorted((kb.root() / "incidents").glob("*.yaml"))
    assert [read_import(path, kb.taxonomy()) for path in files] == [(kb.load_incident(path),) for path in files]


def test_our_yaml_may_lack_parts_and_hold_several(tmp_path: Path) -> None:
    text = """
- id: mine-1
  date: 2024-01-02
  title: GPU fell
  symptoms: The GPU has fallen off the bus and the job hung
  error_strings: GPU has fallen off the bus.
- {id: mine-2, symptoms: It hangs, failure_type: hang, outcome: rejected}
"""
    first, second = read_import(write(tmp_path, text, "x.yaml"), kb.taxonomy())
    assert (first.date, first.failure_type, first.root_cause_class, first.outcome) == (
        "2024-01-02",
        "gpu-lost",
        "unknown",
        "none",
    )
    assert first.error_strings == ("GPU has fallen off the bus.",)
    assert (second.title, second.failure_type, second.outcome) == ("It hangs", "hang", "rejected")


# ------------------------------------------------------------------------------------------------ what is refused
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.json", '{"id": "A-1", ', "not valid JSON"),
        ("x.json", '{"id": "A-1", "title": "t"}\n{"id": ', "line 2 is not valid JSON"),
        ("x.json", '["A-1"]', "record 1: expected an incident, found str"),
        ("x.json", '[{"id": "A-1", "title": "t"}, {"title": "t"}]', "record 2: an incident without an id"),
        ("x.json", '{"id": "A-1", "components": ["gpu"]}', "A-1 tells neither a title, symptoms nor a summary"),
        ("x.json", '[{"id": "A", "title": "t"}, {"id": "A", "title": "u"}]', "record 2: the id A stands twice"),
        ("x.json", "[]", "no incident in it"),
        ("x.json", "[" * 100_000, "not valid JSON"),
        ("x.json", '{"id": ' + "9" * 5000 + "}", "not valid JSON"),
        ("x.txt", "Traceback (most recent call last):\n", "not a file of incidents"),
        ("x.txt", "", "not a file of incidents"),
        ("x.yaml", "id: [", "not valid YAML"),
        ("x.yaml", "hello", "expected an incident, found str"),
        ("x.yaml", "id: a\ntitle: t\nfailure_type: gremlins", "a: failure_type 'gremlins' is not one of "),
        ("x.yaml", "id: a\ntitle: t\nroot_cause_class: gremlins", "a: root_cause_class 'gremlins' is not one of "),
        (
            "x.yaml",
            "id: a\ntitle: t\nfailure_type: hang\noutcome: perhaps",
            "outcome 'perhaps' is not one of confirmed",
        ),
        ("x.yaml", "id: a\nfailure_type: hang\npatterns: [x]", "a: unknown ['patterns']; known: id, "),
        ("x.yaml", "&a {id: *a}", "an incident without an id"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = write(tmp_path, text, name)
    with pytest.raises(KnowledgeError) as caught:
        read_import(path, kb.taxonomy())
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    assert message in told
    assert "\n" not in told
    assert len(told) < 1500


def test_unreadable_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KnowledgeError, match="cannot be read: No such file"):
        read_import(tmp_path / "none.json")
    with pytest.raises(KnowledgeError, match="cannot be read: Is a directory"):
        read_import(tmp_path)
    binary = tmp_path / "x.json"
    binary.write_bytes(b'{"id": "\xff"}')
    with pytest.raises(KnowledgeError, match="not UTF-8 text: byte 8"):
        read_import(binary)
    monkeypatch.setattr("triage.retrieve.importer.LARGEST_FILE", 5)
    with pytest.raises(KnowledgeError, match="larger than"):
        read_import(binary)


# ------------------------------------------------------------------------------------------------ labels
def test_tables_and_rules_speak_the_taxonomy() -> None:
    labels = kb.taxonomy()
    assert labels.types.keys() >= import_labels.EVERY_TYPE
    assert set(import_labels.ROOT_CAUSES.values()) == labels.root_cause_classes


@pytest.mark.parametrize(
    ("title", "cause", "symptoms", "errors", "expected"),
    [
        ("Job hung on a frozen filesystem", "", [], [], "storage-error"),  # a cause goes before what is seen
        ("Job hung", "The GPFS filesystem failed", [], [], "storage-error"),
        ("Job hung", "Nobody knows", ["node-not-ready"], [], "hang"),
        ("Training job failure", "", ["gpu-unavailable"], ["CUDA error: unknown error"], "cuda-error"),
        ("Job died", "", [], ["RuntimeError: CUDA error: out of memory"], "out-of-memory"),
        ("Job died", "", [], ["KeyError: 'lr'"], "key-error"),
        ("Job died", "", ["training-job-failed", "nccl-timeout"], [], "nccl-timeout"),
        ("Job died", "", ["GPU unavailable", "nccl-timeout"], [], "gpu-lost"),
        ("Job died", "", ["gpu-unavailable", "node-not-ready"], [], "unknown"),  # two causes, neither told
        ("Job on an InfiniBand cluster", "", [], [], "unknown"),
        ("Loss spiked", "", [], [], "loss-spike"),
        ("Job died", "", [], [], "unknown"),
    ],
)
def test_failure_types_are_derived(
    title: str, cause: str, symptoms: list[str], errors: list[str], expected: str
) -> None:
    assert import_labels.failure_type(title, cause, symptoms, errors) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("Hardware failure", "hardware-failure"),
        ("misconfiguration", "config-error"),
        ("moon phase", "unknown"),
        ("", "unknown"),
    ],
)
def test_root_causes_are_mapped(term: str, expected: str) -> None:
    assert import_labels.root_cause_class(term) == expected
