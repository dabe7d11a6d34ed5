"""Which process holds the others up, by all that was collected of a hung job, as findings of the judge. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from triage.diagnose import made_hangs as made
from triage.domain import JobLog, LogLine, Signature
from triage.evidence import manifest, mounts, pace
from triage.evidence.crew import Process, lone
from triage.evidence.kernel_places import Places, kind_of, places
from triage.evidence.match import Finding
from triage.evidence.processes import short
from triage.evidence.procstate import DRIVER, SLEEPS, STORAGE
from triage.evidence.ras import Named
from triage.evidence.scene import Scene, scene
from triage.evidence.stacks import Seen, crossed, moving, other_threads

Best = Mapping[tuple[str, int], Finding]
KERNEL = ("kernel.hung-task", "kernel.stack-storage", "kernel.stack-driver")
_MOST = 8  # culprits that are named


@dataclass(frozen=True, slots=True)
class Culprit:
    """A process that the others wait for, by the strongest that was seen of it."""

    signature: Signature
    line: LogLine
    process: Process
    also: tuple[tuple[Signature, LogLine], ...] = ()


@dataclass(frozen=True, slots=True)
class Hang:
    scene: Scene = field(default_factory=Scene)
    culprits: tuple[Culprit, ...] = ()
    others: tuple[Finding, ...] = ()  # that name no process, or go with the culprits
    places: Places = field(default_factory=Places)
    told: manifest.Manifest = field(default_factory=manifest.Manifest)

    def about(self, pids: Sequence[int], ranks: Sequence[int]) -> list[Finding]:
        """What was seen of these processes, the strongest first."""
        of = [c for c in self.culprits if c.process.pid in pids or (c.process.pid is None and c.process.rank in ranks)]
        return [Finding(line, sig, _groups(c.process)) for c in of for sig, line in ((c.signature, c.line), *c.also)]

    @property
    def findings(self) -> tuple[Finding, ...]:
        own = [Finding(c.line, c.signature, _groups(c.process)) for c in self.culprits]
        also = [Finding(line, sig, _groups(c.process)) for c in self.culprits for sig, line in c.also]
        return (*own, *also, *self.others)


def _groups(p: Process) -> dict[str, str]:
    named = {"rank": p.rank, "node": p.node, "pid": p.pid}
    return {name: str(value) for name, value in named.items() if value is not None}


def look(log: JobLog, best: Best, stepped: bool) -> Hang:
    """best: what signatures found; stepped: the job made steps."""
    told = manifest.read(log.files)
    found = scene(log, told.members)
    stand = places(found.crew)
    judge = _Judge(found, told, mounts.sick(log.files), best, stand)
    culprits = judge.culprits()
    others = (*judge.of_nodes(culprits), *_of_logs(log, bool(culprits), stepped))
    return Hang(found, tuple(culprits[:_MOST]), others, stand, told)


class _Judge:
    def __init__(
        self, found: Scene, told: manifest.Manifest, sick: Sequence[mounts.Mount], best: Best, stand: Places
    ) -> None:
        self._scene, self._told, self._sick, self._places = found, told, sick, stand
        self._odd = {id(s) for s in found.odd}
        self._ranks = found.crew
        known = [p.state.letter for p in self._ranks if p.state]
        self._all_stopped = len(known) > 1 and set(known) == {"T"}
        self._blocked = {f.groups.get("pid"): f for f in best.values() if f.signature.id == "kernel.hung-task"}

    def culprits(self) -> list[Culprit]:
        found: list[Culprit] = []
        for p in self._ranks:
            chosen = self._by_state(p) or self._by_stack(p) or self._by_silence(p) or self._by_gpu(p)
            if chosen:
                found.append(Culprit(*chosen, p, tuple(self._also(p, chosen))))
        found += self._by_ras(found)
        found = found or self._by_place() or self._alone()
        if len(found) * 2 > len(self._ranks) and len(self._ranks) > 2:
            found = [
                c for c in found if c.signature.id not in (made.SILENT.id, made.IDLE.id)
            ]  # then the tool is at fault
        return sorted(found, key=lambda c: -c.signature.weight)

    # ------------------------------------------------------------------------------------------ of one process
    def _by_state(self, p: Process) -> tuple[Signature, LogLine] | None:
        state = p.state
        if state is None or state.letter not in "DTZ":
            return None
        if state.letter == "T":
            return made.SUSPENDED if self._all_stopped else made.STOPPED, state.line
        if state.letter == "Z":
            return made.DEFUNCT if p.rank is not None else made.ENDED, state.line
        where = [state.wchan, *(f.function for dump in p.dumps for f in dump.kernel)]
        if any(STORAGE.search(name) for name in where):
            return made.FROZEN, state.line
        if any(DRIVER.search(name) for name in where):
            return made.DRIVER, state.line
        if self._blocked.get(str(p.pid)):
            return made.ASLEEP_ALSO, state.line  # the kernel's own log says in what
        return (made.FROZEN if self._hangs_on(p) else made.ASLEEP), state.line

    def _hangs_on(self, p: Process) -> bool:
        return any(
            m.how == "hangs" and (m.node is None or p.node is None or short(m.node) == short(p.node))
            for m in self._sick
        )

    def _by_stack(self, p: Process) -> tuple[Signature, LogLine] | None:
        seen = self._scene.seen_of(p)
        if seen is None or id(seen) not in self._odd:
            return None
        if seen.doing in ("collective", "point-to-point"):
            return made.DIVERGED, seen.line
        if (seen.doing == "data-loader" or p.for_child) and (worker := self._stuck_worker(p)):
            return worker
        if p.for_child:
            return made.CHILD, seen.line
        if seen.doing == "code" and p.state is not None and SLEEPS.search(p.state.wchan):
            return made.apart("sleep"), seen.line
        apart = made.apart(seen.doing)
        return (replace(apart, check=made.BY_GDB) if seen.standing.compiled else apart), seen.line

    def _stuck_worker(self, p: Process) -> tuple[Signature, LogLine] | None:
        """Of the processes that it waits for, one that is stopped or waits in the kernel."""
        return next((stuck for child in self._scene.family.of(p) if (stuck := self._by_state(child))), None)

    def _by_place(self) -> list[Culprit]:
        """Those that do not wait in the kernel as the others do, but for those whose stacks say that they wait for others: the
        server of a store sleeps until all have come, its clients wait at their sockets."""
        at = self._places
        if moving(self._scene.seen):
            return []
        apart = [p for p in at.odd if (seen := self._scene.seen_of(p)) is None or not seen.waits]
        found = [(*chosen, p) for p in apart if (chosen := self._of_place(p, at.twice))]
        return [Culprit(sig, line, p, tuple(self._also(p, (sig, line)))) for sig, line, p in found]

    def _of_place(self, p: Process, twice: bool) -> tuple[Signature, LogLine] | None:
        """Its stack says in what it waits, where it is in a function that the others are in too."""
        seen = self._scene.seen_of(p)
        if seen is not None and seen.doing in made.TELLING and twice:
            return made.apart(seen.doing), seen.line
        return (made.PLACES[kind_of(p)], p.state.line) if p.state else None

    def _alone(self) -> list[Culprit]:
        """The one process of a job that works, where somebody had all that it is collected."""
        p = lone(self._ranks) if self._told.written else None
        if p is None or moving(self._scene.seen):
            return []
        seen = self._scene.seen_of(p)
        line = seen.line if seen else p.state.line if p.state else None
        chosen = (made.ALONE, line) if line else None
        return [Culprit(*chosen, p, tuple(self._also(p, chosen)))] if chosen else []

    def _by_silence(self, p: Process) -> tuple[Signature, LogLine] | None:
        """No tool got a stack of it, though others gave theirs."""
        if not self._scene.seen or any(dump.threads for dump in p.dumps):
            return None
        if p.refused is not None:
            return made.SILENT, p.refused
        here = (f for f in self._told.failed if f.pid == p.pid and (not p.node or f.node == short(p.node)))
        failed = next((f for f in here if f.tool.startswith("py-spy") or "no answer" in f.problem), None)
        return (made.SILENT, failed.line) if failed else None

    def _by_gpu(self, p: Process) -> tuple[Signature, LogLine] | None:
        looked = self._scene.seen or self._scene.odd or any(q.refused for q in self._ranks)
        return (made.IDLE, p.idle.line) if p.idle and looked and not any(d.threads for d in p.dumps) else None

    def _also(self, p: Process, chosen: tuple[Signature, LogLine]) -> Iterator[tuple[Signature, LogLine]]:
        if p.refused and p.refused is not chosen[1]:
            yield made.REFUSED, p.refused
        if p.idle and p.idle.line is not chosen[1]:
            yield made.IDLE_ALSO, p.idle.line
        stack = self._scene.seen_of(p)
        if stack and stack.line is not chosen[1]:
            yield made.ALSO, stack.line
        if stack and stack.standing.call and stack.standing.call.line is not stack.line:
            yield made.CALL, stack.standing.call.line
        if stack and id(stack) in self._odd:
            yield from ((made.THREAD, line) for line in other_threads(stack))

    def _by_ras(self, found: Sequence[Culprit]) -> list[Culprit]:
        """Those that NCCL itself names. Ranks of a job that runs differ by one operation, and go on."""
        ras = self._scene.ras
        sure = ras.spread > 1 or ras.still or bool(self._scene.odd)
        named = [(made.LOST, n) for n in ras.lost] + [(made.BEHIND, n) for n in ras.behind if sure]
        known = {(c.process.rank, c.process.pid) for c in found}
        fresh = [
            (sig, n)
            for sig, n in named
            if not any(n.pid == pid or (n.rank is not None and n.rank == r) for r, pid in known)
        ]
        return [Culprit(sig, n.line, self._process(n)) for sig, n in fresh]

    def _process(self, named: Named) -> Process:
        same = [p for p in self._scene.processes if p.pid == named.pid]
        if len(same) == 1:
            return same[0]
        return Process(named.pid, named.node, named.rank, gpu=int(named.gpu) if named.gpu.isdigit() else None)

    # ------------------------------------------------------------------------------------------ of all
    def of_nodes(self, culprits: Sequence[Culprit]) -> Iterator[Finding]:
        stacks, seen = self._scene.stacks, self._scene.seen
        waiting = [s for s in seen if s.waits and id(s) not in self._odd]
        if culprits and waiting:
            yield Finding(waiting[0].line, made.WAIT)
        elif stacks and waiting and len(waiting) == len(seen):
            yield from self._all_wait(waiting)
        if len(self._told.silent) < self._told.nodes:
            yield from (Finding(s.line, made.NODE, {"node": s.node}) for s in self._told.silent)
        for mount in self._sick:
            stuck = any(c.signature.id in (made.FROZEN.id, "hang.file") for c in culprits)
            groups = {"node": mount.node} if mount.node else {}
            yield Finding(mount.line, made.MOUNT_ALSO if stuck or mount.how != "hangs" else made.MOUNT, groups)

    def _all_wait(self, waiting: Sequence[Seen]) -> Iterator[Finding]:
        """All that were seen wait: for those that were not, or in the network."""
        joining = all(s.doing == "rendezvous" for s in waiting)
        if self._scene.gone and not (joining and len(self._scene.gone) >= len(waiting)):
            unseen = made.NOT_JOINED if joining else made.UNSEEN
            yield Finding(waiting[0].line, unseen, {"rank": str(self._scene.gone[0])})
        elif joining:
            yield Finding(waiting[0].line, made.LATE)
        else:
            yield from (Finding(s.line, made.CROSSED) for s in crossed(waiting))


def _of_logs(log: JobLog, sure: bool, stepped: bool) -> Iterator[Finding]:
    behind, _ = pace.apart(log.files)
    for at in behind:
        yield Finding(at.line, replace(made.EPOCHS, role="context") if sure else made.EPOCHS, {"rank": str(at.rank)})
    uneven = None if stepped or sure else pace.without_gdr(log.files)
    if uneven:
        for line in uneven[1]:
            yield Finding(line, made.GDR, {"node": line.node} if line.node else {})
