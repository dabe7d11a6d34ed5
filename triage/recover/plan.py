"""From a recorded diagnosis to a plan: look, end what hangs, test and drain nodes, go back to a checkpoint, start again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from triage.diagnose.suspects import NODE_TYPES
from triage.evidence.processes import short
from triage.recover import hung, restart
from triage.recover.budget import Budget, budget
from triage.recover.hosts import draining, is_name
from triage.recover.resume import Resume
from triage.recover.skipping import Skip
from triage.recover.step import Plan, Step
from triage.risk import of_command
from triage.text import host_list, how_many

_JOB = re.compile(r"\d{1,12}(?:_\d{1,9})?(?:\.[\w-]{1,60})?")
# A fault somewhere between the nodes, that the log alone lays on none of them.
_BETWEEN = frozenset(
    {"nccl-timeout", "nccl-remote-error", "hang", "network-error", "connection-error", "nvlink-error", "cuda-error"}
)
_PROGRAMS = (("kubernetes", r"\bkubectl\b"), ("slurm", r"\b(?:scontrol|sacct|sbatch|srun|squeue|scancel|sinfo)\b"), ("pbs", r"\bpbsnodes\b|\bqsub -\w"), ("lsf", r"\bbjobs\b|\bbadmin\b"), ("flux", r"\bflux \w"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """result: the diagnosis as its JSON object; nodes: all that the job ran on, as its scheduler says, else those of the record; steps: the last one of each attempt, oldest first;
    triage: how this program is called; resume, skip: where the checkpoints and the log were looked at."""

    incident: int
    result: Mapping[str, Any]
    scheduler: str
    nodes: tuple[str, ...] = ()
    steps: tuple[int | None, ...] = ()
    triage: tuple[str, ...] = ("triage",)
    script: str = ""
    kill_switch: str = ""
    resume: Resume | None = None
    skip: Skip | None = None
    notes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # nodes that a test named
    submitted: tuple[str, ...] = ()  # by earlier runs of a plan of this incident, as the scheduler called it
    known: float | None = None  # when its last attempt was recorded, in seconds since 1970
    refuted: str = ""  # what a person said instead of the diagnosis

    @property
    def job(self) -> str:
        """ "" where the id is none that may stand in a command."""
        found = str(self.result.get("job") or "")
        return found if _JOB.fullmatch(found) else ""

    @property
    def suspects(self) -> tuple[str, ...]:
        """Nodes that the diagnosis or a test accuses, by the names that the scheduler knows; of the first only the job's own."""
        named = [*(node for node in self._accused if self._of_job(node)), *self.without]
        return tuple(dict.fromkeys(short(node) for node in named if is_name(node)))

    @property
    def testable(self) -> tuple[str, ...]:
        """The job's nodes as far as they are known, each once: logs call one by its short and by its whole name."""
        return tuple(dict.fromkeys(short(node) for node in self.nodes if is_name(node)))

    @property
    def unnamed(self) -> bool:
        """A node is at fault, and nothing tells which."""
        return self.result.get("action") == "restart-excluding" and not self.suspects

    @property
    def strangers(self) -> tuple[str, ...]:
        """Accused, and none of the job's nodes as far as these are known: whoever writes into a log could name them."""
        return tuple(dict.fromkeys(node for node in self._accused if not self._of_job(node)))

    @property
    def _accused(self) -> list[str]:
        return list(map(str, self.result.get("suspects", {}).get("nodes", [])))

    def _of_job(self, node: str) -> bool:
        return not self.nodes or short(node) in {short(known) for known in self.nodes}

    @property
    def cited(self) -> tuple[str, ...]:
        return tuple(e["id"] for e in self.result.get("evidence", []) if e.get("role") == "root")[:2]

    @property
    def type(self) -> str:
        found = str(self.result.get("failure_type", ""))
        return found if re.fullmatch(r"[\w-]{1,60}", found, re.ASCII) else "unknown"


