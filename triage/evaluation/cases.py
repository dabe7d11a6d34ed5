"""Labelled cases: a folder with case.yaml and the input files. The schema is strict: a misspelt label is an error, not a label less.

What is not labelled is None and is not scored; an empty list is a label that says "none".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from triage import kb
from triage.errors import InputError, KnowledgeError
from triage.evaluation import inputs, neutral
from triage.evaluation.inputs import FILE
from triage.evaluation.schema import Check, Problems, short

SCHEMA = "triage.case/1"
SPLITS = ("dev", "test")
TAGS = (
    "cascade", "collected", "flight_recorder", "hang", "hard", "hardware", "healthy", "injected", "interrupted", "kernel", "kubernetes",
    "large", "misleading", "multi-file", "multi-node", "multi-run", "network", "pyspy", "scheduler", "slurm", "storage", "system",
    "training", "unknown",
)  # fmt: skip
_KEYS = (
    "schema", "id", "source", "synthetic", "license", "split", "tags", "inputs", "scheduler", "expect", "checks", "notes", "why",
    "gpu_hours", "similar",
)  # fmt: skip
_EXPECT_KEYS = (
    "outcome", "also_outcome", "failure_type", "also_accept", "root_cause_class", "root_cause_class_accept", "status", "evidence",
    "nodes", "ranks", "action", "must_mention", "must_not", "similar", "why",
)  # fmt: skip
_SHOWN = 5  # problems of one set of cases that a message names


@dataclass(frozen=True, slots=True)
class Decisive:
    """Lines first..last (1-based, both included) that show the cause. file "": whichever file."""

    file: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Expect:
    """The labels. None: not labelled."""

    outcome: str | None = None
    also_outcome: tuple[str, ...] | None = None
    failure_type: str | None = None
    also_accept: tuple[str, ...] | None = None
    root_cause_class: str | None = None
    root_cause_class_accept: tuple[str, ...] | None = None
    status: str | tuple[str, ...] | None = None
    evidence: tuple[Decisive, ...] | None = None
    nodes: tuple[str, ...] | None = None
    ranks: tuple[int, ...] | None = None
    action: tuple[str, ...] | None = None
    must_mention: tuple[tuple[str, ...], ...] | None = None
    must_not: tuple[str, ...] | None = None
    similar: tuple[str, ...] | None = None
    why: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As in case.yaml: only what is labelled, evidence as [file, first, last]."""
        full = {name: getattr(self, name) for name in _EXPECT_KEYS}
        if self.evidence is not None:
            full["evidence"] = [[d.file, d.first, d.last] for d in self.evidence]
        return {name: _plain(value) for name, value in full.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled case. sha256: of case.yaml and of every input file with its name."""

    id: str
    folder: Path
    sha256: str
    split: str
    source: str
    synthetic: bool
    inputs: tuple[str, ...]
    expect: Expect
    license: str = ""
    tags: tuple[str, ...] = ()
    scheduler: Mapping[str, Any] = field(default_factory=dict)
    gpu_hours: float | None = None
    warnings: tuple[str, ...] = ()

    def files(self) -> Iterator[tuple[str, Path]]:
        """The input files: name relative to the case folder as the diagnosis will see it, and where it lies."""
        yield from inputs.files(self.folder, self.inputs)


def load_cases(folder: Path) -> tuple[Case, ...]:
    """All cases under the folder (or the one that it is), by id.

    Errors: InputError that names each bad file and field.
    """
    places = (
        [folder] if (folder / FILE).is_file() else sorted(p.parent for p in folder.glob(f"*/{FILE}") if p.is_file())
    )
    if not places:
        raise InputError(f"{folder}: no cases", f"give a folder whose subfolders hold a {FILE}")
    found: dict[str, Case] = {}
    wrong: list[str] = []
    for place in places:
        try:
            case = load_case(place)
        except InputError as error:
            wrong.append(error.message)
            continue
        if case.id in found:
            wrong.append(f"{place / FILE}: id: {case.id!r} is taken by {found[case.id].folder}")
        found.setdefault(case.id, case)
    if wrong:
        more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        raise InputError("\n  ".join([*wrong[:_SHOWN], *more]))
    return tuple(found[name] for name in sorted(found))


def load_case(folder: Path) -> Case:
    """The case in this folder. Errors: InputError with the file, and every field that is wrong."""
    path = folder / FILE
    problems = Problems()
    try:
        doc = kb.read_yaml(path)
        case = _case(folder, Check(doc, "", problems))
    except KnowledgeError as error:
        raise InputError(error.message) from None
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be read: {error.strerror or error}") from None
    if case is None or problems.found:
        raise InputError(f"{path}: " + "; ".join(problems.found))
    return case


def _case(folder: Path, doc: Check) -> Case | None:
    if not doc.is_mapping(_KEYS):
        return None
    if doc.text("schema") != SCHEMA:
        doc.wrong("schema", f"must be {SCHEMA}")
    name = doc.text("id", required=True)
    if name and not (name.isprintable() and name == name.strip()):
        doc.wrong("id", f"{short(name)} holds characters that cannot be printed, or blanks around it")
    names = inputs.check(folder, doc)
    expect = _expect(doc.part("expect"))
    if "similar" in doc.value and expect.similar is None:
        expect = _with_similar(expect, doc.texts("similar"))
    gpu_hours = doc.number("gpu_hours")
    case = Case(
        id=name or "",
        folder=folder,
        sha256="",
        split=doc.one_of("split", SPLITS, required=True) or "",
        source=doc.text("source", required=True) or "",
        synthetic=doc.flag("synthetic", required=True),
        inputs=names,
        expect=expect,
        license=doc.text("license") or "",
        tags=doc.some_of("tags", TAGS) or (),
        scheduler=doc.mapping("scheduler"),
        gpu_hours=gpu_hours,
    )
    if doc.problems.found:
        return None
    warnings = neutral.warnings(case.id, [n for n, _ in case.files()])
    return replace(case, sha256=_sha256(case), warnings=warnings)


def _expect(doc: Check) -> Expect:
    if not doc.is_mapping(_EXPECT_KEYS):
        return Expect()
    labels = kb.taxonomy()
    return Expect(
        outcome=doc.one_of("outcome", labels.outcomes, required=True),
        also_outcome=doc.some_of("also_outcome", labels.outcomes),
        failure_type=doc.one_of("failure_type", labels.types),
        also_accept=doc.some_of("also_accept", labels.types),
        root_cause_class=doc.one_of("root_cause_class", labels.root_cause_classes),
        root_cause_class_accept=doc.some_of("root_cause_class_accept", labels.root_cause_classes),
        status=_status(doc, labels.statuses),
        evidence=_evidence(doc),
        nodes=doc.texts("nodes"),
        ranks=doc.integers("ranks"),
        action=doc.some_of("action", labels.actions),
        must_mention=_alternatives(doc),
        must_not=doc.some_of("must_not", labels.types),
        similar=doc.texts("similar"),
        why=doc.text("why"),
    )


def _status(doc: Check, allowed: frozenset[str]) -> str | tuple[str, ...] | None:
    if isinstance(doc.value.get("status"), list):
        return doc.some_of("status", allowed)
    return doc.one_of("status", allowed)


def _evidence(doc: Check) -> tuple[Decisive, ...] | None:
    entries = doc.items("evidence")
    if entries is None:
        return None
    found = []
    for at, entry in enumerate(entries):
        match entry:
            case [str(file), int(first), int(last)] if 1 <= first <= last and bool not in (type(first), type(last)):
                found.append(Decisive(file, first, last))
            case _:
                doc.wrong(
                    f"evidence[{at}]",
                    f"must be [file, first line, last line] with 1 <= first <= last, not {short(entry)}",
                )
    return tuple(found)


def _alternatives(doc: Check) -> tuple[tuple[str, ...], ...] | None:
    entries = doc.items("must_mention")
    if entries is None:
        return None
    found = []
    for at, entry in enumerate(entries):
        if isinstance(entry, list) and entry and all(isinstance(word, str) and word for word in entry):
            found.append(tuple(entry))
        else:
            doc.wrong(f"must_mention[{at}]", "must be a list of alternatives, each a word or phrase")
    return tuple(found)


def _sha256(case: Case) -> str:
    whole = hashlib.sha256((case.folder / FILE).read_bytes())
    for name, path in case.files():
        with path.open("rb") as stream:
            one = hashlib.file_digest(stream, "sha256").hexdigest()
        whole.update(f"\n{one} {name}".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _with_similar(expect: Expect, similar: tuple[str, ...] | None) -> Expect:
    return replace(expect, similar=similar)


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
