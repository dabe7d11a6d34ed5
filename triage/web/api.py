"""The API, under /api/v1."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from triage.chat.values import Event
from triage.store.values import Sort, Verdict
from triage.web import names, uploads
from triage.web.access import Caller
from triage.web.callers import Here, Reader, Writer
from triage.web.chats import Open, as_json
from triage.web.jobs import LOGS, Job
from triage.web.logs import MOST_LINES
from triage.web.models import (
    Health,
    JobOut,
    LineOut,
    LinesOut,
    OutcomeIn,
    OutcomeOut,
    Paths,
    Problem,
    Question,
    Turn,
)  # fmt: skip
from triage.web.parts import State

router = APIRouter(prefix="/api/v1")
FILTERS = ("type", "outcome", "node", "user", "job", "verdict", "status", "since", "until", "text")
_BAD: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": words}
    for code, words in (
        (400, "What was asked for cannot be"), (401, "No token"), (403, "The token may not"), (404, "Not there"),
        (422, "Not as documented"), (429, "Too many requests"), (503, "The database or the queue cannot take it now"),
    )
}  # fmt: skip
_LARGE: dict[int | str, dict[str, Any]] = {
    413: {"model": Problem, "description": "Larger than may be sent"},
    507: {"model": Problem, "description": "No room on the server's disk"},
}
_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
Number = Annotated[int, InPath(ge=1, le=2**53, description="Of the incident.")]
Text = Annotated[str | None, Query(max_length=200)]


# ---------------------------------------------------------------------------------------------------- jobs
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object", "required": ["logs"],
                    "properties": {"logs": {"type": "array", "minItems": 1, "items": {"type": "string", "format": "binary"}}},
                }
            }
        },
    }
}  # fmt: skip
_RAW = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("/jobs", status_code=202, responses=_BAD | _LARGE, openapi_extra=_FORM, tags=["jobs"])
async def upload(request: Request, here: Here, caller: Writer) -> JobOut:
    """Diagnose the logs of one job, sent as multipart/form-data: any number of parts with a file name."""
    return _out(here, await received(request, here, caller, lambda _name, _value: None))


@router.post("/jobs/raw", status_code=202, responses=_BAD | _LARGE, openapi_extra=_RAW, tags=["jobs"])
async def upload_raw(
    request: Request, here: Here, caller: Writer, name: Annotated[str, Query(max_length=1000)] = "job.log"
) -> JobOut:
    """Diagnose one log: the body as it is (packed ones too), under the name given."""
    return _out(here, await received(request, here, caller, None, name))


@router.post("/jobs/paths", status_code=202, responses=_BAD, tags=["jobs"])
async def point(given: Paths, here: Here, caller: Writer) -> JobOut:
    """Diagnose logs that lie under the folders that the server may read."""
    paths = [await run_in_threadpool(names.allowed, path, here.options.roots) for path in given.paths]
    return _out(here, here.jobs.add(here.jobs.room(), caller.name, paths))


@router.get("/jobs", responses=_BAD, tags=["jobs"])
async def jobs(here: Here, _caller: Reader, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> list[JobOut]:
    """The newest jobs."""
    return [_out(here, job) for job in here.jobs.newest(limit)]


@router.get("/jobs/{job}", responses=_BAD, tags=["jobs"])
async def job_of(job: str, here: Here, _caller: Reader) -> JobOut:
    """How far a job is; its incident once it is done."""
    return _out(here, here.jobs.get(job))


@router.get("/jobs/{job}/events", responses=_BAD | _STREAM, response_class=StreamingResponse, tags=["jobs"])
async def job_events(job: str, here: Here, _caller: Reader) -> Response:
    """The job whenever it changes, as server-sent events `job`, until it is over."""
    here.jobs.get(job)

    async def events() -> AsyncIterator[bytes]:
        async for found in here.jobs.follow(job):
            yield b": still here\n\n" if found is None else event("job", _out(here, found).model_dump())

    return stream(events())


async def received(request: Request, here: State, caller: Caller, field: uploads.Field | None, name: str = "") -> Job:
    """Logs that come in, as a job. field: is given the form's other fields; None: the body is one log."""
    room = here.jobs.room()
    taken = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal taken
        async for piece in request.stream():
            taken += len(piece)
            yield piece

    try:
        length = request.headers.get("content-length", "")
        uploads.check_space(room, int(length) if length.isdigit() else 0)
        logs = room / LOGS
        if field is None:
            paths = await uploads.raw(pieces(), name, logs)
        else:
            paths = await uploads.multipart(pieces(), request.headers.get("content-type", ""), logs, field)
        return here.jobs.add(room, caller.name, paths)
    except BaseException:
        here.jobs.drop(room)
        raise
    finally:
        here.metrics.received.inc(taken)


