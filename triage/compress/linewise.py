"""Patterns that never leave their line, so that one call can test a thousand lines joined by newlines.

A rule's `^` also stands right after what launchers and loggers put in front of a line (rank and worker labels, host,
time stamp, level, logger name, file and line, a progress bar that shares the line): `^step \\d+` takes `12: step 4`,
`[default3]:step 4` and `2026-01-02 03:04:05 - INFO - train.loop - step 4` too.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re._constants as sre  # type: ignore[import-not-found]
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from triage.errors import KnowledgeError
from triage.regex import parse

# No counted repeats here: it stands in every rule, and RE2 copies what it counts.
_NUMBER = r"[-+]?[\d.,]*\d[\d.,]*(?:[eE][-+]?\d+)?"
_BAR = (
    r"\d+%\|[^|\[\]a-zA-Z\n]*\|[\d.,kKMGTBi?/ ]*\[[\d:<,.? day]*(?:[\d.?, ]*[\w ]*/ *\w+)?"
    rf"(?:, *[\w/ .@-]+=(?:{_NUMBER}[\w%]*|\w*\d\w*))* *\]"
)
_PREFIX = "|".join(
    (
        r"\d+:(?:[\t ]|$)|\d+ [\w./+-]+:\d+\] ?",  # 12: and 4242 loop.py:12]
        r"\d+[-/:]\d+[-/:]\d[\d:.,/TZ+-]*(?: \d\d\d\d)?:?(?:[\t ]|$)",  # 2026-01-02T03:04:05.123Z and 03:04:05 2026
        # [rank3]: and [1,0]<stdout>: and [2026-01-02 03:04:05] and [loop.py:12]
        r"\[[^\[\]\n]*\d[^\[\]\n]*\](?:<std(?:out|err)>)?:?",
        r"\[[A-Za-z_.]+(?:[=:][\w.]+)?(?: +\| [\w.]+ *)?\]:?",  # [INFO] and [train_inner] and [thread=Main]
        r"[A-Za-z_]\w* +- |[\w.]+:[\w<>]+:\d+ |std(?:out|err) [FP] ",  # swift - and loop:main:12 and stdout F
        r"(?:[Pp]rocess|[Ww]orker|[Rr]ank|[Tt]ask|[Nn]ode|GPU) ?#?\d+: ?|Node\[\d+\]:? ",
        r"\([^()\n]*\b(?:pid|rank|ip)=[^()\n]*\)",  # (Worker pid=7, ip=10.0.0.1)
        r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|UTC|[CPEM][SDE]?[ST]T?)[ :]",
        r"(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec) +\d+ ",
        # A warning's level too: the guard lets only those rules take it that say so.
        r"(?:INFO|DEBUG|NOTICE|TRACE|LOGS|WARNING|WARN|Info|Debug|info|debug|Warning|I|D|W|localhost|__main__|root)(?:[\t :]|$)",
        r"[a-z_][\w-]*(?:\.[a-z_\d][\w-]*)+(?::\d+)*(?:[\]:]+|[\t ]|$)",  # train.loop: but no torch.OutOfMemoryError:
        r"[A-Za-z][\w.-]*\d[\w.-]*(?::\d+)*[\]:]*[\t ]",  # gpu-17: and I0102
        r"[\w./@+<>-]+\.(?:py|cc|cpp|cu|c|h):\d+[\]:]* ",
        rf"[\w #.:()/-]*{_BAR}",
    )
)
_BETWEEN = r"[-|>:*]+(?:[\t ]+|$)"  # stands between the parts, as in "12:03:04 | INFO | loop - ", and never first
AFTER_PREFIX = rf"(?:^[\t\r ]*(?:(?:{_PREFIX})[\t\r ]*(?:{_BETWEEN})*)*)"
# A rule's `$`: blanks, and the note of Ray that folded alike lines of its workers.
_REPEATED = r"\[repeated \d+x across cluster\](?: \(Ray deduplicates logs by default[\w .,=:/#-]*\))?[\t ]*"
RULE_END = rf"(?:[\t ]*(?:{_REPEATED})?$)"
_NOTHING = r"[^\x00-\x{10FFFF}]"
_WORD = 3  # letters of a word that a scout starts with, at least
_SCOUTS = 4  # of one Confined; more are no quicker than a look at the lines themselves
_MEMORY = 8 << 20  # of an automaton; more makes no scan faster

# RE2's classes, the newline left out.
_CATEGORY = {
    sre.CATEGORY_DIGIT: r"0-9",
    sre.CATEGORY_NOT_DIGIT: r"\x00-\t\x0b-/:-\x{10FFFF}",
    sre.CATEGORY_SPACE: r"\t\f\r ",
    sre.CATEGORY_NOT_SPACE: r"\x00-\x08\x0b\x0e-\x1f!-\x{10FFFF}",
    sre.CATEGORY_WORD: r"0-9A-Za-z_",
    sre.CATEGORY_NOT_WORD: r"\x00-\t\x0b-/:-@\[-\^`{-\x{10FFFF}",
}
_AT = {
    sre.AT_BOUNDARY: r"\b",
    sre.AT_NON_BOUNDARY: r"\B",
}


@dataclass(frozen=True, slots=True)
class _Ends:
    start: str
    end: str


def confine(pattern: str, start: str = "^", end: str = "$") -> str:
    """The pattern, for use under (?m), with every way to match a newline taken out; start and end stand for ^ and $.

    Errors: KnowledgeError for syntax outside what Python's `re` and RE2 share.
    """
    if "[[:" in pattern:
        raise KnowledgeError(f"pattern {pattern!r} uses a POSIX class", r"write \d, \w, \s or a range")
    tree = parse(pattern)
    return confine_tree(tree, bool(tree.state.flags & sre.SRE_FLAG_IGNORECASE), start, end)


def confine_tree(nodes: Iterable[Any], ignores_case: bool, start: str = "^", end: str = "$") -> str:
    """Like `confine`, of a pattern as it is parsed."""
    body = _sequence(nodes, _Ends(start, end))
    return f"(?i:{body})" if ignores_case else f"(?:{body})"


def scout(pattern: str, end: str = "$") -> str | None:
    """A pattern that matches in every text that holds a line that the pattern matches, and starts with a word.

    RE2 leaps from word to word, many times as fast as its automaton goes. None: the pattern starts with no word.
    """
    tree = parse(pattern)
    nodes = _from_word(tree)
    if nodes is None:
        return None
    body = _sequence(nodes, _Ends("^", end))
    return f"(?i:{body})" if tree.state.flags & sre.SRE_FLAG_IGNORECASE else f"(?:{body})"


def _from_word(nodes: Iterable[Any]) -> list[Any] | None:
    """The nodes without the anchors in front of the word that they start with."""
    found = list(itertools.dropwhile(lambda node: node[0] is sre.AT, nodes))
    if found and found[0][0] is sre.SUBPATTERN:
        group, add, remove, body = found[0][1]
        inner = _from_word(body)
        return None if inner is None else [(sre.SUBPATTERN, (group, add, remove, inner)), *found[1:]]
    word = itertools.takewhile(lambda node: node[0] is sre.LITERAL, found)
    return found if len(list(word)) >= _WORD else None


class Confined:
    """Any of some patterns, over one line or over many joined by newlines."""

    def __init__(self, patterns: Sequence[str], start: str = "^", end: str = "$") -> None:
        self._any = "|".join(confine(pattern, start, end) for pattern in patterns)
        self._search = _compile(f"(?m){self._any}")
        self._all: Any = None
        self._patterns = patterns if start == "^" else None
        self._end = end

    @classmethod
    def of(cls, confined: str) -> Confined:
        """Of one pattern that `confine_tree` has made."""
        made = cls(())
        made._any, made._search, made._patterns = confined, _compile(f"(?m){confined}"), None
        return made

    @functools.cached_property
    def _scouts(self) -> list[Any] | None:
        if self._patterns is None or len(self._patterns) > _SCOUTS:
            return None
        scouts = [scout(pattern, self._end) for pattern in self._patterns]
        return None if None in scouts else [_compile(f"(?m){pattern}") for pattern in scouts]

    def scouted(self, text: bytes) -> bool | None:
        """Whether a line of a text of many other lines too may match, found out quickly; None: not quickly."""
        if self._scouts is None:
            return None
        return any(one.search(text) is not None for one in self._scouts)

    def found(self, text: str | bytes) -> bool:
        """Whether a line of the text matches."""
        return self._search.search(text) is not None

    def which(self, lines: Sequence[str]) -> list[int]:
        """The places of the lines that match, ascending. No line holds a newline."""
        if len(lines) < 2:
            return [0] if lines and self.found(lines[0]) else []
        data = "\n".join(lines).encode()
        match = self._search.search(data)
        if match is None:
            return []
        sizes = (
            map(len, lines) if len(data) == sum(map(len, lines)) + len(lines) - 1 else (len(x.encode()) for x in lines)
        )
        starts = list(itertools.accumulate((size + 1 for size in sizes), initial=0))
        places = []
        while match is not None:
            places.append(bisect.bisect_right(starts, match.end()) - 1)
            after = places[-1] + 1
            match = self._search.search(data, starts[after]) if after < len(lines) else None
        return places

    def cut(self, text: str) -> str:
        """The text with a blank for each match."""
        return str(self._search.sub(" ", text))

    def takes_all(self, text: bytes) -> bool:
        """Whether every line of the text matches; the text must end in a newline."""
        if self._all is None:
            # An unanchored pattern must not be tried at every place by hand: RE2's automaton does it in one pass.
            self._all = _compile(f"(?m)(?:.*(?:{self._any}).*\n)+")
        return self._all.fullmatch(text) is not None


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # captures would turn RE2's fast automaton off
    options.max_mem = _MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise KnowledgeError(f"pattern {pattern!r} does not compile: {error}") from None


def _sequence(nodes: Iterable[Any], ends: _Ends) -> str:
    return "".join(_node(op, value, ends) for op, value in nodes)


def _node(op: Any, value: Any, ends: _Ends) -> str:
    if op is sre.LITERAL:
        return _NOTHING if value == 10 else _escaped(value)
    if op is sre.NOT_LITERAL:
        return f"[^\\n{_in_class(value)}]"
    if op is sre.ANY:
        return "."
    if op is sre.IN:
        return _class(value)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        low, high, body = value
        return f"(?:{_sequence(body, ends)})" + _count(low, high)
    if op is sre.SUBPATTERN:
        _group, add, remove, body = value
        flags = ("i" if add & sre.SRE_FLAG_IGNORECASE else "") + ("-i" if remove & sre.SRE_FLAG_IGNORECASE else "")
        return f"(?{flags}:{_sequence(body, ends)})"
    if op is sre.BRANCH:
        return "(?:" + "|".join(_sequence(branch, ends) for branch in value[1]) + ")"
    if op is sre.AT:
        if value in (sre.AT_END, sre.AT_END_STRING):
            return ends.end
        return _AT.get(value, ends.start)
    raise KnowledgeError(f"pattern part {op} cannot be used", "RE2 syntax, no look-around or back references")


@functools.cache
def _escaped(code: int) -> str:
    return str(re2.escape(chr(code)))


def _count(low: int, high: Any) -> str:
    if high is sre.MAXREPEAT:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    return "?" if (low, high) == (0, 1) else f"{{{low},{high}}}"


def _class(items: list[Any]) -> str:
    negated = items[0][0] is sre.NEGATE
    text = "".join(_class_item(op, value, negated) for op, value in items if op is not sre.NEGATE)
    if negated:
        return f"[^\\n{text}]"
    return f"[{text}]" if text else _NOTHING


def _class_item(op: Any, value: Any, negated: bool) -> str:
    if op is sre.LITERAL:
        return "" if value == 10 else _in_class(value)
    if op is sre.RANGE:
        low, high = value
        if negated or not low <= 10 <= high:
            return f"{_in_class(low)}-{_in_class(high)}"
        below = f"{_in_class(low)}-\\t" if low < 10 else ""
        return below + (f"\\x0b-{_in_class(high)}" if high > 10 else "")
    return _CATEGORY[value]


def _in_class(code: int) -> str:
    return f"\\x{{{code:x}}}" if code < 128 and not chr(code).isalnum() else chr(code)
