"""Judges checkpoints: complete, incomplete and why, or being written. Pure but for the questions put to the probe."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from statistics import median

from triage.recover.checkpoints import layouts, ranks, trackers
from triage.recover.checkpoints.tree import Checkpoint, FileAt, Probe, Survey, Unit, some

FRESH = 600  # seconds after its last change in which an incomplete one is taken to be still in writing
SMALL = 4096  # bytes; the sizes of smaller files say nothing
SHORT = 0.8  # of the size that the same file has in the other checkpoints
_HEAVY = re.compile(r"\.(?:pt|pth|pth\.tar|bin|safetensors|distcp|ckpt)$")
_TEMPORARY = re.compile(
    r"(?:^|/)tmp-checkpoint-|\.(?:tmp|temp|part|partial|incomplete)(?:$|[./-])|(?:^|/)\.tmp|\.orbax-checkpoint-tmp"
)
_MAY_BE_EMPTY = re.compile(r"(?:^|/)(?:__init__\.py|\.\w+|.*\.(?:lock|done|complete|log|txt|out|err))$")
_WEIGHTS = re.compile(
    r"(?:^|/)(?:(?:pytorch_)?model|adapter_model|diffusion_pytorch_model|flax_model)[^/]*\.(?:safetensors|bin|pt|pth|msgpack)$"
)
_STATE = re.compile(
    r"(?:^|/)(?:optimizer|optim|trainer_state)[^/]*\.(?:pt|bin|safetensors)$|optim_states\.pt$|(?:^|/)optimizer(?:_\d+)?/"
)


def survey(files: Iterable[FileAt], probe: Probe, now: float) -> Survey:
    """Every checkpoint in the list. They are looked into from the newest on, until one is complete; of older ones only names are judged.

    now: seconds since 1970. Errors: OSError when the folder cannot be read on.
    """
    files = list(files)
    names = {f.name for f in files}
    found: list[Checkpoint] = []
    chosen: Checkpoint | None = None
    notes: list[str] = []
    units = layouts.units(files)
    alike: dict[tuple[str, str, str], list[Unit]] = {}
    for unit in units:
        alike.setdefault(_kind(unit), []).append(unit)
    for unit in sorted(units, key=lambda u: (_order(u, probe), u.changed), reverse=True):
        siblings = [u for u in alike[_kind(unit)] if u is not unit]
        judged = _judge(unit, siblings, names, probe, now, deep=chosen is None)
        found.append(judged)
        if judged.state == "complete" and chosen is None:
            chosen = judged
    if chosen is not None:
        notes += trackers.notes(chosen, found, names, probe)
    return Survey(tuple(found), chosen, tuple(notes))


def _kind(unit: Unit) -> tuple[str, str, str]:
    """Of checkpoints that lie beside each other and are alike; single files only where their names differ by numbers alone."""
    return unit.folder, unit.layout, re.sub(r"\d+", "#", unit.name) if unit.layout == "file" else ""


def _order(unit: Unit, probe: Probe) -> int:
    return step_of(unit, probe) or -1


def step_of(unit: Unit, probe: Probe) -> int | None:
    """As its name says; a Lightning file keeps it inside as well."""
    if unit.step is None and unit.layout == "Lightning" and len(unit.files) == 1:
        return probe.number(unit.name, "global_step")
    return unit.step


def _judge(unit: Unit, siblings: Sequence[Unit], names: set[str], probe: Probe, now: float, deep: bool) -> Checkpoint:
    problems = [
        *_by_names(unit, probe),
        *trackers.not_ended(unit, siblings, names, probe),
        *_beside(unit, siblings),
    ]
    if deep and not problems:
        problems += _inside(unit, probe)
    if not problems:
        notes = tuple(_notes(unit, siblings, now))
        return Checkpoint(unit, "complete" if deep else "not looked into", (), notes)
    writing = now - unit.changed < FRESH
    return Checkpoint(unit, "being written" if writing else "incomplete", tuple(problems))


def _by_names(unit: Unit, probe: Probe) -> Iterator[str]:
    temporary = [n for n in (unit.name, *unit.files) if _TEMPORARY.search(n)]
    if temporary:
        yield f"{some(temporary)}: a name of what is still being written; its save did not end"
    empty = [n for n, f in unit.files.items() if not f.size and not _MAY_BE_EMPTY.search(n)]
    if empty:
        yield f"{some(empty)}: empty"
    if unit.layout != "file" and (lost := ranks.missing(unit.files)):  # its number is that of a step
        yield f"{len(lost)} missing: {some(lost)}"
    yield from _OF[unit.layout](unit, probe)


def _megatron(unit: Unit, probe: Probe) -> Iterator[str]:
    if ".metadata" in unit.files or any(n.endswith(".distcp") for n in unit.files):
        yield from _dcp(unit, probe)
    elif not any(n.endswith("model_optim_rng.pt") or n.endswith("model_rng.pt") for n in unit.files):
        yield "no model_optim_rng.pt of any rank"


def _deepspeed(unit: Unit, probe: Probe) -> Iterator[str]:
    models = sorted(n for n in unit.files if n.endswith("model_states.pt"))
    states = [n for n in unit.files if n.endswith("optim_states.pt")]
    if not models and not any("layer_" in n for n in unit.files):
        yield "no model states of any rank"
    copies = max((int(m[1]) + 1 for n in states if (m := re.search(r"zero_pp_rank_(\d+)_", n))), default=0)
    said = probe.number(unit.inside + models[0], "dp_world_size") if models and copies else None
    if said and said > copies:
        yield f"optimizer states of {copies} of {said} data-parallel ranks"


def _dcp(unit: Unit, probe: Probe) -> Iterator[str]:
    """Every folder of it that holds a .metadata; that is written last, by rank 0."""
    folders = {n.rpartition("/")[0] for n in unit.files if n.endswith((".distcp", ".metadata"))}
    for folder in sorted(folders):
        inside = f"{folder}/" if folder else ""
        if f"{inside}.metadata" not in unit.files:
            yield f"no {inside}.metadata, which is written last"
            continue
        parts = probe.parts(f"{unit.inside}{inside}.metadata")
        if parts is None:
            continue
        if lost := sorted(f"{inside}{n}" for n in parts if f"{inside}{n}" not in unit.files):
            yield f"{len(lost)} missing of those that .metadata names: {some(lost)}"
        short = sorted(
            f"{inside}{n}" for n, size in parts.items() if (f := unit.files.get(f"{inside}{n}")) and f.size < size
        )
        if short:
            yield f"{some(short)}: shorter than .metadata says"


def _huggingface(unit: Unit, probe: Probe) -> Iterator[str]:
    state = unit.files.get("trainer_state.json")
    if state is None:
        yield "no trainer_state.json"
    elif state.size:
        try:
            reached = json.loads(probe.text(state.name)).get("global_step")
        except (ValueError, AttributeError, RecursionError):
            yield "trainer_state.json: cut"
        else:
            if unit.step is not None and isinstance(reached, int) and reached != unit.step:
                yield f"trainer_state.json is of step {reached}"
    if not any(_WEIGHTS.search(n) or "model_states.pt" in n or n.endswith(".distcp") for n in unit.files):
        yield "no weights"
    yield from _parts(unit, probe)


def _parts(unit: Unit, probe: Probe) -> Iterator[str]:
    """The files that an index of shards or the .metadata of a torch DCP names."""
    for index in (n for n in unit.files if n.endswith(".index.json")):
        try:
            shards = {
                PurePosixPath(s).as_posix() for s in json.loads(probe.text(unit.inside + index))["weight_map"].values()
            }
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            yield f"{index}: cut, or not what it should be"
            continue
        folder = index.rpartition("/")[0]
        if lost := sorted(s for s in shards if f"{folder}/{s}".lstrip("/") not in unit.files):
            yield f"{len(lost)} missing of those that {index} names: {some(lost)}"
    yield from _dcp(unit, probe)


def _lightning(unit: Unit, probe: Probe) -> Iterator[str]:
    if len(unit.files) > 1 or unit.inside.rstrip("/") == unit.name:
        yield from _dcp(unit, probe)


def _orbax(unit: Unit, _probe: Probe) -> Iterator[str]:
    """What each process wrote is joined at the end, into one manifest."""
    items = {m[1] for n in unit.files if (m := re.match(r"(.*?)ocdbt\.process_\d+/", n))}
    if lost := sorted(f"{item}manifest.ocdbt" for item in items if f"{item}manifest.ocdbt" not in unit.files):
        yield f"no {some(lost)}, which is written last"


def _file(_unit: Unit, _probe: Probe) -> Iterator[str]:
    yield from ()


_OF = {
    "Megatron": _megatron,
    "DeepSpeed": _deepspeed,
    "torch DCP": _dcp,
    "Hugging Face": _huggingface,
    "Lightning": _lightning,
    "Orbax": _orbax,
    "folder": _parts,
    "file": _file,
}


def _beside(unit: Unit, siblings: Sequence[Unit]) -> Iterator[str]:
    """Files that the checkpoints next to it have, and sizes; a change that another one shares is one of the job."""
    at = unit.step or 0
    near = heapq.nsmallest(3, (s for s in siblings if s.step is not None), key=lambda s: abs((s.step or 0) - at))
    near = [s for s in near if len(s.files) > 1] if len(unit.files) > 1 else near
    if not near:
        return
    mine = {n for n in unit.files if _HEAVY.search(n)}
    like = {_common(n) for n in mine}
    if (
        len(unit.files) > 1
        and not any(_of_ranks(s) <= like for s in near[:1])
        and not any(_of_ranks(s) == _of_ranks(unit) for s in near)
    ):
        lost = sorted(_of_ranks(near[0]) - like)
        yield f"{len(lost)} missing that step {near[0].step} has: {some(lost)}"
    theirs = [{_common(n): f.size for n, f in s.files.items()} for s in near]
    sizes = {n: [there[_common(n)] for there in theirs if _common(n) in there] for n in mine}
    if len(unit.files) == 1:
        sizes = {n: [f.size for s in near for f in s.files.values()] for n in mine}
    short = [
        n
        for n, others in sizes.items()
        if others and unit.files[n].size and median(others) > SMALL and unit.files[n].size < SHORT * median(others)
    ]
    if short:
        n = sorted(short)[0]
        yield f"{some(sorted(short))}: {unit.files[n].size:,} bytes, {int(median(sizes[n])):,} in the others"


def _of_ranks(unit: Unit) -> set[str]:
    """Its weights and states, without those that are split as it happens."""
    return {_common(n) for n in unit.files if _HEAVY.search(n) and not n.endswith(".distcp") and "-of-" not in n}


def _common(name: str) -> str:
    """As the same file is called in each checkpoint: Hugging Face keeps DeepSpeed's own folder of the step inside."""
    return re.sub(r"(^|/)global_step\d+/", r"\1global_step*/", name)


def _inside(unit: Unit, probe: Probe) -> Iterator[str]:
    cut = {}
    for name in sorted(unit.files):
        if _HEAVY.search(name) and not name.endswith(".distcp") and (why := probe.cut(unit.inside + name)):
            cut[name] = why
    if cut:
        yield f"{some(list(cut))}: {next(iter(cut.values()))}"


def _notes(unit: Unit, siblings: Sequence[Unit], now: float) -> Iterator[str]:
    if unit.layout == "Hugging Face" and not any(_STATE.search(n) or n.endswith(".distcp") for n in unit.files):
        yield "weights alone, with no optimizer state: a run can start from it, not go on"
    if 0 <= now - unit.changed < 60 and siblings:
        yield f"changed {int(now - unit.changed)} s ago: see that no rank writes any more"
