"""What a model is told of the conversation so far, within the room that it has: the last turns whole, older ones in a line."""

from __future__ import annotations

from collections.abc import Sequence

from triage.store.chat_values import StoredTurn

_WHOLE = 0.6  # of the room, for turns as they were
_LINE = 160  # characters of a turn in brief


def remembered(turns: Sequence[StoredTurn], room: int) -> str:
    """room: characters. The newest turns as they were, those before them in brief, the oldest left out; oldest first."""
    told: list[str] = []
    left, whole = room, int(room * _WHOLE)
    for at, turn in enumerate(reversed(turns)):
        if turn.state == "asked" or turn.asked.startswith("/"):
            continue
        text = f"Q: {turn.asked}\nA: {turn.answer.strip() or turn.state}"
        if at and len(text) > whole:
            text, whole = _brief(turn), 0
        if len(text) >= left:
            text = _brief(turn)
        if len(text) >= left:
            break
        left -= len(text) + 1
        whole -= len(text) + 1
        told.append(text)
    return "\n".join(reversed(told))


def _brief(turn: StoredTurn) -> str:
    """The question, how the answer began, and the lines that it cited."""
    places = ", ".join(f"{c['file']}:{c['line']}" for c in turn.citations[:3])
    said = " ".join(turn.answer.split())[:_LINE]
    cited = f" (cited {places})" if places else ""
    return f"Q: {' '.join(turn.asked.split())[:_LINE]}\nA in brief: {said}{cited}"
