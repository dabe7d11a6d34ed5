"""Which program wrote a text, told by the wording of its first lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from triage.domain import FileKind

_LINES = 400
_KERNEL = re.compile(
    r"(?:<\d{1,3}>)?\[ {0,5}\d{1,8}\.\d{3,9}\]|\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\]"
    r"|\[(?: +\+\d{1,6}\.\d{6}|[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d)\] "  # dmesg -H: the minute, then what passed since
    r"|.{0,120}\bkernel: |dmesg-erst-\d|Panic#\d Part\d"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d "  # dmesg --time-format iso: no other log has a comma, six digits and a zone
)
_SYSLOG = re.compile(
    r"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,30}) [\w.:-]{1,80} [\w./@()-]{1,60}(?:\[\d+\])?: "
)
_SLURM_STAMP = re.compile(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?\] ")
_SLURM_WORDS = re.compile(
    r"\b(?:JobId=|slurmd|slurmctld|slurmdbd|_rpc_|_slurm_rpc|sched(?:/\w+)?: |backfill|launch_?task|[Ll]aunching batch job|task/\w+|cred/\w+"
    r"|node_did_resp|NodeName=|_job_complete|job_step|prolog|epilog|Registering slurmd|\[\d+\.(?:batch|extern|interactive|\d+)\])"
)
_SACCT = re.compile(
    r"^\s*JobID(?:Raw)?[|, ].*\b(?:State|ExitCode|Elapsed|JobName)\b|^\s*JobId=\d+ .*JobName=|^\s*JobState=|^NodeName=\S+ (?:Arch|Addr|State)="
    r"|^\s*JOBID\s+PARTITION\s+NAME|^PARTITION\s+AVAIL\s+TIMELIMIT|^NODELIST\s+NODES",
    re.MULTILINE,
)
_KUBERNETES = re.compile(
    r"^Name:\s+\S+\s*\n(?:.*\n){0,3}?Namespace:\s|^LAST SEEN\s+TYPE\s+REASON|^NAME\s+READY\s+STATUS\s+RESTARTS|^(?:NAMESPACE\s+)?LAST SEEN"
    r"|^apiVersion: [\w./]+\s*$|^\s*\"apiVersion\": \"|^  Type\s+Reason\s+Age\s+From\s+Message",
    re.MULTILINE,
)
# A row of `kubectl get events` without the head, as a filter leaves it.
_EVENT = re.compile(
    r"(?:[a-z0-9][a-z0-9-]{0,62}\s{1,40})?(?:\d{1,5}[dhms]){1,4}(?: \(x\d{1,6} over \S{1,20}\))?\s{1,40}(?:Normal|Warning)\s{1,40}[A-Z]\w{2,60}\s{1,40}[a-z]{2,60}/\S"
)
_FABRIC_LINE = re.compile(
    r".{0,60}\[tid \d+\]|.{0,60}\b(?:[Ff]abric ?[Mm]anager|NVSwitch|SXid)\b|-[IWE]- |Port (?:GUID|state|physical state|xmit)|# Port counters"
    r"|CA '\w+'|\s+(?:Link layer|Base lid|Port \d+:)"
)
_FABRIC_HEAD = re.compile(
    r"NVSMI LOG|^\| NVIDIA-SMI |\| Diagnostic +\| Result|ibdiagnet|^Load Plugins from:|^GPU \d+: NVIDIA .*UUID: GPU-",
    re.MULTILINE,
)
_LABEL = r"(?: {0,6}\d{1,6}: ?|\[rank\d{1,6}\]: ?|[A-Za-z][\w.-]{0,80}\d[\w.-]{0,40}: ?)?"  # of srun -l and pdsh
_THREAD = re.compile(
    _LABEL
    + r"(?:(?:Current t|[Tt])hread (?:0x)?[0-9A-Fa-f]+ (?:\[.{0,80}\] )?\((?:active|idle|LWP|most recent call|Thread 0x)|Process \d+: "
    r"|Thread \d+ \((?:Thread 0x|LWP \d|process \d)|[PT]ID \d+(?::| - process)\s*$| ?--- modulename: .{1,200}, funcname: )"
)
_FRAME = re.compile(
    _LABEL
    + r"(?:\s+[\w.<>: ]{1,120} \(.{1,200}\)\s*$|#\d{1,3} +(?:0x[0-9a-f]+ in )?\w|  File \".{1,300}\", line \d+|Python v\d|\[<[0-9a-f]+>\] \w"
    r"|[\w./<>-]{1,200}\.py\(\d{1,7}\): |\[(?:Thread debugging using|New (?:LWP|Thread) |Inferior \d)|Using host libthread_db|0x[0-9a-f]+ in \w|\s*$)"
)
_PROCESSES = re.compile(
    r"^\s{0,8}(?:[A-Z%]+ +){0,6}PID\s.*\b(?:STAT|S)\b|^#{2,} ?\S{1,80}: ps -|^== /proc/\d+/status|^Name:\t|^top - \d\d:\d\d|^\d{1,9} \(.{1,60}\) [DRSTtZ] \d"
)
_RAS = re.compile(
    r"^(?:NCCL version \d.{0,40} compiled with CUDA|Job summary$|#\d+-\d+ \([0-9a-f]{8,16}\) [A-Z]+$)", re.MULTILINE
)
# What `triage hang collect` calls the files whose content alone would not tell.
_COLLECTED = re.compile(r"(?:mounts|ncclras|ps|top)\.txt|(?:pyspy|gdb|wchan|fds|env|status)-\d{1,9}(?:\.\d{1,3})?\.txt")
_MANIFEST = re.compile(r'"schema": ?"triage\.collected/')


def kind_of(name: str, text: str) -> FileKind:
    """The kind of a text file; name: its last part in lower case."""
    lines = [line for line in text.split("\n")[:_LINES] if line.strip()]
    for kind, test in _TESTS:
        if test(name, text, lines):
            return kind
    return "job"


def _share(lines: Sequence[str], pattern: re.Pattern[str]) -> float:
    return sum(bool(pattern.match(line)) for line in lines) / len(lines) if lines else 0.0


def _is_sacct(_: str, text: str, lines: Sequence[str]) -> bool:
    head = "\n".join(lines[:12])
    document = text.lstrip()[:1] == "{" and '"jobs"' in text and ('"exit_code"' in text or '"job_state"' in text)
    return document or bool(_SACCT.search(head))


def _is_kubernetes(_: str, __: str, lines: Sequence[str]) -> bool:
    if any("Traceback" in line for line in lines[:40]):
        return False
    return bool(_KUBERNETES.search("\n".join(lines[:40]))) or _share(lines, _EVENT) >= 0.6


def _is_stacks(_: str, __: str, lines: Sequence[str]) -> bool:
    threads = sum(bool(_THREAD.match(line)) for line in lines)
    return threads > 0 and threads + sum(bool(_FRAME.match(line)) for line in lines) >= 0.6 * len(lines)


def _is_processes(name: str, text: str, lines: Sequence[str]) -> bool:
    if name == "manifest.json":
        return bool(_MANIFEST.search(text[:2000]))
    if _COLLECTED.fullmatch(name) or any(_PROCESSES.match(line) for line in lines[:1]):
        return True
    return len(_RAS.findall(text[:8000])) > 1 and "NCCL INFO" not in text


def _is_slurm(name: str, _: str, lines: Sequence[str]) -> bool:
    stamped = [line for line in lines if _SLURM_STAMP.match(line)]
    if len(stamped) < 0.6 * len(lines):
        return False
    words = sum(bool(_SLURM_WORDS.search(line)) for line in stamped)
    return name.startswith(("slurmd", "slurmctld", "slurmdbd")) or words >= max(1, 0.15 * len(stamped))


def _is_fabric(name: str, text: str, lines: Sequence[str]) -> bool:
    if name.startswith("fabricmanager") or _share(lines, _FABRIC_LINE) >= 0.4:
        return True
    # A job prints such a table too, and goes on.
    tables = sum(line.lstrip().startswith(("|", "+", "=")) or " : " in line for line in lines)
    return bool(_FABRIC_HEAD.search(text[:4000])) and tables >= 0.7 * len(lines)


def _is_kernel(name: str, _: str, lines: Sequence[str]) -> bool:
    if _share(lines, _KERNEL) >= 0.4 or _share(lines, _SYSLOG) >= 0.6:
        return True
    return name.startswith(("dmesg", "kern.log", "syslog", "messages", "journal")) and _share(lines, _KERNEL) > 0


_TESTS: tuple[tuple[FileKind, Callable[[str, str, Sequence[str]], bool]], ...] = (
    ("sacct", _is_sacct),
    ("kubernetes", _is_kubernetes),
    ("stacks", _is_stacks),
    ("processes", _is_processes),
    ("slurm", _is_slurm),
    ("fabric", _is_fabric),
    ("kernel", _is_kernel),
)
