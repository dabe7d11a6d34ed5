"""The API's part for jobs: logs come in, diagnoses come out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from triage.errors import UsageError
from triage.kube import names as kube_names
from triage.roots import within
from triage.slurm import ids
from triage.web import uploads
from triage.web.access import Caller
from triage.web.answers import BAD, LARGE, STREAM, event, stream
from triage.web.callers import Here, Reader, Writer
from triage.web.jobs import LOGS, Job
from triage.web.models import JobOut, KubernetesJob, Paths, SlurmJob
from triage.web.parts import State

router = APIRouter(prefix="/api/v1")
ALLOW = "TRIAGE_SERVE_ROOTS allows another folder"
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


@router.post("/jobs", status_code=202, responses=BAD | LARGE, openapi_extra=_FORM, tags=["jobs"])
async def upload(request: Request, here: Here, caller: Writer) -> JobOut:
    """Diagnose the logs of one job, sent as multipart/form-data: any number of parts with a file name."""
    return _out(here, await received(request, here, caller, lambda _name, _value: None))


@router.post("/jobs/raw", status_code=202, responses=BAD | LARGE, openapi_extra=_RAW, tags=["jobs"])
async def upload_raw(
    request: Request, here: Here, caller: Writer, name: Annotated[str, Query(max_length=1000)] = "job.log"
) -> JobOut:
    """Diagnose one log: the body as it is (packed ones too), under the name given."""
    return _out(here, await received(request, here, caller, None, name))


@router.post("/jobs/paths", status_code=202, responses=BAD, tags=["jobs"])
async def point(given: Paths, here: Here, caller: Writer) -> JobOut:
    """Diagnose logs that lie below the folders that the server may read."""
    paths = await run_in_threadpool(within, given.paths, _roots(here), ALLOW)
    return _out(here, here.jobs.add(here.jobs.room(), caller.name, paths))


@router.post("/jobs/slurm", status_code=202, responses=BAD, tags=["jobs"])
async def ask_slurm(given: SlurmJob, here: Here, caller: Writer) -> JobOut:
    """Diagnose a job by its Slurm id: what Slurm says of it, and its logs below the folders that the server may read."""
    return _out(here, add_slurm(here, caller, given.job))


def add_slurm(here: State, caller: Caller, job: str) -> Job:
    """Errors: UsageError for what is no id, or where no folders may be read."""
    known = str(ids.parse(job))
    _roots(here)
    return here.jobs.add(here.jobs.room(), caller.name, (), "slurm", known)


@router.post("/jobs/kubernetes", status_code=202, responses=BAD, tags=["jobs"])
async def ask_kubernetes(given: KubernetesJob, here: Here, caller: Writer) -> JobOut:
    """Diagnose a pod, or all pods of a job, of a namespace that the server may read: what Kubernetes says, and the logs."""
    return _out(here, add_kubernetes(here, caller, given.name, given.pod))


def add_kubernetes(here: State, caller: Caller, name: str, pod: bool) -> Job:
    """Errors: UsageError for what is no name, or a namespace that may not be read."""
    asked = kube_names.parse(name, pod=pod)
    if asked.namespace not in here.options.namespaces:
        shown = f"namespace {asked.namespace}" if asked.namespace else "a name without its namespace"
        raise UsageError(
            f"this server does not read {shown}", "give NAMESPACE/NAME of one that TRIAGE_SERVE_NAMESPACES lists"
        )
    return here.jobs.add(here.jobs.room(), caller.name, (), "pod" if pod else "k8s-job", name)


def _roots(here: State) -> Sequence[Path]:
    """Errors: UsageError."""
    if not here.options.roots:
        raise UsageError("this server reads no paths", "upload the logs, or set TRIAGE_SERVE_ROOTS")
    return here.options.roots


@router.get("/jobs", responses=BAD, tags=["jobs"])
async def jobs(here: Here, _caller: Reader, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> list[JobOut]:
    """The newest jobs."""
    return [_out(here, job) for job in here.jobs.newest(limit)]


@router.get("/jobs/{job}", responses=BAD, tags=["jobs"])
async def job_of(job: str, here: Here, _caller: Reader) -> JobOut:
    """How far a job is; its incident once it is done."""
    return _out(here, here.jobs.get(job))


@router.get("/jobs/{job}/events", responses=BAD | STREAM, response_class=StreamingResponse, tags=["jobs"])
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
