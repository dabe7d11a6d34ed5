"""Signatures of hangs that are worked out of stacks, states of processes, GPUs and what ranks printed last."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from triage.domain import Doing, Signature

_STACK = "py-spy dump --native --pid PID"
BY_GDB = "gdb -p PID -batch -ex 'thread apply all bt'"

FROZEN = Signature(
    id="hang.frozen-storage",
    title="a process waits in the kernel for a file system that does not answer",
    patterns=(),
    failure_type="storage-error",
    root_cause_class="dependency-failure",
    role="root",
    outcome="hung",
    component="shared-storage",
    weight=80,
    remedy="Ask the storage team what the file system did at this time, see whether other nodes hang in it too, and restart once it answers. No signal ends such a process; a reboot of its node does.",
    check="cat /proc/PID/stack; df -h <mount> with a time-out",
)
MOUNT = replace(
    FROZEN,
    id="hang.mount-silent",
    title="a file system of the node did not answer when it was asked",
    weight=64,
)
DRIVER = replace(
    FROZEN,
    id="hang.gpu-driver",
    title="a process waits in the kernel for the GPU driver",
    failure_type="hang",
    root_cause_class="hardware-failure",
    component="nvidia-gpu",
    weight=74,
    node_fault=True,
    remedy="Look for Xid lines in the kernel log of the node, drain it and reset the GPU; restart on other nodes.",
    check="dmesg -T | grep -iE 'xid|NVRM'; nvidia-smi -q",
)
ASLEEP = replace(
    FROZEN,
    id="hang.uninterruptible",
    title="a process is in uninterruptible sleep (state D), deaf to signals and to tools that attach",
    failure_type="hang",
    root_cause_class="unknown",
    component="linux",
    weight=56,
    remedy="See where it waits: frames of nfs, lustre or gpfs in /proc/PID/stack or the kernel log mean the file system, those of nvidia the driver. A reboot of the node ends it.",
    check="cat /proc/PID/stack; dmesg -T | grep -A30 'blocked for more than'",
)
STOPPED = replace(
    FROZEN,
    id="hang.stopped",
    title="a process is stopped (state T), by SIGSTOP or by who suspended it, and the others wait for it",
    failure_type="hang",
    root_cause_class="operator-action",
    component="linux",
    weight=76,
    action="wait",
    remedy="Find out who stopped it (a person, a debugger, the scheduler), and let it go on with `kill -CONT {pid}` or `scontrol resume`; nothing is lost by it.",
    check="ps -o pid,stat,wchan:30,cmd -p PID",
)
SUSPENDED = replace(
    STOPPED,
    id="hang.suspended",
    title="all processes of the job are stopped (state T), as a scheduler does that suspends it",
    weight=78,
    action="wait",
    remedy="See in the scheduler who suspended the job and let it go on from there (`scontrol resume <job>`); nothing is lost by it.",
    check="scontrol show job <job>; ps -o pid,stat,wchan:30,cmd -p PID",
)
DEFUNCT = replace(
    FROZEN,
    id="hang.dead-rank",
    title="the process of this rank has ended, and the others wait for it",
    failure_type="hang",
    root_cause_class="unknown",
    component="linux",
    weight=66,
    remedy="Look for the last lines of this rank and for its end in the kernel log of its node (OOM killer, segfault), then restart.",
    check="dmesg -T | grep -iE 'killed process|segfault' on the node of the rank",
)
ENDED = replace(
    DEFUNCT,
    id="hang.dead-process",
    title="a process of the job has ended and was not waited for, while others of its kind wait",
    weight=60,
)
SILENT = replace(
    DEFUNCT,
    id="hang.no-answer",
    title="a process let no tool look at it, as one does that is in uninterruptible sleep",
    weight=54,
    remedy="Look at the state of the process: D is uninterruptible sleep, whose kernel stack says in what.",
    check="ps -o pid,stat,wchan:30,cmd -p PID; cat /proc/PID/stack",
)
UNSEEN = replace(
    DEFUNCT,
    id="hang.rank-unseen",
    title="others wait in a collective, and of this rank there is no process and no stack",
    weight=50,
    remedy="See whether the process of this rank still runs; its log and the kernel log of its node tell how it ended.",
    check="ps -eo pid,stat,etime,cmd on the node of the rank",
)
NOT_JOINED = replace(
    UNSEEN,
    id="hang.rank-not-joined",
    title="ranks wait for all at their rendezvous or store, and of this rank there is no process and no stack: it ended, or never started",
    weight=53,
)
NODE = replace(
    DEFUNCT,
    id="hang.node-silent",
    title="a node of the job did not answer, though the others did",
    failure_type="node-failure",
    root_cause_class="hardware-failure",
    weight=58,
    node_fault=True,
    remedy="See whether the node is up (scontrol show node, ping, its console), drain it and restart on others.",
    check="scontrol show node NODE",
)
LATE = replace(
    DEFUNCT,
    id="hang.rendezvous",
    title="ranks wait for others to join the job, which have not come",
    root_cause_class="config-error",
    component="pytorch",
    weight=52,
    remedy="Check that each process gets its own rank, the same world size and the same master address, and that the master's port can be reached from each node.",
    check="env | grep -E 'MASTER_|RANK|WORLD_SIZE' of each process",
)
APART = Signature(
    id="hang.stands-apart",
    title="a process stands in its own code while the others wait for it",
    patterns=(),
    failure_type="hang",
    root_cause_class="software-bug",
    role="root",
    outcome="hung",
    weight=56,
    remedy="Read the stack of the process that stands apart: the others wait for it.",
    check=_STACK,
)
_ODD: dict[Doing, tuple[str, str, str, int]] = {  # how it ends, class, weight
    "debugger": ("stands in a debugger that waits for input", "software-bug", "debugger", 66),
    "lock": ("waits for a lock or another thread while the others wait for it", "software-bug", "lock", 62),
    "sleep": ("sleeps in Python code while the others wait for it", "software-bug", "sleep", 62),
    "native": ("is in a call of native code that does not return, while the others wait for it", "software-bug", "native", 60),
    "data-loader": ("waits for its data loader while the others wait for it", "unknown", "data-loader", 60),
    "file": ("is in a call to read or write a file while the others wait for it", "unknown", "file", 58),
    "gpu": ("waits for its own GPU while the others wait in a collective", "unknown", "gpu", 54),
    "rendezvous": ("waits for others to join while those are further on", "config-error", "rendezvous", 54),
}  # fmt: skip
TELLING = frozenset(
    {"debugger", "lock", "sleep", "data-loader", "file"}
)  # that no rank does while all goes well for long
_REMEDY: dict[Doing, str] = {
    "data-loader": "Look at the stacks of its workers: a read that does not return is the file system's, a lock the data set's. Try fewer workers, 0 at first.",
    "file": "See whether the file system answers, and where the process waits in the kernel (/proc/PID/stack); write logs and summaries to a local path.",
    "gpu": "Look for Xid lines on the node of this rank and at nvidia-smi -q; take a native stack and, where the next run hangs too, try CUDA_LAUNCH_BLOCKING=1.",
}
CHILD = replace(
    APART,
    id="hang.child",
    title="a rank waits for the end of a process that it started, while the others wait for it",
    root_cause_class="unknown",
    weight=60,
    remedy="Look at the process that it started: what it runs, in which state it is, and what it waits for.",
    check="ps -o pid,ppid,stat,wchan:30,cmd --ppid PID",
)
DIVERGED = replace(
    APART,
    id="hang.other-collective",
    title="ranks wait in different collectives: their programs took different ways",
    failure_type="collective-mismatch",
    component="pytorch",
    weight=66,
    remedy="Look for code that only some ranks run, or for uneven data, between the two places in the stacks; TORCH_DISTRIBUTED_DEBUG=DETAIL names the collectives.",
    check="TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks and collectives that differ",
)
CROSSED = replace(
    DIVERGED,
    id="hang.crossed-groups",
    title="groups of ranks wait in different collectives, each for the others: a deadlock between groups",
    weight=60,
    remedy="Find where the order of the two collectives differs between the ranks: those of all groups must be entered in the same order by every rank; TORCH_DISTRIBUTED_DEBUG=DETAIL names them.",
)
EPOCHS = replace(
    APART,
    id="hang.other-epoch",
    title="ranks are in different epochs at the same time: their parts of the data are of unequal size",
    root_cause_class="data-error",
    weight=62,
    remedy="Give all ranks the same number of batches: drop the last, pad the data, or join uneven inputs (torch.distributed.algorithms.join).",
    check="count the batches of each rank: len(dataloader) on every rank",
)
GDR = replace(
    APART,
    id="hang.gdr-uneven",
    title="GPU-direct RDMA is used on some nodes of the job and not on others, and no step was made",
    root_cause_class="config-error",
    component="nccl",
    weight=52,
    remedy="Set NCCL_NET_GDR_LEVEL=0 (LOC) before the program starts to switch it off everywhere, or have the nvidia-peermem module loaded on the nodes that lack it.",
    check="lsmod | grep -E 'nvidia_peermem|nv_peer_mem' on each node",
)
IDLE = replace(
    APART,
    id="hang.gpu-idle",
    title="a GPU of the job does nothing while the others of its node are at 100 %, as those are that wait in a collective",
    root_cause_class="unknown",
    component="nvidia-gpu",
    weight=46,
    remedy="Look at the process that holds this GPU: it has not come to the collective that the others are in.",
    check="ps -o pid,stat,wchan:30,cmd -p PID; py-spy dump --pid PID",
)
SPINS = replace(
    APART,
    id="hang.spins",
    title="a process keeps a CPU busy while the others of the job wait",
    root_cause_class="unknown",
    weight=50,
    remedy="Look at what the busy process computes: its stack twice, a minute apart (py-spy dump, or gdb -p PID -batch -ex 'thread apply all bt'). A loop that never ends stands in the same function; a long computation moves on.",
    check=f"{BY_GDB}; py-spy dump --pid PID",
)
ASLEEP_ALONE = replace(
    SPINS,
    id="hang.sleeps",
    title="a process sleeps until a time of its own while the others of the job wait",
    remedy="Look at its stack: who sleeps in a loop waits for what nobody tells.",
)
ELSEWHERE = replace(
    SPINS,
    id="hang.waits-elsewhere",
    title="a process waits in the kernel for something else than the others of the job",
    weight=46,
    remedy="Look at the stack of this process: the others wait for it, and it waits elsewhere.",
)
PLACES = defaultdict(lambda: ELSEWHERE, runs=SPINS, sleeps=ASLEEP_ALONE)
ALONE = replace(
    SPINS,
    id="hang.alone",
    title="all others of the job only started this process and wait for its end",
    weight=40,
    remedy="See whether it is meant to take so long: a sleep and a server wait by design. Else look at its stack.",
)
LOST = replace(
    DEFUNCT,
    id="hang.ras-lost",
    title="NCCL's own watch (RAS) does not reach this process any more",
    component="nccl",
    weight=64,
)
BEHIND = replace(
    APART,
    id="hang.ras-behind",
    title="NCCL's own watch (RAS) counts fewer operations for this rank than for most",
    root_cause_class="unknown",
    component="nccl",
    weight=50,
    remedy="Take the stack of this rank: it has not come to the operation that the others wait in.",
)
# What goes with a culprit that other lines name.
ALSO = replace(
    APART, id="hang.also", role="context", title="of the same process", root_cause_class="unknown", weight=34
)
THREAD = replace(ALSO, id="hang.thread", title="where another thread of it stands")
CALL = replace(ALSO, id="hang.call", title="the call that it stands in")
REFUSED = replace(ALSO, id="hang.refused", title="a tool could not attach to it, as is so in state D")
WAIT = replace(ALSO, id="hang.waiting", title="where the others wait", weight=33)
IDLE_ALSO = replace(IDLE, role="context", weight=32)
ASLEEP_ALSO = replace(ASLEEP, role="context", weight=35)
MOUNT_ALSO = replace(MOUNT, role="context", weight=31)


def apart(doing: Doing) -> Signature:
    """Of a process that stands in this while the others wait."""
    if doing not in _ODD:
        return APART
    title, cause, name, weight = _ODD[doing]
    return replace(
        APART,
        id=f"hang.{name}",
        title=f"a rank {title}",
        root_cause_class=cause,
        weight=weight,
        remedy=_REMEDY.get(doing, APART.remedy),
    )
