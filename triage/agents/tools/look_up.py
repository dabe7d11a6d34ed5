"""What a signature, an Xid, an exit code or a line means, from the knowledge base and the tables of codes."""

from __future__ import annotations

from triage.agents.tools.kit import ToolError
from triage.domain import LogLine
from triage.evidence import decode
from triage.evidence.match import Finding, Matcher

MOST_SIGNATURES = 8


def look_up(matcher: Matcher, kind: str, what: str) -> str:
    """kind: signature, xid, exit-code or line. Errors: ToolError for what is not known."""
    match kind:
        case "signature":
            return _signature(matcher, what)
        case "xid":
            return _xid(matcher, _whole(what))
        case "exit-code":
            return decode.exit_code(_whole(what)) or f"{what} has no meaning of its own"
        case "line":
            return _line(matcher, LogLine("", 0, what))
    raise ToolError("kind must be signature, xid, exit-code or line")


def _signature(matcher: Matcher, what: str) -> str:
    known = [s for s in matcher.signatures if s.id == what]
    if not known:
        near = [s.id for s in matcher.signatures if what.lower() in f"{s.id} {s.title}".lower()]
        raise ToolError(f"no signature {what[:60]!r}" + (f"; perhaps {', '.join(near[:12])}" if near else ""))
    return _of_signature(Finding(LogLine("", 0, ""), known[0]))


def _xid(matcher: Matcher, number: int) -> str:
    line = LogLine("", 0, f"NVRM: Xid (PCI:0000:3b:00): {number}, pid=1, name=python")
    found = [f for f in matcher.match(line, "kernel") if str(number) in f.signature.id]
    if not found:
        raise ToolError(f"the knowledge base has nothing on Xid {number}")
    return "\n".join(map(_of_signature, found[:MOST_SIGNATURES]))


def _line(matcher: Matcher, line: LogLine) -> str:
    said = [_of_signature(f) for f in matcher.match(line)[:MOST_SIGNATURES]]
    if means := decode.explain(line.text):
        said.append(means)
    return "\n".join(said) or "no signature knows such a line"


def _whole(what: str) -> int:
    """Errors: ToolError."""
    digits = what.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 8):
        raise ToolError(f"{what[:40]!r} is no number")
    return int(what)


def _of_signature(found: Finding) -> str:
    s = found.signature
    check = f"; to check: {s.check}" if s.check else ""
    return f"{s.id}: {s.title}. Type {s.failure_type}, cause {s.root_cause_class}, role {s.role}. Remedy: {s.remedy}{check}"
