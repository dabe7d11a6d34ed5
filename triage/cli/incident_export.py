"""A resolved incident as a labelled case: its logs without secrets, under names that do not tell the answer."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from triage.cli import incident_logs
from triage.cli.incident_logs import RAW
from triage.errors import InputError, UsageError
from triage.evaluation import importers
from triage.ingest import identity, sources
from triage.ingest.streams import Input, chunks
from triage.redact import LineRedactor, redact
from triage.store.values import StoredAttempt, StoredIncident, Verdict
from triage.text import how_many

_PACKED = (".gz", ".xz", ".bz2", ".zst", ".zstd", ".lzma")


def export(found: StoredIncident, out: Path, logs: Sequence[Path] = ()) -> tuple[Path, tuple[str, ...]]:
    """The case folder made under `out`, and in words what it lacks. found: the reading that the latest verdict is of.

    logs: where the logs lie now; without them those that were read, if they are the same still, else the cited lines
    alone. Errors: UsageError for an incident of which nobody said what it was, InputError for logs that are not its own.
    """
    verdict = _verdict(found)
    number = next((v.attempt for v in found.versions if v.version == found.version), 1)
    attempt = next((a for a in found.attempts if a.number == number), None)
    names = [str(name) for name in found.result.get("files", ())]
    places, reason = (_given(names, logs), "") if logs else _recorded(names, attempt)
    if not places and not found.result.get("evidence"):
        raise UsageError(f"incident {found.id} cites no line, and {reason}", "--logs PATH gives the log")
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        staged = _stage(stage, places) if places else {}
        here = {name: stage / file for name, file in staged.items()}
        doubts = incident_logs.check(found, attempt, places, here) if logs else ()
        result = _renamed(found.result, staged) if places else _cited(stage, found.result)
        labels = {
            "verdict": verdict.verdict,
            "failure_type": verdict.failure_type,
            "root_cause_class": verdict.root_cause_class,
        }
        document: dict[str, Any] = {"result": result, "verdict": {k: v for k, v in labels.items() if v}}
        if found.summary.gpu_hours:
            document["job"] = {"gpu_hours": found.summary.gpu_hours}
        (stage / "incident.json").write_text(json.dumps(document), "utf-8")
        case = importers.import_incident(stage / "incident.json", out)
    lines = how_many(len(found.result.get("evidence", ())), "cited line")
    return case, doubts if places else (f"the case holds the {lines} alone: {reason}; --logs PATH gives the log",)


def _verdict(found: StoredIncident) -> Verdict:
    last = found.verdicts[-1] if found.verdicts else None
    if last is None or last.verdict == "rejected" or not last.failure_type:
        raise UsageError(
            f"nobody has said what incident {found.id} was", f"triage incidents resolve {found.id} --verdict ..."
        )
    if last.failure_type == "unknown":
        raise UsageError(
            f"what incident {found.id} was is not known: its verdict names no failure",
            f"once it is: triage incidents resolve {found.id} --verdict corrected --type TYPE",
        )
    if not found.result.get("evidence") and found.result.get("outcome") != "healthy":
        raise UsageError(f"incident {found.id} cites no line", "a case needs a line that shows what it was")
    return last


def _recorded(names: Sequence[str], attempt: StoredAttempt | None) -> tuple[dict[str, Input], str]:
    """The files that were read, if all of them are what they were; else why not."""
    files = {f.name: f for f in attempt.files} if attempt else {}
    found: dict[str, Input] = {}
    for name in names:
        file = files.get(name)
        if file is None or not file.digest:
            return {}, f"where {name} came from is not known"
        try:
            same = identity.digest(Path(file.path))[1] == file.digest
        except OSError:
            return {}, f"{file.path} is not there any more"
        if not same:
            return {}, f"{file.path} has changed since"
        found[name] = _input(file.path)
    return found, "" if found else "it names no file"


def _given(names: Sequence[str], logs: Sequence[Path]) -> dict[str, Input]:
    """Each by the longest end of its path that a given one has too; a file alone is what it is called."""
    inputs, _ = sources.discover([str(path) for path in logs])
    if len(names) == len(inputs) == 1:
        return {names[0]: inputs[0]}
    found: dict[str, Input] = {}
    for name in names:
        alike = [(_common_end(name, item.name), item) for item in inputs]
        best = max((length for length, _ in alike), default=0)
        these = [item for length, item in alike if length == best]
        if not best or len(these) > 1:
            raise InputError(
                f"{name}: {'more than one' if best else 'none'} of the given logs is it", "give each by its own name"
            )
        found[name] = these[0]
    return found


def _common_end(one: str, other: str) -> int:
    """How many parts of two paths are the same, from their ends."""
    pairs = zip(reversed(PurePosixPath(one).parts), reversed(PurePosixPath(other).parts), strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(PurePosixPath(p).parts) for p in (one, other)))


def _input(path: str) -> Input:
    return sources.discover([path])[0][0]


def _stage(stage: Path, places: Mapping[str, Input]) -> dict[str, str]:
    """The logs without secrets, decompressed; the name of each in the diagnosis -> here."""
    staged: dict[str, str] = {}
    for name, item in places.items():
        parts = [p for p in PurePosixPath(name).parts if p not in ("/", "..", ".", "-")] or ["stdin.log"]
        here = PurePosixPath(*parts)
        here = here.with_suffix("") if here.suffix in _PACKED and item.kind not in RAW else here
        place = stage / here
        place.parent.mkdir(parents=True, exist_ok=True)
        _write(item, place)
        staged[name] = here.as_posix()
    return staged


def _write(item: Input, place: Path) -> None:
    """Line by line, so that a cited line keeps its number."""
    if item.kind in RAW and item.path is not None:
        shutil.copyfile(item.path, place)
        return
    redactor, rest, number = LineRedactor(), b"", 0
    problems: list[str] = []
    with place.open("wb") as out:
        for piece in chunks(item, problems):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                number += 1
                out.write(_clean(redactor, line, number) + b"\n")
        if rest:
            out.write(_clean(redactor, rest, number + 1))
    if problems:
        raise InputError(f"{item.name}: {problems[0]}", "give its logs whole: --logs PATH")


def _clean(redactor: LineRedactor, line: bytes, number: int) -> bytes:
    return redactor.redact(line.decode("utf-8", "replace"), number).encode()


def _renamed(result: Mapping[str, Any], staged: Mapping[str, str]) -> dict[str, Any]:
    evidence = [{**e, "file": staged[e["file"]]} for e in result["evidence"] if e["file"] in staged]
    return {**result, "files": list(staged.values()), "evidence": evidence}


def _cited(stage: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """One file of the cited lines in their order."""
    cited = sorted(result["evidence"], key=lambda e: (e["file"], e["line"]))
    text = "".join(f"{' '.join(redact(e['text']).splitlines())}\n" for e in cited)
    (stage / "cited.log").write_text(text, "utf-8")
    evidence = [{**e, "file": "cited.log", "line": at} for at, e in enumerate(cited, 1)]
    return {**result, "files": ["cited.log"], "evidence": evidence}
