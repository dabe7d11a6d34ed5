"""Lines that the scan may drop when a proven rule says so, but for which no rule of a model is trusted.

The guard of the scan knows what is trouble by its form; here is what may be trouble, or part of the account of it.
"""

from __future__ import annotations

import re

# Words that stand in routine lines too.
_WORDS = re.compile(
    r"(?<![\w-])(?:lost|gone|dead|died|dying|hung|stuck|stalled|deadlock\w*|unreachable|unresponsive|unhealthy|unavailable"
    r"|disconnected|corrupt\w*|evicted|preempted|cancell?ed|exhausted|interrupted|gave up|giving up|(?:closed|reset) by"
    r"|missing|mismatch\w*|exceed\w*|overflow\w*|unexpected(?:ly)?|invalid|illegal|refus\w+|reject\w+|denied|retry(?:ing)?"
    r"|timeouts?|throttl\w+|degraded|leak\w*|drain\w*|wait(?:ing|ed|s)? (?:for|on)|very slow|too slow|slower|down|disabled state"
    r"|can't|couldn't|could not|can not|(?:does not|doesn't) exist|nxdomain"
    r"|not (?:responding|answering|reported|reachable|finite|in time)|stopped (?:answering|responding)|no space|time limit)(?![\w-])",
    re.IGNORECASE,
)
# The level in front of a source file, as TensorFlow and XLA write it.
_LEVEL = re.compile(r"(?:^|[\s:\]])[EF] [\w./-]{1,200}\.(?:cc|cpp|cu|h|py):\d+\]")
# A piece of a frame, of a traceback that the lines of other ranks have torn apart or of a stack that a profiler took; a
# row of torchrun's failure report.
_FRAME = re.compile(
    r"\bFile \"|\.(?:pyx?|cc|cpp|cu|c|h|so|java)\"?, line\b|\", line \d"
    r"|\([\w./<>-]+\.(?:pyx?|cc|cpp|cu|c|h):\d+\)\s*$"
    r"|^\s*(?:time|host|rank|exitcode|error_file|traceback) {1,6}: "
)
# The line of source that a traceback prints under a frame.
_SOURCE = re.compile(
    r"(?:return|raise|yield|await|assert|del|async|lambda|global|nonlocal)\b|(?:self|cls|super\(\))[.\[(]"
    r"|(?:def|class) \w+[(:]|(?:from [\w.]+ )?import [\w.]+(?: as \w+)?(?:,|$)"
    r"|(?:if|elif|for|while|with|except)\b.*:\s*(?:#.*)?$|(?:else|try|finally):"
    r"|[A-Za-z_*][\w.\[\]'\", *]{0,120} [-+*/|&@]?= .{0,400}[\w\])]\(|= .{0,400}\w\("
    r"|[a-z_][\w.]{0,80}(?:\[[^\]]{0,80}\])?\((?:.*\)[\s\])]*|[^)]*)(?:#.*)?$|@[a-z_][\w.]+(?:\(.*)?$|.*# type: ignore"
)


def telling(line: str) -> bool:
    """Whether the line has a word, or the level, of trouble."""
    return _WORDS.search(line) is not None or _LEVEL.search(line) is not None


def is_frame(line: str) -> bool:
    """Whether the line is a frame of a traceback, or a piece of one."""
    return _FRAME.search(line) is not None


def is_source(body: str) -> bool:
    """Whether the line, what stands in front of it left out, may be the source line of a frame."""
    return _SOURCE.match(body.strip()) is not None
