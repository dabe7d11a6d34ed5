"""Finds the checkpoints in a list of files, by how frameworks name them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from triage.recover.checkpoints.tree import FileAt, Layout, Unit

_FOLDERS: tuple[tuple[Layout, re.Pattern[str]], ...] = (
    ("Megatron", re.compile(r"iter_(\d{1,12})")),
    ("Hugging Face", re.compile(r"(?:tmp-)?checkpoint-(\d{1,12})")),
    ("Lightning", re.compile(r".*\.ckpt")),
    ("DeepSpeed", re.compile(r"global_step(\d{1,12})")),
)
_DCP_FILE = re.compile(r"(?:__\d+_\d+\.distcp|\.metadata)(?:\.tmp)?")
_LIGHTNING_STEP = re.compile(r"step=?[_-]?(\d{1,12})")
_SINGLE = re.compile(
    r"(?:.*[^a-z])?(?:step|iter|iteration|ckpt|checkpoint|model|state|epoch)[a-z]*[-_=]?0*(\d{1,12})\.(?:pt|pth|pth\.tar|bin|safetensors)",
    re.IGNORECASE,
)
# One that is written over and over, so that no name tells its step.
_LATEST = re.compile(
    r"(?:(?:model|ckpt|checkpoint)[-_])?(?:ckpt|checkpoint|snapshot|last|latest)\.(?:pt|pth|pth\.tar|bin|safetensors)"
)
# A folder for each step, with files of any names, as Accelerate and many loops of one's own write them.
_STEPPED = re.compile(
    r"(?:global_?)?(?:step|iter|iteration|epoch|ckpt|checkpoint|update)s?[-_=]?(\d{1,12})", re.IGNORECASE
)
_STATE = re.compile(r"(?i).*(?:model|optim|ckpt|checkpoint|state|weights|snapshot).*\.(?:pt|pth|bin|safetensors|ckpt)")
_ORBAX_STEP = re.compile(rf"(?:{_STEPPED.pattern}|(\d{{1,12}}))(?:\.orbax-checkpoint-tmp.*)?", re.IGNORECASE)
_ORBAX_FILES = frozenset({"_CHECKPOINT_METADATA", "_METADATA", "manifest.ocdbt"})
_ZERO_FILE = re.compile(r"(?:bf16_|fp16_)?zero_pp_rank_\d+_mp_rank_\d+_\w+\.pt|mp_rank_\d+_model_states\.pt")


def units(files: Iterable[FileAt]) -> list[Unit]:
    """Each checkpoint once, the outermost folder that is one; files that belong to none are left out."""
    of: dict[tuple[str, Layout], list[FileAt]] = {}
    files = list(files)
    loose = _loose(files)
    for file in files:
        key = _unit_of(file.name, loose)
        if key is not None:
            of.setdefault(key, []).append(file)
    return [_unit(name, layout, found) for (name, layout), found in of.items()]


def _loose(files: Sequence[FileAt]) -> dict[str, Layout]:
    """Folders that are checkpoints by what lies in them."""
    found: dict[str, Layout] = {}
    for file in files:
        folder, _, name = file.name.rpartition("/")
        if name in _ORBAX_FILES or ".orbax-checkpoint-tmp" in folder:
            if step := _above(folder, _ORBAX_STEP):
                found[step] = "Orbax"
        elif _DCP_FILE.fullmatch(name):
            found.setdefault(folder, "torch DCP")
        elif _ZERO_FILE.fullmatch(name):
            found[folder] = "DeepSpeed"
        elif _STATE.fullmatch(name) and not _SINGLE.fullmatch(name) and (step := _above(folder, _STEPPED)):
            found.setdefault(step, "folder")
    return found


def _above(folder: str, pattern: re.Pattern[str]) -> str:
    """The innermost part of a path whose last name is such a one, "" where there is none: what lies above may be a job's number."""
    parts = folder.split("/")
    return next(("/".join(parts[:n]) for n in range(len(parts), 0, -1) if pattern.fullmatch(parts[n - 1])), "")


def _unit_of(name: str, loose: dict[str, Layout]) -> tuple[str, Layout] | None:
    parts = name.split("/")
    for depth, part in enumerate(parts[:-1], 1):
        for layout, pattern in _FOLDERS:
            if pattern.fullmatch(part):
                return "/".join(parts[:depth]), layout
        if (folder := "/".join(parts[:depth])) in loose:
            return folder, loose[folder]
    if parts[-1].endswith(".ckpt"):
        return name, "Lightning"
    return (name, "file") if _SINGLE.fullmatch(parts[-1]) or _LATEST.fullmatch(parts[-1]) else None


def _unit(name: str, layout: Layout, files: Sequence[FileAt]) -> Unit:
    folder, _, last = name.rpartition("/")
    single = len(files) == 1 and files[0].name == name
    inside = folder + "/" if single and folder else "" if single else name + "/"
    step = _step(last, layout)
    if step is None and layout == "torch DCP":  # NeMo's lies in epoch=0-step=99/weights
        step = _step(folder.rpartition("/")[2], "Lightning")
    return Unit(name, folder, layout, step, {f.name.removeprefix(inside): f for f in files}, inside)


def _step(name: str, layout: Layout) -> int | None:
    if layout == "Lightning":
        found = _LIGHTNING_STEP.search(name)
        return int(found[1]) if found else None
    single = _SINGLE.fullmatch(name)
    if layout == "file":
        return int(single[1]) if single else None
    if layout == "Orbax" and (found := _ORBAX_STEP.fullmatch(name)):
        return int(found[1] or found[2])
    numbers = re.findall(r"\d{1,12}", name)
    return int(numbers[-1]) if numbers else None
