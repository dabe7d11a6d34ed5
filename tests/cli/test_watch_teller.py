"""What is told of a hang while it is looked into, and when. The collecting is real; messages are kept here."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from triage.cli.watch_hung import Findings
from triage.cli.watch_news import message
from triage.cli.watch_teller import Collecting, Teller
from triage.watching.loop import Target, Told
from triage.watching.report import as_json, as_text
from triage.watching.tails import Logs
from triage.watching.values import Status, Suspect

HUNG = Status(
    "hung", ("no progress for 31 min (limit 30 min)",), (Suspect("asleep", "rank 1 sleeps", 1, "n", 7),), 1860.0
)


@dataclass
class Kept:
    """In place of the channels."""

    sent: list[dict[str, Any]] = field(default_factory=list)

    def post(self, document: dict[str, Any]) -> None:
        self.sent.append(document)

    def say(self) -> None:
        pass

    def wait(self, seconds: float) -> None:
        pass

    @property
    def news(self) -> list[str]:
        return [document["news"] for document in self.sent]


@dataclass
class Through:
    """An investigation that has found nothing."""

    findings: Findings = field(default_factory=Findings)

    def stop(self) -> None:
        pass


@pytest.fixture
def teller(tmp_path: Path) -> Iterator[Teller]:
    """Of a job whose second look at the stacks comes only after a minute."""
    with subprocess.Popen(["sleep", "600"]) as job:
        collecting = Collecting(tmp_path / "hangs", ("--pid", str(job.pid)), 60.0)
        made = Teller(Target("the job", None, Logs()), "json", None, collecting, Kept(), quiet=True)  # type: ignore[arg-type]
        yield made
        made.close(0)
        job.kill()


def test_a_message_waits_for_the_cause_and_not_for_ever(
    teller: Teller, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    kept = teller.messages
    assert isinstance(kept, Kept)
    teller.tell(Told(HUNG, True, "hung"))
    teller.tick()
    assert (kept.news, teller.busy) == ([], True)
    printed = json.loads(capfdbinary.readouterr().out)
    assert (printed["news"], printed["collected"]) == ("hung", None), "the terminal does not wait"
    teller.patience = 0.0
    time.sleep(0.01)
    teller.tick()
    teller.tick()
    assert kept.news == ["hung"]
    teller.tell(Told(Status("running"), True, "moving again"))
    assert (kept.news, teller.busy) == (["hung", "moving again"], False)
    printed = json.loads(capfdbinary.readouterr().out)
    assert printed["words"] == ["moving again after 31 min"]


def test_what_was_over_before_it_was_told_is_not_told(teller: Teller) -> None:
    kept = teller.messages
    assert isinstance(kept, Kept)
    teller.tell(Told(HUNG, True, "hung"))
    teller.tell(Told(Status("running"), True, "moving again"))
    assert (kept.news, teller.busy) == ([], False)
    teller.tell(Told(HUNG, True, "hung"))
    teller.tell(Told(Status("failed", ("ended with an error",)), True, "failed"))
    assert kept.news == ["failed"]


def test_the_cause_bears_the_time_when_it_was_known_and_says_since_when_it_hangs(
    teller: Teller, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    began = datetime.now(UTC) - timedelta(seconds=HUNG.quiet + 38)
    teller.tell(Told(HUNG, True, "hung", began + timedelta(seconds=HUNG.quiet)))
    hang = json.loads(capfdbinary.readouterr().out)
    teller._under_way.stop()  # type: ignore[union-attr]
    teller._under_way = Through()  # type: ignore[assignment]
    teller.tick()
    cause = json.loads(capfdbinary.readouterr().out)
    assert (cause["news"], cause["since"]) == ("cause", hang["since"])
    later = datetime.fromisoformat(cause["time"]) - datetime.fromisoformat(hang["time"])
    assert 37 <= later.total_seconds() <= 60
    assert f"{cause['time'][11:19]} the job: HUNG since {hang['since'][11:19]}, looked into:" in as_text(cause)


@pytest.mark.parametrize(
    ("job", "resume", "said"),
    [("", "kill -CONT 7 goes on", "kill -CONT 7 goes on"), ("4711", "", "scontrol resume 4711 goes on")],
)
def test_what_lets_a_suspended_job_go_on_is_printed_and_sent(
    capfdbinary: pytest.CaptureFixture[bytes], job: str, resume: str, said: str
) -> None:
    kept = Kept()
    teller = Teller(Target("the job", None, Logs(), job=job), "text", None, None, kept)  # type: ignore[arg-type]
    teller.tell(Told(Status("suspended", ("stopped, for 31 min",), held=1860.0, resume=resume), True, "suspended"))
    assert said in capfdbinary.readouterr().out.decode().splitlines()[-1]
    assert said in dict(message(kept.sent[0]).fields)["next"]


@pytest.mark.parametrize(
    ("ranks", "pids", "told"), [([], [], True), ([2], [], True), ([1], [], False), ([], [7], False)]
)
def test_a_diagnosis_that_names_none_of_the_suspects_says_so(ranks: list[int], pids: list[int], told: bool) -> None:
    blamed = {"ranks": ranks, "pids": pids, "nodes": [], "gpus": []}
    diagnosis = {
        "status": "established",
        "failure_type": "host-out-of-memory",
        "root_cause": "Killed.",
        "suspects": blamed,
    }
    at = Told(HUNG, True, "cause", datetime(2026, 1, 7, tzinfo=UTC))
    text = as_text({**as_json("pid 6", at, "hang-6", diagnosis), "next": None})
    assert ("names none of the suspects" in text) == told
    assert "the stacks tell more" not in text


def test_who_ends_it_in_the_middle_is_told_what_became_of_what_was_collected(
    teller: Teller, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    teller.quiet = False
    teller.tell(Told(HUNG, True, "hung"))
    teller.close(0)
    assert b"ended while the hang was looked into: nothing of it was kept" in capfdbinary.readouterr().err
