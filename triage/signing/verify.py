"""Whether a pattern may become a signature: code decides, whoever wrote it. Pure.

A signature names a cause, so it must know its own incident's lines and no other: nothing that healthy runs print, nothing
that another signature owns, nothing of its own log that is not the root. What it may not do is guess.
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage import heads
from triage.compress.candidate import MAX_PROGRAM, Refused, masked
from triage.compress.linewise import Confined, confine_tree
from triage.compress.shape import Shape
from triage.compress.wording import wording
from triage.domain import LearnedSignature, LogLine, RuleCheck, Signature
from triage.errors import KnowledgeError
from triage.evidence.match import Matcher
from triage.redact import redact
from triage.regex import compile_pattern, parse
from triage.text import excerpt

MAX_LENGTH = 1000  # characters of a pattern
MIN_WORDING = 10  # letters and digits that every match must have
WEIGHT = 60  # of a signature that no person has approved; a stronger one that knows the line owns it
# Lines that stand in the account of any failure: they tell that there was one, never which.
_ACCOUNT = (
    "Traceback (most recent call last):",
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
    '  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1553, in _call_impl',
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7f12a in /opt/env/lib/libc10.so)",
    "  rank      : 3 (local_rank: 3)",
    "  exitcode  : -6 (pid: 14962)",
    "  exitcode  : -11 (pid: 14962)  (SIGSEGV)",
    "  error_file: <N/A>",
    "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
)
# Such a line itself: of a stack, of what torchrun reports of each process, of what the kernel adds up as it kills.
_ROW = re.compile(
    r"""(?x)\s*(?:File\ ".*",\ line\ \d+ | \#\d+\ | frame\ \#\d+: | at\ [\w.$/<>]+\( | Traceback\ \(most\ recent
    | (?:time|host|rank|exitcode|error_file|traceback|msg)\s+:\s
    | (?:memory|memory\+swap|kmem|swap):\ usage\ | \[\s*\d+\]\s+\d+\s+\d+\s | Call\ Trace: | RIP:\ | R[A-Z0-9]{2}:\ [0-9a-f]{16})"""
)
_SHOWN = 240  # characters of a line in a reason


@dataclass(frozen=True, slots=True)
class Banks:
    """What is known beforehand.

    unrelated: lines of other worlds; healthy: of runs that went well, and routine ones; decided: that decided labelled cases,
    or stand beside the cause of an incident; causes: that recorded incidents cite as the cause; learned: in any state.
    """

    signatures: tuple[Signature, ...]
    unrelated: tuple[str, ...] = ()
    healthy: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    learned: tuple[LearnedSignature, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What a signature is proposed for. lines: of the cause, all of which it must match.

    roots: others that show it, which it may match; beside: other lines that the incident cites; log: kept lines of the log itself, () where it is not at hand; worked: by file
    the number of the last line before the cause that shows that the job went on.
    """

    failure_type: str
    lines: tuple[str, ...]
    roots: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    log: tuple[LogLine, ...] = ()
    worked: Mapping[str, int] = field(default_factory=dict)


class Verifier:
    """Build once; checking changes nothing."""

    def __init__(self, banks: Banks) -> None:
        self._banks = banks
        self.signatures = banks.signatures
        self._matcher = Matcher(banks.signatures)
        self._examples = tuple(
            (line, s.id) for s in banks.signatures for text in s.examples for line in text.split("\n")
        )

    def check(self, pattern: str, case: Case, but: str = "") -> RuleCheck:
        """Whether the pattern may be adopted, and if not why. The first test that it fails decides.

        but: the id of a learned signature that is asked about itself.
        """
        try:
            found = _Found(pattern, case)
            for test in self._tests():
                test(found)
            self._new(found, but)
        except Refused as refused:
            return refused.result
        return RuleCheck(True)

    def knows(self, line: str) -> tuple[Signature, ...]:
        """The signatures of the banks that know the line, the strongest first."""
        return tuple(f.signature for f in self._matcher.match(LogLine("", 0, line)))

    def _tests(self) -> tuple[Callable[[_Found], None], ...]:
        return (
            _named,
            _specific,
            self._owned,
            self._not_unrelated,
            self._not_healthy,
            self._shadows_none,
            _only_root,
            _shown,
        )

    def _not_unrelated(self, found: _Found) -> None:
        if line := found.first(self._banks.unrelated):
            raise Refused("unrelated", f"it matches a line that has nothing to do with any job: {_quoted(line)}")

    def _not_healthy(self, found: _Found) -> None:
        if line := found.first(self._banks.healthy):
            raise Refused("healthy", f"it matches a line that runs print which go well: {_quoted(line)}")
        if taken := next((x for x in found.case.log if x.rule is not None and found.matches(x.text)), None):
            raise Refused(
                "healthy", f"it matches a routine line of its own log, {_place(taken)}: {_quoted(taken.text)}"
            )

    def _shadows_none(self, found: _Found) -> None:
        for line, name in self._examples:
            if found.matches(line):
                raise Refused("shadows", f"it matches a line that the signature {name} is for: {_quoted(line)}")
        for line in self._banks.decided:
            if found.matches(line) and _bare(line) not in found.own:
                raise Refused("shadows", f"it matches a line that decided another incident: {_quoted(line)}")
        for line in filter(found.matches, self._banks.causes):
            if owner := next((s for s in self.knows(line) if s.weight >= WEIGHT), None):
                raise Refused("shadows", f"it matches a line of an incident that {owner.id} is for: {_quoted(line)}")

    def _owned(self, found: _Found) -> None:
        for line in found.case.lines:
            for owner in self.knows(line):
                if owner.role == "context":
                    raise Refused("shadows", f"{owner.id} knows its line as what is no cause: {_quoted(line)}")
                if owner.weight < WEIGHT:
                    continue
                if owner.failure_type == found.case.failure_type and owner.role == "root":
                    raise Refused("duplicate", f"the signature {owner.id} knows its line already: {_quoted(line)}")
                raise Refused("shadows", f"its line is one that the signature {owner.id} is for: {_quoted(line)}")

    def _new(self, found: _Found, but: str) -> None:
        for other in self._banks.learned:
            if other.id == but or not all(map(compile_pattern(other.pattern).search, found.case.lines)):
                continue
            same = other.signature.failure_type == found.case.failure_type
            if other.state != "retired" and (same or other.state == "active"):
                raise Refused("duplicate" if same else "shadows", f"{other.id}, {other.state}, knows its lines already")
            if same and other.pattern == found.pattern:
                raise Refused("duplicate", f"it is {other.id}, retired: {other.reason}")


