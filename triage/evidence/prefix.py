"""What stands before a line's own text: rank tags, worker tags, time stamps. Interleaved streams are told apart by it."""

from __future__ import annotations

import re

# Each alternative is linear: no nested quantifier, bounded counts.
_PREFIXES = re.compile(
    r"""(?:
      \[(?:rank|default|Rank|proc|p)?\s?\d{1,6}\]:?\s?          # [rank3]: [default0]: [3]
    | \[\d{1,4},\d{1,6}\]<std(?:err|out)>:?\s?                  # mpirun --tag-output
    | \((?:[\w.:-]{1,60}\s)?pid=\d{1,9}(?:,\s[^()]{0,80})?\)\s? # (Worker pid=12, ip=1.2.3.4)
    | rank\s?\#?\d{1,6}:\s?
    | \d{1,6}:\s                                                # srun -l
    | \[?\d{4}[-/]\d\d[-/]\d\d[T\s_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?,?:?\s?
    | \[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?\s
    | \[[A-Z]{4,8}\]:?\s
    | (?:ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG):?\s
    )""",
    re.VERBOSE,
)
_TAG = re.compile(r"rank|default|pid=|<std|^\d+:|^\[\d+\]")
MAX_PREFIXES = 5


def split(text: str) -> tuple[str, str]:
    """(stream, body): the tags that tell who printed the line, and the line without tags and stamps.

    Indentation after the tags stays: tracebacks need it.
    """
    position = 0
    stream = ""
    for _ in range(MAX_PREFIXES):
        found = _PREFIXES.match(text, position)
        if not found or found.end() == position:
            break
        piece = found.group()
        if _TAG.search(piece):
            stream += piece.strip()
        position = found.end()
    return stream, text[position:]


def body(text: str) -> str:
    return split(text)[1]
