"""The prefixes of log lines: stamps, rank tags, levels, hosts. A reader looks at one place of the text and moves on."""

from __future__ import annotations

import re
from datetime import datetime

from triage.ingest.times import Clock

_LETTERS = {"T": "debug", "D": "debug", "I": "info", "W": "warning", "E": "error", "F": "fatal", "C": "fatal"}
_LEVELS = {
    **dict.fromkeys(("trace", "debug", "verbose", "debug2", "debug3"), "debug"),
    **dict.fromkeys(("info", "notice", "logs", "information", "succ", "vinfo"), "info"),
    **dict.fromkeys(("warn", "warning"), "warning"),
    **dict.fromkeys(("error", "err", "severe", "alert"), "error"),
    **dict.fromkeys(("critical", "fatal", "crit", "emerg", "panic"), "fatal"),
}
_PRIORITY = ("fatal", "fatal", "fatal", "error", "warning", "info", "info", "debug")
_LEVEL_WORDS = "TRACE|DEBUG|V?INFO|SUCC|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE"
_SEPARATORS = re.compile(r"[ \t\-|:,>*]+")
_RANK_TAG = re.compile(r"\[(?:rank ?|Rank |RANK |global_rank[= ])(\d{1,6})\]:? ?")
_CONTAINER = re.compile(r"std(?:out|err) [FP] ")  # of a container runtime, behind its stamp
_RANK_WORD = re.compile(r"[Rr]ank #?(\d{1,6}): ?(?![\d.]+%?$)")
_LOCAL_TAG = re.compile(r"\[(?:default|local_rank[= ]|trainer)(\d{1,3})\]:? ?")
_MPI_TAG = re.compile(r"\[(?:[\w.-]+@)?\d+,(\d{1,6})\](?:<std(?:out|err)>)?:? ?")
_GROUP_TAG = re.compile(r"\[PG ID [^\]]{0,120}?Rank (\d{1,6})\] ?")
_TORCH_TAG = re.compile(r"\[([IWEFC])(?=[\d ])(\d{3,4} )?")
_ONNX_TAG = re.compile(r"\[([IWEFV]):[^\]]{1,120}\]")
_WORD_TAG = re.compile(r"\[ ?([A-Za-z]{3,8})\d? *([|\]])")
_KERNEL_TAG = re.compile(r"\[ {0,5}\d{1,8}\.\d{6}\] ?(?:\[ *[TC]\d+\] )?")
_HOST_TAG = re.compile(r"\[([A-Za-z][\w.-]{1,80}):\d{1,8}(?::\d{1,8})?\] ?")
_ANY_TAG = re.compile(r"\[[^\[\]]{1,80}\]:?")
_RAY = re.compile(
    r"\((?:([A-Za-z_][\w.:<>-]{0,80})\)|(?:([\w.:<>-]{1,80}) )?pid=\d+(?:, ip=([\w.:-]+))?\)|"
    r"([\w.-]+), ip=([\w.:-]+)\)) ?"
)
_PRIORITY_TAG = re.compile(r"<(\d{1,3})>")
_NCCL = re.compile(
    r"([\w.-]{1,80}):\d{1,8}:\d{1,8} \[(-?\d{1,3})\] (?:[\w./:-]{1,200} )?(?:NCCL )?(INFO|WARN|TRACE|ABORT)?"
)
_SLURM = re.compile(
    r"(slurmstepd|slurmd|slurmctld|slurmdbd|srun|salloc|sbatch|scontrol)(?:-([A-Za-z][\w.-]*))?: "
    r"(?:(error|fatal|debug\d?|info|warning): )?"
)
_TASK = re.compile(r"([A-Za-z][\w.-]{0,80}): task (\d{1,6}): |([A-Za-z][\w.-]{0,80}): tasks [\d,-]+: ")
_LEVEL_HEAD = re.compile(
    rf"({_LEVEL_WORDS}|[Ww]arning|[Ee]rror|[Ff]atal|[Ii]nfo|[Dd]ebug\d?|LOGS)(?=[ :\]|,\t]|$)[ :\]|,\t]*"
)
_LETTER_HEAD = re.compile(r"\[?([IWEFD])\]? +(?=[\w/(*\[])")
_SYSLOG_HEAD = re.compile(r"([A-Za-z0-9][\w.:-]{0,80}) ([A-Za-z(][\w./@()-]{0,60})(\[\d+\])?: ?")
_LABEL = re.compile(r" {0,6}(\d{1,6}):(?: |$)")
_HOST_LABEL = re.compile(r"([A-Za-z][\w.-]{0,60}): ?")
_DAEMONS = {"slurmd": "slurm", "slurmctld": "slurm", "slurmstepd": "slurm", "slurmdbd": "slurm", "srun": "slurm"}


