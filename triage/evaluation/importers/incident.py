"""A labelled case from an incident whose cause a person has confirmed or corrected.

The export is a `triage.diagnosis/1` object with a verdict beside it, in one of these forms:

    {"result": {...diagnosis...}, "verdict": "confirmed" | {"verdict": "corrected", ...labels}, "expect": {...labels}}
    {...diagnosis..., "verdict": ...}

`verdicts` may stand for verdict: a list, of which the last counts. Labels are fields of a case's `expect`; they win over what
the diagnosis says. A corrected incident needs the right failure_type among them. The log files lie beside the export.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from triage import kb
from triage.errors import InputError
from triage.evaluation.answers import items, numbers, text, texts
from triage.evaluation.importers import folder
from triage.evaluation.importers.folder import Draft
from triage.evaluation.schema import short, unlike

_NAMES = ("incident.json", "diagnosis.json")
_LABELS = (
    "outcome", "also_outcome", "failure_type", "also_accept", "root_cause_class", "nodes", "ranks", "action", "must_mention",
    "must_not", "evidence",
)  # fmt: skip
_NONE = ("nodes", "ranks")
_RESULT = "triage.diagnosis/1"


def import_incident(path: Path, out: Path) -> Path:
    """The case folder made under `out` from an export (its JSON file, or the folder that holds it and the logs).

    Confirmed: the labels are what the diagnosis said. Corrected: what it said of type, class, action and evidence goes,
    its type becomes a must_not, and the given labels stand. The case is of split dev, and private as its logs are.
    Errors: InputError for an export without verdict, rejected without the right cause, or without its logs.
    """
    file = _export(path)
    doc = _read(file)
    result = doc.get("result") or doc.get("diagnosis") or doc
    if not isinstance(result, Mapping) or result.get("schema") != _RESULT:
        raise InputError(f"{file}: holds no {_RESULT} object", "give the JSON of an incident")
    verdict, labels = _verdict(doc, file)
    places = _logs(result, file)
    names = folder.neutral_names(list(places.values()))
    in_case = {own: names[relative] for own, relative in places.items()}
    files = {names[relative]: file.parent / relative for relative in places.values()}
    expect = _expect(result, verdict, labels, in_case, file)
    folder.check_evidence([(f, a, z) for f, a, z in expect.get("evidence", ())], files, str(file))
    case = {
        "source": f"incident {result.get('incident') or file.stem}, {verdict} by a person",
        "license": "",
        "split": "dev",
        "synthetic": False,
        "tags": [],
        "expect": expect,
    }
    hours = doc["job"].get("gpu_hours") if isinstance(doc.get("job"), Mapping) else None
    if isinstance(hours, (int, float)) and not isinstance(hours, bool) and hours > 0:
        case["gpu_hours"] = hours
    return folder.write_all([Draft(files, case, str(file))], out)[0]


def _export(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = [path / name for name in _NAMES if (path / name).is_file()] or sorted(path.glob("*.json"))
    if len(found) != 1:
        raise InputError(f"{path}: holds {len(found)} JSON files", f"name the export, or call it {_NAMES[0]}")
    return found[0]


def _read(file: Path) -> dict[str, Any]:
    try:
        doc = json.loads(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}", "give the JSON of an incident") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: is no JSON: {error}", "give the JSON of an incident") from None
    if not isinstance(doc, dict):
        raise InputError(f"{file}: is no JSON object", "give the JSON of an incident")
    return doc


def _verdict(doc: Mapping[str, Any], file: Path) -> tuple[str, dict[str, Any]]:
    """confirmed or corrected, and the labels that were given with it."""
    last = (items(doc.get("verdict")) or items(doc.get("verdicts")) or [None])[-1]
    entry = last if isinstance(last, Mapping) else {"verdict": last}
    word = text(entry.get("verdict"))
    labels = {k: v for source in (entry, doc.get("expect")) if isinstance(source, Mapping) for k, v in source.items() if k in _LABELS}  # fmt: skip
    if "failure_type" not in labels and text(entry.get("cause")) in kb.taxonomy().types:
        labels["failure_type"] = entry["cause"]
    if word not in kb.VERDICTS or word == "none":
        raise InputError(
            f"{file}: nobody has said whether the diagnosis was right",
            'record the outcome, or add "verdict": "confirmed"',
        )
    if word != "confirmed" and "failure_type" not in labels:
        raise InputError(
            f"{file}: the diagnosis was {word}, and nothing says what it was", 'add "expect": {"failure_type": ...}'
        )
    return ("confirmed" if word == "confirmed" else "corrected"), labels


def _logs(result: Mapping[str, Any], file: Path) -> dict[str, PurePosixPath]:
    """Name in the diagnosis -> where the file lies, relative to the export. Nothing outside its folder is read."""
    cited = [text(e.get("file")) for e in items(result.get("evidence")) if isinstance(e, Mapping)]
    names = list(dict.fromkeys(filter(None, texts(result.get("files")) or cited)))
    if not names:
        raise InputError(f"{file}: names no log files", "without its logs an incident is no case")
    found: dict[str, PurePosixPath] = {}
    for name in names:
        parts = [p for p in PurePosixPath(name.replace("\\", "/")).parts if p not in ("/", "..", ".")]
        ends = (PurePosixPath(*parts[at:]) for at in range(len(parts)))
        place = next((end for end in ends if _is_file(file.parent / end)), None)
        if place is None:
            raise InputError(
                f"{file}: the log {name[:80]} does not lie beside it", "put the logs into the export's folder"
            )
        found[name] = place
    if len(set(found.values())) < len(found):
        raise InputError(f"{file}: two of its logs are the same file here", "keep the folders that the logs were in")
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _expect(
    result: Mapping[str, Any], verdict: str, labels: Mapping[str, Any], in_case: Mapping[str, str], file: Path
) -> dict[str, Any]:
    """The labels of the case; what is empty is not labelled. The schema of cases checks them when they are written."""
    suspects = result.get("suspects")
    where = suspects if isinstance(suspects, Mapping) else {}
    found: dict[str, Any] = {"outcome": result.get("outcome")}
    wrong = labels.get("failure_type", result.get("failure_type")) != result.get("failure_type")
    if verdict == "confirmed" or not wrong:
        found |= {
            "failure_type": result.get("failure_type"),
            "root_cause_class": result.get("root_cause_class"),
            "evidence": _evidence(result, in_case),
            "nodes": texts(where.get("nodes")),
            "ranks": numbers(where.get("ranks")),
            "action": texts(result.get("action")),
        }
    else:
        found["must_not"] = [result.get("failure_type")]
    found |= {k: v for k, v in labels.items() if k != "evidence"}
    if "evidence" in labels:
        found["evidence"] = [_given(entry, in_case, file) for entry in items(labels["evidence"])]
    labels_of = kb.taxonomy()
    for name, allowed in (("outcome", labels_of.outcomes), ("failure_type", labels_of.types)):
        value = found.get(name)
        if not isinstance(value, str) or value not in allowed:
            raise InputError(f"{file}: {name}: {unlike(value, allowed)}")
    told = {name for name in _NONE if labels.get(name) == []}  # a person has said that none is to blame
    return {k: v for k, v in found.items() if k in told or v not in (None, "", [], ())}


def _evidence(result: Mapping[str, Any], in_case: Mapping[str, str]) -> list[list[Any]]:
    roots = [e for e in items(result.get("evidence")) if isinstance(e, Mapping) and e.get("role") == "root"]
    lines = [(in_case.get(text(e.get("file"))), e["line"]) for e in roots if type(e.get("line")) is int]
    return [[name, line, line] for name, line in dict.fromkeys(lines) if name and line > 0]


def _given(entry: Any, in_case: Mapping[str, str], file: Path) -> list[Any]:
    match entry:
        case [str(name), int(first), int(last)] if name in in_case and 1 <= first <= last:
            return [in_case[name], first, last]
    raise InputError(f"{file}: evidence {short(entry)} is no [file, first line, last line] of its logs", "")
