"""Figures in words."""

from __future__ import annotations


def span(seconds: float) -> str:
    """ "4.2 s", "12 min", "1 h 30 min"."""
    if seconds < 120:
        return f"{seconds:.3g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
