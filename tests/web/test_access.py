"""Nothing is told and nothing done without a token, whatever the route."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.web.serving import READ, WRITE, Served, as_
from triage.errors import UsageError
from triage.web import access, token_file
from triage.web.access import Access
from triage.web.guard import Guard
from triage.web.metrics import Metrics
from triage.web.parts import Options

OPEN = {"/api/v1/health"}  # and what tells nothing: the description of the API, the assets, the login page


def routes(served: Served) -> list[tuple[str, str]]:
    with served.client("") as client:
        paths = client.get("/api/v1/openapi.json").json()["paths"]
    return [(method, path) for path, methods in paths.items() for method in methods]


def test_every_route_of_the_api_asks_for_a_token(served: Served) -> None:
    found = [r for r in routes(served) if r[1] not in OPEN]
    assert len(found) >= 15
    for token in ("", "x" * 32):
        with served.client(token) as client:
            for method, path in found:
                answer = client.request(method, re.sub(r"\{\w+\}", "1", path))
                assert (answer.status_code, set(answer.json())) == (401, {"error", "hint"}), (method, path)
                assert answer.json()["error"] == ("this token is not known here" if token else "a token is needed")


def test_every_page_asks_for_a_session(served: Served) -> None:
    pages = (
        "/",
        "/incidents/1",
        "/incidents/1/log",
        "/incidents/1/lines?file=a&first=1",
        "/upload",
        "/jobs/x",
        "/dashboard",
    )
    with served.client("", "text/html") as client:
        for page in pages:
            answer = client.get(page)
            assert answer.status_code == 303, page
            assert answer.headers["location"].startswith("/login?next=/")
        for form in ("/upload", "/incidents/1/outcome", "/incidents/1/chat", "/logout"):
            assert client.post(form, data={"said": "why?"}).status_code == 303


def test_a_token_that_reads_may_not_write(served: Served) -> None:
    with served.client(READ) as client:
        assert client.get("/api/v1/incidents").status_code == 200
        for answer in (
            client.post("/api/v1/jobs", files={"logs": ("a.log", b"x")}),
            client.post("/api/v1/jobs/raw", content=b"x"),
            client.post("/api/v1/jobs/paths", json={"paths": ["/etc/passwd"]}),
            client.post("/api/v1/incidents/1/outcomes", json={"verdict": "confirmed"}),
        ):
            assert (answer.status_code, answer.json()["error"]) == (403, "this token may only read")


def test_a_session_needs_its_own_form_token_to_act(served: Served) -> None:
    with served.client("") as client:
        assert client.post("/login", data={"token": "wrong"}).status_code == 401
        signed = client.post("/login", data={"token": WRITE, "next": "//evil.example/"})
        assert (signed.status_code, signed.headers["location"]) == (303, "/")
        cookie = signed.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=lax" in cookie and WRITE not in cookie
        assert client.get("/").status_code == 200
        act = {"verdict": "confirmed"}
        assert client.post("/incidents/1/outcome", data=act).status_code == 403
        assert client.post("/api/v1/incidents/1/outcomes", json=act).status_code == 403
        assert client.post("/upload", files={"logs": ("a.log", b"x")}).status_code == 403
        form = re.search(r'name="csrf" value="(\w+)"', client.get("/upload").text)
        assert form is not None
        assert late(client, form[1]).status_code == 403, "the token stands before the files, or they are not read"


def late(client: httpx.Client, token: str) -> httpx.Response:
    """A form whose token comes after its file."""
    parts = (b'name="logs"; filename="a.log"\r\n\r\nx', b'name="csrf"\r\n\r\n' + token.encode())
    body = b"".join(b"--b\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts) + b"--b--\r\n"
    return client.post("/upload", content=body, headers={"content-type": "multipart/form-data; boundary=b"})


def test_who_guesses_tokens_gets_one_count_and_takes_none_from_others(tmp_path: Path) -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def codes(count: int, token: str) -> set[int]:
        transport = httpx.ASGITransport(guard)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return {(await client.get("/", headers=as_(token.format(n)))).status_code for n in range(count)}

    known = Access([access.token("a", "read", READ), access.token("b", "read", WRITE)], b"k")
    guard = Guard(app, Options(tmp_path, rate=40), known, Metrics())
    assert asyncio.run(codes(12, "guess {}")) == {204, 429}
    assert asyncio.run(codes(10, READ)) == {204}
    assert asyncio.run(codes(10, WRITE)) == {204}


def test_it_is_asked_by_its_own_name_alone(served: Served) -> None:
    with served.client() as client:
        assert client.get("/api/v1/incidents", headers={"host": "evil.example"}).status_code == 421


def test_tokens_are_kept_as_hashes(tmp_path) -> None:
    made = token_file.add(tmp_path, "ci", "read")
    kept = (tmp_path / token_file.TOKENS).read_text()
    assert made not in kept
    assert (tmp_path / token_file.TOKENS).stat().st_mode & 0o077 == 0
    found = Access(token_file.load(tmp_path), b"k").by_token(made)
    assert found is not None and (found.name, found.role) == ("ci", "read")
    with pytest.raises(UsageError, match="already"):
        token_file.add(tmp_path, "ci", "write")


def test_a_session_cannot_be_made_up_and_ends_with_its_token() -> None:
    one, other = access.token("a", "read", "x" * 32), access.token("a", "read", "y" * 32)
    known = Access([one], b"key")
    caller = known.by_token("x" * 32)
    assert caller is not None
    cookie = known.session(caller)
    assert known.by_session(cookie) is not None
    assert Access([other], b"key").by_session(cookie) is None
    assert Access([one], b"another key").by_session(cookie) is None
    name, ends, *rest = cookie.split(".")
    for made_up in (str(int(ends) + 1), "-1", "\xb2", "\u0661", "9" * 5000, ""):
        assert known.by_session(".".join([name, made_up, *rest])) is None


@pytest.mark.parametrize(
    "setting", ["a:read", "a:admin:" + "x" * 32, "a:read:short", "a b:read:" + "x" * 32, "a:read:sha256=12"]
)
def test_a_token_that_is_none_is_refused_unshown(setting: str) -> None:
    with pytest.raises(UsageError) as told:
        access.parse(setting)
    assert "x" * 32 not in str(told.value)
