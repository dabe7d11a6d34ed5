"""The web application, made of parts that are given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from triage.errors import TriageError
from triage.web import api, api_jobs, pages, problems
from triage.web.chats import Chats
from triage.web.guard import Guard
from triage.web.jobs import Jobs
from triage.web.logs import Logs
from triage.web.metrics import Metrics
from triage.web.parts import Options, Parts, State

ASSETS = Path(__file__).parent / "assets"


def create(parts: Parts, options: Options) -> Guard:
    """The ASGI application."""
    metrics = Metrics()
    jobs = Jobs(options.folder / "jobs", options.command, options.workers, options.keep_days, metrics)

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        jobs.start()
        yield
        await jobs.stop()

    app = FastAPI(
        title="triage",
        version=parts.version,
        description="Incident triage for training and HPC jobs.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        lifespan=life,
        exception_handlers=dict.fromkeys(
            (TriageError, problems.RefusedError, RequestValidationError, HTTPException, Exception),
            pages.as_page_or_json,
        ),
    )
    app.state.triage = State(parts, options, jobs, metrics)
    app.state.chats, app.state.logs = Chats(parts), Logs(parts)
    app.include_router(api_jobs.router)
    app.include_router(api.router)
    app.include_router(pages.router)
    app.mount("/assets", StaticFiles(directory=ASSETS))
    return Guard(app, options, parts.access, metrics)
