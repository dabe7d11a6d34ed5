"""What a failure costs: work since the last checkpoint, silence of a hang, GPU-hours, and what a restart takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from triage.domain import LogFile, LogLine, Progress
from triage.evidence.progress import Step

_WORLD = re.compile(
    r"\b(?:world[_ ]size|WORLD_SIZE|nranks|num_processes|distributed_world_size)['\"]?\s{0,2}[=: ]\s{0,2}(\d{1,6})\b"
    r"|registered\. Starting with (\d{1,6}) processes|\bNum processes: (\d{1,6})\b|\bSLURM_NTASKS=(\d{1,6})\b"
)
_WORLD_WORDS = ("orld", "WORLD", "nranks", "rocesses", "NTASKS")
_STEP_NAMED = re.compile(
    r"(?:global_step|iteration|iter|step|checkpoint|ckpt)[\s:=_-]{0,3}(\d{1,9})(?![\d.]*(?:s|ms|%)\b)", re.IGNORECASE
)
_MIN_STEPS = 3
SMALL = 0.01  # GPU-hours that are not worth a word


def cost(
    files: Sequence[LogFile],
    worked: Mapping[str, Sequence[Step]],
    reached: Progress,
    failed: LogLine | None,
    hung: bool,
    waited: timedelta | None = None,
) -> Progress:
    """`reached` with its figures, up to the job's last line, as all GPUs are held until then. failed: the first line of the failure.

    waited: how long ranks had waited in vain when they said so, which counts where what they said has no stamp.
    """
    world = world_size(files)
    end = _end(files, failed, waited)
    saved = _clock(files, _line_at(files, reached.last_checkpoint_line))
    silence = _silence(worked, end) if hung else None
    lost = end - saved if end and saved and end >= saved else silence
    hours = lost.total_seconds() / 3600 * world if lost and world else None
    return replace(
        reached,
        last_checkpoint_step=_checkpoint_step(files, worked, reached),
        world_size=world,
        silence=f"no step for {span(silence)}" if silence else None,
        lost_time=f"{span(lost)} since the last checkpoint" if lost and saved else reached.lost_time,
        lost_gpu_hours=round(hours, 2 if hours < 10 else 1) if hours and hours >= SMALL else None,
        restart_cost=_restart_cost(files, worked),
    )


def world_size(files: Sequence[LogFile]) -> int | None:
    """How many processes, one GPU each: as printed, else the ranks seen, where these are all from 0 on."""
    said = [
        int(next(filter(None, found.groups())))
        for f in files
        if f.kind == "job"
        for line in f.lines
        if any(word in line.text for word in _WORLD_WORDS) and (found := _WORLD.search(line.text[:1000]))
    ]
    ranks = {r for f in files for line in f.lines for r in (line.rank, *line.ranks) if r is not None}
    ranks |= {f.rank for f in files if f.rank is not None}
    highest = max(ranks, default=0) + 1
    if said:
        return max(*said, highest)
    return highest if highest > 1 and len(ranks) == highest else None


def _checkpoint_step(files: Sequence[LogFile], worked: Mapping[str, Sequence[Step]], reached: Progress) -> int | None:
    """The step that the checkpoint's line names, else the last one before it."""
    line = _line_at(files, reached.last_checkpoint_line)
    if line is None:
        return None
    if named := _STEP_NAMED.search(line.text):
        return int(named[1])
    before = [s.number for s in worked.get(line.file, ()) if s.number is not None and s.line.number < line.number]
    return before[-1] if before else None


def _restart_cost(files: Sequence[LogFile], worked: Mapping[str, Sequence[Step]]) -> str | None:
    """From the first stamp of the file that shows the first step to that step."""
    spans = []
    for file in files:
        found = worked.get(file.name, ())
        began = next((line.time for line in file.lines if line.time), None)
        first = found[0].line if found else None
        if began and first and first.time and len(found) >= _MIN_STEPS and file.kind == "job":
            spans.append(first.time - began)
    least = min((s for s in spans if s > timedelta()), default=None)
    return f"{span(least)} from the start of the log to the first step" if least else None


def _silence(worked: Mapping[str, Sequence[Step]], end: datetime | None) -> timedelta | None:
    last = [s.line.time for found in worked.values() for s in found[-1:] if s.line.time]
    return end - max(last) if end and last and end > max(last) else None


def _end(files: Sequence[LogFile], failed: LogLine | None, waited: timedelta | None) -> datetime | None:
    """The job's last stamp, or where the failure's own line has none, the wait after the last one before it."""
    told, last = _clock(files, failed), _last(files)
    if told is not None and waited is not None and failed is not None and failed.time is None:
        told += waited
    return max((at for at in (told, last) if at is not None), default=None)


def _last(files: Sequence[LogFile]) -> datetime | None:
    return max((line.time for f in files if f.kind == "job" for line in f.lines if line.time), default=None)


def _line_at(files: Sequence[LogFile], place: tuple[str, int] | None) -> LogLine | None:
    return next((x for f in files if place and f.name == place[0] for x in f.lines if x.number == place[1]), None)


def _clock(files: Sequence[LogFile], line: LogLine | None) -> datetime | None:
    """The time of a line, or of the last one before it that has one."""
    if line is None or line.time:
        return line.time if line else None
    before = [x.time for f in files if f.name == line.file for x in f.lines if x.number <= line.number and x.time]
    return before[-1] if before else None


def span(time: timedelta) -> str:
    """45 s, 12 min, 3 h 5 min."""
    seconds = int(time.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
