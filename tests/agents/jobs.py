"""Jobs for the tests of the failure agent: log files on disk, read and judged as `triage diagnose` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.openai_server import Answer, OpenAIServer, as_json
from triage import kb, pipeline
from triage.agents.case import Case
from triage.agents.failure_agent import Options, explain
from triage.agents.tools.kit import Tool
from triage.agents.tools.on_facts import FactTools
from triage.agents.tools.on_log import LogTools
from triage.compress import view
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, LogLine, Similar
from triage.evidence.match import Matcher
from triage.ingest.again import raw_lines
from triage.llm.limits import Limits
from triage.llm.values import ChatModel
from triage.parts import Parts
from triage.runbooks import runbooks

KNOWLEDGE = Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())
PARTS = Parts(KNOWLEDGE, kb.filter_rules())
HIDDEN = (
    3000  # the line of RING_LOG that the compressed log leaves out as routine, with a number that stands nowhere else
)
RING_LOG = [
    "starting on gpu-17 with 8 ranks",
    *[f"step {n} loss 2.{n}" for n in range(2, HIDDEN)],
    f"step {HIDDEN} loss 517.25",
    *[f"step {n} loss 2.{n}" for n in range(HIDDEN + 1, 6000)],
    "ring 7 lost its token, peer 3 did not hand it on",
    "job ended with trouble",
    "srun: error: gpu-17: task 3: Exited with exit code 1",
]
LOST = len(RING_LOG) - 2  # the line that says that the token was lost
TOKEN = {"file": "job.log", "line": LOST, "quote": "ring 7 lost its token", "role": "root"}


def job(folder: Path, texts: Sequence[str] = RING_LOG, name: str = "job.log") -> Case:
    """Of one file; the working folder must be the folder, as cited names are relative to it."""
    (folder / name).write_text("\n".join(texts) + "\n")
    return case([name])


def case(names: Sequence[str], budget: int = 12000) -> Case:
    log = pipeline.read(names, PARTS)
    rules = judge(log, KNOWLEDGE)
    return Case(log, view.fold(log, budget, {(e.file, e.line) for e in rules.evidence}), rules)


def tools(found: Case, incidents: Callable[[str], Sequence[Similar]] = lambda _words: ()) -> tuple[Tool, ...]:
    facts = FactTools(found.log, found.rules, KNOWLEDGE.taxonomy, KNOWLEDGE.matcher, KNOWLEDGE.runbooks.of, incidents)
    return (*LogTools(found.log, found.rules, raw_lines).all(), *facts.all())


def said(**fields: Any) -> dict[str, Any]:
    """A sound answer to RING_LOG."""
    return {
        "outcome": "failed", "failure_type": "runtime-error", "root_cause_class": "software-bug",
        "root_cause": "Peer 3 of ring 7 did not hand on its token, so the ring stopped.", "cited": [TOKEN],
        "nodes": [], "ranks": [3], "action": "fix-and-resubmit", "steps": [],
        **fields,
    }  # fmt: skip


def calls(*made: tuple[str, str], text: str = "") -> Answer:
    """A reply that asks for tools: (name, JSON of the arguments)."""
    return Answer(text, "tool_calls", tool_calls=made)


def ask(found: Case, model: ChatModel, **options: Any) -> Diagnosis:
    """With tools, no second pass unless it is asked for."""
    limits = options.pop("limits", Limits(calls=12, seconds=30))
    tell = options.pop("tell", lambda _text: None)
    chosen = Options(**{"critic": False, "limits": limits, **options})
    return explain(found, model, KNOWLEDGE.taxonomy, chosen, tools(found), knows, tell)


def knows(line: LogLine) -> bool:
    return bool(KNOWLEDGE.matcher.match(line))


def asked(found: Case, script: Sequence[Any], **options: Any) -> tuple[Diagnosis, OpenAIServer]:
    """The diagnosis by a server that answers so, and the server with what it was asked."""
    with OpenAIServer([s if isinstance(s, (str, Answer)) else as_json(s) for s in script]) as server:
        return ask(found, server.model(), **options), server
