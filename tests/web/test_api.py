"""Logs in, incidents out: what the API promises, on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.web import serving
from tests.web.serving import LOST_GPU, Served
from triage.cli.serve import serve
from triage.errors import UsageError

OUT = (LOST_GPU / "slurm-771204.out").read_bytes()


def events(text: str) -> list[tuple[str, dict]]:
    found = []
    for block in text.split("\n\n"):
        if block.startswith("event: "):
            head, data = block.split("\n", 1)
            found.append((head.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_logs_that_are_sent_become_an_incident(served: Served, incident: int) -> None:
    with served.client() as client:
        shown = client.get(f"/api/v1/incidents/{incident}").json()
        plain = client.get(f"/api/v1/incidents/{incident}/diagnosis").json()
        listed = client.get("/api/v1/incidents", params={"type": "gpu-lost", "text": "fallen off"}).json()
        counted = client.get("/api/v1/stats").json()
    assert (plain["schema"], plain["failure_type"], plain["incident"]) == ("triage.diagnosis/1", "gpu-lost", incident)
    assert {e["file"] for e in plain["evidence"]} <= {"slurm-771204.out", "gpu-042.dmesg"}, (
        "under the names they were sent by"
    )
    assert {**plain, "record": shown["record"]} == shown
    assert [v["recorded_by"] for v in shown["record"]["versions"]] == ["oncall"]
    assert [i["id"] for i in listed["incidents"]] == [incident]
    assert counted["incidents"] >= 1


@pytest.mark.service
def test_lines_that_were_left_out_are_there(served: Served, incident: int) -> None:
    asked = {"file": "slurm-771204.out", "first": 40, "count": 3}
    with served.client() as client:
        found = client.get(f"/api/v1/incidents/{incident}/lines", params=asked).json()["lines"]
        strange = client.get(f"/api/v1/incidents/{incident}/lines", params={**asked, "file": "/etc/passwd"})
    assert [line["line"] for line in found] == [40, 41, 42]
    assert found[0]["text"] == OUT.decode().split("\n")[39]
    assert strange.status_code == 404


def test_progress_is_told_until_the_job_is_done(served: Served) -> None:
    with served.client() as client:
        job = client.post("/api/v1/jobs/raw", params={"name": "n1/../../rank_3.log"}, content=OUT).json()
        assert job["paths"] == ["n1/rank_3.log"]
        told = events(client.get(f"/api/v1/jobs/{job['id']}/events").text)
        assert {name for name, _ in told} == {"job"}
        assert told[-1][1]["state"] == "done"
        result = client.get(f"/api/v1/incidents/{told[-1][1]['incident']}/diagnosis").json()
    assert result["evidence"][0]["file"] == "n1/rank_3.log"


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ([], 400),
        ([("logs", ("a.log", b""))], 400),
        ([("logs", ("../../../etc/cron.d/x", b"hello\n"))], 202),
        ([("logs", ("\u202egnp.exe\x00<b>", b"hello\n"))], 202),
    ],
)
def test_odd_uploads(served: Served, files: list, code: int) -> None:
    with served.client() as client:
        answer = client.post("/api/v1/jobs", files=files) if files else client.post("/api/v1/jobs", data={"a": "b"})
    assert answer.status_code == code, answer.text
    jobs = served.home / "serve" / "jobs"
    assert all(p.resolve().is_relative_to(jobs.resolve()) for p in jobs.rglob("*"))
    if code != 202:
        assert set(answer.json()) == {"error", "hint"}


def test_a_form_that_breaks_off_leaves_nothing(served: Served) -> None:
    head = {"content-type": "multipart/form-data; boundary=b"}
    body = b'--b\r\nContent-Disposition: form-data; name="logs"; filename="a"\r\n\r\nhalf'
    before = len(list((served.home / "serve" / "jobs").iterdir()))
    with served.client() as client:
        answer = client.post("/api/v1/jobs", content=body, headers=head)
    assert answer.status_code == 400
    assert len(list((served.home / "serve" / "jobs").iterdir())) == before


# ------------------------------------------------------------------------------------------------- sizes
def two_gigabytes(told: list[int]) -> Iterator[bytes]:
    for _ in range(2048):
        told.append(1)
        yield b"x" * (1 << 20)


@pytest.mark.service
def test_two_gigabytes_are_refused_before_they_are_sent(served: Served) -> None:
    sent: list[int] = []
    with served.client() as client:
        answer = client.post("/api/v1/jobs/raw", content=two_gigabytes(sent), headers={"content-length": str(2 << 30)})
    assert answer.status_code == 413
    assert answer.json()["error"] == "the request is larger than the 2 MB that may be sent"


@pytest.mark.service
def test_two_gigabytes_of_unknown_length_are_refused_on_the_way(served: Served) -> None:
    sent: list[int] = []
    before = len(list((served.home / "serve" / "jobs").iterdir()))
    with served.client() as client:
        answer = client.post("/api/v1/jobs/raw", content=two_gigabytes(sent))
    assert answer.status_code == 413
    assert len(list((served.home / "serve" / "jobs").iterdir())) == before, "and what had come is gone"


def test_other_requests_are_small(served: Served, incident: int) -> None:
    with served.client() as client:
        answer = client.post(f"/api/v1/incidents/{incident}/chat", json={"said": "x" * 100_000})
    assert (answer.status_code, answer.json()["hint"]) == (413, "say it in fewer words")


# ------------------------------------------------------------------------------------------------- chat
def test_a_conversation_comes_as_events(served: Served, incident: int) -> None:
    with served.client() as client:
        told = events(
            client.post(f"/api/v1/incidents/{incident}/chat", json={"said": "is it the node or my code?"}).text
        )
        turns = client.get(f"/api/v1/incidents/{incident}/chat").json()
    assert "".join(e["text"] for kind, e in told if kind == "text").startswith("The node: the lines say")
    assert [kind for kind, _ in told][-1] == "done"
    assert any(kind == "cited" and e["file"] == "gpu-042.dmesg" for kind, e in told)
    assert turns[-1]["asked"] == "is it the node or my code?"


@pytest.mark.service
def test_only_who_writes_records_an_outcome_in_a_conversation(served: Served) -> None:
    number = served.diagnosed({"a.out": OUT + b"one more line\n"})
    said = ("/resolve confirmed fix=drained worked=yes", "yes")
    for token, recorded in ((serving.READ, []), (serving.WRITE, ["confirmed"])):
        with served.client(token) as client:
            for text in said:
                assert client.post(f"/api/v1/incidents/{number}/chat", json={"said": text}).status_code == 200
            found = client.get(f"/api/v1/incidents/{number}").json()["record"]["outcomes"]
        assert [o["verdict"] for o in found] == recorded
    assert (found[0]["who"], found[0]["via"]) == ("oncall", "web")


def test_an_outcome_is_recorded(served: Served) -> None:
    number = served.diagnosed({"b.out": OUT + b"yet another line\n"})
    with served.client() as client:
        wrong = client.post(
            f"/api/v1/incidents/{number}/outcomes", json={"verdict": "corrected", "failure_type": "no-such"}
        )
        right = client.post(f"/api/v1/incidents/{number}/outcomes", json={"verdict": "rejected", "note": "came again"})
        page = client.get(f"/incidents/{number}", headers={"accept": "text/html"}).text
        found = client.get("/api/v1/incidents", params={"verdict": "rejected"}).json()["incidents"]
    assert (wrong.status_code, right.status_code) == (400, 201)
    assert right.json()["said"] == [f"incident {number}: rejected by oncall"]
    assert [i["id"] for i in found] == [number]
    assert page.index("oncall rejected this diagnosis: came again.") < page.index('class="lead')
    assert "<h1>The diagnosis was rejected</h1>" in page and "First: " not in page  # no step of it is the first to take
    assert page.index("<details><summary>") < page.index('<ol class="steps">')
    assert 'class="chip established"' not in page.partition('class="lead')[0]


# ------------------------------------------------------------------------------------------------- service
def test_counts_are_told_for_prometheus(served: Served, incident: int) -> None:
    with served.client() as client:
        text = client.get("/api/v1/metrics").text
    assert 'triage_diagnoses_total{failure_type="gpu-lost",outcome="failed"}' in text
    assert 'route="/api/v1/incidents/{incident}"' in text or 'route="/api/v1/jobs"' in text
    assert "triage_diagnosis_seconds_count" in text


@pytest.mark.service
def test_fifty_clients_at_once(served: Served, incident: int) -> None:
    def one(number: int) -> list[int]:
        with served.client() as client:
            said = client.post(f"/api/v1/incidents/{incident}/chat", json={"said": "why?"})
            seen = [client.get(p).status_code for p in ("/api/v1/incidents", f"/incidents/{incident}", "/api/v1/stats")]
            sent = (
                client.post("/api/v1/jobs", files={"logs": (f"{number}.log", b"hello\n" * (number + 1))})
                if number % 10 == 0
                else None
            )
        assert said.status_code in (200, 409)  # one conversation of a person about an incident at a time
        return [*seen, *([sent.status_code] if sent is not None else [])]

    with ThreadPoolExecutor(50) as pool:
        found = [code for codes in pool.map(one, range(50)) for code in codes]
    assert set(found) <= {200, 202}
    assert len(found) == 155


def test_others_reach_it_with_a_token_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="there is no token"):
        serve("0.0.0.0", 0, None, 1, None, None, "read")
