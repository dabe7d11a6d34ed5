"""The pages: they read and send forms without a script; the script only saves steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast, get_args
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from triage.chat.said import refuted
from triage.domain import Outcome, Status
from triage.errors import InputError, TriageError
from triage.redact import redact
from triage.report import course
from triage.store.values import IncidentSummary, Verdict, VerdictKind, Worked
from triage.web import problems, timeline, views
from triage.web.access import SESSION_SECONDS, Caller
from triage.web.api import FILTERS, Number
from triage.web.api_jobs import add_kubernetes, add_slurm, received
from triage.web.callers import COOKIE, Here, Reader, Writer, check_form, known
from triage.web.models import Words
from triage.web.parts import State

router = APIRouter(include_in_schema=False)
PER_PAGE = 50
LINES = 500  # of a page of a log
Short = Annotated[str, Form(max_length=200)]


def page(request: Request, name: str, caller: Caller | None, status: int = 200, **shown: Any) -> HTMLResponse:
    """A page. Its forms carry the token of the session."""
    here: State = request.app.state.triage
    form = here.parts.access.form_token(caller) if caller and caller.session else ""
    html = views.render(
        name, caller=caller, form_token=form, path=request.url.path, version=here.parts.version, **shown
    )
    return HTMLResponse(html, status)


async def as_page_or_json(request: Request, error: Exception) -> Response:
    """What went wrong, in the form that was asked for."""
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return problems.as_json(request, error)
    code, message, hint = problems.told(error)
    if isinstance(error, RequestValidationError):
        message, hint = (
            f"This value does not fit: {message}.",
            "Go back and change it, or begin at the list of incidents.",
        )
    if code == 401:
        behind = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse("/login?next=" + quote(request.url.path + behind), 303)
    return page(request, "problem.html", known(request), code, code=code, message=message, hint=hint)


# ------------------------------------------------------------------------------------------------- sessions
@router.get("/login")
def login(request: Request, here: Here, token: str = "", next: str = "/") -> Response:  # noqa: A002
    if token:
        return _signed_in(request, here, token, next)
    return page(request, "login.html", None, next=next, problem="")


@router.post("/login")
def log_in(request: Request, here: Here, token: Short = "", next: Short = "/") -> Response:  # noqa: A002
    return _signed_in(request, here, token, next)


def _signed_in(request: Request, here: State, token: str, to: str) -> Response:
    found = here.parts.access.by_token(token.strip())
    if found is None:
        return page(request, "login.html", None, 401, next=to, problem="This token is not known here.")
    answer = RedirectResponse(_own(to), 303)
    answer.set_cookie(
        COOKIE, here.parts.access.session(found), SESSION_SECONDS, httponly=True, samesite="lax",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return answer


def _own(to: str) -> str:
    """A place of this server alone."""
    plain = to.isascii() and to.isprintable() and to.startswith("/") and not to.startswith(("//", "/\\"))
    return to if plain else "/"


@router.post("/logout")
def log_out(request: Request, caller: Reader, csrf: Short = "") -> Response:
    check_form(request, caller, csrf)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


# ------------------------------------------------------------------------------------------------ incidents
@router.get("/")
def incidents(
    request: Request, here: Here, caller: Reader, sort: str = "created",
    at: Annotated[int, Query(ge=1, le=200_000)] = 1,
) -> Response:  # fmt: skip
    given = {name: value for name in FILTERS if (value := request.query_params.get(name, "").strip()[:200])}
    found: tuple[IncidentSummary, ...] = ()
    problem, code = "", 200
    order = cast("Any", sort if sort in views.SORTS else "created")
    try:
        filters = here.parts.filters(given)
        found = here.parts.store.list(filters, sort=order, limit=PER_PAGE + 1, offset=(at - 1) * PER_PAGE)
    except TriageError as error:
        problem, code = redact(str(error)), problems.told(error)[0]
    kept = {**given, **({"sort": order} if order != "created" else {})}
    return page(
        request, "incidents.html", caller, code, found=found[:PER_PAGE], given=given, sort=order,
        problem=problem, at=at, earlier=urlencode({**kept, "at": at - 1}), later=urlencode({**kept, "at": at + 1}),
        more=len(found) > PER_PAGE, types=here.parts.labels.types, outcomes=get_args(Outcome), statuses=get_args(Status),
        verdicts=(*get_args(VerdictKind), "none"), running=[j for j in here.jobs.newest(20) if not j.over],
    )  # fmt: skip


@router.get("/incidents/{incident}")
def incident_of(request: Request, incident: Number, here: Here, caller: Reader) -> Response:
    return _incident(request, here, caller, incident)


def _incident(request: Request, here: State, caller: Caller, incident: int, code: int = 200, **shown: Any) -> Response:
    stored = here.parts.store.get(incident)
    result = stored.result
    chat = request.app.state.chats.get(caller, incident)
    told = [*course.progress_parts(result), *course.cost_parts(result)]
    shown = {"problem": "", "given": {}, **shown}
    return page(
        request, "incident.html", caller, code, stored=stored, r=result, picture=timeline.picture(result),
        refuted=refuted(stored), chain=course.chain_text(result), told=told, recurrence=course.recurrence_text(result), turns=chat.conversation.turns[-20:],
        form=chat.conversation.form, verdicts=get_args(VerdictKind), worked=get_args(Worked), labels=here.parts.labels, **shown,
    )  # fmt: skip


@router.post("/incidents/{incident}/outcome")
def resolve(
    request: Request, incident: Number, here: Here, caller: Writer, csrf: Short = "", verdict: Short = "",
    cause: Annotated[Words, Form()] = "", fix: Annotated[Words, Form()] = "", note: Annotated[Words, Form()] = "",
    worked: Short = "unknown", failure_type: Short = "", root_cause_class: Short = "",
    version: Annotated[int, Form(ge=0, le=2**31 - 1)] = 0,
) -> Response:  # fmt: skip
    check_form(request, caller, csrf)
    given = {"verdict": verdict, "cause": cause.strip(), "fix": fix.strip(), "note": note.strip(), "worked": worked}
    given |= {"failure_type": failure_type, "root_cause_class": root_cause_class}
    try:
        if verdict not in get_args(VerdictKind) or worked not in get_args(Worked):
            raise InputError("nothing says how the diagnosis turned out", "choose confirmed, corrected or rejected")
        here.parts.resolve(incident, Verdict(**cast("Any", given), who=caller.name, via="web", version=version))
    except TriageError as error:
        return _incident(request, here, caller, incident, 400, problem=str(error), given=given)
    return RedirectResponse(f"/incidents/{incident}#outcome", 303)


@router.get("/incidents/{incident}/log")
def log_of(request: Request, incident: Number, caller: Reader, part: bool = False) -> Response:
    """The compressed log; part: for the incident's page, without a page around it."""
    problem, log = "", None
    try:
        log = request.app.state.logs.compressed(incident)
    except InputError as error:
        problem = str(error)
    name = "log_part.html" if part else "log.html"
    return page(request, name, caller, log=log, problem=problem, incident=incident, lines_at=LINES)