class _Found:
    """A pattern that compiles within limits. Errors: Refused."""

    def __init__(self, pattern: str, case: Case) -> None:
        self.pattern, self.case = pattern, case
        self.own = frozenset(map(_bare, (*case.lines, *case.roots)))
        if not pattern.strip():
            raise Refused("empty", "the pattern is empty and would match every line")
        if len(pattern) > MAX_LENGTH:
            raise Refused("size", f"the pattern has {len(pattern)} characters, at most {MAX_LENGTH} are allowed")
        if redact(pattern) != pattern:
            raise Refused("secret", "the pattern holds what looks like a secret")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python's parser, on what its own engine may read otherwise one day
                self._compiled = compile_pattern(pattern)
                tree = parse(pattern)
        except KnowledgeError as error:
            raise Refused("compiles", str(error).removeprefix(": ")) from None
        except (RecursionError, OverflowError):
            raise Refused("size", "the pattern is nested too deeply to be read") from None
        if self._compiled.programsize > MAX_PROGRAM:
            steps = f"{self._compiled.programsize} steps, at most {MAX_PROGRAM} are allowed"
            raise Refused("size", f"the pattern compiles to {steps}")
        self._ignores_case = bool(tree.state.flags & sre.SRE_FLAG_IGNORECASE)
        self.shape = Shape(tree)

    def matches(self, line: str) -> bool:
        return self._compiled.search(line) is not None

    def first(self, lines: Iterable[str]) -> str:
        """The first of the lines that it matches, "" for none."""
        return next((line for line in lines if self.matches(line)), "")

    def unshown(self) -> str | None:
        """An alternative, or optional part, that no line of the cause needs; each line matches the pattern."""
        lines = self.case.lines
        for part in self.shape.parts():
            if any(map(self._finder(part.needs), lines)):
                continue
            if part.without is None or all(map(self._finder(part.without), lines)):
                return part.text
        return None

    def _finder(self, tree: list[Any]) -> Callable[[str], bool]:
        return Confined.of(confine_tree(tree, self._ignores_case)).found


def _named(found: _Found) -> None:
    if not found.case.lines:
        raise Refused("named", "the incident cites no line that shows the cause")
    missed = next((line for line in found.case.lines if not found.matches(line)), None)
    if missed is not None:
        raise Refused("named", f"it does not match a line that it is meant for: {_quoted(missed)}")


def _specific(found: _Found) -> None:
    wording = found.shape.wording()
    if wording < MIN_WORDING:
        least = f"at least {MIN_WORDING} are asked for"
        raise Refused("general", f"a match needs only {wording} letters or digits of its own wording, {least}")
    if row := next((line for line in found.case.lines if _ROW.match(heads.split(line)[1])), ""):
        raise Refused("general", f"its line stands in the account of any failure: {_quoted(row)}")
    if fault := found.shape.fault():
        raise Refused("size", fault)
    if line := found.first(_ACCOUNT):
        raise Refused("general", f"it matches a line that stands in the account of any failure: {_quoted(line)}")
    if found.shape.gapes():
        raise Refused("general", "it has room for any message: a part that takes letters and blanks again and again")


def _only_root(found: _Found) -> None:
    """No line of the incident that is not the cause; nor the cause's own wording where work went on after it."""
    if line := found.first(line for line in found.case.beside if _bare(line) not in found.own):
        raise Refused("not-root", f"it matches a line of the incident that is not the cause: {_quoted(line)}")
    for seen in filter(lambda seen: found.matches(seen.text), found.case.log):
        if _bare(seen.text) not in found.own and not any(own in seen.text for own in found.case.lines):
            raise Refused("not-root", f"it matches another line of the log, {_place(seen)}: {_quoted(seen.text)}")
        if seen.number < found.case.worked.get(seen.file, 0):
            place = f"the job went on after a line that it matches, {_place(seen)}"
            raise Refused("not-root", f"{place}: {_quoted(seen.text)}")


def _shown(found: _Found) -> None:
    """Of what only another way through the pattern would match, the incident says nothing."""
    if part := found.unshown():
        raise Refused(
            "unshown", f'it has "{part}" as an alternative or an optional part, which none of its lines needs'
        )


def _bare(line: str) -> str:
    """What lines of one kind have in common: labels, stamps, numbers, paths and what is quoted do not count."""
    return masked(" ".join(wording(heads.split(line)[1]).split()))


def _place(line: LogLine) -> str:
    return f"{line.file}:{line.number}"


def _quoted(line: str) -> str:
    return f'"{excerpt(line, limit=_SHOWN)}"'


def alike(lines: Sequence[str]) -> tuple[str, ...]:
    """Of lines of one cause those that say what the first does, numbers aside."""
    return tuple(line for line in dict.fromkeys(lines) if _bare(line) == _bare(lines[0]))
