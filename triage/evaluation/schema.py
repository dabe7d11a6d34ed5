"""Typed access to a YAML mapping that collects what is wrong, field by field, so that one look shows everything."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


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
                self.wrong(str(name), "unknown field")
        return True

    def part(self, name: str) -> Check:
        return Check(self.value.get(name), f"{self.where}{name}.", self.problems)

    def text(self, name: str, required: bool = False) -> str | None:
        value = self._get(name, required)
        if value is None or isinstance(value, str):
            if required and value == "":
                self.wrong(name, "is empty")
            return value
        self.wrong(name, f"must be text, not {value!r}")
        return None

    def flag(self, name: str, required: bool = False) -> bool:
        value = self._get(name, required)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.wrong(name, f"must be true or false, not {value!r}")
        return False

    def number(self, name: str) -> float | None:
        value = self._get(name)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
            return float(value)
        self.wrong(name, f"must be a number that is not negative, not {value!r}")
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
        self.wrong(name, f"{value!r} is not one of {', '.join(sorted(allowed))}")
        return None

    def some_of(self, name: str, allowed: Collection[str]) -> tuple[str, ...] | None:
        """A list whose every item is allowed; one item may stand alone."""
        if isinstance(self.value.get(name), str):
            one = self.one_of(name, allowed)
            return (one,) if one else None
        found = self.texts(name)
        for item in found or ():
            if item not in allowed:
                self.wrong(name, f"{item!r} is not one of {', '.join(sorted(allowed))}")
        return found

    def texts(self, name: str, required: bool = False) -> tuple[str, ...] | None:
        items = self.items(name, required)
        if items is None or all(isinstance(item, str) and item for item in items):
            return None if items is None else tuple(items)
        self.wrong(name, "must be a list of texts")
        return None

    def integers(self, name: str) -> tuple[int, ...] | None:
        items = self.items(name)
        if items is None or all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            return None if items is None else tuple(items)
        self.wrong(name, "must be a list of whole numbers")
        return None

    def items(self, name: str, required: bool = False) -> list[Any] | None:
        value = self._get(name, required)
        if value is None or isinstance(value, list):
            return value
        self.wrong(name, f"must be a list, not {value!r}")
        return None

    def _get(self, name: str, required: bool = False) -> Any:
        value = self.value.get(name)
        if required and value is None:
            self.wrong(name, "is missing")
        return value
