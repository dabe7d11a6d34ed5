"""`triage recover spikes`: where the loss jumped, and what to leave out."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from triage.cli import output
from triage.domain import LogFile
from triage.evidence.metrics import Point, points
from triage.evidence.spikes import AHEAD, FEWEST, FEWEST_OF_DRIFT, Spike, spikes
from triage.recover.skipping import Skip, framework_of, healthy_before, saved_steps, skip
from triage.recovering import records
from triage.text import how_many, printable

_KINDS = {
    "spike": "loss spike",
    "nan": "loss is no number",
    "drift": "loss drifts away",
    "gradient": "gradient norm spike",
}


@dataclass(frozen=True, slots=True)
class Told:
    file: str
    spike: Spike
    healthy: int | None
    skip: Skip | None


def of_files(files: Sequence[LogFile], on_disk: Sequence[int] = ()) -> tuple[list[Told], int]:
    """The spikes of the file that records most steps, and how many records it has: other ranks tell the same.

    on_disk: steps of checkpoints that are there, which count instead of those that the log names.
    """
    best: tuple[LogFile, list[Point]] | None = None
    for file in files:
        found = points(file)
        if found and (best is None or len(found) > len(best[1])):
            best = (file, found)
    if best is None:
        return [], 0
    file, found = best
    saved = on_disk or saved_steps(line for one in files for line in one.lines)
    framework = framework_of(point.line for point in found[:50])
    told = [Told(file.name, s, healthy_before(saved, s), skip(s, saved, framework)) for s in spikes(found)]
    return told, len(found)


def show(paths: Sequence[str], chosen: str) -> int:
    """1 where a loss did not come back. Errors: InputError."""
    tell = output.teller(quiet=False)
    files = records.read(paths, tell)
    tell(f"looking for spikes in {how_many(sum(len(file.lines) for file in files), 'record')}")
    told, count = of_files(files)
    output.clear_progress(quiet=False)
    if chosen == "json":
        output.write_last(json.dumps({"records": count, "spikes": [as_json(one) for one in told]}))
    else:
        output.write_last("\n".join(lines(told, count)))
    return 1 if any(stays(one) for one in told) else 0


def stays(one: Told) -> bool:
    return one.spike.back is None and one.spike.kind != "gradient"


def as_json(one: Told) -> dict[str, Any]:
    s = one.spike
    return {
        "kind": s.kind,
        "file": one.file,
        "step": s.first.step,
        "loss_from": {"step": s.shown.step, "line": s.shown.line.number} if s.shown else None,
        "line": s.first.line.number,
        "level": _number(s.level),
        "peak": _number(s.peak),
        "records": s.records,
        "last_step": s.last.step,
        "recovered_at": {"step": s.back.step, "line": s.back.line.number} if s.back else None,
        "healthy_checkpoint": one.healthy,
        "skip": asdict(one.skip) if one.skip else None,
    }


def _number(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def lines(told: Sequence[Told], count: int) -> list[str]:
    if not count:
        return ["No record of a loss or a gradient norm is in this log."]
    if not told and count < FEWEST + AHEAD:
        return [f"{how_many(count, 'record')} of a loss or a gradient norm: too few to tell a spike."]
    if not told:
        few = f", which are few: a slow rise shows from {FEWEST_OF_DRIFT} on" if count < FEWEST_OF_DRIFT else ""
        return [f"No spike in {how_many(count, 'record')}{few}."]
    return [line for one in told for line in _one(one)]


def _one(one: Told) -> list[str]:
    s = one.spike
    from_ = s.shown or s.first
    at = f"step {from_.step}" if from_.step is not None else "a record without a step"
    before = f", gradient norm from {_where(s.first)}" if from_ is not s.first else ""
    back = _where(s.back) if s.back else ""
    ended = (
        f"down again at {back} after {how_many(s.records, 'record')}"
        if s.back
        else "not down again to the end of the log"
    )
    found = [
        f"{_KINDS[s.kind]} from {at} ({printable(one.file)}:{from_.line.number}){before}: {_said(s.level)} before, {_said(s.peak)} at most; {ended}"
    ]
    if stays(one):
        none = "none that this log names: `triage recover checkpoints DIR` looks on the disk; without one, start anew with the setting or data changed"
        found.append(f"  healthy checkpoint before it: {f'step {one.healthy}' if one.healthy is not None else none}")
    if one.skip:
        samples = f" ({one.skip.samples:,} samples)" if one.skip.samples else ""
        found += [f"  leave out steps {one.skip.first} to {one.skip.last}{samples}", f"  {one.skip.settings}"]
    return found


def _where(point: Point) -> str:
    return f"step {point.step}" if point.step is not None else f"line {point.line.number}"


def _said(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "NaN"
