"""What a message says of rank, node, GPU and level where its prefix did not, and only in words that mean it."""

from __future__ import annotations

import re

from triage.ingest.prefix import Fields, level_of
from triage.text import is_cut

_RANK = re.compile(
    r"\[rank ?(\d{1,6})\][: ]|Process rank: (\d{1,6})\b|\b[Gg]lobal rank (\d{1,6}) (?:is|:)"
    r"|^\s*rank +: (\d{1,6}) \(local_rank|\[Rank (\d{1,6})\]|^Rank (\d{1,6}),"
    r"|MPI_ABORT was invoked on rank (\d{1,6})\b|process rank (\d{1,6}) with PID"
    r"|^(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,]{5,18}(?:Z|[+-]\d\d:?\d\d)?\]? )?rank(\d{1,6})[:|]? "
    r'|\b(?:global_rank|GLOBAL_RANK)[=:] ?(\d{1,6})\b|\{.{0,200}?"(?:global_)?rank": ?(\d{1,6})\b'
)
_LOCAL = re.compile(r"\(local_rank: (\d{1,3})\)|\blocal_rank[:=] ?(\d{1,3})\b(?! of)")
_NODE = re.compile(
    r"^\s*host +: ([\w.-]{2,80})|\bON ([\w.-]{2,80}) CANCELLED AT|\bon node ([A-Za-z][\w.-]{1,80})"
    r"|\bnode: ([A-Za-z][\w.-]{1,80}), |\bNode failure on ([A-Za-z][\w.-]{1,80})|HOSTNAME[=:] ?([A-Za-z][\w.-]{1,80})"
    r'|Running on:? ([A-Za-z][\w.-]*\d[\w.-]*)\s*$|"(?:host|hostname|node)": ?"([\w.-]{2,80})"'
)
_PCI = r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})"
_GPU = re.compile(
    rf"Xid \((?:PCI:)?{_PCI}|\bGPU (?:at PCI:|at )?{_PCI}"
    r"|\bGPU (\d{1,2}) has a total|\(GPU (\d{1,2}); |device: cuda:(\d{1,2})\b|\busing GPU (\d{1,2}) "
)
_WARNING = re.compile(r"\b[A-Z]\w*Warning: |\bwarning: |^WARNING\b|\bWARN(?:ING)?\b[\]: |-]")
_ERROR = re.compile(
    r"^(?:[A-Za-z_][\w.]{0,120}\.)?[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Failure)\b(?::|\s*$)"
    r"|^Traceback \(most recent|(?:^|: )(?:ERROR|[Ee]rror|[Ff]atal(?: error)?): |\bNVRM: Xid\b"
    r"|\[(?:ERROR|error|FATAL|CRITICAL)\]|[-| ](?:ERROR|CRITICAL|FATAL)(?: ?[-|:]|  )"
)
_LEVEL_FIELD = re.compile(r'"(?:level|severity|levelname|lvl)": ?"(\w{3,12})"')
_MARKED = re.compile(r"(TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|LOGS) *[-|\])]")
# Log back-ends of the JVM: May-14 10:06:13.919 [Task monitor] DEBUG nextflow.Session - ...
_THREADED = re.compile(
    r"(?:[A-Z][a-z][a-z]-\d\d \d\d:\d\d:\d\d\.\d{3} )?\[[\w -]{1,60}\] (TRACE|DEBUG|INFO|WARN|ERROR) +[a-zA-Z]"
)
_ERROR_WORDS = ("rror", "ERROR", "Exception", "atal", "FATAL", "Traceback", "Xid", "CRITICAL", "Interrupt", "Failure")


def complete(text: str, at: int, fields: Fields) -> None:
    """Fills what is still unknown; `at` is where the message begins."""
    low_rank = "ank" in text or "RANK" in text
    if fields.rank is None and low_rank and (match := _RANK.search(text)):
        fields.rank = int(next(g for g in match.groups() if g is not None))
    if fields.local_rank is None and low_rank and "ocal_rank" in text and (match := _LOCAL.search(text)):
        fields.local_rank = int(match[1] or match[2])
    if fields.node is None and _may_name_node(text) and (match := _NODE.search(text)):
        group = next(i for i, g in enumerate(match.groups(), 1) if g is not None)
        fields.node = None if is_cut(text, match.end(group)) or match[group][0] == "-" else match[group].rstrip(".,")
    if fields.gpu is None and ("GPU" in text or "Xid" in text or "cuda:" in text) and (match := _GPU.search(text)):
        fields.gpu = next(g for g in match.groups() if g is not None).lower()
    if fields.level is None:
        fields.level = _level(text, at)
    if fields.program is None:
        fields.program = _program(text, at)


def _may_name_node(text: str) -> bool:
    return (
        "host" in text or " ON " in text or "node" in text or "Node" in text or "HOST" in text or "Running on" in text
    )


def _level(text: str, at: int) -> str | None:
    message = text[at : at + 200]
    for match in _MARKED.finditer(message, 0, 100):
        if match.start() == 0 or message[match.start() - 1] in "-|][(" or message[max(0, match.start() - 2)] in "-|][(":
            return level_of(match[1])
    if threaded := _THREADED.match(message):
        return level_of(threaded[1])
    if message.startswith("{") and (named := _LEVEL_FIELD.search(text)):
        return level_of(named[1])
    if any(word in message for word in _ERROR_WORDS) and _ERROR.search(message):
        return "error"
    if ("warning" in message or "Warning" in message or "WARN" in message) and _WARNING.search(text[:400]):
        return "warning"
    return None


def _program(text: str, at: int) -> str | None:
    if text.startswith(("NVRM:", "mlx5_core", "pcieport", "Out of memory: Killed process", "oom-kill:"), at):
        return "kernel"
    if "NCCL INFO" in text or "NCCL WARN" in text:
        return "nccl"
    if text.startswith(("Traceback (most recent", '  File "'), at):
        return "python"
    return None
