"""Wires the tools for other assistants: what they read, and what they may record."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from triage import pipeline, report
from triage.agents.tools.on_facts import incidents_told
from triage.chat.values import Subject
from triage.cli import incident_stats, kb_search, kb_view, recalling, wiring
from triage.cli import incident_view as view
from triage.cli.chat_open import Opened
from triage.config import Settings
from triage.errors import UsageError
from triage.mcp.http import Guarded
from triage.mcp.server import Service
from triage.mcp.tools import DIAGNOSING, RESOLVE, Parts, Tools
from triage.retrieve.rank import MIN_SCORE_ASKED, Query
from triage.roots import roots_of, within
from triage.runbooks import runbooks
from triage.store.values import Filters

LOOPBACK = "127.0.0.1"
SHORTEST = 20  # characters of a token: others of this machine reach the port, and can guess shorter ones
_WIDTH = 200  # columns of a text that no terminal shows
_TOP = 10  # of each kind that is counted
_FOUND = 5  # past incidents


def run(root: Sequence[str], allow_write: bool | None, port: int | None = None) -> int:
    """On stdin and stdout until stdin ends or a signal comes, or on a port of this machine; returns the exit code.

    Errors: UsageError.
    """
    chosen = wiring.settings()
    with serving(chosen, root, chosen.mcp_write if allow_write is None else allow_write) as service:
        return service.run() if port is None else _over_http(service, port, chosen.mcp_token)


def _over_http(service: Service, port: int, token: str) -> int:
    """token: "" for one that is made for this run, and told."""
    from triage.cli import listening

    if token and len(token) < SHORTEST:
        raise UsageError(f"TRIAGE_MCP_TOKEN is shorter than {SHORTEST} characters", "set a longer one, or none")
    own = token or secrets.token_urlsafe(24)
    at = listening.listen(LOOPBACK, port)
    told = f"serving http://{LOOPBACK}:{at.getsockname()[1]}/mcp{'' if token else f' with the token {own}'}; Ctrl-C ends it"
    server = listening.Server(Guarded(service.server.streamable_http_app(host=LOOPBACK), own), told)
    server.run(sockets=[at])
    return service.ended(server.code)


@contextmanager
def serving(chosen: Settings, root: Sequence[str], writes: bool) -> Iterator[Service]:
    """root: folders below which logs may be read; writes: diagnoses and outcomes are recorded. Errors: UsageError."""
    roots = roots_of(root)
    chosen = replace(chosen, llm="off")  # who asks is a model
    with Opened(chosen, quiet=True, make=True, allowed=lambda paths: within(paths, roots)) as opened:
        tools = Tools(_parts(opened, writes)).all()
        changing = {RESOLVE, *(DIAGNOSING if writes else ())}

        def heard(tell: Callable[[str], None]) -> None:
            opened.tell = tell

        yield Service(tools, frozenset(t.spec.name for t in tools) - changing, heard)


def _parts(opened: Opened, writes: bool) -> Parts:
    desk = replace(opened.desk(keep=False), via="mcp", save=None)
    return Parts(
        desk=desk if writes else replace(desk, resolve=None),
        open_paths=lambda paths: opened.paths(paths, writes),
        open_job=lambda job: opened.job(job, writes),
        report=_report,
        compress=functools.partial(_compress, opened),
        search=functools.partial(_search, opened.chosen),
        stats=lambda filters: _stats(opened, filters),
        tools_of=opened.tools,
        runbooks=runbooks().of,
    )


def _report(subject: Subject) -> str:
    text = report.render_markdown(dict(subject.result))
    if subject.stored is None:
        return text
    found = subject.stored
    return "".join(
        (view.heading(found, True), view.outcomes(found, _WIDTH, True), view.history(found, _WIDTH, True), text)
    )


def _compress(opened: Opened, paths: Sequence[str], tokens: int) -> str:
    parts = replace(opened.parts(record=False), token_budget=tokens)
    return report.render_folded(report.folded_json(pipeline.compress(opened.allowed(paths), parts)))


def _search(chosen: Settings, words: str) -> str:
    found, problems = recalling.similar(chosen, Query(words), _FOUND, MIN_SCORE_ASKED)
    known = kb_view.as_known(kb_search.known(words), _WIDTH)
    return "\n".join(filter(None, (known, incidents_told(found), *problems)))


def _stats(opened: Opened, filters: Filters) -> str:
    counted = opened.store.stats(filters) if opened.store else None
    return incident_stats.render(counted, _TOP, markdown=False) if counted and counted.jobs else "none"
