"""Lines that would be decisive, made from routine ones: what a rule that takes the routine line must not take.

A rule with a gap wide enough for words (`.*`, `[^|]*`, `[\\w ]+`) or without an end takes a message too, one that says
`loss: \\S+` takes `loss: nan`, and one that says `exit code \\d+` takes `exit code 1`. So alarms are put in at every
place of the line, numbers, levels and words that tell a state are replaced, and the rule is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from triage.compress import guard
from triage.compress.candidate import Candidate, masked

# In the words of many programs; the first is made of nothing but letters and blanks, which most gaps take. Then single
# words, short and long, small and capital, and other scripts.
ALARMS = (
    "ran out of memory and was killed", "failed", "RuntimeError: rank 3 aborted (exit code 1)", "(core dumped)",
    "died", "inf", "unresponsive", "GONE", "PEER VANISHED", "训练终止", "!!!",
)  # fmt: skip
_WORDS = ("died", "gone", "abandoned", "lost", "failed", "NEVER", "inf", "nan", "失败", "пропал")
# A word of each length.
_AS_LONG = (
    "", "?", "no", "nan", "dead", "stuck", "killed", "stalled", "vanished", "abandoned", "terminated", "unreachable",
)  # fmt: skip
_MAX_WORDS = 60  # of a line, in the place of which bad ones are put
_PROBED = 6  # lines that are turned into bad ones
_MAX_PLACES = 120  # of a line at which alarms are put in
_MAX_LINE = 2000

_EDGE = re.compile(r"\b")
_NUMBER = re.compile(r"(?<![\w.,:/+-])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w/-]|[.,:]\d)")
_METRIC = re.compile(
    r"(?:loss|norm|grad\w*|lr|rate|acc\w*|ppl|perplexity|score|reward|error|entropy|kl|mse|mae|nll|scale|mean|std|value)"
    r"[\w)\]\"'() ]{0,12}[:=| ]\s*$",
    re.IGNORECASE,
)
_HTTP = re.compile(r"(?<=HTTP/)(\d(?:\.\d)?[\"']? )[123]\d\d\b")
_LEVEL = re.compile(r"\b(?:INFO|DEBUG|NOTICE|TRACE|Info|Debug|info|debug)\b")
_STATE = re.compile(
    r"(?<![\w./\\-])(?:success(?:ful(?:ly)?)?|succeeded|ok|passed|completed?|done|finished|ready|healthy|alive|running"
    r"|active|connected|online|idle|valid|good|true)(?![\w/\\-])",
    re.IGNORECASE,
)
# A word where a state is told: behind a colon, an equals sign, an arrow, or a verb, or at the end.
_TOLD = re.compile(
    r"(?:(?:[:=>]\s*|\b(?:is|was|status|state|result|now) )[\"'(\[]?([A-Za-z]{2,20})(?![\w./\\:=@-]))"
    r"|(?:(?<=\s)([A-Za-z]{2,20})[.!\"')\]]*$)"
)
_TOKEN = re.compile(r"[^\s=:,;()\[\]{}\"'|<>]+?(?=[.!?…]*(?:[\s=:,;()\[\]{}\"'|<>]|$))")
_PLAIN = re.compile(r"[^\W\d_]+")
_NAMES = re.compile(r"[\d/._]")  # a token with one of these is an id, a path, a number: no word
_OTHER_NUMBERS = ("1", "7", "-9", "137")
_NO_NUMBERS = ("nan", "inf", "NaN")


def hidden(candidate: Candidate, lines: Sequence[str]) -> Iterator[str]:
    """Bad siblings of these lines, and of texts made from the pattern itself, that the candidate takes too.

    lines: some that the candidate takes; a few that differ in more than their numbers are turned into bad ones.
    """
    for line in list({masked(line): line for line in reversed(lines)}.values())[: -_PROBED - 1 : -1]:
        start = candidate.body(line)
        tried = [*with_numbers(line, start), *with_states(line, start), *with_words(line, start)]
        tried += with_alarms(line, start)
        yield from (tried[at] for at in candidate.takes(tried))
    for text in candidate.shape.specimens() if candidate.shape.fault() is None else ():
        start = candidate.body(text)
        tried = [*with_words(text, start), *with_alarms(text, start)]
        yield from (tried[at] for at in candidate.takes(tried))


def with_words(line: str, start: int) -> Iterator[str]:
    """The line with each word and each value turned into a bad word: short ones, and one that is as long.

    Of an id or a path only the whole is replaced: a class that asks for its digit, dot or slash takes no word.
    """
    line = line[: start + _MAX_LINE]
    spans: dict[tuple[int, int], None] = {}  # a set in order
    for found in _TOKEN.finditer(line, start):
        spans[found.span()] = None
        if not _NAMES.search(found[0]):
            spans.update((part.span(), None) for part in _PLAIN.finditer(line, *found.span()))
    for first, last in list(spans)[:_MAX_WORDS]:
        as_long = _of_length(last - first)
        for word in (*_WORDS, as_long, as_long.upper(), as_long.capitalize()):
            yield line[:first] + word + line[last:]
        if line[last - 1].isalpha():
            yield f"{line[:last]}训练终止{line[last:]}"


def _of_length(length: int) -> str:
    return _AS_LONG[length] if length < len(_AS_LONG) else ("unresponsive" * (length // 12 + 1))[:length]


def with_alarms(line: str, start: int) -> Iterator[str]:
    """The line with an alarm put in at each place behind `start`."""
    line = line[: start + _MAX_LINE]
    places = [found.start() for found in _EDGE.finditer(line, start)]
    places = list(dict.fromkeys((start, *_some(places), len(line.rstrip()))))
    for at in places:
        before, after = line[:at], line[at:]
        for alarm in ALARMS:
            if before and not before[-1].isspace():
                yield f"{before} {alarm}{after}" if not after[:1].isalnum() else f"{before} {alarm} {after}"
            else:
                yield f"{before}{alarm} {after}"


def with_states(line: str, start: int) -> Iterator[str]:
    """The line with each level, and each word that tells a state, turned into a bad one."""
    for found in _LEVEL.finditer(line, start):
        for level in ("ERROR", "FATAL", "error"):
            yield line[: found.start()] + level + line[found.end() :]
    spans = {found.span() for found in _STATE.finditer(line, start)}
    spans |= {found.span(found.lastindex or 0) for found in _TOLD.finditer(line, start)}
    for first, last in sorted(spans):
        yield line[:first] + _in_case_of(line[first:last], "failed") + line[last:]
    for status in _HTTP.finditer(line, start):
        yield line[: status.start()] + status[1] + "500" + line[status.end() :]


def with_numbers(line: str, start: int) -> Iterator[str]:
    """The line with each number replaced so that it tells of trouble: `exit code 1`, `7 errors`, `loss: nan`."""
    before = guard.alarm(line)
    for found in _NUMBER.finditer(line, start):
        head, tail = line[: found.start()], line[found.end() :]
        if not found[0].lstrip("+-").isdigit() or _METRIC.search(head[start:]):
            for word in _NO_NUMBERS:
                yield head + word + tail
        for other in _OTHER_NUMBERS:
            if not before and guard.alarm(head + other + tail):
                yield head + other + tail


def harmless(lines: Iterable[str]) -> Iterator[str]:
    """Each line, and the line with all its numbers changed: lines that a routine rule may well take."""
    for line in lines:
        yield line
        yield _NUMBER.sub(_changed, line)
        yield re.sub(r"\d", "7", line)


def _changed(found: re.Match[str]) -> str:
    return re.sub(r"\d", "3", found[0])


def _some(places: list[int]) -> list[int]:
    step = max(1, -(-len(places) // _MAX_PLACES))
    return places[::step]


def _in_case_of(word: str, other: str) -> str:
    if word.isupper():
        return other.upper()
    return other.capitalize() if word[0].isupper() else other
