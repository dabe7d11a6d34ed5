"""Whether compression kept the decisive lines, which of them say the same, and what they say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from triage import heads
from triage.compress import clean
from triage.compress.wording import wording
from triage.evaluation import lines
from triage.evaluation.cases import Decisive
from triage.redact import LineRedactor

_CHANGES = re.compile(r"[0-9a-f\W]+")  # what differs between lines that were folded into one: numbers, stamps, blanks
_SIGNS = re.compile(r"[\W_]+")
_LOOKED_AT = 200  # lines of a range that are compared
_LONG = 200  # a shown line may be cut in its middle
_LINES, _TEXT = 3, 300  # of a range that a record keeps: lines, characters of a line
_READ = 4096  # characters of a line in which secrets are looked for: a progress bar may be megabytes
Shown = Sequence[tuple[str, int, str, int]]  # file, number, text, how many lines it stands for


def kept(decisive: Decisive, shown: Shown, files: Mapping[str, Path]) -> bool:
    """True if a line of the range is in the compressed log, by its number or as one of the lines folded into another.

    Lines fold that differ in numbers and stamps, or, where room is short, in what is quoted and in paths.
    """
    if any(decisive.file in ("", file) and decisive.first <= n <= decisive.last for file, n, _, _ in shown):
        return True
    folded = {said for _, _, text, repeats in shown if repeats > 1 for said in _said(text)} - {""}
    if not folded:
        return False
    wanted = range(decisive.first, decisive.last + 1)
    names = [decisive.file] if decisive.file else list(files)
    there = (line for name in names for line in lines.pick(files[name], wanted).values())
    return any(not folded.isdisjoint(_said(line)) for line in there)


def _said(text: str) -> tuple[str, str]:
    return template(text), _worded(text)


def _worded(text: str) -> str:
    return wording(heads.split(clean.text(text.encode("utf-8", "replace")))[1])


def alike(decisive: Sequence[Decisive], files: Mapping[str, Path]) -> list[int]:
    """A group number for each range: ranges whose lines are of the same wordings, from the first to the last, are one.

    Where every rank prints the same lines, all of them are labelled, and a diagnosis cites one for all.
    """
    wanted: dict[str, set[int]] = {}
    for d in decisive:
        wanted.setdefault(d.file, set()).update(_compared(d))
    there = {name: lines.pick(files[name], numbers) for name, numbers in wanted.items() if name in files}
    groups: dict[object, int] = {}
    found = []
    for at, d in enumerate(decisive):
        picked = there.get(d.file, {})
        said = tuple(_SIGNS.sub(" ", _worded(picked.get(number, ""))).strip() for number in _compared(d))
        key = (d.last - d.first, said) if any(said) else at  # blanks and rules say nothing that another could say too
        found.append(groups.setdefault(key, len(groups)))
    return found


def _compared(d: Decisive) -> range:
    return range(d.first, min(d.last + 1, d.first + _LOOKED_AT))


def texts(decisive: Sequence[Decisive], files: Mapping[str, Path]) -> list[tuple[str, int, str]]:
    """File, number and text of the first lines of each range, cut and without secrets: what a reader misses where the answer
    does not cite them. A range of any file is read where there is but one."""
    wanted: dict[str, set[int]] = {}
    for d in decisive:
        name = d.file or (next(iter(files)) if len(files) == 1 else "")
        wanted.setdefault(name, set()).update(range(d.first, min(d.last + 1, d.first + _LINES)))
    return [
        (name, number, secrets.redact(text[:_READ], number)[:_TEXT])
        for name, numbers in wanted.items()
        if name in files
        for secrets in [LineRedactor()]
        for number, text in sorted(lines.pick(files[name], numbers).items())
    ]


def template(text: str) -> str:
    """What stays of a line without its numbers, stamps and blanks."""
    return _CHANGES.sub("", text)[:_LONG]
