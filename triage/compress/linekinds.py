"""What kind each line is, for lines that come a few at a time: the decisions of the scan, without what it keeps."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from triage.compress.blocks import Blocks
from triage.compress.classify import Classifier, Shape
from triage.compress.limits import ScanLimits
from triage.compress.tally import ALARM, HOT, PLAIN, Kind
from triage.regex import skeleton

_KNOWN = 20_000  # skeletons that are remembered
_LONG_KEY = 2048  # a longer one by its hash


class LineKinds:
    """Classifies lines and remembers their skeletons, in bounded memory."""

    def __init__(self, classifier: Classifier, limits: ScanLimits | None = None) -> None:
        self._classifier, self._limits = classifier, limits or ScanLimits()
        self._shapes: dict[bytes, Shape] = {}
        self.rule_ids = [rule.id for rule in classifier.rules]  # by the index that kinds have

    def read(self, chunks: Iterable[bytes]) -> Iterator[tuple[list[bytes], list[Kind]]]:
        """The lines of these bytes, cut anywhere, as they are shown, block by block, and the kind of each.

        The bytes start with a line. States that carriage returns overwrote are gone, but for what must be kept.
        """
        for block in Blocks(chunks, self._limits, self._loud):
            yield block.lines, self.kinds(block.lines)

    def kinds(self, lines: Sequence[bytes]) -> list[Kind]:
        """The kind of each line."""
        if len(self._shapes) > _KNOWN:
            self._shapes = {}
        groups: dict[bytes, list[int]] = {}
        for at, line in enumerate(lines):
            groups.setdefault(skeleton(line), []).append(at)
        found = [PLAIN] * len(lines)
        for shape, places in zip(self._lookup(groups, lines), groups.values(), strict=True):
            for kind, chosen in self._classifier.split(shape, [lines[at] for at in places]):
                for at in places if chosen is None else [places[at] for at in chosen]:
                    found[at] = kind
        return found

    def _lookup(self, groups: dict[bytes, list[int]], lines: Sequence[bytes]) -> list[Shape]:
        """The shape of each skeleton; those that are new are classified together."""
        names = {key: key if len(key) <= _LONG_KEY else hashlib.blake2b(key, digest_size=24).digest() for key in groups}
        news = [key for key, name in names.items() if name not in self._shapes]
        made = self._classifier.shapes([(lines[groups[key][0]], key) for key in news])
        self._shapes.update((names[key], shape) for key, shape in zip(news, made, strict=True))
        return [self._shapes[name] for name in names.values()]

    def _loud(self, states: Sequence[bytes]) -> list[bytes]:
        """Of states that carriage returns overwrote, those that must be kept, in order."""
        return [state for state, kind in zip(states, self.kinds(states), strict=True) if kind in (HOT, ALARM)]
