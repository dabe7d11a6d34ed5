"""What the pages say, without a script; and that nothing of a log acts in them."""

from __future__ import annotations

import re

import pytest

from tests.web.serving import WRITE, Served

pytestmark = pytest.mark.service
HOSTILE = (
    b"[rank0]: \x1b[31mTraceback\x1b[0m (most recent call last):\n"
    b'[rank0]: File "<script>alert(1)</script>.py", line 1, in "><img src=x onerror=alert(2)>\n'
    b"[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. </pre></script><script>alert(3)</script> "
    b"\xe2\x80\xae desrever \xe2\x80\xac{{ 7*7 }} ' \" onmouseover=alert(4) x=\n"
)


@pytest.fixture(scope="module")
def hostile(served: Served) -> int:
    return served.diagnosed(
        {"a<script>b.log": HOSTILE + b"".join(b"step %d <b>bold</b>\n" % n for n in range(300)) + HOSTILE}
    )


def page(served: Served, path: str) -> str:
    with served.client(accept="text/html") as client:
        answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_hostile_log_acts_nowhere(served: Served, hostile: int) -> None:
    with served.client() as client:
        file = client.get(f"/api/v1/incidents/{hostile}/diagnosis").json()["evidence"][0]["file"]
        client.post(f"/api/v1/incidents/{hostile}/chat", json={"said": "why? <script>alert(5)</script>"})
    for path in (
        "/",
        f"/incidents/{hostile}",
        f"/incidents/{hostile}/log",
        f"/incidents/{hostile}/lines?first=1&file={file}",
    ):
        html = page(served, path)
        assert re.findall(r"<script[^>]*>", html) == [re.search(r"<script[^>]*>", html)[0]], path  # type: ignore[index]
        assert "<img" not in html and "<b>bold" not in html, path
        assert "\u202e" not in html and "\x1b" not in html, path
        assert not re.search(r"<[^>]*\son\w+=", html), path
        assert "{{" not in html.replace("{{ 7*7 }}", ""), path
    assert "OutOfMemoryError" in page(served, f"/incidents/{hostile}")


def test_an_incident_is_told_whole(served: Served, incident: int) -> None:
    html = page(served, f"/incidents/{incident}")
    for said in ("gpu-lost", "restart-excluding", "gpu-042", "scontrol update NodeName=gpu-042", "can be undone", "cannot be undone",
                 'id="E1"', 'href="#E1"', "First failure: ", "<svg", "OPT-175B", "How it turned out"):  # fmt: skip
        assert said in html, said
    assert "style=" not in html, "the policy of the page bars it"


def test_the_log_has_its_gaps_as_links(served: Served, incident: int) -> None:
    html = page(served, f"/incidents/{incident}/log")
    link, count = re.search(r'href="(/incidents/\d+/lines[^"]+)">… ([\d,]+) lines left out', html).groups()  # type: ignore[union-attr]
    lines = page(served, link.replace("&amp;", "&"))
    assert lines.count('class="l"') == int(count.replace(",", ""))


def test_filters_of_the_list(served: Served, incident: int, hostile: int) -> None:
    assert f'href="/incidents/{incident}"' in page(served, "/?type=gpu-lost")
    assert f'href="/incidents/{hostile}"' not in page(served, "/?type=gpu-lost")
    with served.client(accept="text/html") as client:
        wrong = client.get("/?type=gpu-lots&since=x")
    assert wrong.status_code == 400
    assert "did you mean gpu-lost" in wrong.text


def test_forms_work_without_a_script(served: Served, incident: int) -> None:
    with served.client("", "text/html") as client:
        client.post("/login", data={"token": WRITE})
        token = re.search(r'name="csrf" value="(\w+)"', client.get(f"/incidents/{incident}").text)[1]  # type: ignore[index]
        asked = client.post(f"/incidents/{incident}/chat", data={"csrf": token, "said": "which nodes do I drain?"})
        assert (asked.status_code, asked.headers["location"]) == (303, f"/incidents/{incident}#chat")
        assert "which nodes do I drain?" in client.get(f"/incidents/{incident}").text
        sent = client.post("/upload", data={"csrf": token}, files={"logs": ("x.log", HOSTILE)})
        assert sent.status_code == 303 and sent.headers["location"].startswith("/jobs/")
        client.get(sent.headers["location"])
        wrong = client.post(
            f"/incidents/{incident}/outcome", data={"csrf": token, "verdict": "corrected", "fix": "kept <i>"}
        )
        assert wrong.status_code == 400 and "kept &lt;i&gt;" in wrong.text, "and nothing typed is lost"
        told = {"csrf": token, "verdict": "confirmed", "fix": "drained"}
        assert 'name="version" value="1"' in wrong.text, "what is said is of the diagnosis that is shown"
        other = client.post(f"/incidents/{incident}/outcome", data={**told, "version": "9"})
        assert other.status_code == 400 and f"incident {incident} has no diagnosis 9" in other.text
        done = client.post(f"/incidents/{incident}/outcome", data={**told, "version": "1"})
        assert done.headers["location"] == f"/incidents/{incident}#outcome"
        assert "<b>confirmed</b> by oncall" in client.get(f"/incidents/{incident}").text


def test_the_dashboard_and_what_is_not_there(served: Served, incident: int) -> None:
    html = page(served, "/dashboard")
    assert "GPU-hours lost" in html and "gpu-lost" in html and 'class="weeks"' in html
    with served.client(accept="text/html") as client:
        assert client.get("/incidents/999999").status_code == 404
        assert client.get("/nowhere").status_code == 404
        assert "Traceback" not in client.get("/incidents/999999").text
        garbage = client.post("/api/v1/incidents/1/chat", content=b"{bad", headers={"content-type": "application/json"})
        assert garbage.json()["error"] == "the body is no JSON"
        odd = client.get("/?at=0")
        assert odd.status_code == 422 and "This value does not fit: at: " in odd.text and "openapi" not in odd.text


def test_what_a_person_said_leads_the_page_and_the_list(served: Served) -> None:
    line = b"[Wed Nov 18 01:53:50 2026] NVRM: Xid (PCI:0000:4a:00): 48, pid=21011, name=python3, DBE (double bit error) ECC\n"
    number = served.diagnosed({"gpu-042.dmesg": line})
    assert "triage recover" in page(served, f"/incidents/{number}")
    said = {
        "verdict": "corrected",
        "failure_type": "network-error",
        "cause": "a <switch> port",
        "fix": "moved the cable",
    }
    with served.client() as client:
        assert client.post(f"/api/v1/incidents/{number}/outcomes", json=said | {"worked": "yes"}).status_code == 201
    html = page(served, f"/incidents/{number}")
    top, _, proposed = html.partition('id="do"')
    assert "<h1>a &lt;switch&gt; port</h1>" in top and "moved the cable (it worked)" in top
    assert "scontrol update" not in top and "First: " not in html and "triage recover" not in html
    assert "Steps of the diagnosis that was corrected" in proposed
    listed = page(served, "/?verdict=corrected")
    assert "<b>network-error</b>" in listed and "triage said ecc-error" in listed