def scheduler_of(result: Mapping[str, Any], known: str = "") -> str:
    """known: as it is recorded; else the one whose commands the remedies are in; "" where nothing tells."""
    if known:
        return known
    said = " ".join(f"{r.get('step', '')} {r.get('command', '')}" for r in result.get("remediation", []))
    return next((name for name, pattern in _PROGRAMS if re.search(pattern, said)), "")


def plan(case: Case) -> Plan:
    if case.refuted:
        return plan_against(case)
    allowed = budget(case.result, case.steps)
    if allowed.restart and case.unnamed:
        why = "a node is at fault and no line names it: once it is found, the job can go on without it"
        allowed = replace(allowed, why=why)
    steps = list(_steps(case, allowed))
    notes = [*case.notes, *_notes(case, allowed)]
    return Plan(_verdict(allowed), allowed.restart, tuple(steps), tuple(notes))


def plan_against(case: Case) -> Plan:
    """Of a diagnosis that a person said is wrong nothing is done: only nodes that a person names are taken out."""
    left = replace(
        case, result={key: case.result[key] for key in ("job", "progress") if key in case.result}, refuted=""
    )
    said = case.refuted.rstrip(".")
    if case.without:
        allowed = Budget(True, f"{said}. The job can go on without {', '.join(left.suspects)}")
    else:
        allowed = Budget(False, f"{said}. Go by that, and plan again --without the nodes that are at fault, if any are")
    return Plan(_verdict(allowed), allowed.restart, tuple(_steps(left, allowed)), (*case.notes, *_notes(left, allowed)))


def _verdict(allowed: Budget) -> str:
    if not allowed.restart:
        return f"Do not restart: {allowed.why}."
    left = f" ({how_many(allowed.left, 'more restart')} without progress after this one)" if allowed.left else ""
    return f"Restart: {allowed.why}{left}."


def _steps(case: Case, allowed: Budget) -> Iterator[Step]:
    if case.result.get("outcome") == "healthy":
        return
    yield from _look(case)
    if case.result.get("outcome") == "hung":
        yield from hung.ending(case.scheduler, case.job, case.kill_switch, case.cited, case.known)
    yield from _nodes(case)
    if not allowed.restart:
        yield Step(
            "stop",
            f"Leave it down: {allowed.why}",
            "a restart would cost GPU-hours and bring nothing",
            evidence=case.cited,
            incidents=allowed.incidents,
        )
        return
    changed = case.skip is not None or case.result.get("action") == "rollback-and-skip"
    yield from restart.wanted(case.result, case.cited)
    yield from restart.going_back(case.resume, case.skip, case.result, case.cited)
    yield from restart.again(case.scheduler, case.job, case.suspects, case.script, case.cited, changed, case.submitted)


def _look(case: Case) -> Iterator[Step]:
    """What is read first, and changes nothing."""
    nodes = case.suspects
    asked: list[tuple[str, tuple[str, ...]]] = []
    if case.scheduler == "slurm":
        if case.job:
            asked.append(
                (
                    "Ask Slurm for the state of the job",
                    ("sacct", "-X", "-j", case.job, "--format=JobID,State,ExitCode,NodeList%60"),
                )
            )
        if nodes:
            asked.append(
                ("Ask Slurm for the state of the accused nodes", ("scontrol", "show", "node", host_list(nodes)))
            )
    elif case.scheduler == "kubernetes":
        asked += [
            (f"Ask Kubernetes for the state of {node}", ("kubectl", "describe", "node", node)) for node in nodes[:3]
        ]
    elif case.scheduler == "pbs" and nodes:
        asked.append(("Ask PBS for the state of the accused nodes", ("pbsnodes", "-a", *nodes)))
    for what, argv in asked:
        yield Step(
            "look",
            what,
            "the plan rests on a log; this is how it stands now",
            of_command(argv),
            argv,
            evidence=case.cited,
        )


