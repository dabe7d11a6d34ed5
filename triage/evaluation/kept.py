"""Whether compression kept the decisive lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from triage.evaluation import lines
from triage.evaluation.cases import Decisive

_CHANGES = re.compile(r"[0-9a-f\W]+")  # what differs between lines that were folded into one: numbers, stamps, blanks
_LONG = 200  # a shown line may be cut in its middle
Shown = Sequence[tuple[str, int, str, int]]  # file, number, text, how many lines it stands for


def kept(decisive: Decisive, shown: Shown, files: Mapping[str, Path]) -> bool:
    """True if a line of the range is in the compressed log, by its number or as one of the lines folded into another."""
    if any(decisive.file in ("", file) and decisive.first <= n <= decisive.last for file, n, _, _ in shown):
        return True
    folded = {_template(text) for _, _, text, repeats in shown if repeats > 1}
    if not folded:
        return False
    wanted = range(decisive.first, decisive.last + 1)
    names = [decisive.file] if decisive.file else list(files)
    return any(_template(line) in folded for name in names for line in lines.pick(files[name], wanted).values())


def _template(text: str) -> str:
    return _CHANGES.sub("", text)[:_LONG]
