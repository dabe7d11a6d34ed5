"""What a hang that was looked at lets one say: who it is, who waits for whom, and whether it is one. Pure."""

from __future__ import annotations

from triage.diagnose import made_hangs as made
from triage.diagnose.hangs import KERNEL, Culprit, Hang
from triage.domain import JobLog, Signature, Suspects
from triage.evidence.stacks import moving
from triage.text import rank_ranges

_ON_NODE = frozenset(
    s.id for s in (made.FROZEN, made.MOUNT, made.DRIVER, made.ASLEEP, made.STOPPED, made.DEFUNCT, made.SILENT, made.IDLE, made.LOST)
)  # fmt: skip
LOOK_AGAIN = (
    "Each process was looked at once: take the stacks again after a minute, as those of a job that hangs stay the same."
)
SAID = frozenset({made.UNSEEN.id, made.LATE.id})  # of which no process is named
_SURE = 64  # weight from which on a single look tells


def suspects(hang: Hang, root: Signature, type_: str) -> Suspects | None:
    """Of a hang that was looked at: who it is. None where these facts do not tell."""
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


def told(hang: Hang, log: JobLog, gpu_faults: bool) -> list[str]:
    """Who waits for whom, in sentences."""
    out: list[str] = []
    if hang.culprits:
        first = hang.culprits[0]
        ranks = sorted(
            {
                c.process.rank
                for c in hang.culprits
                if c.signature.id == first.signature.id and c.process.rank is not None
            }
        )
        among = f"ranks {rank_ranges(ranks)}, of which " if len(ranks) > 1 else ""
        out.append(f"The others wait for {among}{first.process.place}{_standing(hang, first)}.")
    stacks = hang.scene.stacks
    waiting = [c for c in stacks.classes if not c.odd and c.calls] if stacks else []
    if waiting:
        most = waiting[0]
        who = f"rank {rank_ranges(most.ranks)}" if most.ranks else f"{most.processes} processes"
        out.append(
            f"{who[:1].upper()}{who[1:]} waits in {most.calls.split(' (')[0]}."
            if len(most.ranks) == 1
            else f"{_plural(who)} wait in {most.calls.split(' (')[0]}."
        )
    for node, n in (stacks.fewer if stacks else ())[:3]:
        out.append(f"Node {node} gave {n} {'stack' if n == 1 else 'stacks'} fewer than the others.")
    if hang.culprits and not gpu_faults and any(f.kind == "kernel" for f in log.files):
        out.append("The kernel logs show no fault of a GPU.")
    return out


def _plural(who: str) -> str:
    return "Ranks" + who[4:] if who.startswith("rank ") else who[:1].upper() + who[1:]


def _standing(hang: Hang, culprit: Culprit) -> str:
    stack = hang.scene.seen_of(culprit.process)
    if stack is None:
        return ""
    frame = stack.standing.own[-1]
    call = stack.standing.call_name
    inside = f", in {call}" if call and call != frame.function else ""
    return f", which stands in {frame.function} ({frame.file}{f':{frame.number}' if frame.number else ''}){inside}"


def looked_once(hang: Hang, root: Signature) -> bool:
    """Is all that is known one look at the stacks? Ranks of a job that runs wait for each other too."""
    stacks = hang.scene.stacks
    by_stack = any(
        c.signature.id == root.id and any(c.process is hang.scene.of(s) for s in hang.scene.odd) for c in hang.culprits
    )
    sure = any(
        c.signature.weight >= _SURE or any(sig.id == made.REFUSED.id for sig, _ in c.also) for c in hang.culprits
    )
    return by_stack and not sure and stacks is not None and stacks.again == 0


def moves(hang: Hang) -> bool:
    """Was each process looked at more than once, and did the job go on meanwhile?"""
    return moving(hang.scene.seen) and not hang.culprits
