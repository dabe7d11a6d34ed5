"""Outages of storage that ended: a server that answered again within minutes brought no job down. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from triage.domain import JobLog, LogLine
from triage.evidence.match import Best

_SHORT = timedelta(minutes=5)  # half of what collectives wait by default
# What is gone, and the line that says that the same is back.
_PAIRS = (
    (re.compile(r"nfs: server (\S{1,200}) not responding"), r"nfs: server {} (?:OK\b|is back)"),
    (re.compile(r"Lustre: (\S{1,200}): Connection to .{1,200}was lost"), r"Lustre: {}: Connection restored\b"),
    (re.compile(r"libceph: (\w{1,40}) \S{0,100} ?(?:socket closed|session lost)"), r"libceph: {} \S{{0,100}} ?session established"),
    (re.compile(r"ceph: (mds\d{1,4}) (?:hung|caps stale)"), r"ceph: {} (?:caps renewed|recovery completed|came back|reconnect success)"),
)  # fmt: skip


def weigh(best: Best, log: JobLog) -> None:
    """An outage that ended within minutes becomes context; one of which the stamps do not tell how long it was, too."""
    files = {f.name: f for f in log.files}
    for key, finding in list(best.items()):
        if finding.signature.role != "root" or finding.signature.failure_type not in (
            "storage-error",
            "connection-error",
        ):
            continue
        back = _back(finding.line, files[key[0]].lines)
        if back is not None and (
            back.time is None or finding.line.time is None or back.time - finding.line.time < _SHORT
        ):
            told = f"{finding.signature.title}, for a short while"
            best[key] = replace(finding, signature=replace(finding.signature, role="context", weight=10, title=told))


def _back(line: LogLine, lines: tuple[LogLine, ...]) -> LogLine | None:
    """The first later line that says that what this line misses is back."""
    for gone, back in _PAIRS:
        if said := gone.search(line.text):
            again = re.compile(back.format(re.escape(said[1])))
            return next((x for x in lines if x.number > line.number and again.search(x.text)), None)
    return None
