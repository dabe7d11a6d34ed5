"""Steps to take, each with its reason, its risk and the lines it rests on: confirm, act, verify, escalate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts
from triage.diagnose.names import fill_command, fill_text, names, seen_on
from triage.diagnose.situation import Situation, situation
from triage.domain import Evidence, Progress, Remedy, Runbook, Runbooks, RunbookStep, Status, Suspects, When

MAX_STEPS = 7
MAX_CONFIRM = 2
MAX_ACT = 3
_WORD = re.compile(r"[a-z_]{5,}")
# After these the job runs again before anything is repaired; with the others, what is to change comes first.
_AT_ONCE = frozenset({"restart-excluding", "kill-and-restart"})


@dataclass(frozen=True, slots=True)
class _Case:
    """One job to fill a runbook for."""

    book: Runbook
    here: Situation
    known: Mapping[str, str]
    seen_on: str  # a node that may be looked at where none is suspected
    cited: tuple[str, ...]

    @property
    def to_read(self) -> Mapping[str, str]:
        return {"node": self.seen_on, **self.known} if self.seen_on else self.known

    def steps(self, listed: Iterable[RunbookStep]) -> list[Remedy]:
        """Those that apply: first what is said of this very case, last what this log leaves open."""
        fitting = [step for step in listed if self.here.meets(step.when)]
        filled = [(self._remedy(step), step) for step in fitting]
        filled.sort(key=lambda pair: (bool(pair[1].command and not pair[0].command), not _special(pair[1].when)))
        return [remedy for remedy, _ in filled]

    def _remedy(self, step: RunbookStep) -> Remedy:
        known = self.to_read if step.risk == "read-only" else self.known
        text, why = fill_text(step.step, known), fill_text(step.why, known)
        command, missing = fill_command(step.command, known)
        if missing and step.risk != "destructive":
            text += f" (`{command}`; this log does not name {', '.join(f'<{name}>' for name in missing)})"
        return Remedy(text, why, step.risk, "" if missing else command, self.cited)


def _special(when: When) -> bool:
    return bool(when.signature or when.component or when.cause or when.spread or when.seen or when.recurrence)


def remediation(
    facts: Facts,
    root: Candidate,
    evidence: Sequence[Evidence],
    books: Runbooks,
    action: str,
    found: Suspects,
    status: Status,
    progress: Progress,
) -> tuple[Remedy, ...]:
    """Confirm (read-only), act on the cause and restart if the action says so, verify, and whom to ask if that fails."""
    here = situation(facts, root, found, action)
    case = _Case(
        book=books.of[root.failure_type],
        here=here,
        known=names(facts, root, found, here.scheduler, progress),
        seen_on=seen_on(facts, root),
        cited=tuple(e.id for e in evidence if e.role == "root")[:2],
    )
    confirm = _confirm(case, root, status)
    after = [*case.steps(case.book.verify)[:1], *case.steps(case.book.escalate)[:1]]
    return (*confirm, *_act(case, root, books)[: MAX_STEPS - len(confirm) - len(after)], *after)


def _confirm(case: _Case, root: Candidate, status: Status) -> list[Remedy]:
    """The check of the signature where a doubt is left or a node is accused, and what the runbook looks at."""
    steps = []
    if root.signature.check and (status != "established" or root.signature.node_fault):
        why = "a read-only check that tells this cause from its rivals"
        check = fill_command(root.signature.check, case.to_read)[0]
        command = check if is_command(check) else ""
        on = f" on {case.known['node']}" if root.signature.node_fault and "node" in case.known else ""
        text = f"Confirm the cause{on}" if command else f"Confirm the cause: look at {check}"
        steps.append(Remedy(text, why, "read-only", command, case.cited))
    seen = {step.command for step in steps}
    steps += [step for step in case.steps(case.book.confirm) if not step.command or step.command not in seen]
    return steps[: 1 if status == "established" else MAX_CONFIRM]


def _act(case: _Case, root: Candidate, books: Runbooks) -> list[Remedy]:
    """The remedy of the signature, what the runbook changes, and how the action is done."""
    doing = case.steps(books.doing[case.here.action])
    remedy = root.signature.remedy
    own = [step for step in case.steps(case.book.act) if not _said(step.step, remedy)]
    first = [Remedy(remedy, root.signature.title, "reversible", evidence=case.cited)] if remedy else []
    if case.here.action in _AT_ONCE:
        return [*first, *doing, *own[:1]]
    return [*first, *own[: max(1, MAX_ACT - len(first) - len(doing))], *doing]


def _said(step: str, remedy: str) -> bool:
    """Does the remedy of the signature say it already? Told by the words that carry a meaning."""
    mine, other = (set(_WORD.findall(text.lower())) for text in (step, remedy))
    return bool(mine) and len(mine & other) * 2 > len(mine)


def to_fetch(facts: Facts, book: Runbook, books: Runbooks, found: Suspects, progress: Progress) -> tuple[Remedy, ...]:
    """What to do where the log does not tell: fetch what would, then what the runbook says of a failure without a cause."""
    here = situation(facts, None, found, book.action)
    case = _Case(book, here, names(facts, None, found, here.scheduler, progress), "", ())
    look = [step for step in case.steps(book.confirm) if step.command][:1]
    doing = case.steps(books.doing[book.action]) if book.action in _AT_ONCE else []
    own = case.steps(step for step in book.act if _special(step.when))[:1]
    after = [*doing, *own, *case.steps(book.verify)[:1], *case.steps(book.escalate)[:1]]
    fetch = [
        Remedy(f"Fetch {text}", "this log does not show the cause", "read-only")
        for text in (fill_text(text, case.known) for text in book.fetch)
        if not any(step.command in text for step in look)
    ]
    return (*look, *fetch[: MAX_STEPS - len(look) - len(after)], *after)


def fetch_notes(book: Runbook, job: str) -> tuple[str, ...]:
    """What would settle a doubtful cause, in words."""
    known = {"job": job} if job else {}
    return tuple(f"to settle it, fetch {fill_text(text, known)}" for text in book.fetch)


# What `check` texts begin with when they are commands; the others are things to look at.
_PROGRAMS = frozenset(
    [
        "amd-smi",
        "coredumpctl",
        "dcgmi",
        "df",
        "dmesg",
        "du",
        "find",
        "free",
        "getfacl",
        "grep",
        "hccn_tool",
        "head",
        "ibstat",
        "ibdiagnet",
        "iptables",
        "ip",
        "journalctl",
        "kubectl",
        "ldd",
        "lfs",
        "ls",
        "lsof",
        "lspci",
        "lscpu",
        "mlxlink",
        "mmlsmount",
        "mount",
        "nc",
        "nfsstat",
        "npu-smi",
        "numactl",
        "nvidia-smi",
        "nvcc",
        "perfquery",
        "ping",
        "pip",
        "ps",
        "py-spy",
        "python",
        "python3",
        "ray",
        "rdma",
        "readelf",
        "rocm-smi",
        "sacct",
        "scontrol",
        "sinfo",
        "squeue",
        "ss",
        "stat",
        "strings",
        "tail",
        "torchrun",
        "ulimit",
        "uname",
        "wc",
        "which",
        "file",
        "curl",
        "git",
        "md5sum",
        "sha256sum",
        "nm",
    ]
)
# What a reader is to fill in: <word>, or a name in capitals that signatures use so.
_OPEN = re.compile(
    r"<\w+>|\b(?:MODULE|MASTER_ADDR|MASTER_PORT|PATH|PID|FILE|DIR|HOST|NODE|PORT|SCRIPT|CONFIG|NAME|EXTENSION|LOADDIR|PREFIX)\b"
)
_PROSE = re.compile(
    r"\b(?:of|on|in|for|inside|from|to|while|against|names|are) (?:the|this|that|every|other|earlier)\b"
    r"|\b(?:does it|is it|whether|should|and the)\b|\bwhich (?:\w+ ){2}|\(\w+ \w+ \w+"
)


def is_command(text: str) -> bool:
    """Can the text be typed into a shell as it is?"""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "X", text)
    return (
        not _OPEN.search(text)
        and all(part.split()[0] in _PROGRAMS for part in re.split(r"[;|&]+", bare) if part.split())
        and not _PROSE.search(text)
    )
