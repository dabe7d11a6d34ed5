"""HTML that is escaped by construction: text becomes markup only through `el`, and only `Safe` is taken as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_VOID = frozenset({"meta", "input", "br", "line", "circle", "rect"})
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
# What a log line may hold to look like something else: terminal codes, controls, reordering and invisible characters.
_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,40}[ -/]{0,10}[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|[@-Z\\^_])")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


class Safe(str):
    """Markup."""

    __slots__ = ()

    def __html__(self) -> str:
        """By which Jinja knows it."""
        return str(self)


Child = Any  # Safe, text, a number, None (nothing), or an iterable of these


def el(name: str, /, *children: Child, **attributes: Any) -> Safe:
    """An element. `class_` is class, `data_x` is data-x; an attribute that is None or False is left out, True stands bare."""
    inside = "".join(_attribute(k, v) for k, v in attributes.items())
    if name in _VOID:
        return Safe(f"<{name}{inside}>" if name in {"meta", "input", "br"} else f"<{name}{inside}/>")
    return Safe(f"<{name}{inside}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Safe:
    return Safe("".join(map(_child, children)))


def escape(text: object) -> Safe:
    """Text as markup; nothing in it can act, hide or reorder what stands around it."""
    return Safe(visible(str(text)).translate(_ESCAPES))


def visible(text: str) -> str:
    """Text without terminal colours; controls and invisible characters by their code point."""
    return _HIDDEN.sub(_name, _ANSI.sub("", text))


def cut(text: str, length: int) -> str:
    """At most so many characters."""
    return text if len(text) <= length else text[: max(0, length - 1)].rstrip() + "…"


def slug(text: str) -> str:
    """Text as part of an id."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:80] or "x"


def _name(found: re.Match[str]) -> str:
    char = found.group()
    return "" if char == "\r" else f"⟨U+{ord(char):04X}⟩"


def _child(child: Child) -> str:
    if child is None or child is False:
        return ""
    if isinstance(child, Safe):
        return child
    if isinstance(child, (str, int, float)):
        return escape(child)
    return join(child)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{escape(value)}"'