@router.get("/incidents/{incident}/lines")
def lines_of(
    request: Request, incident: Number, caller: Reader, file: Annotated[str, Query(max_length=4096)],
    first: Annotated[int, Query(ge=1, le=10**12)], last: Annotated[int, Query(ge=1, le=10**12)] = 10**12,
) -> Response:  # fmt: skip
    """What was left out, page by page, where no script opens it in place."""
    count = max(0, min(LINES, last - first + 1))
    lines = request.app.state.logs.lines(incident, file, first, count) if count else []
    more = len(lines) == LINES and lines[-1].number < last
    return page(
        request, "lines.html", caller, lines=lines, incident=incident, file=file, last=last, more=more, first=first
    )


@router.post("/incidents/{incident}/chat")
def ask(
    request: Request,
    incident: Number,
    caller: Reader,
    csrf: Short = "",
    said: Annotated[str, Form(max_length=20_000)] = "",
) -> Response:
    check_form(request, caller, csrf)
    chats = request.app.state.chats
    if said.strip():
        for _event in chats.ask(chats.get(caller, incident), said):
            pass
    return RedirectResponse(f"/incidents/{incident}#chat", 303)


# ------------------------------------------------------------------------------------------------------ jobs
@router.get("/upload")
def upload(request: Request, here: Here, caller: Reader) -> Response:
    return page(
        request,
        "upload.html",
        caller,
        most=here.options.most_bytes,
        roots=here.options.roots,
        slurm=here.options.slurm,
        namespaces=here.options.namespaces,
    )


@router.post("/upload")
async def upload_form(request: Request, here: Here, caller: Writer) -> Response:
    given = ""

    def field(name: str, value: str | None) -> None:
        nonlocal given
        if value is None:  # the form has its token before its files: another site's are refused unread
            check_form(request, caller, given)
        elif name == "csrf":
            given = value

    job = await received(request, here, caller, field)
    return RedirectResponse(f"/jobs/{job.id}", 303)


@router.post("/upload/slurm")
async def ask_slurm(request: Request, here: Here, caller: Writer, csrf: Short = "", job: Short = "") -> Response:
    check_form(request, caller, csrf)
    return RedirectResponse(f"/jobs/{add_slurm(here, caller, job).id}", 303)


@router.post("/upload/kubernetes")
async def ask_kubernetes(
    request: Request, here: Here, caller: Writer, csrf: Short = "", name: Short = "", pod: Short = ""
) -> Response:
    check_form(request, caller, csrf)
    return RedirectResponse(f"/jobs/{add_kubernetes(here, caller, name.strip(), bool(pod)).id}", 303)


@router.get("/jobs/{job}")
def job_of(request: Request, job: str, here: Here, caller: Reader) -> Response:
    found = here.jobs.get(job)
    if found.state == "done" and found.incident is not None:
        return RedirectResponse(f"/incidents/{found.incident}", 303)
    return page(request, "job.html", caller, job=found, ahead=here.jobs.ahead(found))


# ------------------------------------------------------------------------------------------------- dashboard
@router.get("/dashboard")
def dashboard(request: Request, here: Here, caller: Reader, since: str = "") -> Response:
    given: Mapping[str, str] = {"since": since.strip()} if since.strip() else {}
    stats = here.parts.store.stats(here.parts.filters(given))
    return page(
        request,
        "dashboard.html",
        caller,
        s=stats,
        told=here.parts.stats_json(stats),
        since=since,
        weeks=views.weeks(stats.weeks),
    )
