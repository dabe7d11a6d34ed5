"""A driver that asks for a reset of a GPU (Xid 154) says by it which of the events beside it was no passing one. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from triage.evidence.match import Best, Finding

_ASKS = frozenset({"xid.154-reset", "xid.154-reboot"})
_AT_ONCE = timedelta(seconds=10)
_NEAR = 20  # lines of a kernel log whose stamps cannot be read
_EVENT, _ALONE = 76, 60  # weights: of the event that made the driver ask, of the asking alone


def weigh(best: Best) -> None:
    """The event of the same GPU at that moment becomes a cause, or the asking itself where no event is seen."""
    for key, asks in list(best.items()):
        if asks.signature.id not in _ASKS:
            continue
        events = [k for k, f in best.items() if _is_of(f, asks)]
        if any(best[k].signature.role == "root" for k in events):
            continue
        told = max(events, key=lambda k: (best[k].signature.weight, -k[1]), default=key)
        event = best[told].signature
        signature = replace(
            event,
            title=f"{event.title}, after which the driver asked for a reset of the GPU" if events else event.title,
            role="root",
            weight=_EVENT if events else _ALONE,
            root_cause_class="hardware-failure",
            node_fault=True,
            remedy=asks.signature.remedy,
        )
        best[told] = replace(best[told], signature=signature)


def _is_of(event: Finding, asks: Finding) -> bool:
    """Is it another Xid of the same GPU, at the moment when the driver asked?"""
    a, b = event.line, asks.line
    if a.file != b.file or not event.signature.id.startswith("xid.") or event.signature.id.startswith("xid.154"):
        return False
    if event.groups.get("gpu") != asks.groups.get("gpu"):
        return False
    return abs(a.time - b.time) <= _AT_ONCE if a.time and b.time else abs(a.number - b.number) <= _NEAR
