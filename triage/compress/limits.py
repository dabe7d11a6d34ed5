"""How much of a file the scan keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

_EVERY = 1 << 20  # lines
_OWN_BUDGET = 8 << 20


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Occurrences kept per template and run (first, last); sizes in bytes.

    budget: what the kept lines of one file may take in memory. When it is short, plain lines give way first, in the
    middle of the run, then alarms, and hot lines last; head and tail stay.
    """

    hot: tuple[int, int] = (2000, 200)
    alarm: tuple[int, int] = (500, 100)
    plain: tuple[int, int] = (8, 8)
    routine: tuple[int, int] = (2, 2)
    head_lines: int = 60
    tail_lines: int = 300
    budget: int = 48 << 20
    line_limit: int = 1 << 20  # a longer line is cut in its middle
    line_keep: int = 64 << 10  # to this much at either end
    max_templates: int = 20_000
    max_runs: int = 200  # runs kept with their lines; of more, the oldest but the first are summed up
    block: int = 128 << 10  # with its lines and their outlines it fits the second-level cache
    portion: int = 16  # blocks from one look at the budget to the next

    @property
    def whole(self) -> ScanLimits:
        """For files of which each line counts, such as stacks: all that a budget bears which is theirs however many there are."""
        every = (_EVERY, _EVERY)
        return replace(self, budget=max(self.budget, _OWN_BUDGET), hot=every, alarm=every, plain=every, routine=every)

    @property
    def line_cut(self) -> tuple[int, int]:
        """(longest line, what is kept at either end), no more than the budget can bear."""
        longest = min(self.line_limit, max(8 << 10, self.budget // 16))
        return longest, min(self.line_keep, longest // 4)

    def quota(self, name: str) -> tuple[int, int]:
        """Occurrences kept of a template of this kind."""
        found: tuple[int, int] = getattr(self, name)
        return found
