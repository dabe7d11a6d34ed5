"""What PyTorch and its launchers print when a job dies, by version."""

from __future__ import annotations

from collections.abc import Sequence

from synth.kit import Case, pre

# version: (line of the report, of "Some NCCL operations", of "To avoid", of the thread's end)
_WATCHDOG = {
    "1.12": (719, 406, 0, 0),
    "1.13": (821, 456, 461, 0),
    "2.0": (828, 455, 460, 0),
    "2.1": (474, 488, 494, 915),
    "2.2": (523, 537, 543, 1182),
    "2.3": (563, 577, 583, 1414),
    "2.4": (607, 621, 627, 1515),
    "2.5": (616, 630, 636, 1595),
    "2.6": (629, 681, 695, 1895),
}
_SOME = (
    "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations "
    "might run on corrupted/incomplete data."
)
_AVOID = "To avoid data inconsistency, we are taking the entire process down."


def stamp(c: Case, version: str, rank: int, line: int, level: str = "E") -> str:
    """The head of a line of ProcessGroupNCCL.cpp."""
    c.tick(0, 0.004)
    if version >= "2.4":
        return f"[rank{rank}]:[{c.t(level + '%m%d %H:%M:%S')}.{c.n(0, 999999999):09d} ProcessGroupNCCL.cpp:{line}]"
    head = f"[rank{rank}]:" if version >= "2.3" else ""
    return f"{head}[{level} ProcessGroupNCCL.cpp:{line}]"


def work(version: str, seq: int, op: str, numel: tuple[int, int] | None, limit: int) -> str:
    sizes = f"NumelIn={numel[0]}, NumelOut={numel[1]}, " if numel and version >= "2.1" else ""
    return f"WorkNCCL(SeqNum={seq}, OpType={op}, {sizes}Timeout(ms)={limit})"


def watchdog(
    c: Case, version: str, rank: int, seq: int, op: str, *, numel: tuple[int, int] | None = None, limit: int = 600000,
    last: tuple[int, int] | None = None, group: str = "default_pg", gid: int = 0, ran: int = 0, teardown: bool = True,
) -> list[str]:  # fmt: skip
    """One rank's report of a timed-out collective. last: (last enqueued, last completed)."""
    a = _WATCHDOG[version][0]
    ran = ran or limit + c.n(20, 900)
    enq, done = last or (seq, seq - 1)
    what = f"Watchdog caught collective operation timeout: {work(version, seq, op, numel, limit)} ran for {ran} milliseconds before timing out."
    who = f"[Rank {rank}]"
    out = [f"{stamp(c, version, rank, a)} {who} {what}"]
    if version == "2.4":
        pg = f"[PG {gid} ({group}) Rank {rank}]"
        out.append(
            f"{stamp(c, version, rank, 1664)} {pg} Exception (either an error or timeout) detected by watchdog at work: {seq}, "
            f"last enqueued NCCL work: {enq}, last completed NCCL work: {done}."
        )
    elif version == "2.5":
        pg = f"[PG ID {gid} PG GUID {gid}({group}) Rank {rank}]"
        out.append(
            f"{stamp(c, version, rank, 1785)} {pg} Exception (either an error or timeout) detected by watchdog at work: {seq}, "
            f"last enqueued NCCL work: {enq}, last completed NCCL work: {done}."
        )
    elif version == "2.6":
        pg = f"[PG ID {gid} PG GUID {gid}({group}) Rank {rank}]"
        out += [
            f"{stamp(c, version, rank, 2168)} {pg}  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: "
            f"{enq}, last completed work: {done}",
            f"{stamp(c, version, rank, 667)} Stack trace of the failed collective not found, potentially because FlightRecorder is "
            "disabled. You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.",
        ]
    if not teardown:
        return out
    return out + taking_down(c, version, rank, f"{who} {what}", gid=gid, group=group)


