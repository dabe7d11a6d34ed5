"""What kind each line is, for lines that come a few at a time: the decisions of the scan, without what it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from triage.compress.blocks import Block, Blocks
from triage.compress.classify import Classifier
from triage.compress.limits import ScanLimits
from triage.compress.sorter import Sorter
from triage.compress.tally import PLAIN, Kind


class LineKinds:
    """Classifies lines and remembers their wordings, in bounded memory."""

    def __init__(self, classifier: Classifier, limits: ScanLimits | None = None) -> None:
        self._limits = limits or ScanLimits()
        self._sorter = Sorter(classifier, self._limits.max_templates)
        self.rule_ids = [rule.id for rule in classifier.rules]  # by the index that kinds have

    def read(self, chunks: Iterable[bytes]) -> Iterator[tuple[list[bytes], list[Kind]]]:
        """The lines of these bytes, cut anywhere, as they are shown, block by block, and the kind of each.

        The bytes start with a line. States that carriage returns overwrote are gone, but for what must be kept.
        """
        for block in Blocks(chunks, self._limits, self._sorter.loud):
            yield block.lines, self._kinds(block)

    def kinds(self, lines: Sequence[bytes]) -> list[Kind]:
        """The kind of each line."""
        return self._kinds(Block(b"\n".join(lines) + b"\n", 0)) if lines else []

    def _kinds(self, block: Block) -> list[Kind]:
        self._sorter.forget()
        found = [PLAIN] * len(block)
        for target, places in self._sorter.sort(block, lambda _target, _count: False)[1]:
            for at in places:
                found[at] = target.kind
        return found
