"""The API, under /api/v1."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from triage.chat.values import Event
from triage.errors import StoreError
from triage.redact import redact
from triage.store.values import Sort, Verdict
from triage.web.answers import BAD, STREAM, event, stream
from triage.web.callers import Here, Reader, Writer
from triage.web.chats import Open, as_json
from triage.web.logs import MOST_LINES
from triage.web.models import (
    Health,
    LineOut,
    LinesOut,
    OutcomeIn,
    OutcomeOut,
    Question,
    Turn,
)  # fmt: skip

log = logging.getLogger("triage.web")
router = APIRouter(prefix="/api/v1")
FILTERS = ("type", "outcome", "node", "user", "job", "verdict", "status", "since", "until", "text")
Number = Annotated[int, InPath(ge=1, le=2**53, description="Of the incident.")]
Text = Annotated[str | None, Query(max_length=200)]


# ----------------------------------------------------------------------------------------------- incidents
def given_filters(
    type: Text = None,  # noqa: A002
    outcome: Text = None,
    node: Text = None,
    user: Text = None,
    job: Text = None,
    verdict: Text = None,
    status: Text = None,
    since: Text = None,
    until: Text = None,
    text: Text = None,
) -> dict[str, str]:
    """The filters of `triage incidents list`; what is left out takes all."""
    given = (type, outcome, node, user, job, verdict, status, since, until, text)
    return {name: value for name, value in zip(FILTERS, given, strict=True) if value is not None}


@router.get("/incidents", responses=BAD, tags=["incidents"])
def incidents(
    here: Here,
    _caller: Reader,
    given: Annotated[Mapping[str, str], Depends(given_filters)],
    sort: Annotated[str, Query(pattern=f"^({'|'.join(get_args(Sort))})$")] = "created",
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> dict[str, Any]:
    """Incidents, the newest first: what `triage incidents list --format json` prints."""
    found = here.parts.store.list(here.parts.filters(given), sort=cast("Sort", sort), limit=limit, offset=offset)
    return here.parts.list_json(found)


@router.get("/incidents/{incident}", responses=BAD, tags=["incidents"])
def incident_of(incident: Number, here: Here, _caller: Reader) -> dict[str, Any]:
    """The diagnosis, and under `record` what became of it: what `triage incidents show --format json` prints."""
    return here.parts.show_json(here.parts.store.get(incident))


@router.get("/incidents/{incident}/diagnosis", responses=BAD, tags=["incidents"])
def diagnosis_of(
    incident: Number, here: Here, _caller: Reader, version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> dict[str, Any]:
    """The `triage.diagnosis/1` object as it was made; the latest, or the one of that version."""
    return dict(here.parts.store.get(incident, version).result)


@router.get("/incidents/{incident}/lines", responses=BAD, tags=["incidents"])
def lines_of(
    incident: Number,
    request: Request,
    _caller: Reader,
    file: Annotated[str, Query(max_length=4096)],
    first: Annotated[int, Query(ge=1, le=10**12)],
    count: Annotated[int, Query(ge=1, le=MOST_LINES)] = 200,
) -> LinesOut:
    """Lines of a log as it lies on disk, those left out of the compressed log too; secrets are replaced."""
    found = request.app.state.logs.lines(incident, file, first, count)
    return LinesOut(file=file, lines=[LineOut(line=line.number, text=line.text) for line in found])


@router.post("/incidents/{incident}/outcomes", status_code=201, responses=BAD, tags=["incidents"])
def resolve(incident: Number, given: OutcomeIn, here: Here, caller: Writer) -> OutcomeOut:
    """Record how an incident turned out. Nothing is overwritten; the latest outcome counts."""
    said = here.parts.resolve(incident, Verdict(**given.model_dump(), who=caller.name, via="api"))
    return OutcomeOut(incident=incident, said=list(said))


@router.get("/stats", responses=BAD, tags=["incidents"])
def stats(here: Here, _caller: Reader, given: Annotated[Mapping[str, str], Depends(given_filters)]) -> dict[str, Any]:
    """Counts over incidents: what `triage incidents stats --format json` prints."""
    return here.parts.stats_json(here.parts.store.stats(here.parts.filters(given)))


# ---------------------------------------------------------------------------------------------------- chat
@router.get("/incidents/{incident}/chat", responses=BAD, tags=["chat"])
def turns_of(incident: Number, request: Request, caller: Reader) -> list[Turn]:
    """What was said in your conversation about it."""
    return _turns(request.app.state.chats.get(caller, incident))


@router.post("/incidents/{incident}/chat", responses=BAD | STREAM, response_class=StreamingResponse, tags=["chat"])
def ask(incident: Number, given: Question, request: Request, caller: Reader) -> Response:
    """Ask about an incident. The answer comes as server-sent events `text`, `cited`, `tool`, `note`, `asks`, and `done` last."""
    return stream(_answer(request, request.app.state.chats.get(caller, incident), given.said))


@router.post("/chat", responses=BAD | STREAM, response_class=StreamingResponse, tags=["chat"])
def ask_of_all(given: Question, request: Request, caller: Reader) -> Response:
    """Ask about all incidents."""
    return stream(_answer(request, request.app.state.chats.get(caller, None), given.said))


def _answer(request: Request, found: Open, said: str) -> AsyncIterator[bytes]:
    """The first event is made before the answer begins, so that a refusal is an answer of its own."""
    events = request.app.state.chats.ask(found, said)
    first = next(events)

    async def rest() -> AsyncIterator[bytes]:
        try:
            now: Event | None = first
            while now is not None:
                yield event(as_json(now)["kind"], as_json(now))
                now = await run_in_threadpool(next, events, None)
        finally:  # also where the client has gone: the next question finds the conversation free
            events.close()

    return rest()


def _turns(found: Open) -> list[Turn]:
    fields = ("asked", "answer", "state", "produced_by")
    return [
        Turn(
            **{name: getattr(t, name) for name in fields},
            citations=[dict(c) for c in t.citations],
            tools=[dict(c) for c in t.tools],
            notes=list(t.notes),
        )
        for t in found.conversation.turns
    ]


# ------------------------------------------------------------------------------------------------- service
@router.get("/health", responses={503: BAD[503]}, tags=["service"])
def health(here: Here) -> Health:
    """Whether the database answers. Needs no token."""
    try:
        here.parts.store.list(limit=1)
    except StoreError as error:  # which names the host and the user of the database, and anybody may ask this
        log.error("the database does not answer: %s", redact(str(error)))
        raise StoreError("the database does not answer", "the log of the server says why") from None
    return Health(status="ok", version=here.parts.version, waiting=sum(not j.over for j in here.jobs.newest(1000)))


@router.get(
    "/metrics", responses=BAD | {200: {"content": {"text/plain": {}}}}, response_class=Response, tags=["service"]
)
def metrics(here: Here, _caller: Reader) -> Response:
    """Counts for Prometheus."""
    return Response(here.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")
