"""What a log measures of its checkpoints: how long a save holds the job up, how often it saves, how long a step takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from triage.domain import LogLine
from triage.evidence.metrics import Point

_BEGUN = re.compile(r"(?i)\b(?:saving|start(?:ed|ing)? (?:to )?sav\w*|writing)\b[^\n]{0,80}\bcheckpoint\b")
_ENDED = re.compile(
    r"(?i)\b(?:successfully saved|saved|finished saving|done saving|wrote)\b[^\n]{0,80}\bcheckpoint\b|\bcheckpoint\b[^\n]{0,60}\b(?:saved|written)\b"
)
_TIMER = re.compile(r"\bsave-checkpoint ?\.{0,120}:? ?\(?([\d.]{1,16})(?:, ?([\d.]{1,16})\))?")  # Megatron, in ms
_TOOK = re.compile(
    r"(?i)\bcheckpoint\b[^\n]{0,160}?\b(?:in|took|taking|time[:=])\s?([\d.]{1,12}) ?s(?:ec(?:ond)?s?)?\b"
)
_STEP_TIME = re.compile(r"elapsed time per iteration \((ms|s)\): ?([\d.]{1,14})")


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians, in seconds; None where the log does not tell. save: that a checkpoint holds the job up; every: between two saves;
    step: of a step; span: from the first stamp to the last; saves: how many were seen."""

    save: float | None = None
    every: float | None = None
    step: float | None = None
    span: float | None = None
    saves: int = 0


def measured(lines: Sequence[LogLine], points: Sequence[Point]) -> Measured:
    told, ends = _durations(lines)
    times = [line.time for line in lines if line.time]
    return Measured(
        save=median(told) if told else None,
        every=_usual(later - earlier for earlier, later in pairwise(ends)),
        step=_step(points),
        span=(max(times) - min(times)).total_seconds() if len(times) > 1 else None,
        saves=len(ends),
    )


def _durations(lines: Iterable[LogLine]) -> tuple[list[float], list[datetime]]:
    """Seconds of each save, as it is said or as its two lines are apart; when each ended."""
    said: list[float] = []
    apart: list[float] = []
    ends: list[datetime] = []
    begun: datetime | None = None
    for line in lines:
        text = line.text[:1000]
        if "heckpoint" not in text or line.level in ("error", "fatal"):
            continue
        if timer := _TIMER.search(text):
            said.append(float(timer[2] or timer[1]) / 1000)
        elif _ENDED.search(text):
            if took := _TOOK.search(text):
                said.append(float(took[1]))
            if line.time:
                ends.append(line.time)
                if begun and line.time >= begun:
                    apart.append((line.time - begun).total_seconds())
            begun = None
        elif _BEGUN.search(text) and begun is None:
            begun = line.time
    return said or [s for s in apart if s > 0], ends


def _step(points: Sequence[Point]) -> float | None:
    said = [float(m[2]) / (1000 if m[1] == "ms" else 1) for p in points if (m := _STEP_TIME.search(p.line.text[:1000]))]
    if said:
        return median(said)
    gaps = [
        (b.line.time - a.line.time).total_seconds() / (b.step - a.step)
        for a, b in pairwise(points)
        if a.line.time and b.line.time and a.step is not None and b.step is not None and b.step > a.step
    ]
    return median(gaps) if gaps and median(gaps) > 0 else None


def _usual(gaps: Iterable[object]) -> float | None:
    seconds = [gap.total_seconds() for gap in gaps if hasattr(gap, "total_seconds") and gap.total_seconds() > 0]
    return median(seconds) if seconds else None
