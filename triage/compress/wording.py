"""What kind of thing a line says."""

from __future__ import annotations

_GIST_WORDS = 8
_AROUND = "[](){}<>:;,.!?'\"`=*-"


def gist(body: str) -> str:
    """What kind of thing the line says: its plain words, without names, paths and numbers."""
    words = [word.strip(_AROUND) for word in body[:400].split()]
    return " ".join([word for word in words if word.isalpha()][:_GIST_WORDS]) or body[:40]
