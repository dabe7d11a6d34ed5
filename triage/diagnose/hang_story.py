"""What a hang that was looked at lets one say: who it is, who waits for whom, and whether it is one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from triage.diagnose import made_hangs as made
from triage.diagnose.hangs import KERNEL, Culprit, Hang
from triage.domain import Diagnosis, JobLog, Remedy, Signature, StackClass, Suspects
from triage.evidence.crew import Process
from triage.evidence.kernel_places import does
from triage.evidence.stacks import moving
from triage.evidence.standing_in import WAITING
from triage.text import how_many, rank_ranges, signal_name

_ON_NODE = frozenset(
    s.id
    for s in (made.FROZEN, made.MOUNT, made.DRIVER, made.ASLEEP, made.DEFUNCT, made.ENDED, made.SILENT, made.IDLE, made.LOST)
)  # fmt: skip
_LOOK_AGAIN = (
    "Each process was looked at once: take the stacks again after a minute, as those of a job that hangs stay the same."
)
_MEANT = (
    "It may be meant: the process may be in a long legal phase (evaluation, a checkpoint, building an index) for which the others wait by design. Before "
    "anything is killed, see whether it gets on: its stack again after a minute, its log, the file that it writes (ls -l)."
)
_LOOK_ON = "What it waits for in the kernel is known, and not why: its stack tells."
_SPIN = "What computes for long and what loops for ever look the same from outside: its stack, twice, tells them apart."
_LEGAL = re.compile(
    r"(?:^|[._])(?:eval\w*|valid\w*|test|predict\w*|generate|infer\w*|save\w*|checkpoint\w*|ckpt\w*|export\w*)(?:$|[._])",
    re.IGNORECASE,
)
_DEBUGGERS = ("py-spy", "gdb", "eu-stack")
_STEPS = 7
_NAMED = 4  # processes, or places, of which it is said what they do
_COMPUTES = frozenset({"code", "file", "native"})
_PYTHON = re.compile(r"python[\d.]*|pt_\w+")
_NO_PYTHON = "No stack shows a line of Python, as there is no py-spy on the node: what is known is what the kernel and C functions tell."
_INSTALL = Remedy(
    "Install py-spy on the nodes of the job (`pip install py-spy`, into the environment of the job or of triage) and collect again (`triage hang collect`)",
    "without it no line of a Python program is seen; with it the stacks mostly tell who holds the others up",
    "reversible",
)
SAID = frozenset({made.UNSEEN.id, made.NOT_JOINED.id, made.LATE.id, made.CROSSED.id})  # of which no process is named
_SURE = 64  # weight from which on a single look tells


def suspects(hang: Hang, root: Signature, type_: str) -> Suspects | None:
    """Of a hang that was looked at: who it is. None where these facts do not tell."""
    if root.id == made.CROSSED.id:
        return Suspects()  # either side may have taken the wrong way
    chosen = [c for c in hang.culprits if c.signature.id == root.id]
    if not chosen and (root.id in KERNEL or type_ in ("storage-error", "hang", "nccl-timeout")):
        strongest = [c for c in hang.culprits if c.signature.weight == hang.culprits[0].signature.weight]
        in_kernel = [c for c in hang.culprits if c.process.state and c.process.state.letter == "D"]
        chosen = in_kernel if root.id in KERNEL or type_ == "storage-error" else strongest
    if not chosen:
        return None
    on_node = root.id in KERNEL or any(c.signature.id in _ON_NODE for c in chosen)
    processes = [c.process for c in chosen]
    return Suspects(
        nodes=tuple(dict.fromkeys(p.node for p in processes if p.node)) if on_node else (),
        ranks=tuple(sorted({p.rank for p in processes if p.rank is not None})),
        gpus=tuple(dict.fromkeys(str(p.gpu) for p in processes if p.gpu is not None)) if on_node else (),
        pids=tuple(dict.fromkeys(p.pid for p in processes if p.pid is not None)),
    )


def told(hang: Hang, log: JobLog, root: Signature, gpu_faults: bool) -> list[str]:
    """Who waits for whom, in sentences."""
    out: list[str] = []
    if hang.culprits:
        out.append(_waited_for(hang, hang.culprits[0]))
    out += groups(hang) if root.id == made.CROSSED.id else _others(hang)
    stacks = hang.scene.stacks
    for node, n in (stacks.fewer if stacks else ())[:3]:
        out.append(f"Node {node} gave {n} {'stack' if n == 1 else 'stacks'} fewer than the others.")
    if hang.culprits and not gpu_faults and any(f.kind == "kernel" for f in log.files):
        out.append("The kernel logs show no fault of a GPU.")
    return out


def _waited_for(hang: Hang, first: Culprit) -> str:
    alike = [c.process for c in hang.culprits if c.signature.id == first.signature.id]
    ranks = sorted({p.rank for p in alike if p.rank is not None})
    among = f"ranks {rank_ranges(ranks)}, of which " if len(ranks) > 1 else ""
    if not ranks and len(alike) > 1:
        among = f"{len(alike)} processes, of which "
    whose = "All" if first.signature.id == made.ALONE.id else "The others"
    return f"{whose} wait for {among}{first.process.place}{_ended(first.process)}{_standing(hang, first)}."


def _ended(p: Process) -> str:
    """How a process ended, where that was still to be read."""
    if not p.ended or p.code is None:
        return ""
    number = p.code & 0x7F
    return f", which {signal_name(number)} ended" if number else f", which ended with exit code {p.code >> 8}"


def _others(hang: Hang) -> Iterator[str]:
    """Where those wait that are at no fault: by their stacks, else in the kernel."""
    stacks = hang.scene.stacks
    waiting = [c for c in stacks.classes if not c.odd and c.calls] if stacks else []
    blamed = {id(c.process) for c in hang.culprits}
    rest = [p for p in hang.places.waiting if id(p) not in blamed]
    if waiting:
        most = waiting[0]
        verb = "waits" if most.processes == 1 else "wait"
        yield f"{_who(most)} {verb} in {most.calls.split(' (')[0]}."
    elif len(rest) > 1 and (doing := does(rest[0])):
        yield f"{len(rest)} processes {doing.replace('waits', 'wait', 1)}."


def groups(hang: Hang) -> Iterator[str]:
    """Where each class of processes stands, the largest first."""
    classes = hang.scene.stacks.classes if hang.scene.stacks else ()
    for c in classes[:_NAMED]:
        verb = "wait" if c.doing in WAITING else "stand"
        yield f"{_who(c)} {verb}{'s' if c.processes == 1 else ''} in {(c.calls or c.frames[-1]).split(' (')[0]}."
    if {c.doing for c in classes} > {"point-to-point"}:
        yield "Stages of a pipeline wait for their neighbours so by design."


def _who(c: StackClass) -> str:
    if c.ranks:
        return f"Rank{'s' if len(c.ranks) > 1 else ''} {rank_ranges(c.ranks)}"
    return how_many(c.processes, "process", "processes")


def _standing(hang: Hang, culprit: Culprit) -> str:
    stack = hang.scene.seen_of(culprit.process)
    if stack is None:
        doing = does(culprit.process)
        return f", which {doing}" if doing else ""
    frame = stack.standing.own[-1]
    call = stack.standing.call_name
    inside = f", in {call}" if call and call != frame.function else ""
    where = ":".join(str(part) for part in (frame.file, frame.number) if part)
    return f", which stands in {frame.function}{f' ({where})' if where else ''}{inside}"


def doubt(hang: Hang, root: Signature) -> str:
    """What speaks against taking it for sure, as sentences; "" where nothing does."""
    if root.id in (made.ALONE.id, made.ENDED.id):
        return made.ALONE.remedy if root.id == made.ALONE.id else ""
    said = [_SPIN] if root.id == made.SPINS.id else []
    if root.id in {s.id for s in (made.SPINS, made.ELSEWHERE, made.ASLEEP_ALONE)}:
        return " ".join([*said, *([] if hang.places.twice else [_LOOK_AGAIN])]) or _LOOK_ON
    if _looked_once(hang, root):
        said.append(_LOOK_AGAIN)
    if may_be_meant(hang, root):
        said.append(_MEANT)
    return " ".join(said)


def _looked_once(hang: Hang, root: Signature) -> bool:
    """Is all that is known one look at the stacks? Ranks of a job that runs wait for each other too."""
    stacks = hang.scene.stacks
    odd = {id(hang.scene.of(s)) for s in hang.scene.odd}
    by_stack = any(c.signature.id == root.id and id(c.process) in odd for c in hang.culprits)
    sure = any(
        (c.signature.weight >= _SURE and c.signature.id != made.DIVERGED.id)
        or any(sig.id == made.REFUSED.id for sig, _ in c.also)
        for c in hang.culprits
    )
    return (by_stack or root.id in SAID) and not sure and stacks is not None and stacks.again == 0


def may_be_meant(hang: Hang, root: Signature) -> bool:
    """Does one rank alone compute or write while the others wait, as in an evaluation or a checkpoint of rank 0?"""
    stands = [hang.scene.seen_of(c.process) for c in hang.culprits if c.signature.id == root.id]
    if len(stands) != 1 or len(hang.culprits) != 1 or stands[0] is None or stands[0].doing not in _COMPUTES:
        return False
    seen = stands[0]
    by_stack = any(s is seen for s in hang.scene.odd)
    return by_stack and (seen.rank == 0 or any(_LEGAL.search(frame.function) for frame in seen.standing.own))


def with_py_spy(result: Diagnosis, hang: Hang) -> Diagnosis:
    """What a look at a Python program without py-spy came to, and first what to do about that; unchanged where it is sure."""
    frames = (f for p in hang.scene.crew for dump in p.dumps for thread in dump.threads for f in thread.frames)
    python = any(_PYTHON.fullmatch(p.program) for p in hang.scene.crew)
    if result.status not in ("hypothesis", "unknown") or result.outcome not in ("hung", "unknown"):
        return result
    if "py-spy" not in hang.told.absent or not python or not all(frame.native for frame in frames):
        return result
    said = result.root_cause if "py-spy" in result.root_cause else f"{result.root_cause} {_NO_PYTHON}"
    return replace(result, root_cause=said, remediation=(_INSTALL, *result.remediation[: _STEPS - 1]))


def moves(hang: Hang) -> bool:
    """Was each process looked at more than once, and did the job go on meanwhile?"""
    return moving(hang.scene.seen) and not hang.culprits


def all_wait(hang: Hang) -> bool:
    """Did all that work wait in the same places at two looks?"""
    working = hang.scene.crew
    seen = hang.scene.seen
    by_stack = len(seen) == len(working) and all(s.waits and s.again for s in seen)
    waiting = hang.places.waiting
    twice = all(len({state.look for state in p.states}) > 1 for p in waiting)
    return bool(working) and (by_stack or (len(waiting) == len(working) and twice))


def nobody(hang: Hang) -> Iterator[str]:
    """What was found of a job's processes, where none of them stands out; in sentences."""
    working, told = hang.scene.crew, hang.told
    if not working:
        started = len(told.members)
        yield (
            f"Nothing tells what {how_many(started, 'process', 'processes')} of the job {'does' if started == 1 else 'do'}."
            if started
            else (
                "No process of the job was found when this was collected: it had ended, or runs under another number."
            )
        )
    elif len(hang.places.waiting) > 1:
        first, n = hang.places.waiting[0], len(hang.places.waiting)
        whole = f"All {n}" if n == len(working) else f"{n} of {len(working)}"
        yield f"{whole} processes of the job {does(first).replace('waits', 'wait', 1)}, and none of them stands out: {first.place} is one."
    else:
        does_ = [f"{p.place}: {doing}" for p in working[:_NAMED] if (doing := does(p))]
        yield f"None of {how_many(len(working), 'process', 'processes')} of the job stands out{': ' + '; '.join(does_) if does_ else ''}."
    yield from groups(hang)
    yield _next(hang)


def _next(hang: Hang) -> str:
    stacks, lacking = hang.scene.stacks, [tool for tool in hang.told.absent if tool in _DEBUGGERS]
    if stacks is None and hang.scene.crew:
        had = f" (there is no {' and no '.join(lacking)} on the node)" if lacking else ""
        return f"No stack of them was got{had}: install py-spy for Python, gdb or elfutils for other programs, and collect again."
    if stacks is None or stacks.moving + stacks.again == 0:
        return "Collect again with a second look (triage hang collect --again 30): what moves between the looks is not stuck."
    return (
        "Compare the places below, and ask what each of them waits for; the logs of the ranks tell how far each came."
    )