def taking_down(c: Case, version: str, rank: int, why: str, gid: int = 0, group: str = "default_pg") -> list[str]:
    """The end of a process that the watchdog takes down."""
    _, some, avoid, end = _WATCHDOG[version]
    who = f"[Rank {rank}] " if version >= "2.3" else ""
    if version == "1.12":
        out = [
            f"{stamp(c, version, rank, some)} {_SOME} To avoid this inconsistency, we are taking the entire process down."
        ]
    else:
        out = [f"{stamp(c, version, rank, some)} {who}{_SOME}", f"{stamp(c, version, rank, avoid)} {who}{_AVOID}"]
    if version >= "2.3":
        pg = {"2.3": f"[PG {gid} Rank {rank}]", "2.4": f"[PG {gid} ({group}) Rank {rank}]"}.get(
            version, f"[PG ID {gid} PG GUID {gid}({group}) Rank {rank}]"
        )
        out.append(
            f"{stamp(c, version, rank, end)} {pg} Process group watchdog thread terminated with exception: {why}"
        )
        out += frames(c, "checkTimeout", a_line=_WATCHDOG[version][0] + 2)
    elif version >= "2.1":
        out.append(
            f"{stamp(c, version, rank, end)} [Rank {rank}] NCCL watchdog thread terminated with exception: {why}"
        )
    kind = "c10::DistBackendError" if version >= "2.3" else "std::runtime_error"
    out += [f"terminate called after throwing an instance of '{kind}'", f"  what():  {why}"]
    return out


def follower(c: Case, rank: int, origin: int, enq: int, done: int) -> list[str]:
    """2.6: a rank that learns of the timeout from another."""
    pg = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    return [
        f"{stamp(c, '2.6', rank, 1682)} {pg} Observed flight recorder dump signal from another rank via TCPStore.",
        f"{stamp(c, '2.6', rank, 1743)} {pg} Received a dump signal due to a collective timeout from  rank {origin} and we will try our best "
        f"to dump the debug info. Last enqueued NCCL work: {enq}, last completed NCCL work: {done}.This is most likely caused by incorrect "
        "usages of collectives, e.g., wrong sizes used across ranks, the order of collectives is not same for all ranks or the scheduled "
        "collective, for some reason, didn't run. Additionally, this can be caused by GIL deadlock or other reasons such as network errors "
        "or bugs in the communications library (e.g. NCCL), etc. ",
        f"{stamp(c, '2.6', rank, 1533)} {pg} ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1",
    ]


def frames(c: Case, what: str, a_line: int = 525) -> list[str]:
    lib = f"{c.site}/torch/lib"
    at = lambda: f"0x7f{c.hex(10)}"  # noqa: E731
    names = [
        f"c10::Error::Error(c10::SourceLocation, std::string) + 0x96 ({at()} in {lib}/libc10.so)",
        f"c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono::duration<long, std::ratio<1l, 1000l> > >) + 0x282 ({at()} in {lib}/libtorch_cuda.so)",
        f"c10d::ProcessGroupNCCL::watchdogHandler() + 0x233 ({at()} in {lib}/libtorch_cuda.so)",
        f"c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x14d ({at()} in {lib}/libtorch_cuda.so)",
        f"<unknown function> + 0xdc253 ({at()} in /usr/lib/x86_64-linux-gnu/libstdc++.so.6)",
        f"<unknown function> + 0x94ac3 ({at()} in /usr/lib/x86_64-linux-gnu/libc.so.6)",
        f"clone + 0x44 ({at()} in /usr/lib/x86_64-linux-gnu/libc.so.6)",
    ]
    head = f"Exception raised from {what} at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:{a_line} (most recent call first):"
    return [head, *(f"frame #{i}: {n}" for i, n in enumerate(names)), ""]


def sigterm(c: Case, version: str, pids: Sequence[int]) -> list[str]:
    text = "Sending process {} closing signal SIGTERM"
    return [agent(c, version, "WARNING", 851 if version < "2.5" else 897, text.format(p)) for p in pids]


def agent(c: Case, version: str, level: str, line: int, text: str, module: str = "multiprocessing/api") -> str:
    """A line of the elastic agent."""
    c.tick(0, 0.004)
    dotted = "torch.distributed.elastic." + module.replace("/", ".")
    if version < "2.1":
        return f"{level}:{dotted}:{text}"
    if version < "2.3":
        return f"[{c.t('%Y-%m-%d %H:%M:%S,%f3')}] {dotted}: [{level}] {text}"
    return f"{c.t(level[0] + '%m%d %H:%M:%S.%f3')}000 {c.n(120, 4000)} torch/distributed/elastic/{module}.py:{line}] {text}"


