"""Links that went down and did not come up again, beside ranks that lost each other: then they are no passing trouble. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from triage.domain import JobLog, LogFile
from triage.evidence.match import Best, Finding

_DOWN = frozenset({"fabric.nic-link-down", "fabric.port-left"})
_PORT = re.compile(r"\bport \d{1,4}\(([\w./-]{1,40})\)|\b(bond\d+|(?:eno|ens|enp|em)\w{1,20}|eth\d+|swp\d+\w*)\b")
_UP = re.compile(
    r"entered forwarding state|[Ll]ink is [Uu]p\b|link status (?:definitely )?up|[Gg]ained carrier|link becomes ready"
)
_LOST = frozenset({"nccl-timeout", "nccl-remote-error", "connection-error", "storage-error"})
_STAYED_DOWN = 62  # weight: it is not said that the job's traffic ran over it


def weigh(best: Best, log: JobLog) -> None:
    """Such a link becomes a possible cause."""
    down = [key for key, f in best.items() if f.signature.id in _DOWN]
    if not down or not any(f.signature.failure_type in _LOST for f in best.values()):
        return
    files = {file.name: file for file in log.files}
    for key in down:
        finding = best[key]
        if finding.signature.role == "context" and not _came_back(finding, files[key[0]]):
            signature = finding.signature
            title = f"{signature.title}, and no line says that it came up again"
            best[key] = replace(finding, signature=replace(signature, title=title, role="root", weight=_STAYED_DOWN))


def _came_back(finding: Finding, file: LogFile) -> bool:
    port = _port(finding.line.text)
    return any(
        line.number > finding.line.number and _UP.search(line.text) and port in (None, _port(line.text))
        for line in file.lines
    )


def _port(text: str) -> str | None:
    found = _PORT.search(text)
    return found[1] or found[2] if found else None
