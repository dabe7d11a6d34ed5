"""What stands in front of a line's own text: the labels of who printed it, and time stamps. Pure, linear."""

from __future__ import annotations

import re

_MAX_PIECES = 5
# Each alternative is linear: no nested quantifier, bounded counts.
_PIECE = re.compile(
    r"""(?:(?P<label>
      [ ]{0,6}\d{1,6}:(?:\s|$)                                     # srun --label
    | \[(?:rank|default|trainer|worker)?\d{1,6}\]:\s?              # torchrun, torch
    | \[\d{1,4},\d{1,6}\]<std(?:err|out)>:\s?                      # mpirun --tag-output
    | rank\s?\#?\d{1,6}:\s?
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