def exits(c: Case, version: str, code: int, local: int, pid: int, binary: str = "/opt/conda/bin/python") -> str:
    return agent(
        c, version, "ERROR", 826, f"failed (exitcode: {code}) local_rank: {local} (pid: {pid}) of binary: {binary}"
    )


_SIGNALS = {6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}


def child_failed(
    c: Case, script: str, host: str, fails: Sequence[tuple[int, int, int, int]], binary: str = "torchrun"
) -> list[str]:
    """The summary of one agent. fails: (rank, local rank, exit code, pid), the first observed failure first."""
    t = f"{c.site}/torch/distributed"
    out = [
        "Traceback (most recent call last):",
        f'  File "{c.site.split("/lib/python")[0]}/bin/{binary}", line 8, in <module>',
        "    sys.exit(main())",
        f'  File "{t}/elastic/multiprocessing/errors/__init__.py", line {c.n(346, 355)}, in wrapper',
        "    return f(*args, **kwargs)",
        f'  File "{t}/run.py", line {c.n(794, 918)}, in main',
        "    run(args)",
        f'  File "{t}/run.py", line {c.n(785, 909)}, in run',
        "    elastic_launch(",
        f'  File "{t}/launcher/api.py", line {c.n(134, 138)}, in __call__',
        "    return launch_agent(self._config, self._entrypoint, list(args))",
        f'  File "{t}/launcher/api.py", line {c.n(250, 269)}, in launch_agent',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        f"{script} FAILED",
        "-" * 60,
        "Failures:",
    ]
    if len(fails) == 1:
        out.append("  <NO_OTHER_FAILURES>")
    for i, fail in enumerate(fails[1:], 1):
        out += [f"[{i}]:", *_fail(c, host, *fail)]
    out += ["-" * 60, "Root Cause (first observed failure):", "[0]:", *_fail(c, host, *fails[0]), "=" * 60]
    return out


def _fail(c: Case, host: str, rank: int, local: int, code: int, pid: int) -> list[str]:
    end = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    if code < 0:
        end = f"Signal {-code} ({_SIGNALS[-code]}) received by PID {pid}"
    return [
        f"  time      : {c.t('%Y-%m-%d_%H:%M:%S')}",
        f"  host      : {host}",
        f"  rank      : {rank} (local_rank: {local})",
        f"  exitcode  : {code} (pid: {pid})",
        "  error_file: <N/A>",
        f"  traceback : {end}",
    ]


def omp(c: Case, version: str) -> list[str]:
    """The warning of torchrun at start."""
    text = (
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded, "
        "please further tune the variable for optimal performance in your application as needed. "
    )
    stars = "*****************************************"
    if version < "2.1":
        return ["WARNING:torch.distributed.run:", stars, text, stars]
    if version < "2.3":
        head = f"[{c.t('%Y-%m-%d %H:%M:%S,%f3')}] torch.distributed.run: [WARNING] "
    else:
        head = f"{c.t('W%m%d %H:%M:%S.%f3')}000 {c.n(120, 4000)} torch/distributed/run.py:{c.n(757, 793)}] "
    return pre(head, ["", stars, text, stars])


def oom(version: str, gpu: int, ask: str, total: str, free: str, use: str, alloc: str, slack: str) -> str:
    """The text of a device out of memory, by version."""
    kind = "torch.OutOfMemoryError" if version >= "2.5" else "torch.cuda.OutOfMemoryError"
    if version < "2.1":
        return (
            f"{kind}: CUDA out of memory. Tried to allocate {ask} (GPU {gpu}; {total} total capacity; {alloc} already allocated; {free} free; "
            f"{slack} reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
            "fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
        )
    word = "capacty" if version == "2.1" else "capacity"
    advice = (
        "try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
        if version == "2.1"
        else "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management "
        " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )
    return (
        f"{kind}: CUDA out of memory. Tried to allocate {ask}. GPU {gpu} has a total {word} of {total} of which {free} is free. Including "
        f"non-PyTorch memory, this process has {use} memory in use. Of the allocated memory {alloc} is allocated by PyTorch, "
        f"and {slack} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large {advice}"
    )


def nccl_error(file_line: int, text: str, version: str, sentence: str, last: str = "") -> list[str]:
    """DistBackendError as torch 2.x words it."""
    out = [
        f"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:{file_line}, {text}, NCCL version {version}",
        sentence,
    ]
    return [*out, "Last error:", *last.split("\n")] if last else out
