"""The user's own incidents: read from files, secrets removed, written to the user's folder."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from triage import kb
from triage.domain import KnownIncident, Source
from triage.errors import InputError, KnowledgeError
from triage.redact import redact

ADDED, UPDATED, KNOWN, SHIPPED = "added", "updated", "known already", "shipped with triage already"
RESULTS = (ADDED, UPDATED, KNOWN, SHIPPED)
_SUFFIXES = {".json", ".jsonl", ".ndjson", ".txt", ".yaml", ".yml"}


def files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files to import: each file as given, of a folder those that may hold incidents. Errors: InputError."""
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.suffix.lower() in _SUFFIXES and p.is_file())
            if not found:
                raise InputError(f"{path}: no file of incidents in it", f"looked for {', '.join(sorted(_SUFFIXES))}")
            yield from found
        elif path.exists():
            yield path
        else:
            raise InputError(f"{path}: no such file")


def read(path: Path) -> Iterator[KnownIncident]:
    """Errors: KnowledgeError for what is no file of incidents or names labels that do not exist."""
    from triage.retrieve.importer import read_import

    return map(without_secrets, read_import(path, kb.taxonomy()))


def read_own(path: Path) -> KnownIncident:
    """One incident in triage's own form, complete. Errors: KnowledgeError."""
    incident = without_secrets(kb.load_incident(path))
    for name in ("symptoms", "root_cause"):
        if not getattr(incident, name).strip():
            raise KnowledgeError(f"{path}: {name} is empty", "tell what was seen and what it was")
    return incident


def without_secrets(incident: KnownIncident) -> KnownIncident:
    values = {f.name: getattr(incident, f.name) for f in dataclasses.fields(incident)}
    return KnownIncident(**{name: value if name == "id" else _redacted(value) for name, value in values.items()})


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Source):
        return Source(redact(value.url), redact(value.title))
    return tuple(map(_redacted, value))


def save(home: Path, incident: KnownIncident, replace_own: bool = False) -> str:
    """Writes it to the user's folder; which of RESULTS it came to. An incident that triage ships is never replaced."""
    if any(shipped.id == incident.id for shipped in kb.known_incidents()):
        if replace_own:
            raise KnowledgeError(f"the id {incident.id} is one that triage ships", "give your incident another id")
        return SHIPPED
    path, text = path_of(home, incident.id), _yaml(incident)
    existed = path.exists()
    if existed and (not replace_own or path.read_text("utf-8") == text):
        return KNOWN
    _write(path, text)
    return UPDATED if existed else ADDED


def path_of(home: Path, incident_id: str) -> Path:
    """A file name that any id can have; two ids never share one."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", incident_id).strip(".")[:80]
    if safe != incident_id:
        safe = f"{safe}-{hashlib.sha256(incident_id.encode()).hexdigest()[:8]}"
    return kb.user_folder(home) / f"{safe}.yaml"


def _yaml(incident: KnownIncident) -> str:
    document = {
        name: [dict(item) if isinstance(item, dict) else item for item in value] if isinstance(value, tuple) else value
        for name, value in dataclasses.asdict(incident).items()
    }
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=110)


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}", "set TRIAGE_HOME to a folder that can be"
        ) from None
