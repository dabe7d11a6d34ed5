"""Of which process and node the lines of a collected file are: labels, headings, names of files, command lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from triage.domain import LogFile, LogLine

_TASK = re.compile(r"^ {0,6}(?:(\d{1,6})|\[rank(\d{1,6})\]): ?")
_HOST = re.compile(r"^([A-Za-z][\w.-]{0,80}\d[\w.-]{0,40}): ?")
_LABELLED = 0.9  # of the lines that hold something
_LOCAL = re.compile(
    r"--local[-_]rank[= ](\d{1,4})\b|\b(?:LOCAL_RANK|SLURM_LOCALID|OMPI_COMM_WORLD_LOCAL_RANK)=(\d{1,4})\b"
)
_RANK = re.compile(
    r"--(?:global[-_])?rank[= ](\d{1,6})\b|(?<!\w)(?:RANK|SLURM_PROCID|OMPI_COMM_WORLD_RANK|PMI_RANK|PMIX_RANK)=(\d{1,6})\b"
    r"|\b[Rr]ank[ =:]{1,2}(\d{1,6})\b(?! ?(?:of|/) ?\d)"
)
_PID = re.compile(
    r"(?:pyspy|py-spy|spy|native|stack|stacks|gdb|bt|wchan|fds|env|status|pid|proc)[-_.](\d{2,9})(?=[._-]|$)",
    re.IGNORECASE,
)
# How collected output says whose it is: `### host: command`, `==> host <==`, pdsh's dshbak, `ssh host`, a prompt.
_HEADING = re.compile(
    r"^(?:#{2,}|={2,}>?|-{2,}|\*{2,}) ?(?:node |host |on )?([A-Za-z][\w.-]{0,80}\d[\w.-]{0,40})(?::| <?[=#*-]{2,}|\s*$)"
    r"|^(?:[$#>] ?)?ssh (?:-\S{1,20} )*(?:\w[\w.-]{0,40}@)?([A-Za-z][\w.-]{0,80}\d[\w.-]{0,40})\b(?:\s|$)"
    r"|^\[?\w[\w.-]{0,40}@([A-Za-z][\w.-]{0,80}\d[\w-]{0,40})[ :][^$#]{0,80}[$#] "
)
_LOOK = re.compile(r"\d\.(\d{1,3})\.txt$")
_RULE = re.compile(r"^-{8,}\s*$")
_BARE_HOST = re.compile(r"^([A-Za-z][\w.-]{0,80}\d[\w.-]{0,40})\s*$")


@dataclass(slots=True)
class Labelled:
    """The lines of a file under one label, each with its text without it."""

    lines: list[tuple[LogLine, str]]
    rank: int | None = None
    node: str | None = None


class Whose:
    """The node that headings give the lines that follow; before any, the file's."""

    def __init__(self, file: LogFile) -> None:
        self.node = file.node
        self._ruled = False

    def take(self, text: str) -> None:
        if text[:1] in "#=-*$>[s" or "@" in text[:60]:
            if found := _HEADING.match(text):
                self.node = found[1] or found[2] or found[3]
        elif self._ruled and (bare := _BARE_HOST.match(text)):
            self.node = bare[1]
        self._ruled = bool(_RULE.match(text))


def by_label(file: LogFile) -> list[Labelled]:
    """The lines of a file, those of each task or host apart where nearly all carry a label."""
    told = [line for line in file.lines if line.text.strip()]
    for pattern in (_TASK, _HOST):
        hits = sum(bool(pattern.match(line.text)) for line in told)
        if told and hits >= _LABELLED * len(told):
            return list(_split(file, pattern))
    return [Labelled([(line, line.text) for line in file.lines])]


def _split(file: LogFile, pattern: re.Pattern[str]) -> Iterator[Labelled]:
    streams: dict[str, Labelled] = {}
    for line in file.lines:
        found = pattern.match(line.text)
        if found is None:
            continue
        label = next(filter(None, found.groups()))
        rank, node = (int(label), None) if label.isdecimal() else (None, label)
        streams.setdefault(label, Labelled([], rank, node)).lines.append((line, line.text[found.end() :]))
    yield from streams.values()


def pid_in_name(name: str) -> int | None:
    """pyspy-280058.txt, wchan_41201.txt."""
    found = _PID.search(PurePosixPath(name).name)
    return int(found[1]) if found else None


def look_of(name: str) -> int:
    """Which look at the process a file is of: `pyspy-4711.2.txt` is of the second."""
    found = _LOOK.search(name)
    return int(found[1]) if found else 1


def rank_in(text: str) -> int | None:
    """The rank that a command line or a sentence names."""
    if "ank" not in text and "RANK" not in text and "PROCID" not in text:
        return None
    found = _RANK.search(text[:1000])
    return int(next(filter(None, found.groups()))) if found else None


def local_rank_in(text: str) -> int | None:
    """The rank within its node."""
    found = _LOCAL.search(text[:1000]) if "ocal" in text or "LOCAL" in text else None
    return int(next(filter(None, found.groups()))) if found else None