class Fields:
    """What the prefixes of one line said."""

    __slots__ = ("gpu", "level", "local_rank", "node", "program", "rank", "time")

    def __init__(self) -> None:
        self.time: datetime | None = None
        self.rank: int | None = None
        self.local_rank: int | None = None
        self.node: str | None = None
        self.gpu: str | None = None
        self.level: str | None = None
        self.program: str | None = None


def peel(text: str, at: int, fields: Fields, clock: Clock) -> int:
    """Reads prefix after prefix from `at`; where the message itself begins."""
    for _ in range(8):
        if skip := _SEPARATORS.match(text, at):
            at = skip.end()
        after = _step(text, at, fields, clock)
        if after == at:
            return at
        at = after
    return at


def label(text: str, fields: Fields) -> int:
    """The task label of `srun -l`, only where the caller knows that the file has them."""
    if match := _LABEL.match(text):
        fields.rank = int(match[1])
        return match.end()
    return 0


def host_label(text: str, fields: Fields) -> int:
    """The host label of pdsh or dsh, only where the caller knows that the file has them."""
    if match := _HOST_LABEL.match(text):
        fields.node = match[1]
        return match.end()
    return 0


def level_of(word: str) -> str | None:
    return _LEVELS.get(word.lower()) or (_LETTERS.get(word) if len(word) == 1 else None)


def _step(text: str, at: int, fields: Fields, clock: Clock) -> int:
    first = text[at : at + 1]
    if first == "[":
        return _bracket(text, at, fields, clock)
    if first == "(":
        return _ray(text, at, fields)
    if first == "<":
        return _priority(text, at, fields)
    if first.isascii() and (first.isalpha() or first.isdecimal()):
        return _word(text, at, fields, clock)
    return at


def _bracket(text: str, at: int, fields: Fields, clock: Clock) -> int:
    inner = text[at + 1 : at + 2]
    if inner.isdecimal() or inner == " ":
        return _bracket_digit(text, at, fields, clock)
    if match := _RANK_TAG.match(text, at) or _GROUP_TAG.match(text, at):
        fields.rank = int(match[1])
        return match.end()
    if match := _LOCAL_TAG.match(text, at):
        fields.local_rank = int(match[1])
        return match.end()
    if match := _TORCH_TAG.match(text, at) or _ONNX_TAG.match(text, at):
        fields.level = _LETTERS.get(match[1])
        if match.re is _TORCH_TAG:
            _stamp(text, at + 1, fields, clock)
            if ".cpp:" in text[at : at + 80] or "torch/" in text[at : at + 80]:
                fields.program = "torch"
        end = text.find("]", at, at + 160)
        return end + 1 if end > 0 else at
    if (match := _WORD_TAG.match(text, at)) and (level := level_of(match[1])):
        fields.level = level
        return match.end() if match[2] == "]" else _rest_of_tag(text, match.end(), fields, clock)
    if match := _MPI_TAG.match(text, at):
        fields.rank = int(match[1])
        return match.end()
    if match := _HOST_TAG.match(text, at):
        if not match[1].endswith((".py", ".cc", ".cpp", ".c", ".cu", ".go", ".h")):
            fields.node = fields.node or match[1]
        return match.end()
    if end := _stamp(text, at + 1, fields, clock):
        return _rest_of_tag(text, end, fields, clock)
    match = _ANY_TAG.match(text, at)
    return match.end() if match else at


def _bracket_digit(text: str, at: int, fields: Fields, clock: Clock) -> int:
    if end := _stamp(text, at + 1, fields, clock):
        return _rest_of_tag(text, end, fields, clock)
    if match := _KERNEL_TAG.match(text, at):
        fields.program = fields.program or "kernel"
        return match.end()
    if match := _MPI_TAG.match(text, at):
        fields.rank = int(match[1])
        return match.end()
    match = _WORD_TAG.match(text, at)
    if match and (level := level_of(match[1])):
        fields.level = level
        return match.end()
    return at