def _out(here: State, job: Job) -> JobOut:
    return JobOut.of(job, here.jobs.ahead(job))


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


@router.get("/incidents", responses=_BAD, tags=["incidents"])
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


@router.get("/incidents/{incident}", responses=_BAD, tags=["incidents"])
def incident_of(incident: Number, here: Here, _caller: Reader) -> dict[str, Any]:
    """The diagnosis, and under `record` what became of it: what `triage incidents show --format json` prints."""
    return here.parts.show_json(here.parts.store.get(incident))


@router.get("/incidents/{incident}/diagnosis", responses=_BAD, tags=["incidents"])
def diagnosis_of(
    incident: Number, here: Here, _caller: Reader, version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> dict[str, Any]:
    """The `triage.diagnosis/1` object as it was made; the latest, or the one of that version."""
    return dict(here.parts.store.get(incident, version).result)


@router.get("/incidents/{incident}/lines", responses=_BAD, tags=["incidents"])
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


@router.post("/incidents/{incident}/outcomes", status_code=201, responses=_BAD, tags=["incidents"])
def resolve(incident: Number, given: OutcomeIn, here: Here, caller: Writer) -> OutcomeOut:
    """Record how an incident turned out. Nothing is overwritten; the latest outcome counts."""
    said = here.parts.resolve(incident, Verdict(**given.model_dump(), who=caller.name, via="api"))
    return OutcomeOut(incident=incident, said=list(said))


@router.get("/stats", responses=_BAD, tags=["incidents"])
def stats(here: Here, _caller: Reader, given: Annotated[Mapping[str, str], Depends(given_filters)]) -> dict[str, Any]:
    """Counts over incidents: what `triage incidents stats --format json` prints."""
    return here.parts.stats_json(here.parts.store.stats(here.parts.filters(given)))


# ---------------------------------------------------------------------------------------------------- chat
@router.get("/incidents/{incident}/chat", responses=_BAD, tags=["chat"])
def turns_of(incident: Number, request: Request, caller: Reader) -> list[Turn]:
    """What was said in your conversation about it."""
    return _turns(request.app.state.chats.get(caller, incident))


@router.post("/incidents/{incident}/chat", responses=_BAD | _STREAM, response_class=StreamingResponse, tags=["chat"])
def ask(incident: Number, given: Question, request: Request, caller: Reader) -> Response:
    """Ask about an incident. The answer comes as server-sent events `text`, `cited`, `tool`, `note`, `asks`, and `done` last."""
    return stream(_answer(request, request.app.state.chats.get(caller, incident), given.said))


@router.post("/chat", responses=_BAD | _STREAM, response_class=StreamingResponse, tags=["chat"])
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
@router.get("/health", responses={503: _BAD[503]}, tags=["service"])
def health(here: Here) -> Health:
    """Whether the database answers. Needs no token."""
    here.parts.store.list(limit=1)
    return Health(status="ok", version=here.parts.version, waiting=sum(not j.over for j in here.jobs.newest(1000)))


@router.get(
    "/metrics", responses=_BAD | {200: {"content": {"text/plain": {}}}}, response_class=Response, tags=["service"]
)
def metrics(here: Here, _caller: Reader) -> Response:
    """Counts for Prometheus."""
    return Response(here.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


def event(name: str, data: Mapping[str, Any]) -> bytes:
    """A server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


def stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
