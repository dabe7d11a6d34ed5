"""Looks at everything, the quick first, and prints each finding at once as a line of JSON."""

import json
import os
import signal
import sys
import time
from typing import Dict, List

from triage.collecting.on_node.children import Finding, Look, end_all, packed, run
from triage.collecting.on_node.looks import (
    MOST_MOUNTS,
    PSEUDO,
    flight,
    flight_prefixes,
    hung_mount,
    kernel_log,
    log_tail,
    logs,
    mount,
    mount_line,
    mounts,
    ps,
    ps_of,
    py_spy,
    ras,
    ras_port,
    tool,
    triggers,
)
from triage.collecting.on_node.native import native
from triage.collecting.on_node.processes import Process, fds, of_job, state, table

MOST_PROCESSES = 512
MOST_STACKS = 256
MOST_NATIVE = 64  # stacks by a debugger, which takes longer
NO_STACK = (
    "bash",
    "sh",
    "dash",
    "zsh",
    "ksh",
    "sleep",
    "tee",
    "srun",
    "slurmstepd",
    "timeout",
)  # whose states tell all
DUMPING = 5.0  # seconds that the flight recorder has to write what it was asked for
TOOLS = (
    (["nvidia-smi"], "nvidia-smi.txt"),
    (["nvidia-smi", "-q"], "nvidia-smi-q.txt"),
    (["rocm-smi"], "rocm-smi.txt"),
    (["npu-smi", "info"], "npu-smi.txt"),
)


def main() -> None:
    """argv[1]: which processes (pid, slurm, every), nonblocking, again (seconds), trigger, ras, bins, seconds in all."""
    chosen = json.loads(sys.argv[1])
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, end_all)
    ends = time.monotonic() + chosen["seconds"]
    everything = table()
    found = of_job(chosen, everything, ends)
    out({"processes": [p.told() for p in found[:MOST_PROCESSES]], "left_out": max(0, len(found) - MOST_PROCESSES)})
    found = found[:MOST_PROCESSES]
    for p in found:
        env = "".join(f"{name}={value}\n" for name, value in sorted(p.env.items()))
        out({"pid": p.pid, "attempts": p.unread, "files": {f"env-{p.pid}.txt": env.encode()} if env else {}})
    lines = answer(first_looks(chosen, found, everything), ends)
    asked = {line.split(" ")[3] for line in lines}
    others = [line for line in (mount_line("unasked", 0, *m) for m in mounts()) if line.split(" ")[3] not in asked]
    out({"attempts": [], "files": {"mounts.txt": "\n".join([*lines, *others, ""]).encode()}})
    if chosen.get("again") and found:
        time.sleep(chosen["again"])
        answer(stacks(chosen, found, ".2"), ends + chosen["again"] + chosen["seconds"])
    # Last, as nothing else may wait for what was not there at first.
    if chosen.get("trigger"):
        pipes = triggers(found)
        answer(pipes, time.monotonic() + 10)
        time.sleep(DUMPING if pipes else 0)
    answer(dumps(found), time.monotonic() + 20)
    out({"end": True})


def first_looks(chosen: Finding, found: "List[Process]", everything: "Dict[int, Process]") -> "List[Look]":
    looks = stacks(chosen, found, "")
    looks += [Look(f"/proc/{p.pid}/fd", lambda p=p: fds(p.pid), 5, p.pid) for p in found]  # type: ignore[misc]
    looks += [Look(" ".join(argv), lambda a=argv, f=file: tool(a, f, 30), 33) for argv, file in TOOLS]  # type: ignore[misc]
    looks += [
        Look("ps", lambda: ps(everything), 12, None, lambda: ps_of(everything)),
        Look("dmesg", lambda: kernel_log(begun(found)), 32),
    ]
    asked = [m for m in mounts() if not PSEUDO.fullmatch(m[0])][:MOST_MOUNTS]
    looks += [mount_look(*m) for m in asked]
    looks += [Look(f"tail {log[2]}", lambda log=log: log_tail(*log), 5, log[0]) for log in logs(found)]  # type: ignore[misc]
    if chosen.get("ras"):
        looks.append(Look("NCCL RAS", lambda: ras(ras_port(found), 15), 20))
    return looks


def mount_look(kind: str, point: str, source: str) -> Look:
    limit = 5.0
    return Look(
        f"statvfs {point}",
        lambda: mount(kind, point, source),
        limit,
        None,
        lambda: hung_mount(kind, point, source, limit),
    )


def stacks(chosen: Finding, found: "List[Process]", again: str) -> "List[Look]":
    """Where each process is: its states first, as they say how to ask for its stack."""
    states = [Look(f"/proc/{p.pid}", lambda p=p: state(p.pid, f"wchan-{p.pid}{again}.txt"), 5, p.pid) for p in found]  # type: ignore[misc]
    mine = os.geteuid()
    pythons = [p for p in found if p.is_python][:MOST_STACKS]

    others = [p for p in found if not (p.is_python or p.is_kernel or p.comm in NO_STACK)][:MOST_NATIVE]

    def dump(p: Process) -> Finding:
        told = py_spy(p.pid, f"pyspy-{p.pid}{again}.txt", chosen, chosen["stack_seconds"], p.uid == mine)
        lacks = told["attempts"][-1]["problem"].startswith("there is no") and not chosen.get("nonblocking")
        return dict(told, **of_c(p, told["attempts"])) if lacks else told

    def of_c(p: Process, before: "List[Finding]") -> Finding:
        told = native(p.pid, f"gdb-{p.pid}{again}.txt", time.monotonic(), chosen["stack_seconds"])
        return dict(told, attempts=[*before, *told["attempts"]])

    limit = 3 * chosen["stack_seconds"] + 3
    looks = states + [Look("py-spy dump", lambda p=p: dump(p), limit, p.pid) for p in pythons]  # type: ignore[misc]
    if chosen.get("nonblocking"):
        return looks
    return looks + [Look("gdb", lambda p=p: of_c(p, []), limit, p.pid) for p in others]  # type: ignore[misc]


def dumps(found: "List[Process]") -> "List[Look]":
    return [Look(f"{prefix}*", lambda p=prefix: flight(p, begun(found)), 15) for prefix in flight_prefixes(found)]  # type: ignore[misc]


def begun(found: "List[Process]") -> float:
    """When the first process of the job began, with room for clocks that differ."""
    return min((p.started for p in found), default=time.time()) - 10


def answer(looks: "List[Look]", ends: float) -> "List[str]":
    """Prints what each look found; returns the lines of those on mounts, which are told together."""
    lines = []
    for look, found in run(looks, ends):
        lines += [found["facts"]["line"]] if "facts" in found else []
        out({"pid": look.pid, "attempts": found.get("attempts", []), "files": found.get("files", {})})
    return lines


def out(finding: Finding) -> None:
    sys.stdout.write(json.dumps(finding, default=packed) + "\n")
    sys.stdout.flush()