def _rest_of_tag(text: str, at: int, fields: Fields, clock: Clock) -> int:
    """Inside a bracket: perhaps a stamp or a level letter, then its end."""
    end = text.find("]", at, at + 120)
    if fields.time is None:
        _stamp(text, at, fields, clock)
    if match := _LETTER_HEAD.match(text, at + 1 if text[at : at + 1] == " " else at):
        fields.level = _LETTERS[match[1]]
        fields.program = fields.program or ("ray" if "raylet" in text[end : end + 20] else None)
    if end < 0:
        return at
    return end + 2 if text[end + 1 : end + 2] == ":" else end + 1


def _stamp(text: str, at: int, fields: Fields, clock: Clock) -> int:
    """Where the stamp at `at` ends, 0 if there is none."""
    found, end = clock.read(text, at)
    if end == at:
        return 0
    if found is not None and fields.time is None:
        fields.time = found
    return end


def _ray(text: str, at: int, fields: Fields) -> int:
    match = _RAY.match(text, at)
    if not match or (match[1] and match[1] not in ("raylet", "autoscaler", "gcs_server")):
        return at
    fields.program = "ray"
    fields.node = match[3] or match[5] or fields.node
    return match.end()


def _priority(text: str, at: int, fields: Fields) -> int:
    match = _PRIORITY_TAG.match(text, at)
    if not match:
        return at
    fields.level = _PRIORITY[int(match[1]) & 7]
    return match.end()


def _word(text: str, at: int, fields: Fields, clock: Clock) -> int:
    first = text[at]
    dated = fields.time is not None
    if end := _stamp(text, at, fields, clock):
        if first in "IWEFDC" and text[at + 1 : at + 2].isdecimal():
            fields.level = _LETTERS[first]
            return _end_of_glog(text, end, fields)
        return _syslog(text, end, fields, sure=first.isalpha())
    if (match := _LEVEL_HEAD.match(text, at)) and fields.level is None:
        fields.level = level_of(match[1])
        return match.end()
    if first in "IWEFD" and dated and fields.level is None and (match := _LETTER_HEAD.match(text, at)):
        fields.level = _LETTERS[match[1]]
        return match.end()
    if match := _SLURM.match(text, at):
        return _slurm(text, match, fields)
    if (match := _NCCL.match(text, at)) and ("NCCL" in match[0] or match[3]):
        fields.program, fields.node, fields.gpu = "nccl", match[1], match[2]
        fields.level = fields.level or {"WARN": "warning", "ABORT": "error", "TRACE": "debug"}.get(
            match[3] or "", "info"
        )
        return match.end()
    if dated and (match := _CONTAINER.match(text, at)):
        return match.end()
    if match := _RANK_WORD.match(text, at):
        fields.rank = int(match[1])
        return match.end()
    if text.startswith("kernel: ", at):
        fields.program = "kernel"
        return at + 8
    return at


def _end_of_glog(text: str, at: int, fields: Fields) -> int:
    end = text.find("] ", at, at + 160)
    if "torch" in text[at:end] or "ProcessGroup" in text[at:end]:
        fields.program = "torch"
    return end + 2 if end > 0 else at


def _slurm(text: str, match: re.Match[str], fields: Fields) -> int:
    fields.program = "slurm"
    fields.node = match[2] or fields.node
    if match[3]:
        fields.level = level_of(match[3])
    if task := _TASK.match(text, match.end()):
        fields.node = task[1] or task[3]
        if task[2]:
            fields.rank = int(task[2])
        return task.end()
    return match.end()


def _syslog(text: str, at: int, fields: Fields, sure: bool) -> int:
    """`host program[pid]: ` behind a stamp; behind an ISO stamp only with a pid or a known daemon."""
    at += text[at : at + 1] == " "
    match = _SYSLOG_HEAD.match(text, at)
    if not match or level_of(match[1]) or match[1].endswith("]"):
        return at
    program = match[2].rsplit("/", 1)[-1].lower()
    if not (
        match[3] or program in _DAEMONS or program in ("kernel", "systemd") or (sure and not match[2].startswith("("))
    ):
        return at
    fields.node = match[1]
    fields.program = _DAEMONS.get(program) or ("python" if program.startswith("python") else program)
    return match.end()
