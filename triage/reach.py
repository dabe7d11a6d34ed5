"""Runs a command on each node of a job: here, by srun within the job, by ssh, or in the pods of Kubernetes.

A node that does not answer is an Answer with a problem, never an exception: when a job hangs, silence is evidence.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from triage.errors import UsageError
from triage.text import HOST, printable, signal_name

MOST_OUT = 64 << 20  # bytes of one command's output that are kept
MOST_ERR = 1 << 20
_TICK = 0.2  # seconds between two looks at whether it ended
_GRACE = 1.0  # seconds that a process has to end when it is told to, and its pipes to close after it

_SSH_NODE = re.compile(rf"(?:[A-Za-z0-9_][A-Za-z0-9._-]{{0,63}}@)?(?:{HOST.pattern}|[0-9A-Fa-f:]{{2,39}})")
_JOB = re.compile(r"\d{1,18}(?:[_+]\d{1,9})?")
_TASK_ENDED = re.compile(rb"^srun: error: \S+: tasks? [\d,-]+: ", re.MULTILINE)
_ORDERS = {"srun": rb"^srun: (?:error|fatal): ", "kubectl": rb"(?i)^(?:error|unable to|fatal)\b"}


@dataclass(frozen=True, slots=True)
class Answer:
    """code: of the command, None where it did not end by itself; out, err: bounded; problem: why there is no answer, in words."""

    node: str
    code: int | None
    out: bytes = b""
    err: bytes = b""
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Reach:
    """A way to a job's nodes. wrap: the command of this machine that runs argv on the node; by: its name, "" for none."""

    nodes: tuple[str, ...]
    wrap: Callable[[str, Sequence[str]], list[str]]
    by: str = ""

    def run(
        self,
        node: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        timeout: float = 30.0,
        stop: threading.Event | None = None,
    ) -> Answer:
        """argv: passed as it is, no shell reads it; timeout: seconds; stop: set, the command is ended."""
        if node not in self.nodes:
            return Answer(node, None, problem="is none of the nodes of this job")
        return _Running(node, self.wrap(node, argv), stdin, self.by).until(timeout, stop or threading.Event())


def local() -> Reach:
    """This machine."""
    name = platform.node()
    return Reach((name if HOST.fullmatch(name) else "localhost",), lambda _node, argv: list(argv))


def srun(job_id: str, nodes: Iterable[str]) -> Reach:
    """A step beside those of the job. It asks for no GPU: it would wait behind the step that holds them all. It starts in /,
    for the folder of the job may be on a file system that hangs.

    Errors: UsageError for what can be no job or node.
    """
    if not _JOB.fullmatch(job_id):
        raise UsageError(f"{printable(job_id)!r} is no id of a Slurm job", "give a number, such as 4711 or 4711_3")
    step = ["srun", f"--jobid={job_id}", "--overlap", "--gres=gpu:0", "--mpi=none", "--chdir=/", "-N1", "-n1"]
    return Reach(_named(nodes, HOST), lambda node, argv: [*step, "-w", node, "--", *argv], "srun")


def ssh(nodes: Iterable[str], options: Sequence[str] = ()) -> Reach:
    """Asks for no password. options: more of ssh's own, such as ("-p", "2222"). Errors: UsageError."""
    base = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *options, "--"]
    return Reach(_named(nodes, _SSH_NODE), lambda node, argv: [*base, node, shlex.join(argv)], "ssh")


def kubectl(pods: Iterable[str], namespace: str = "", container: str = "") -> Reach:
    """The pods are the nodes. Errors: UsageError."""
    place = [*(("-n", *_named([namespace], HOST)) if namespace else ())]
    inside = [*(("-c", *_named([container], HOST)) if container else ())]
    return Reach(
        _named(pods, HOST),
        lambda pod, argv: ["kubectl", "exec", "-i", *place, pod, *inside, "--", *argv],
        "kubectl",
    )


def each(
    reach: Reach, argv: Sequence[str], stdin: bytes = b"", timeout: float = 30.0, at_once: int = 16
) -> Iterator[Answer]:
    """The answer of each node, as it comes. timeout: seconds of each, from when it is begun; at_once: nodes."""
    if not reach.nodes:
        return
    stop = threading.Event()
    with ThreadPoolExecutor(min(at_once, len(reach.nodes)), "reach") as pool:
        try:
            begun = [pool.submit(reach.run, node, argv, stdin, timeout, stop) for node in reach.nodes]
            coming = as_completed(begun)
            del begun  # an answer may be large: nobody holds it longer than who asked
            for answer in coming:
                yield answer.result()
        finally:  # where it is interrupted, nothing that was begun outlives us
            stop.set()
            pool.shutdown(cancel_futures=True)


