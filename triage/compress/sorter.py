"""Sorts the lines of a block into templates, with a look only at what does not repeat an outline already known."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from triage.compress import clean
from triage.compress.blocks import Block
from triage.compress.classify import Classifier, Settled, Shape, name_of, together
from triage.compress.linewise import Confined
from triage.compress.tally import ALARM, HOT, Target
from triage.domain import FilterRule
from triage.regex import skeleton

_MANY = 8  # lines of a new outline that make it worth finding out what all its lines are
_KNOWN_LENGTH = 512  # the longest outline of them


class Counted(NamedTuple):
    """So many lines of the block are of the template; they have these outlines, and no line of another has."""

    target: Target
    total: int
    outlines: list[bytes]


class Found(NamedTuple):
    """The lines of the block at these places, ascending, are of the template."""

    target: Target
    places: list[int]


class _Form:
    """What is known of an outline. settled: None when it was seen once, or when only its lines can tell."""

    __slots__ = ("doubts", "must", "shape", "target", "tried")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.tried = False
        self.target: Target | None = None
        self.doubts: tuple[Confined, ...] = ()
        self.must: Confined | None = None

    def settle(self, settled: Settled | None) -> None:
        self.tried = True
        if settled is not None:
            self.target = self.shape.target(settled.kind)
            _, self.doubts, self.must = settled


_Doubtful = tuple[Shape, Target, tuple[Confined, ...], Confined | None]
_Group = Target | _Doubtful | Shape  # lines that are looked at together


class Sorter:
    """Remembers what it found out from block to block. What a line is depends on the line alone.

    known: about how many outlines, and how many skeletons, are remembered.
    """

    def __init__(self, classifier: Classifier, known: int) -> None:
        self._classifier, self._known = classifier, known
        self._shapes: dict[bytes, Shape] = {}
        self._forms: dict[bytes, _Form] = {}

    @property
    def rules(self) -> Sequence[FilterRule]:
        return self._classifier.rules

    def another(self, known: int) -> Sorter:
        """With the same rules, compiled once for both, and nothing remembered."""
        return Sorter(self._classifier, known)

    def forget(self) -> None:
        """Keeps what is remembered within bounds. Until then, a template is one Target."""
        if len(self._forms) > self._known:
            self._forms = {}
        if len(self._shapes) > self._known:
            self._shapes, self._forms = {}, {}

    def loud(self, states: Sequence[bytes]) -> list[bytes]:
        """Of states that carriage returns overwrote, those that must be kept, in order."""
        self.forget()
        block = Block(b"\n".join(states) + b"\n", 0)
        _, found = self.sort(block, lambda target, _count: target.kind not in (HOT, ALARM))
        places = [at for target, places in found if target.kind in (HOT, ALARM) for at in places]
        return [block.line(at) for at in sorted(places)]

    def sort(self, block: Block, enough: Callable[[Target, int], bool]) -> tuple[list[Counted], list[Found]]:
        """Each line of the block, in one or the other. enough: whether to know how many lines there are is enough.

        A template may be in both lists, and several times.
        """
        work = _Work(block)
        forms = {outline: self._forms.get(outline) for outline in block.counts}
        new = [outline for outline, form in forms.items() if form is None]
        again = {outline: form for outline, form in forms.items() if form is not None and not form.tried}
        if new:
            self._find_shapes(new, work)
            for outline in new:
                met = forms[outline] = _Form(self._shapes[name_of(skeleton(outline))])
                if len(outline) <= _KNOWN_LENGTH:
                    self._forms[outline] = met
                    if block.counts[outline] >= _MANY:
                        again[outline] = met
        if again:
            self._settle(again, block)
        for outline, form in forms.items():
            if form is not None and outline not in work.done:
                work.take(form, outline, block.counts[outline])
        few = work.few(enough)
        return few, [*work.found, *self._look(work)]

    def _settle(self, forms: Mapping[bytes, _Form], block: Block) -> None:
        """Finds out what all lines of these outlines are."""
        items = [(form.shape, outline, block.line(block.first(outline, 1)[0])) for outline, form in forms.items()]
        for form, settled in zip(forms.values(), self._classifier.settle(items), strict=True):
            form.settle(settled)

    def _find_shapes(self, new: Sequence[bytes], work: _Work) -> None:
        """Of the skeletons of new outlines, those that no line had."""
        block = work.block
        strange = {name: of for of in reversed(new) if (name := name_of(skeleton(of))) not in self._shapes}
        if not strange:
            return
        places = {outline: at for at, outline in enumerate(reversed(block.outlines), 1)}
        firsts = [len(block) - places[outline] for outline in strange.values()]
        made = self._classifier.shapes(
            [(block.line(at), skeleton(outline)) for at, outline in zip(firsts, strange.values(), strict=True)]
        )
        for at, shape, (name, outline) in zip(firsts, made, strange.items(), strict=True):
            self._shapes[name] = shape
            if block.counts[outline] == 1:  # what its only line is, is known by now
                work.done.add(outline)
                work.found.append(Found(shape.target(shape.main), [at]))

    def _look(self, work: _Work) -> Iterator[Found]:
        """Sorts the lines that must be looked at."""
        block = work.block
        rare: list[tuple[Shape, list[int]]] = []
        for group, places in work.groups().items():
            if isinstance(group, Target):
                yield Found(group, places)
            elif isinstance(group, tuple):
                yield from self._doubtful(group, block, places)
            elif group.common:
                for kind, chosen in self._classifier.split(group, [block.line(at) for at in places]):
                    yield Found(group.target(kind), places if chosen is None else [places[at] for at in chosen])
            else:
                group.seen += len(places)
                rare.append((group, places))
        if rare:
            yield from self._rare(block, rare)

    def _rare(self, block: Block, groups: Sequence[tuple[Shape, list[int]]]) -> Iterator[Found]:
        """Looks at each line on its own."""
        shapes = [shape for shape, places in groups for _ in places]
        places = [at for _, some in groups for at in some]
        kinds = self._classifier.kinds(shapes, list(map(block.line, places)))
        found: dict[Target, list[int]] = {}
        for at, shape, kind in zip(places, shapes, kinds, strict=True):
            found.setdefault(shape.target(kind), []).append(at)
        yield from itertools.starmap(Found, found.items())

    def _doubtful(self, group: _Doubtful, block: Block, places: list[int]) -> Iterator[Found]:
        """Lines that are of the template, but where a doubt matches or what they must match does not."""
        shape, target, doubts, must = group
        lines = [block.line(at) for at in places]
        joined = together(shape, lines)
        texts = functools.cache(lambda: list(map(clean.text, lines)))
        doubted = {at for doubt in doubts if doubt.found(joined) for at in doubt.which(texts())}
        if must and not must.takes_all(joined):
            doubted |= set(range(len(lines))).difference(must.which(texts()))
        if not doubted:
            yield Found(target, places)
            return
        kinds = self._classifier.kinds([shape] * len(doubted), [lines[at] for at in sorted(doubted)])
        other = dict(zip(sorted(doubted), map(shape.target, kinds), strict=True))
        parts: dict[Target, list[int]] = {}
        for at, place in enumerate(places):
            parts.setdefault(other.get(at, target), []).append(place)
        yield from itertools.starmap(Found, parts.items())


class _Work:
    """What becomes of the outlines of a block. done: those of which nothing is left to do."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.found: list[Found] = []
        self.done: set[bytes] = set()
        self._counted: dict[Target, Any] = {}  # how many lines, and then their outlines
        self._places: dict[bytes, list[int]] = {}  # of the lines to be looked at; those of a group are one list
        self._groups: dict[_Group, list[int]] = {}
        self._unfounded: dict[tuple[Confined, ...], bool] = {}

    def take(self, form: _Form, outline: bytes, count: int) -> None:
        target = form.target
        if target is None:
            self._look_at(outline, form.shape)
        elif form.must is not None or (form.doubts and not self._are_unfounded(form)):
            self._look_at(outline, (form.shape, target, form.doubts, form.must))
        elif target in self._counted:
            known = self._counted[target]
            known[0] += count
            known.append(outline)
        else:
            self._counted[target] = [count, outline]

    def few(self, enough: Callable[[Target, int], bool]) -> list[Counted]:
        """The templates of which it is enough to know how many lines there are."""
        found: list[Counted] = []
        for target, (count, *outlines) in self._counted.items():
            if enough(target, count):
                found.append(Counted(target, count, outlines))
            else:
                for outline in outlines:
                    self._look_at(outline, target)
        return found

    def _are_unfounded(self, form: _Form) -> bool:
        """Whether a scout tells at once that no line of the block can match a doubt."""
        if not form.shape.clean:
            return False
        found = self._unfounded.get(form.doubts)
        if found is None:
            found = all(doubt.scouted(self.block.text) is False for doubt in form.doubts)
            self._unfounded[form.doubts] = found
        return found

    def _look_at(self, outline: bytes, group: _Group) -> None:
        self._places[outline] = self._groups.setdefault(group, [])

    def groups(self) -> dict[_Group, list[int]]:
        """The places of the lines of each group, ascending."""
        lists, outlines = self._places, self.block.outlines
        for at in self.block.places(lists):
            lists[outlines[at]].append(at)
        return self._groups
