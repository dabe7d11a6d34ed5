"""`triage recover checkpoints`: which one a job can go on from."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from triage.cli import output
from triage.recover.checkpoints.judging import step_of, survey
from triage.recover.checkpoints.tree import Checkpoint, Survey
from triage.recover.resume import resuming
from triage.recovering.disk import Disk
from triage.text import how_many, printable

SHOWN = 8


def show(folder: Path, reached: int | None, chosen: str) -> int:
    """1 where none is complete. Errors: InputError."""
    disk = Disk(folder)
    found = survey(disk.files(), disk, time.time())
    if chosen == "json":
        output.write_last(json.dumps(as_json(found, disk, reached)))
    else:
        output.write_last("\n".join(_lines(found, disk, reached)))
    return 0 if found.chosen else 1


def as_json(found: Survey, disk: Disk, reached: int | None) -> dict[str, Any]:
    best = found.chosen
    return {
        "chosen": _one(best, disk) if best else None,
        "resume": resuming(best, str(disk.path(best.unit.name))) if best else None,
        "steps_lost": lost(found, disk, reached),
        "notes": list(found.notes),
        "checkpoints": [_one(one, disk) for one in found.found],
    }


def lost(found: Survey, disk: Disk, reached: int | None) -> int | None:
    """Steps between where the job came to, told or by its newest checkpoint, and the chosen one."""
    steps = [step for one in found.found if (step := step_of(one.unit, disk)) is not None]
    at = step_of(found.chosen.unit, disk) if found.chosen else None
    last = reached if reached is not None else max(steps, default=None)
    return max(0, last - at) if at is not None and last is not None else None


def _one(one: Checkpoint, disk: Disk) -> dict[str, Any]:
    unit = one.unit
    return {
        "path": str(disk.path(unit.name)),
        "layout": unit.layout,
        "step": step_of(unit, disk),
        "state": one.state,
        "files": len(unit.files),
        "bytes": unit.bytes,
        "changed": datetime.fromtimestamp(unit.changed, UTC).isoformat(timespec="seconds"),
        "problems": list(one.problems),
        "notes": list(one.notes),
    }


def _lines(found: Survey, disk: Disk, reached: int | None) -> list[str]:
    if not found.found:
        return [
            "No checkpoint is there: no name of Megatron, DeepSpeed, torch DCP, Hugging Face, Lightning, Orbax or Accelerate, and none with a step."
        ]
    lines = _head(found, disk, reached)
    for one in found.found[:SHOWN]:
        unit = one.unit
        at = f"{datetime.fromtimestamp(unit.changed, UTC):%Y-%m-%d %H:%M} UTC"
        size = f"{how_many(len(unit.files), 'file')}, {_size(unit.bytes)}"
        lines.append(f"  {one.state:<15} {printable(unit.name)}  ({unit.layout}, {size}, {at})")
        lines += [f"  {'':<15} - {printable(text)}" for text in (*one.problems, *one.notes)]
    if len(found.found) > SHOWN:
        lines.append(f"  and {how_many(len(found.found) - SHOWN, 'older one')}; --format json lists all")
    return lines


def _head(found: Survey, disk: Disk, reached: int | None) -> list[str]:
    if found.chosen is None:
        return ["No checkpoint is complete.", ""]
    best, steps = found.chosen, lost(found, disk, reached)
    path, step = str(disk.path(best.unit.name)), step_of(best.unit, disk)
    at = f", step {step}" if step is not None else ""
    cost = f"; {how_many(steps, 'step')} lost" if steps else ""
    lines = [f"Go on from {printable(path)}{at}{cost}", f"  {printable(resuming(best, path))}"]
    if reached is not None and step is not None and reached < step:
        lines.append(f"  note: it is of a later step than the {reached} of --reached: is it of this job?")
    return [*lines, *(f"  note: {printable(note)}" for note in found.notes), ""]


def _size(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