def everywhere(
    reach: Reach, argv: Sequence[str], stdin: bytes = b"", timeout: float = 30.0, at_once: int = 16
) -> dict[str, Answer]:
    """The same, all together in the order of the nodes."""
    found = {answer.node: answer for answer in each(reach, argv, stdin, timeout, at_once)}
    return {node: found[node] for node in reach.nodes}


def _named(names: Iterable[str], form: re.Pattern[str]) -> tuple[str, ...]:
    """A name that begins with a dash would be an option, and one with other signs a word of a shell."""
    found = tuple(dict.fromkeys(names))
    for name in found:
        if not form.fullmatch(name):
            raise UsageError(f"{printable(name[:80])!r} is no name of a node", "names hold letters, digits, . _ and -")
    return found


class _Running:
    """One process with its own group: fed, read and ended within a time."""

    def __init__(self, node: str, argv: list[str], stdin: bytes, by: str) -> None:
        self._node, self._argv, self._stdin, self._by = node, argv, memoryview(stdin), by
        self._kept: Mapping[str, bytearray] = {"out": bytearray(), "err": bytearray()}

    def until(self, timeout: float, stop: threading.Event) -> Answer:
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except FileNotFoundError:
            return Answer(self._node, None, problem=f"there is no {self._argv[0]} on this machine")
        except (OSError, ValueError) as error:
            return Answer(self._node, None, problem=f"{self._argv[0]} cannot be run: {error}")
        problem = ""
        try:
            problem = self._serve(process, began + timeout, timeout, stop)
        finally:
            ended = _end(process)
        code = process.returncode if ended and not problem else None
        problem = problem or self._why(code)
        seconds = time.monotonic() - began
        return Answer(self._node, code, bytes(self._kept["out"]), bytes(self._kept["err"]), seconds, problem)

    def _serve(self, process: subprocess.Popen[bytes], ends: float, timeout: float, stop: threading.Event) -> str:
        """Until it has ended and its pipes are empty; else why it has to be ended."""
        assert process.stdin and process.stdout and process.stderr
        with selectors.DefaultSelector() as pipes:
            for pipe, name in ((process.stdin, "in"), (process.stdout, "out"), (process.stderr, "err")):
                os.set_blocking(pipe.fileno(), False)
                pipes.register(pipe, selectors.EVENT_WRITE if name == "in" else selectors.EVENT_READ, name)
            over = float("inf")  # when the pipes of a process that ended are waited for no longer
            while pipes.get_map() and time.monotonic() < over:
                if stop.is_set():
                    return "was interrupted"
                if time.monotonic() >= ends:
                    return f"no answer within {timeout:g} s"
                for key, _ in pipes.select(min(_TICK, max(0.0, ends - time.monotonic()))):
                    if not self._move(key):
                        pipes.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]
                if too_much := self._too_much():
                    return too_much
                if over == float("inf") and process.poll() is not None:
                    over = time.monotonic() + _GRACE
            with contextlib.suppress(subprocess.TimeoutExpired):  # it closed its pipes and lives on
                process.wait(max(0.0, min(ends - time.monotonic(), timeout)))
        return "" if process.poll() is not None else f"no answer within {timeout:g} s"

    def _move(self, key: selectors.SelectorKey) -> bool:
        """What one pipe takes or gives now; False: no more."""
        try:
            if key.data == "in":
                self._stdin = self._stdin[os.write(key.fd, self._stdin[: 1 << 16]) :] if self._stdin else self._stdin
                return bool(self._stdin)
            piece = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._kept[key.data].extend(piece)
        return bool(piece)

    def _too_much(self) -> str:
        for name, most in (("out", MOST_OUT), ("err", MOST_ERR)):
            if len(self._kept[name]) > most:
                del self._kept[name][most:]
                return f"printed more than {most >> 20} MiB and was ended"
        return ""

    def _why(self, code: int | None) -> str:
        """Why a command that ended gives no answer of its node: the way there failed, not the command."""
        if code is None or code < 0:
            told = "could not be ended" if code is None else f"was ended by {signal_name(-code)}"
            return f"{self._argv[0]} {told}"
        err = bytes(self._kept["err"])
        failed = code == 255 if self._by == "ssh" else bool(code) and self._by in _ORDERS
        if not failed or (self._by == "srun" and _TASK_ENDED.search(err)):
            return ""
        said = [line for line in err.splitlines() if self._by == "ssh" or re.search(_ORDERS[self._by], line)]
        if not said:
            return "ssh could not reach it" if self._by == "ssh" else ""
        return printable(said[-1 if self._by == "ssh" else 0].decode("utf-8", "replace").strip()[:300])


def _end(process: subprocess.Popen[bytes]) -> bool:
    """Ends all of its group, srun and ssh with time to take leave of the node; False: not even SIGKILL ended it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    return process.returncode is not None
