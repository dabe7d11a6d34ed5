"""Whether a candidate rule may be adopted: code decides, whoever wrote the rule.

A rule is judged by its pattern alone, as if the guard of the scan were not there: the guard knows words, and a gap that
takes `ERROR` takes also what nobody has a word for yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from triage import heads
from triage.compress import guard, siblings
from triage.compress.candidate import MIN_WORDING, Candidate, Refused, masked
from triage.compress.takes import Lines, LineTakers, sound
from triage.compress.telling import is_frame, is_source, telling
from triage.domain import FilterRule, RuleCheck, Signature
from triage.regex import PatternSet
from triage.text import excerpt

MIN_LINES = 3  # that a rule removes from the log
MIN_SHARE = 0.001  # of the lines, or of the bytes, that the rules in force leave over
_COMPARED = 60  # lines on which two rules are compared
_SHOWN = 240  # characters of a line in a reason
Sample = Sequence[tuple[str, int]]


class ProtectedBank:
    """Lines that no rule may take, nor a line that differs from one in numbers alone, or that a signature knows.

    lines: such as those that decided labelled cases, and those that evidence of recorded incidents cites. The examples
    of the signatures are added to them.
    """

    def __init__(self, lines: Iterable[str], signatures: Sequence[Signature] = ()) -> None:
        examples = (example for s in signatures for example in s.examples)
        found = (piece for line in (*lines, *examples) for piece in line.split("\n") if piece.strip())
        self.lines = Lines(list(dict.fromkeys(found)))
        self._masked = {_bare(line): line for line in self.lines.texts}
        self._known = PatternSet([pattern for s in signatures for pattern in s.patterns], "signatures")
        self._owners = [s.id for s in signatures for _ in s.patterns]

    def __len__(self) -> int:
        return len(self.lines.texts)

    def hidden(self, candidate: Candidate, taken: Sequence[str]) -> str | None:
        """What the rule would hide, in words. taken: lines that it takes."""
        found = candidate.takes(self.lines)
        if found:
            return f"a line that decided an incident: {_quoted(self.lines.texts[found[0]])}"
        return self.knows(taken)

    def knows(self, lines: Iterable[str]) -> str | None:
        """Which of the lines is one that no rule may take, in words."""
        for line in lines:
            like = self._masked.get(_bare(line))
            if like is not None:
                return f"a line that differs in numbers alone from one that decided an incident: {_quoted(like)}"
            if known := self._known.match(line):
                return f"a line that the signature {self._owners[known[0]]} knows: {_quoted(line)}"
        return None


def _bare(line: str) -> str:
    return masked(" ".join(heads.split(line)[1].split()))


class _Sample:
    """Lines of a log, how often each stands there and with how many bytes, and what is known of them."""

    def __init__(self, given: Sample) -> None:
        self.given = tuple(given)
        self.lines = Lines([line for line, _ in given])
        self.texts = self.lines.texts
        self._counts = [count for _, count in given]
        self._sizes = [(len(line.encode()) + 1) * count for line, (_, count) in zip(self.texts, given, strict=True)]
        self._takers = LineTakers(self.lines)
        self._left: tuple[frozenset[str], frozenset[int]] = (frozenset(), frozenset(range(len(self.texts))))

    def left(self, in_force: Sequence[FilterRule]) -> frozenset[int]:
        """The places of the lines that none of the rules takes."""
        patterns = frozenset(rule.pattern for rule in in_force)
        if self._left[0] != patterns:
            taken = frozenset[int]().union(*self._takers.of(in_force))
            self._left = (patterns, frozenset(range(len(self.texts))) - taken)
        return self._left[1]

    def weigh(self, places: Iterable[int]) -> tuple[int, int]:
        """How many lines of the log, and bytes, these stand for."""
        found = tuple(places)
        return sum(self._counts[at] for at in found), sum(self._sizes[at] for at in found)


@dataclass(frozen=True, slots=True)
class _Case:
    """A candidate with the lines it was named for and those of the sample that it takes."""

    candidate: Candidate
    named: tuple[str, ...]
    sample: _Sample
    taken: tuple[int, ...]  # places in the sample
    in_force: tuple[FilterRule, ...]

    def lines(self) -> tuple[str, ...]:
        """All lines known that the rule takes."""
        return tuple(dict.fromkeys((*self.named, *(self.sample.texts[at] for at in self.taken))))


class Verifier:
    """Build once; checking changes nothing. unrelated: lines of other worlds that no specific rule takes.

    min_lines, min_share: what a rule must remove of the lines (or, min_share, of their bytes) that are left over.
    """

    def __init__(
        self,
        bank: ProtectedBank,
        unrelated: Sequence[str],
        min_lines: int = MIN_LINES,
        min_share: float = MIN_SHARE,
    ) -> None:
        self._bank = bank
        self._unrelated = Lines(unrelated)
        self._min_lines, self._min_share = min_lines, min_share
        self._sample = _Sample(())  # the one asked about last

    def check(
        self, rule: FilterRule, named: Sequence[str], sample: Sample, in_force: Sequence[FilterRule]
    ) -> RuleCheck:
        """Whether the rule may be adopted, and if not why. The first test that it fails decides.

        named: the lines it is meant for; sample: lines of the log with how often each kind stands there; in_force:
        rules that are applied already, those adopted a moment ago among them.
        """
        try:
            candidate = Candidate(rule)
            given = tuple(sample)
            known = self._sample if self._sample.given == given else _Sample(given)
            self._sample = known
            taken = tuple(candidate.takes(known.lines))
            case = _Case(candidate, tuple(map(sound, named)), known, taken, tuple(in_force))
            for test in self._tests():
                test(case)
        except Refused as refused:
            return refused.result
        return RuleCheck(True)

    def _tests(self) -> tuple[Callable[[_Case], None], ...]:
        return (
            _named, _specific, self._not_unrelated, self._not_protected, _hides_nothing, self._says_nothing, self._new,
            _shown, self._worth_it,
        )  # fmt: skip

    def _not_unrelated(self, case: _Case) -> None:
        found = case.candidate.takes(self._unrelated)
        if found:
            line = self._unrelated.texts[found[0]]
            raise Refused("specific", f"it takes a line that has nothing to do with the log: {_quoted(line)}")

    def _not_protected(self, case: _Case) -> None:
        found = self._bank.hidden(case.candidate, case.lines())
        if found is not None:
            raise Refused("protected", f"it would hide {found}")

    def _says_nothing(self, case: _Case) -> None:
        """What the pattern itself says, in every alternative, may be no trouble either."""
        candidate = case.candidate
        if candidate.shape.gapes():
            raise Refused("hides", "it has room for a message: a part that takes letters and blanks again and again")
        texts = list(map(sound, candidate.shape.combined()))
        missed = set(range(len(texts))).difference(candidate.takes(texts))
        if missed:
            raise Refused("hides", f"it cannot be judged: it does not take its own text {_quoted(texts[min(missed)])}")
        for text in texts:
            _tells_nothing(candidate, text)
        found = self._bank.knows(texts)
        if found is not None:
            raise Refused("protected", f"it would hide {found}")

    def _new(self, case: _Case) -> None:
        """The same rule, in whatever spelling: one that takes all the lines it takes, and those with other numbers."""
        tried = tuple(dict.fromkeys(siblings.harmless(case.lines()[:_COMPARED])))
        mine = set(case.candidate.takes(tried))
        for rule, theirs in zip(case.in_force, LineTakers(Lines(tried)).of(case.in_force), strict=True):
            if mine <= theirs:
                raise Refused(
                    "duplicate",
                    f"the rule {rule.id} takes every line that it takes, such as {_quoted(tried[min(mine)])}",
                )

    def _worth_it(self, case: _Case) -> None:
        left = case.sample.left(case.in_force)
        all_lines, all_size = case.sample.weigh(left)
        removed, size = case.sample.weigh(left.intersection(case.taken))
        if removed < self._min_lines or (removed < self._min_share * all_lines and size < self._min_share * all_size):
            of_all = f"it removes {removed} of the {all_lines} lines that the rules in force leave over"
            raise Refused("worth", f"{of_all}, too few to be worth a rule")


def _named(case: _Case) -> None:
    if not case.named:
        raise Refused("named", "it names no line that it is meant for")
    taken = set(case.candidate.takes(case.named))
    missed = next((line for at, line in enumerate(case.named) if at not in taken), None)
    if missed is not None:
        raise Refused("named", f"it does not take a line that it is meant for: {_quoted(missed)}")


def _specific(case: _Case) -> None:
    wording = case.candidate.wording()
    if wording < MIN_WORDING:
        needs = (
            f"a match needs only {wording} letters or digits of its own wording, at least {MIN_WORDING} are asked for"
        )
        raise Refused("specific", f"{needs} in each alternative")
    if fault := case.candidate.shape.fault():
        raise Refused("size", fault)


def _hides_nothing(case: _Case) -> None:
    for line in case.lines():
        _tells_nothing(case.candidate, line)
    found = next(siblings.hidden(case.candidate, case.lines()), None)
    if found is not None:
        raise Refused("hides", f"it would also hide {_quoted(found)}")


def _tells_nothing(candidate: Candidate, line: str) -> None:
    grade = guard.alarm(line)
    if grade == "error" or ((grade or telling(line)) and not candidate.rule.drops_warnings):
        raise Refused("hides", f"it would hide a line that tells of trouble: {_quoted(line)}")
    if is_frame(line) or is_source(line[candidate.body(line) :]):
        raise Refused("hides", f"it would hide a line that may be part of a traceback: {_quoted(line)}")


def _shown(case: _Case) -> None:
    """A rule may only say what its lines show."""
    part = case.candidate.unshown(Lines(case.lines()))
    if part is not None:
        raise Refused("shown", f"none of its lines shows the alternative or optional part {_quoted(part)}")


def _quoted(line: str) -> str:
    return f'"{excerpt(line, limit=_SHOWN)}"'
