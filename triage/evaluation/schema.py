"""Typed access to a YAML mapping that collects what is wrong, field by field, so that one look shows everything."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Collection
from typing import Any

_FEW = 12  # names that a message can hold

MOST = 1_000_000_000  # of any number in a case: beyond it, sums and squares lose what they are for
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxlist, _REPR.maxtuple, _REPR.maxdict = 2, 4, 4, 4
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60


def short(value: Any) -> str:
    """A value for a message, cut: an alias in YAML can make it as large as one likes."""
    return _REPR.repr(value)


def unlike(value: Any, allowed: Collection[str]) -> str:
    """That the value is none of those allowed, with the one that may be meant, or all of them when they are few."""
    said = str(value)[:60]
    short_for = [name for name in sorted(allowed) if "".join(part[:1] for part in name.split("-")) == said.lower()]
    if near := [*short_for, *difflib.get_close_matches(said, list(allowed), n=1)]:
        return f"{short(value)} is not known, did you mean {near[0]}?"
    if len(allowed) > _FEW:
        return f"{short(value)} is none of the {len(allowed)} known (docs/labels-and-figures.md lists them)"
    return f"{short(value)} is not one of {', '.join(sorted(allowed))}"


class Problems:
    """What is wrong, in words: field and reason."""

    def __init__(self) -> None:
        self.found: list[str] = []


class Check:
    """A value from YAML; `where` is the path to it, such as "expect."."""

    def __init__(self, value: Any, where: str, problems: Problems) -> None:
        self.value = value
        self.where = where
        self.problems = problems

    def wrong(self, name: str, why: str) -> None:
        self.problems.found.append(f"{self.where}{name}: {why}")

    def is_mapping(self, allowed: Collection[str]) -> bool:
        if not isinstance(self.value, dict):
            self.problems.found.append(f"{self.where.rstrip('.') or 'the file'}: must be a mapping of fields")
            return False
        for name in self.value:
            if name not in allowed:
                near = difflib.get_close_matches(str(name)[:60], list(allowed), n=1)
                self.wrong(str(name)[:60], "unknown field" + (f", did you mean {near[0]}?" if near else ""))
        return True

    def part(self, name: str) -> Check:
        return Check(self.value.get(name), f"{self.where}{name}.", self.problems)

    def text(self, name: str, required: bool = False) -> str | None:
        value = self._get(name, required)
        if value is None or isinstance(value, str):
            if required and value == "":
                self.wrong(name, "is empty")
            return value
        self.wrong(name, f"must be text, not {short(value)}")
        return None

    def flag(self, name: str, required: bool = False) -> bool:
        value = self._get(name, required)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.wrong(name, f"must be true or false, not {short(value)}")
        return False

    def number(self, name: str) -> float | None:
        value = self._get(name)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MOST:
            return float(value)
        self.wrong(name, f"must be a number from 0 to {MOST:.0e}, not {short(value)}")
        return None

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._get(name)
        if value is None or isinstance(value, dict):
            return value or {}
        self.wrong(name, "must be a mapping")
        return {}

    def one_of(self, name: str, allowed: Collection[str], required: bool = False) -> str | None:
        value = self._get(name, required)
        if value is None or (isinstance(value, str) and value in allowed):
            return value
        self.wrong(name, unlike(value, allowed))
        return None

    def some_of(self, name: str, allowed: Collection[str]) -> tuple[str, ...] | None:
        """A list whose every item is allowed; one item may stand alone."""
        if isinstance(self.value.get(name), str):
            one = self.one_of(name, allowed)
            return (one,) if one else None
        found = self.texts(name)
        for item in found or ():
            if item not in allowed:
                self.wrong(name, unlike(item, allowed))
        return found

    def texts(self, name: str, required: bool = False) -> tuple[str, ...] | None:
        items = self.items(name, required)
        if items is None or all(isinstance(item, str) and item for item in items):
            return None if items is None else tuple(items)
        self.wrong(name, "must be a list of texts")
        return None

    def integers(self, name: str) -> tuple[int, ...] | None:
        items = self.items(name)
        if items is None or all(type(item) is int and 0 <= item <= MOST for item in items):
            return None if items is None else tuple(items)
        self.wrong(name, "must be a list of whole numbers that are not negative")
        return None

    def items(self, name: str, required: bool = False) -> list[Any] | None:
        value = self._get(name, required)
        if value is None or isinstance(value, list):
            return value
        self.wrong(name, f"must be a list, not {short(value)}")
        return None

    def _get(self, name: str, required: bool = False) -> Any:
        value = self.value.get(name)
        if required and value is None:
            self.wrong(name, "is missing")
        return value
