"""What a line says once the label and the time stamp in front of it are gone; and ranks as ranges."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MAX_PIECES = 5
_GIST_WORDS = 8
_AROUND = "[](){}<>:;,.!?'\"`=*-"
# Each alternative is linear: no nested quantifier, bounded counts.
_PIECE = re.compile(
    r"""(?:(?P<label>
      [ ]{0,6}\d{1,6}:(?:\s|$)                                     # srun --label
    | \[(?:rank|default|trainer|worker)?\d{1,6}\]:\s?              # torchrun, torch
    | \[\d{1,4},\d{1,6}\]<std(?:err|out)>:\s?                      # mpirun --tag-output
    | \((?:[\w.:-]{1,60}\s)?pid=\d{1,9}(?:,\s[^()]{0,80})?\)\s?    # Ray
    )
    | \[?\d{4}[-/]\d\d[-/]\d\d[T\s_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|\s?[+-]\d\d:?\d\d)?\]?,?:?\s?
    | (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s[A-Z][a-z][a-z]\s[\d\s]\d\s\d\d:\d\d:\d\d\s20\d\d:?\s?
    | [A-Z][a-z][a-z]\s[\d\s]\d\s\d\d:\d\d:\d\d\s                  # syslog
    | \[\s{0,8}\d{1,9}\.\d{3,9}\]\s?                               # kernel, since boot
    | \[\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?\]:?\s?
    | \d\d:\d\d:\d\d(?:[.,]\d{1,9})?:?\s
    )""",
    re.VERBOSE,
)
_GLOG = re.compile(r"(\[?[IWEF])\d{4} \d\d:\d\d:\d\d(?:\.\d{1,9})?")


def split(text: str) -> tuple[str, str]:
    """(labels, body): who printed the line, and the line without labels and time stamps.

    Indentation after them stays.
    """
    at = 0
    stream = ""
    for _ in range(_MAX_PIECES):
        found = _PIECE.match(text, at)
        if found is None or found.end() == at:
            break
        stream += (found["label"] or "").strip()
        at = found.end()
    stamp = _GLOG.match(text, at)
    return stream, text[at:] if stamp is None else stamp[1] + text[stamp.end() :]


def gist(body: str) -> str:
    """What kind of thing the line says: its plain words, without names, paths and numbers."""
    words = [word.strip(_AROUND) for word in body[:400].split()]
    return " ".join([word for word in words if word.isalpha()][:_GIST_WORDS]) or body[:40]


def rank_ranges(ranks: Iterable[int]) -> str:
    """(0, 1, 2, 5) as "0-2,5"."""
    ranges: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
