"""The tools that another assistant may use: those of the failure agent, and what the commands and the chat know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.agents.tools import on_facts, on_log
from triage.agents.tools.kit import Found, Tool, ToolError, tool
from triage.agents.tools.look_up import look_up
from triage.chat import commands, on_course, on_history, outcome
from triage.chat import on_log as chat_log
from triage.chat.desk import Desk
from triage.chat.outcome import Form
from triage.chat.values import Event, OpenedLog, Subject
from triage.domain import Runbook
from triage.llm.values import ToolSpec
from triage.mcp import told
from triage.mcp.opened import Opened
from triage.store.values import Filters

DIAGNOSING = ("diagnose", "diagnose_hang")
RESOLVE = "resolve"
LEAST_TOKENS, TOKENS, MOST_TOKENS = 200, 3000, 6000  # of a compressed log
LISTED, MOST_LISTED = 15, 50
_ABOUT = ("string", "an incident's number, or the name that diagnose gave, such as d1", True)
_PATHS = ("array", "files and folders of one job", True)
_FILTERS = (
    "string",
    "such as type=ecc-error node=gpu-017 job=771204 user=ada since=7d until=2026-01-31 outcome=hung verdict=none, and words",
    False,
)
_OF_DIAGNOSIS = {
    "hypotheses": "The causes that were considered, and what speaks for and against each.",
    "suspects": "Nodes, ranks and GPUs under suspicion, and which ranks failed first.",
    "remedy": "What to do, with the risk of each step. Nothing is run.",
    "similar": "Past incidents that are like this one, and what fixed them.",
    "runs": "Runs and attempts in the input.",
    "handover": "A text for who takes over.",
}
_OF_LOG = {spec.name: spec for spec in (*on_log.SPECS, *on_facts.SPECS) if spec.name not in ("look_up", "timeline")}
_OF_LOG = {name: spec for name, spec in _OF_LOG.items() if not name.startswith("search_") or name == "search_log"}


@dataclass(frozen=True, slots=True)
class Parts:
    """What the tools rest on, given by who wires them.

    desk: without a model; its resolve is None where nothing may be recorded. open_paths, open_job: diagnosed by the rules,
    from below the roots alone, Errors UsageError, NotFoundError, InputError. report: a diagnosis whole, as markdown.
    compress: files in so many tokens. search: signatures, runbooks and past incidents for words. tools_of: the agent's tools.
    """

    desk: Desk
    open_paths: Callable[[Sequence[str]], Subject]
    open_job: Callable[[str], Subject]
    report: Callable[[Subject], str]
    compress: Callable[[Sequence[str], int], str]
    search: Callable[[str], str]
    stats: Callable[[Filters], str]
    tools_of: Callable[[OpenedLog], Sequence[Tool]]
    runbooks: Mapping[str, Runbook]


class Tools:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._opened = Opened(parts.desk.open_incident)

    def all(self) -> tuple[Tool, ...]:
        made = [*self._of_input(), *self._of_diagnosis(), *map(self._of_log, _OF_LOG.values()), *self._of_known()]
        return (*made, *([self._resolving()] if self._parts.desk.resolve is not None else []))

    # ------------------------------------------------------------------------------------------ from files
    def _of_input(self) -> Iterator[Tool]:
        yield tool(
            "diagnose",
            "The root cause of a failed or hung job from its logs, by rules, with the lines that show it. Its first line "
            "is the name under which other tools speak about it. Give paths, or a job's id.",
            self._diagnose,
            paths=(*_PATHS[:2], False),
            job=("string", "a Slurm job: its newest incident, else its logs, such as 771204 or 771204_3", False),
        )
        yield tool(
            "diagnose_hang",
            "A hang, from a folder with what was collected of it: stacks of ranks, flight-recorder dumps, ps, nvidia-smi, dmesg, logs.",
            lambda asked: self._told_of(self._parts.open_paths([asked["folder"]])),
            folder=("string", "such as what `triage hang collect` wrote", True),
        )
        yield tool(
            "compress",
            "A log without its routine lines, with the numbers of its lines and an account of what was left out.",
            self._compress,
            paths=_PATHS,
            tokens=("integer", f"most tokens, {TOKENS} if not given, at most {MOST_TOKENS}", False),
        )

    def _diagnose(self, asked: Mapping[str, Any]) -> Found:
        paths, job = asked.get("paths", []), asked.get("job", "").strip()
        if bool(paths) == bool(job):
            raise ToolError("give paths or a job, one of them")
        return self._told_of(self._parts.open_job(job) if job else self._parts.open_paths(paths))

    def _told_of(self, subject: Subject) -> Found:
        name = self._opened.add(subject)
        kept = f", recorded as incident {name}" if subject.incident is not None else ", not recorded"
        return Found(f"about: {name}{kept}\n\n{self._parts.report(subject)}")

    def _compress(self, asked: Mapping[str, Any]) -> Found:
        tokens = min(max(asked.get("tokens", TOKENS), LEAST_TOKENS), MOST_TOKENS)
        return Found(self._parts.compress(asked["paths"], tokens))

    # ------------------------------------------------------------------------------------------ of one diagnosis
    def _of_diagnosis(self) -> Iterator[Tool]:
        text, number = "string", "integer"
        yield tool(
            "show",
            "A diagnosis whole, and what people recorded of the incident.",
            lambda asked: Found(self._parts.report(self._subject(asked))),
            about=_ABOUT,
        )
        yield tool(
            "evidence",
            "The lines that are cited, or one of them with what stands around it.",
            lambda asked: _found(chat_log.evidence(self._subject(asked), asked.get("id", ""))),
            about=_ABOUT,
            id=(text, "such as E3", False),
        )
        yield tool(
            "log",
            "Lines of the log of a rank, node or file around the failure, or around a line of a file.",
            self._log,
            about=_ABOUT,
            rank=(number, "of this rank", False),
            of=(text, "of this file or node", False),
            line=(number, "around this line of the file", False),
        )
        yield tool(
            "timeline",
            "Events in order of time; with file and line, all lines of all files around the time of that line.",
            self._timeline,
            about=_ABOUT,
            file=(text, "a file of the log", False),
            line=(number, "line number in it", False),
            seconds=(number, "before and after, 60 if not given", False),
        )
        for name, means in _OF_DIAGNOSIS.items():
            yield tool(name, means, self._command(name), about=_ABOUT)

    def _command(self, name: str) -> Callable[[Mapping[str, Any]], Found]:
        return lambda asked: _found(commands.run(f"/{name}", "", self._subject(asked), self._parts.desk))

    def _log(self, asked: Mapping[str, Any]) -> Found:
        subject, of = self._subject(asked), asked.get("of", "").strip()
        if "rank" in asked:
            return _found(chat_log.of_rank(subject, asked["rank"]))
        return _found(chat_log.log(subject, of, str(asked.get("line", ""))))

    def _timeline(self, asked: Mapping[str, Any]) -> Found:
        if "file" not in asked and "line" not in asked:
            return _found(on_course.timeline(self._subject(asked)))
        return self._use("timeline", asked)

    def _subject(self, asked: Mapping[str, Any]) -> Subject:
        return self._opened.get(asked["about"])

    # ------------------------------------------------------------------------------------------ of its log
    def _of_log(self, spec: ToolSpec) -> Tool:
        kind, means, _ = _ABOUT
        parameters = {
            **spec.parameters,
            "properties": {"about": {"type": kind, "description": means}, **spec.parameters["properties"]},
            "required": ["about", *spec.parameters["required"]],
        }
        return Tool(ToolSpec(spec.name, spec.description, parameters), lambda asked: self._use(spec.name, asked))

    def _use(self, name: str, asked: Mapping[str, Any]) -> Found:
        """Of the agent's tools. Errors: InputError where the log cannot be read again."""
        log = self._subject(asked).open_log()
        used = next(t for t in self._parts.tools_of(log) if t.spec.name == name)
        return used.run({key: value for key, value in asked.items() if key != "about"})

    # ------------------------------------------------------------------------------------------ of all that is known
    def _of_known(self) -> Iterator[Tool]:
        parts = self._parts
        named = {spec.name: spec for spec in on_facts.SPECS}
        yield Tool(
            named["look_up"],
            lambda asked: Found(look_up(parts.desk.matcher(), asked["kind"].strip().lower(), asked["what"].strip())),
        )
        yield Tool(
            named["search_runbooks"],
            lambda asked: Found(on_facts.runbooks_for(asked["words"], parts.runbooks, parts.desk.labels)),
        )
        yield tool(
            "search_knowledge",
            "Signatures, runbooks and past incidents like a line of a log or words, with why they are alike and what helped.",
            lambda asked: Found(parts.search(asked["words"])),
            words=("string", "an error line, or words", True),
        )
        yield tool(
            "incidents",
            "Recorded incidents, the newest first.",
            self._incidents,
            filters=_FILTERS,
            limit=("integer", f"at most so many, {LISTED} if not given, at most {MOST_LISTED}", False),
        )
        yield tool(
            "stats",
            "Counts over recorded incidents: types, causes, weeks, nodes that fail too often, GPU-hours lost, how right the diagnoses were.",
            lambda asked: Found(parts.stats(self._filters(asked))),
            filters=_FILTERS,
        )

    def _filters(self, asked: Mapping[str, Any]) -> Filters:
        return on_history.filters(asked.get("filters", ""), self._parts.desk.labels)

    def _incidents(self, asked: Mapping[str, Any]) -> Found:
        store, most = self._parts.desk.incidents, min(max(asked.get("limit", LISTED), 1), MOST_LISTED)
        found = store.list(self._filters(asked), limit=most + 1) if store else ()
        rows = [on_history.row(summary) for summary in found[:most]]
        return Found("\n".join(rows + ["... and more"] * (len(found) > most)) or "none")

    # ------------------------------------------------------------------------------------------ outcomes
    def _resolving(self) -> Tool:
        text = "string"
        return tool(
            RESOLVE,
            "Records how an incident turned out, once a person has said so. Nothing that was recorded is overwritten.",
            self._resolve,
            about=("string", "an incident's number", True),
            verdict=(text, f"whether the diagnosis was right: {', '.join(outcome.KINDS)}", True),
            cause=(text, "what the cause was, in the person's words", False),
            fix=(text, "what fixed it, in the person's words", False),
            worked=(text, f"whether the fix worked: {', '.join(outcome.WORKED)}", False),
            note=(text, "anything else", False),
            **{"type": (text, "the failure type that it was instead", False)},
            **{"class": (text, "the class of the cause that it was instead", False)},
        )

    def _resolve(self, asked: Mapping[str, Any]) -> Found:
        desk, subject = self._parts.desk, self._subject(asked)
        assert desk.resolve is not None
        given = {name: value.strip() for name, value in asked.items() if name != "about"}
        if problem := outcome.problem(given):
            raise ToolError(problem)
        if subject.incident is None:
            raise ToolError("this diagnosis is not recorded, so no outcome can be kept")
        return Found(
            "\n".join(desk.resolve(subject.incident, Form(subject.incident, given).as_verdict(desk.who, desk.via)))
        )


def _found(events: Iterator[Event]) -> Found:
    return Found(told.text(events))
