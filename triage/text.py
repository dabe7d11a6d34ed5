"""Small pure functions on text that several stages share."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterable, Sequence

# What nobody sees, but a model reads: joiners, directions, fillers, variation selectors, tags.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_NO_END = re.compile(r"['\"]?(?:[$`~{]|[&*!]\S)|;[A-Za-z]")
# No option, no path, no word of a shell, and none by which a scheduler knows all of its nodes: Slurm's ALL, LSF's allremote.
HOST = re.compile(r"(?!(?i:all|allremote|allhosts|others|none|default)(?![\w.-]))[A-Za-z0-9][A-Za-z0-9._-]{0,252}")

_MOST_DIGITS = 18  # of a number in a host's name
_LEAD = 20  # characters before a reason that say whose it is
# How programs say why: a status, a refusal, something that is not there.
_REASON = re.compile(
    r"(?i)\b(?:[45]\d\d [A-Z][a-z]+(?: [A-Z][a-z]+)*|too ?many ?\w+|(?:access|permission|pull access) denied|refused|unauthori[sz]ed|"
    r"not found|no such|does not exist|exceeded|timed out|no space|invalid \w+|unsupported|mismatch|process \d+ has)"
)

FOLLOWED = "What followed is a consequence: "  # begins the sentence of a cause that tells what came after it
_FOLLOWED = re.compile(rf"{FOLLOWED}.*?\.(?=\s|$)\s*", re.DOTALL)


def without_consequences(cause: str) -> str:
    """What came after looks the same after every cause, and tells none from another."""
    return _FOLLOWED.sub("", cause)


def rank_ranges(numbers: Iterable[int]) -> str:
    """(0, 1, 2, 5) -> "0-2,5"."""
    out: list[list[int]] = []
    for n in sorted(set(numbers)):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def host_list(hosts: Iterable[str]) -> str:
    """("gpu01", "gpu02", "gpu03", "gpu07", "login") -> "gpu[01-03,07],login": what Slurm's --exclude and NodeName take.

    Only numbers of the same number of digits are folded, as Slurm counts with the width of the first one.
    """
    groups: dict[tuple[str, int], set[int]] = {}
    for host in dict.fromkeys(hosts):
        stem = host.rstrip("0123456789")
        digits = host[len(stem) :] if len(host) - len(stem) <= _MOST_DIGITS else ""
        groups.setdefault((stem, len(digits)) if digits else (host, 0), set()).add(int(digits or 0))
    return ",".join(_folded(stem, width, numbers) for (stem, width), numbers in groups.items())


def _folded(stem: str, width: int, numbers: set[int]) -> str:
    if not width:
        return stem
    if len(numbers) == 1:
        return f"{stem}{min(numbers):0{width}d}"
    spans = (span.split("-") for span in rank_ranges(numbers).split(","))
    return f"{stem}[{','.join('-'.join(f'{int(n):0{width}d}' for n in span) for span in spans)}]"


def is_cut(text: str, end: int) -> bool:
    """Does a name that was read up to `end` go on with what no name of a host holds, as in `a;reboot` or `n1$(id)`?"""
    return _NO_END.match(text, end) is not None


def excluding(scheduler: str, hosts: Iterable[str]) -> str:
    """The option by which a job is submitted without these hosts, safe in a shell; "" where the scheduler has none.

    PBS and Kubernetes have none: their hosts are closed (`closing`) before the job is submitted again.
    """
    named = tuple(dict.fromkeys(hosts))
    if not named or not all(map(HOST.fullmatch, named)):
        return ""
    if scheduler == "slurm":
        return f"--exclude={shlex.quote(host_list(named))}"
    if scheduler == "lsf":
        unequal = " && ".join(f"hname!='{host}'" for host in named)
        return f'-R "select[{unequal}]"'
    if scheduler == "sge":
        return f"-l h='!({'|'.join(named)})'"
    return f"--requires=-host:{shlex.quote(host_list(named))}" if scheduler == "flux" else ""


def closing(scheduler: str, hosts: Iterable[str], reason: str) -> str:
    """The command that keeps new jobs off these hosts, safe in a shell; "" where no scheduler is known.

    reason: one word, such as triage:ecc-error.
    """
    named = tuple(dict.fromkeys(hosts))
    if not named or not all(map(HOST.fullmatch, named)) or not re.fullmatch(r"[\w:-]+", reason, re.ASCII):
        return ""
    apart, folded = " ".join(named), shlex.quote(host_list(named))
    return {
        "slurm": f"scontrol update NodeName={folded} State=DRAIN Reason={reason}",
        "kubernetes": f"kubectl cordon {apart}",
        "pbs": f"pbsnodes -o -C {reason} {apart}",
        "lsf": f"badmin hclose -C {reason} {apart}",
        "sge": "qmod -d " + " ".join(f"'*@{host}'" for host in named),
        "flux": f"flux resource drain {folded} {reason}",
    }.get(scheduler, "")


def how_many(n: int, one: str, many: str = "") -> str:
    """ "1 case", "2 cases"; many: where it is not `one` with an s."""
    return f"{n} {one if n == 1 else many or f'{one}s'}"


def signal_name(number: int) -> str:
    """9 -> "SIGKILL"; "signal 40" for one that has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def excerpt(text: str, match: tuple[int, int] | None = None, limit: int = 500) -> str:
    """At most `limit` characters of a line, around what matched; a piece of the line itself, nothing added."""
    if len(text) <= limit:
        return text
    start, end = match or (0, limit)
    begin = start if end - start >= limit else start - 40
    begin = max(0, min(begin, len(text) - limit))
    return text[begin : begin + limit]


def seen(text: str) -> str:
    """The text without characters that nobody sees; line ends and tabs stay."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", text)


def middle_cut(text: str, limit: int) -> str:
    """At most `limit` characters of a line: how it begins, and its reason, which is told further on or at the end."""
    if len(text) <= limit:
        return text
    head = text[: limit // 2].rsplit(" ", 1)[0]
    room = limit - len(head) - 10
    told = _REASON.search(text, len(head))
    start = min(max(told.start() - _LEAD, len(head)) if told else len(text), len(text) - room)
    rest = text[start : start + room].split(" ", 1)[-1]
    return f"{head} ... {rest}" + (" ..." if start + room < len(text) else "")


def printable(text: str) -> str:
    """Foreign text is data: nothing of it may steer the terminal."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def together_told(notes: Iterable[str]) -> tuple[str, ...]:
    """Notes "what: where: reason; what to do", of which those with one reason, such as a full disk, become one; where, if
    that is the same too."""
    found: dict[str, list[str]] = {}
    for note in notes:
        reason, where = note.rpartition(": ")[2], note.partition(": ")[2]
        found.setdefault(next((words for words in (reason, where) if "; " in words), note), []).append(note)
    return tuple(same[0] if len(same) == 1 else _as_one(reason, same) for reason, same in found.items())


def _as_one(reason: str, notes: Sequence[str]) -> str:
    where = {note.partition(": ")[2] for note in notes}
    return f"{_heads(notes)}: {where.pop() if len(where) == 1 else reason}"


def _heads(notes: Iterable[str]) -> str:
    *others, last = dict.fromkeys(note.partition(": ")[0] for note in notes)
    return f"{', '.join(others)} and {last}" if others else last
