"""The small file beside checkpoints that names the last one saved; a framework that is told nothing loads that. Pure but for the probe.

It is written when all ranks are done, and without care: a crash or a full disk leaves it empty, cut, or naming what is not there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from triage.recover.checkpoints.tree import Checkpoint, Probe, Unit

_NAMES = {"Megatron": "latest_checkpointed_iteration.txt", "DeepSpeed": "latest"}
_STEP = re.compile(r"(?:global_step)?(\d{1,12})")
_RELEASE = "release"  # what Megatron writes beside converted weights, which have no step
_WITHOUT = {
    "Megatron": "Megatron reads it first and stops, whatever --ckpt-step says",
    "DeepSpeed": "a resume without a tag fails",
}
_LONGEST = 40  # characters of it that are told


def not_ended(unit: Unit, siblings: Sequence[Unit], names: Collection[str], probe: Probe) -> Iterator[str]:
    """The tracker names an older one, so this save did not end. One that names nothing there proves nothing."""
    said = _said(unit, names, probe)
    step = _step(said or "", siblings)
    if step is None or unit.step is None or step >= unit.step:
        return
    if any(one.step == step for one in siblings):
        yield f"{_NAMES[unit.layout]} still names {step}: this save did not end"


def notes(chosen: Checkpoint, found: Sequence[Checkpoint], names: Collection[str], probe: Probe) -> Iterator[str]:
    """Where the framework would take another than the chosen one, or stop at what the tracker holds."""
    unit = chosen.unit
    tracker = _NAMES.get(unit.layout)
    if tracker is None or unit.step is None:
        return
    said = _said(unit, names, probe)
    wanted = str(unit.step) if unit.layout == "Megatron" else unit.name.rpartition("/")[2]
    if said is None:
        if unit.layout == "Megatron" and unit.folder:  # else what lies beside it was not asked for
            yield f"{tracker} is not there: some versions of Megatron then begin anew, whatever --ckpt-step says: write {wanted} into it"
        return
    beside = [c for c in found if c.unit.folder == unit.folder]
    step = _step(said, [c.unit for c in beside])
    if said == _RELEASE and unit.layout == "Megatron":
        yield f"{tracker} says release, which Megatron then loads whatever --ckpt-step says: write {wanted} into it"
    elif step is None and said != wanted:
        yield f"{tracker} {_state(said)}: {_WITHOUT[unit.layout]}: write {wanted} into it"
    elif step is not None and step != unit.step:
        there = next((c for c in beside if c.unit.step == step), None)
        if there:
            yield f"{tracker} names {step}, which is {there.state}: name step {unit.step} when you resume"
        else:
            yield f"{tracker} names {step}, which is not there{_doubt(step, unit.step)}: write {wanted} into it"


def _doubt(step: int, chosen: int) -> str:
    """An older step that is no beginning of the chosen one's number was whole, and may since have been deleted."""
    older = step < chosen and not str(chosen).startswith(str(step))
    return (
        f" any more, and the save of {chosen} may not have ended: see that every rank wrote its part" if older else ""
    )


def _said(unit: Unit, names: Collection[str], probe: Probe) -> str | None:
    """None where there is no tracker."""
    place = f"{unit.folder}/{_NAMES.get(unit.layout)}".lstrip("/")
    return probe.text(place).strip() if place in names else None


def _step(said: str, beside: Sequence[Unit]) -> int | None:
    """Tags of DeepSpeed may be any names: then it is that of the checkpoint so called."""
    if found := _STEP.fullmatch(said):
        return int(found[1])
    return next((one.step for one in beside if one.name.rpartition("/")[2] == said), None)


def _state(said: str) -> str:
    if not said:
        return "is empty"
    return f"names {said[:_LONGEST]}, which is not there" if said.isprintable() else "holds no text"
