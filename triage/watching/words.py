"""Figures in words."""

from __future__ import annotations

from triage.text import signal_name


def span(seconds: float) -> str:
    """ "4.2 s", "12 min", "1 h 30 min"."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def ended(status: int) -> str:
    """Of a process, by what wait() gives: "exit code 1", "killed by SIGKILL"."""
    number = status & 0x7F
    return f"killed by {signal_name(number)}" if number else f"exit code {status >> 8}"