def _nodes(case: Case) -> Iterator[Step]:
    """Nodes that the evidence accuses are drained; where it accuses none and the fault lies between them, they are tested."""
    accused = case.suspects
    known = case.testable
    if _to_be_tested(case) and len(known) > 1:
        argv = (
            *case.triage,
            "recover",
            "node-test",
            "--nodes",
            host_list(known),
            "--incident",
            str(case.incident),
            "--yes",
        )
        why = f"{case.type} tells of a fault {_where(case)}, and no line accuses one"
        yield Step(
            "node-test",
            f"Test the {how_many(len(known), 'node')} of the job in pairs, and plan again --without those that it names",
            why,
            of_command(argv),
            argv,
            "scancel --name=triage-node-test",
            case.cited,
        )
    elif case.unnamed:
        yield _to_be_found(case)
    if not accused:
        return
    argv, undo = draining(case.scheduler, accused, f"triage:{case.type}:{case.incident}")
    named = ", ".join(accused)
    why = "its hardware or its links failed" if case.type in NODE_TYPES else "the lines that failed are of it alone"
    if argv:
        yield Step(
            "drain", f"Keep new jobs off {named}", why, of_command(argv), argv, undo, case.cited, _before(case.result)
        )
    else:
        yield Step(
            "do",
            f"Take {named} out of service",
            f"{why}; which scheduler runs the job is not known (--scheduler)",
            "reversible",
            evidence=case.cited,
        )


def _to_be_tested(case: Case) -> bool:
    return not case.suspects and (case.type in _BETWEEN or case.unnamed) and case.scheduler in ("slurm", "")


def _where(case: Case) -> str:
    return "of a node" if case.unnamed else "between the nodes"


def _to_be_found(case: Case) -> Step:
    """The node at fault, by a person, where no test of the nodes finds it: the job would be put on it again."""
    gpus = [
        gpu for gpu in map(str, case.result.get("suspects", {}).get("gpus", [])) if re.fullmatch(r"[\w:.-]{1,40}", gpu)
    ]
    which = f"Find the node at fault{f', that of GPU {gpus[0]}' if gpus else ''}, and plan again --without it"
    if len(case.testable) == 1:
        where = f"the job ran on {case.testable[0]}, as far as is known"
    else:
        where = "the kernel logs of the job's nodes name it"
    return Step(
        "do",
        which,
        f"{case.type} is the fault of a node, and no line names it; {where}",
        evidence=case.cited,
        first=True,
    )


def _before(result: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, (result.get("recurrence") or {}).get("incidents", ())))[:3]


def _notes(case: Case, allowed: Budget) -> Iterator[str]:
    if case.strangers:
        yield f"{', '.join(case.strangers)} is named by the log and is none of the job's nodes: the plan leaves it alone."
    if case.scheduler == "kubernetes" and case.suspects:
        yield "kubectl speaks to the cluster of its current context (`kubectl config current-context`): see that it is the job's."
    if _to_be_tested(case) and not case.testable:
        ask = f" (`sacct -X -j {case.job} --format=NodeList%60`)" if case.scheduler == "slurm" and case.job else ""
        yield (
            f"{case.type} tells of a fault {_where(case)}, and the job's nodes are not known, so the plan tests none: find them{ask}, run"
            f" `triage recover node-test --nodes LIST --incident {case.incident}`, and plan again --without those that it names."
        )
    if case.kill_switch and case.result.get("outcome") != "hung":
        yield "--kill-switch was left out: it ends a job that hangs, and this one has ended."
    if case.result.get("outcome") == "hung" and case.scheduler in ("slurm", ""):
        yield from hung.NOBODY
    steps = [str(one.get("step", "")).rstrip(".") for one in case.result.get("remediation", [])][:3]
    if steps and not allowed.restart:
        yield f"What to do about it: {'; '.join(steps)} (`triage incidents show {case.incident}`)."
    if allowed.restart:
        yield from restart.notes(case.scheduler, case.script, bool(case.suspects))
    if case.result.get("status") in ("hypothesis", "unknown") and case.suspects:
        yield "The diagnosis is a hypothesis: look first whether the nodes are at fault at all."
