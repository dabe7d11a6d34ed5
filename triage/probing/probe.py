"""Looks at all nodes of a job. A node that does not answer, or not in time, is a view with a problem."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from triage.probing import node as _node
from triage.probing.exits import Exits
from triage.probing.held import Held
from triage.probing.processes import Reader
from triage.probing.values import NodeView, node_view
from triage.reach import Answer, Reach, everywhere

_TIME = 30.0  # seconds that a node has to answer
_SIZES = 5.0  # seconds that a file system has to
_MARK = "triage-look"  # by which others know the probe for none of the job


@dataclass(frozen=True, slots=True)
class Whose:
    """pids: roots of trees; job: id of a Slurm job; everything: of a pod; url: where GPU readings are, if not on the node."""

    pids: tuple[int, ...] = ()
    job: str = ""
    everything: bool = False
    url: str = ""

    def request(self, devices: bool, sockets: bool, paths: Sequence[str], host: str = "") -> dict[str, Any]:
        return {
            "pids": list(self.pids),
            "job": self.job,
            "everything": self.everything,
            "devices": devices,
            "sockets": sockets,
            "url": self.url,
            "host": host,
            "paths": list(paths),
        }


class Probe(Protocol):
    def look(self, closely: bool, paths: Sequence[str]) -> tuple[NodeView, ...]:
        """closely: whether to read GPUs and sockets too; paths: whose size is asked for. Never raises for what a node does."""
        ...


def source() -> str:
    """The text of the probe, for a Python without triage."""
    folder = Path(_node.__file__).parent
    lines = ["from __future__ import annotations"]
    for name in ("written", "processes", "devices", "sockets", "node"):
        text = (folder / f"{name}.py").read_text("utf-8")
        lines += [line for line in text.splitlines() if not line.startswith(("from triage", "from __future__"))]
    return "\n".join(lines) + "\n"


class RemoteProbe:
    """Other nodes, or pods: the text of the probe goes to `python3 -` there, so nothing has to be installed.

    Once a driver or a file system has held a look, nothing is asked of them any more: what they hold cannot even be killed, and a
    node with many such processes is taken out by its scheduler.
    """

    def __init__(self, reach: Reach, whose: Whose, timeout: float = _TIME) -> None:
        self._reach, self._whose, self._timeout, self._source = reach, whose, timeout, source().encode()
        self._was_held = False

    def look(self, closely: bool, paths: Sequence[str]) -> tuple[NodeView, ...]:
        request = self._whose.request(closely and not self._was_held, closely, () if self._was_held else paths)
        answers = everywhere(self._reach, ["python3", "-", _MARK, json.dumps(request)], self._source, self._timeout)
        views = {node: _view(answer) for node, answer in answers.items()}
        self._was_held |= any(answers[node].problem and not view.problem for node, view in views.items())
        return tuple(views.values())


class LocalProbe:
    """This machine. Processes are read here; GPUs by a child, as a driver that hangs would hold us too."""

    def __init__(self, reach: Reach, whose: Whose, timeout: float = _TIME) -> None:
        self._reach, self._whose, self._timeout = reach, whose, timeout
        self._reader = Reader()
        self._reading, self._sizing = Held(), Held()
        self._exits = Exits()
        self._was_held = False

    def look(self, closely: bool, paths: Sequence[str]) -> tuple[NodeView, ...]:
        (host,) = self._reach.nodes
        request = self._whose.request(False, closely, ())
        found = self._reading.within(self._timeout, lambda: _node.look(request, self._reader))
        if found is None:
            return (self._blocked(host),)
        answer = dict(found)
        sizes = self._sizing.within(_SIZES, lambda: _node.look({"paths": list(paths)})["sizes"]) if paths else {}
        answer["sizes"] = sizes or {}
        view = node_view(host, answer)
        if closely and not self._was_held:  # as of other nodes
            seen = self._devices(host)
            absent = seen.absent or ((f"GPU readings: {seen.problem}",) if seen.problem else ())
            view = replace(view, devices=seen.devices or (), absent=absent)
        return (replace(view, ended=self._exits.take(view.processes)),)

    def _blocked(self, host: str) -> NodeView:
        return NodeView(host, problem="reading /proc does not come back: a process of the job holds its memory locked")

    def _devices(self, host: str) -> NodeView:
        request = json.dumps({"devices": True, "url": self._whose.url, "host": host if self._whose.url else ""})
        answer = self._reach.run(host, [sys.executable, "-", _MARK, request], source().encode(), self._timeout)
        view = _view(answer)
        self._was_held = bool(answer.problem and not view.problem)
        return view


def _view(answer: Answer) -> NodeView:
    """By the last line that came whole, whether it ended or not; a node may print something of its own before."""
    lines = [line for line in answer.out.split(b"\n")[:-1] if line.startswith(b"{")]
    try:
        return node_view(answer.node, json.loads(lines[-1] if lines else b""))
    except (ValueError, KeyError, TypeError, AttributeError):
        if answer.problem:
            return NodeView(answer.node, problem=answer.problem)
        said = (answer.err.decode("utf-8", "replace").strip().splitlines() or ["it printed no answer"])[-1]
        return NodeView(answer.node, problem=f"the probe failed there (Python 3.7 or newer is needed): {said[:200]}")
