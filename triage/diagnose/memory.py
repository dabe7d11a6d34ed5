"""What a message of exhausted GPU memory says in figures: who holds it, and whether it is only in pieces. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {"KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 1024.0}
_SIZE = r"(\d{1,9}(?:\.\d{1,4})?) ([KMGT]iB)"
_TRIED = re.compile(rf"[Tt]ried to allocate {_SIZE}")
_TOTAL = re.compile(rf"(?:total capacity of {_SIZE}|{_SIZE} total capacity)")
_FREE = re.compile(rf"(?:of which {_SIZE} is free|{_SIZE} free)")
_OWN = re.compile(rf"this process has {_SIZE} memory in use")
_OTHER = re.compile(rf"(?<!this )[Pp]rocess (\d{{1,9}}) has {_SIZE} memory in use")
_UNUSED = re.compile(rf"{_SIZE} is reserved (?:by PyTorch )?but unallocated")
_ALLOCATED = re.compile(rf"(?:{_SIZE} is allocated by PyTorch|{_SIZE} already allocated)")
_RESERVED = re.compile(rf"{_SIZE} reserved in total")
FOREIGN, PIECES = "foreign-memory", "fragmentation"


@dataclass(frozen=True, slots=True)
class Memory:
    """Sizes in GiB, None where the message does not say. others: (process, size) that hold memory of the same GPU."""

    tried: float
    total: float | None
    free: float | None
    own: float | None
    unused: float | None  # reserved by this process's allocator and not allocated
    others: tuple[tuple[str, float], ...]

    @property
    def kind(self) -> str:
        """Where what was asked for is: in pieces (PIECES), with another process (FOREIGN), or "" for nowhere."""
        free = self.free or 0
        if free >= self.tried:
            return PIECES
        if self.others and sum(size for _, size in self.others) + free >= self.tried:
            return FOREIGN
        return PIECES if (self.unused or 0) >= self.tried else ""


def read(text: str) -> Memory | None:
    """None for a line that is no such message or gives no figures."""
    tried = _size(_TRIED, text)
    if tried is None:
        return None
    allocated, reserved = _size(_ALLOCATED, text), _size(_RESERVED, text)
    unused = _size(_UNUSED, text)
    if unused is None and reserved is not None and allocated is not None:
        unused = reserved - allocated
    others = tuple((m[1], float(m[2]) * _UNITS[m[3]]) for m in _OTHER.finditer(text))
    return Memory(tried, _size(_TOTAL, text), _size(_FREE, text), _size(_OWN, text), unused, others)


def told(found: Memory) -> str:
    """What the figures mean, as a sentence; "" where they say no more than that memory is full."""
    of = f" of {found.total:.4g} GiB" if found.total else ""
    if found.kind == FOREIGN:
        who = " and ".join(f"process {pid} holds {size:.4g} GiB" for pid, size in found.others[:2])
        also = f" ({found.unused:.4g} GiB are reserved by this process and not in use)" if found.unused else ""
        return f"Another process is on this GPU: {who}{of}; without it the {found.tried:.4g} GiB asked for would fit{also}."
    if found.kind == PIECES:
        if found.free is not None and found.free >= found.tried:
            return f"Memory is in pieces rather than full: {found.tried:.4g} GiB were asked for, and {found.free:.4g} GiB are free."
        return (
            f"Memory is in pieces rather than full: {found.tried:.4g} GiB were asked for, and {found.unused or 0:.4g} GiB are reserved "
            "by this process and not in use."
        )
    own = f"this process itself holds {found.own:.4g} GiB{of}" if found.own else ""
    return f"The model does not fit: {own}." if own else ""


def _size(pattern: re.Pattern[str], text: str) -> float | None:
    match = pattern.search(text)
    if match is None:
        return None
    number, unit = (group for group in match.groups() if group)
    return float(number) * _UNITS[unit]
