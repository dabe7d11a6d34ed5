"""The end of a server and the next start: nothing of what was sent or said is lost."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.web import serving
from tests.web.serving import LOST_GPU, WRITE, as_

pytestmark = pytest.mark.service
OUT = (LOST_GPU / "slurm-771204.out").read_bytes()


def test_what_was_not_done_and_what_was_said_outlive_a_kill(tmp_path: Path) -> None:
    first = serving.start(tmp_path)
    try:
        number = first.diagnosed({"a.dmesg": (LOST_GPU / "gpu-042.dmesg").read_bytes()})
        path = f"/api/v1/incidents/{number}/chat"
        with first.client() as client:
            client.post(path, json={"said": "why?"})
            jobs = [
                client.post("/api/v1/jobs/raw", params={"name": f"{n}.out"}, content=OUT).json()["id"] for n in range(3)
            ]
        half = (
            tmp_path / "serve" / "jobs" / ("0" * 20) / "logs" / "half"
        )  # as an upload that is cut by the kill leaves it
        half.parent.mkdir(parents=True)
        half.write_bytes(b"hello")
        barred = first.home / "serve" / "jobs" / ("f" * 20)  # waits, of a time when it could be pointed to
        (barred / "logs").mkdir(parents=True)
        record = {"id": barred.name, "who": "oncall", "paths": ["/etc/hostname"], "created": time.time()}
        (barred / "job.json").write_text(json.dumps(record))
        first.process.kill()
        first.process.wait()
    finally:
        serving.kill(first)
    second = serving.start(tmp_path)
    try:
        with second.client() as client:
            assert not half.parent.parent.exists()
            assert all(second.waited(client, job) for job in jobs)
            while (told := client.get(f"/api/v1/jobs/{barred.name}").json())["state"] in ("queued", "running"):
                time.sleep(0.1)
            assert "/etc/hostname is outside of the roots" in told["said"]
            client.post(path, json={"said": "which nodes do I drain?"})
            assert [turn["asked"] for turn in client.get(path).json()] == ["why?", "which nodes do I drain?"]
            assert "why?" in client.get(f"/incidents/{number}").text
        with second.client(serving.READ) as client:
            assert client.get(path).json() == [], "another's conversation is not shown"
        with pytest.raises(AssertionError, match="the server ended"):
            serving.start(tmp_path)
        began = time.monotonic()
        assert second.end() == 0
        assert time.monotonic() - began < 30
    finally:
        serving.kill(second)


def test_an_open_stream_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    found = serving.start(tmp_path)
    try:
        with found.client() as client:
            big = client.post("/api/v1/jobs/raw", content=OUT).json()["id"]
        done = threading.Event()

        def follow() -> None:
            with httpx.Client(headers=as_(WRITE), timeout=60) as client, contextlib.suppress(httpx.HTTPError):
                client.get(f"{found.url}/api/v1/jobs/{big}/events")
            done.set()

        threading.Thread(target=follow, daemon=True).start()
        time.sleep(0.2)
        assert found.end() == 0
        assert done.wait(30)
    finally:
        serving.kill(found)


def test_a_model_that_never_answers_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as model:
        url = f"http://127.0.0.1:{model.getsockname()[1]}/v1"
        found = serving.start(tmp_path, TRIAGE_LLM="openai:slow", TRIAGE_LLM_BASE_URL=url)
        answers: list[httpx.Response] = []
        try:
            with found.client() as client:
                asked = threading.Thread(
                    target=lambda: answers.append(client.post("/api/v1/chat", json={"said": "why does it rain there?"}))
                )
                asked.start()
                model.settimeout(60)
                held, _ = model.accept()
                with held:
                    assert found.end() == 0
                    asked.join(30)
        finally:
            serving.kill(found)
    assert [(a.status_code, a.json()["error"]) for a in answers] == [(503, "the server ends")]


def test_a_database_that_fails_is_told_without_its_place_to_who_has_no_token(tmp_path: Path) -> None:
    found = serving.start(tmp_path)
    try:
        for path in tmp_path.glob("triage.db*"):
            path.write_bytes(b"x" * 100_000)
        with found.client("") as nobody, found.client(accept="text/html") as client:
            health = nobody.get("/api/v1/health")
            listed = client.get("/")
        assert (health.status_code, health.json()["error"]) == (503, "the database does not answer")
        assert str(tmp_path) not in health.text
        assert listed.status_code == 503 and str(tmp_path) in listed.text
    finally:
        serving.kill(found)
