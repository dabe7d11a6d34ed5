"""What a rule is: a pattern, and words of which one stands in every text that it matches."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """words: in lower case; hint: of the text in lower case, where the words alone are common. new: what `re.sub` takes."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    new: str | Callable[[re.Match[str]], str]
    hint: re.Pattern[str] | None = None


_PLAIN = re.compile(
    r"(?:none|null|true|false|nan|undefined|unset|missing|required|yes|no|x+|\*+|\.{3,}|\d{1,3}(?:\.\d*)?)$|\[redacted|[<$%*]",
    re.IGNORECASE,
)
_OPAQUE = re.compile(r"(?=[\w.~+/=:@!#-]{8,}$)(?=\S*?\d)(?=\S*?[A-Za-z])|[A-Za-z0-9_+/=-]{24,}$")
_MIXED = re.compile(r"(?=.{0,256}?[A-Za-z])(?=.{0,256}?[\d!#%^&*+?~]).{5,}")
_PLACE = re.compile(r"~?/|\.{1,2}/|[A-Za-z]:\\|\w{2,10}://|SHA256:|MD5:")


def is_plain(value: str) -> bool:
    """A word that stands for no value, a number of up to three digits, a placeholder, or gone already."""
    return _PLAIN.match(value) is not None


def is_opaque(value: str) -> bool:
    """Letters and digits mixed, or one long word: no word of a sentence."""
    return _OPAQUE.match(value) is not None


def is_mixed(value: str) -> bool:
    """No plain word nor number, as passwords are that no tool has made."""
    return _MIXED.match(value) is not None


def is_place(value: str) -> bool:
    """A path, an address or a fingerprint."""
    return _PLACE.match(value) is not None


def after(kind: str) -> Callable[[re.Match[str]], str]:
    """For patterns whose first group says that the second is a secret."""

    def replaced(match: re.Match[str]) -> str:
        return match[0] if is_plain(match[2]) else f"{match[1]}[redacted:{kind}]"

    return replaced


def after_if(kind: str, looks: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
    """The same, where the name is not enough: the value must look like a secret too, and be no path."""

    def replaced(match: re.Match[str]) -> str:
        value = match[2]
        kept = is_plain(value) or is_place(value) or not looks(value)
        return match[0] if kept else f"{match[1]}[redacted:{kind}]"

    return replaced
