"""Learns filter rules in the background, from lines that no rule takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from triage.compress.classify import Classifier
from triage.compress.linekinds import LineKinds
from triage.domain import FilterRule, LogLine
from triage.following.follow import Learned

Learn = Callable[[Sequence[LogLine]], Sequence[FilterRule]]
Classify = Callable[[Sequence[FilterRule]], Classifier]

EVERY = 60.0  # seconds; twice as long after each question that gave no rule,
RARELY = 3600.0  # up to this


class BackgroundLearner:
    """Asks `learn` for rules, one question at a time, in a thread of its own, and puts them in force.

    learn: from lines that come again and again, `repeats` saying how often, to rules that are fit to be used;
    classify: what decides with these rules; rules: those in force. tell: is given what went wrong, in one line.
    """

    def __init__(
        self,
        learn: Learn,
        classify: Classify,
        rules: Sequence[FilterRule],
        tell: Callable[[str], None],
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._learn, self._classify, self._tell, self._least, self._clock = learn, classify, tell, every, clock
        self._every = every
        self._rules = tuple(rules)
        self._asked = clock()
        self._thread: threading.Thread | None = None
        self._made: Learned | None = None  # of the thread, once it has ended
        self._problem = ""

    def offer(self, unexplained: Callable[[], Sequence[LogLine]]) -> None:
        if self._thread is not None or self._clock() - self._asked < self._every:
            return
        self._asked = self._clock()
        if lines := unexplained():
            # A daemon: a model that is slow to answer does not keep triage from ending.
            self._thread = threading.Thread(target=self._ask, args=(lines,), name="learner", daemon=True)
            self._thread.start()

    def learned(self) -> Learned | None:
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread = None
        made, self._made = self._made, None
        problem, self._problem = self._problem, ""
        if problem:
            self._tell(problem)
        if made is None:
            self._every = min(2 * self._every, RARELY)
            return None
        self._every = self._least
        self._rules = (*self._rules, *made.rules)
        return made

    def _ask(self, lines: Sequence[LogLine]) -> None:
        try:
            known = {rule.id for rule in self._rules}
            new = tuple(rule for rule in self._learn(lines) if rule.id not in known)
            if new:
                self._made = Learned(LineKinds(self._classify((*self._rules, *new))), new)
        except Exception as error:  # noqa: BLE001 - whatever it is, the stream goes on
            self._problem = f"no filter rules were learned: {' '.join(str(error).split()) or type(error).__name__}"
