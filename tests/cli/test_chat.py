"""`triage chat` where stdin is no terminal: each line is a question."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import REPO
from tests.openai_server import OpenAIServer

LOST_GPU = str(REPO / "examples" / "lost-gpu")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copytree(LOST_GPU, tmp_path / "lost-gpu"))


def turns(out: str) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


def test_questions_about_a_log_are_answered_line_by_line(triage: Run, log: Path) -> None:
    done = triage("chat", str(log), stdin="is it the node or my code?\n\nwhich nodes do I drain?\n")

    assert done.returncode == 0
    assert done.stdout.startswith("> is it the node or my code?\nThe node: the lines say that hardware failed.")
    assert "$ scontrol update NodeName=gpu-042 State=DRAIN Reason=triage:gpu-lost\n" in done.stdout
    assert "\x1b" not in done.stdout


def test_json_is_one_object_a_turn(triage: Run, log: Path) -> None:
    done = triage(
        "chat", str(log), "--format", "json", stdin="why?\nE1\n/resolve confirmed fix=drained worked=yes\nyes\n"
    )

    why, place, asks, recorded = turns(done.stdout)
    assert (why["schema"], why["session"], why["turn"], why["incident"]) == ("triage.chat/1", 1, 1, 1)
    assert (why["asked"], why["produced_by"]) == ("why?", "code")
    assert why["citations"][0]["id"] == "E1"
    assert len(place["citations"]) == 8
    assert asks["asks"]["choices"] == ["yes", "no"]
    assert "confirmed by" in recorded["answer"]


def test_an_incident_is_talked_about_by_its_number_and_by_its_job(triage: Run, log: Path) -> None:
    triage("diagnose", str(log))

    for about in (("#1",), ("--job", "771204")):
        done = triage("chat", *about, "--format", "json", stdin="show me rank 3\n")
        (turn,) = turns(done.stdout)
        assert turn["incident"] == 1
        assert any("Watchdog" in c["text"] for c in turn["citations"])  # read from where the log lies
        assert turn["citations"][0]["file"] == str(log / "slurm-771204.out")


def test_a_job_that_is_not_recorded_is_diagnosed_from_the_log_that_lies_here(triage: Run, log: Path) -> None:
    done = triage("chat", "--job", "771204", "--format", "json", stdin="which job is this?\n", cwd=log)

    (turn,) = turns(done.stdout)
    assert turn["incident"] == 1
    assert "Job 771204." in turn["answer"]


def test_a_log_that_has_changed_since_is_not_read_as_if_it_had_not(triage: Run, log: Path) -> None:
    triage("diagnose", str(log))
    with (log / "slurm-771204.out").open("a") as file:
        file.write("one more line\n")

    (turn,) = turns(triage("chat", "1", "--format", "json", stdin="show me rank 11\n").stdout)

    assert "has changed since; diagnose it again" in turn["notes"][0]
    assert turn["citations"][0]["id"] == "E1"


def test_a_conversation_goes_on(triage: Run, log: Path) -> None:
    triage("chat", str(log), stdin="why?\n")
    done = triage("chat", "--resume", "--format", "json", stdin="how sure are you?\n")
    listed = json.loads(triage("chat", "--list", "--format", "json").stdout)

    assert (turns(done.stdout)[0]["session"], turns(done.stdout)[0]["turn"]) == (1, 2)
    assert [(c["id"], c["incident"], c["title"], c["turns"]) for c in listed["sessions"]] == [(1, 1, "why?", 2)]
    assert "why?" in triage("chat", "--list").stdout


def test_the_history_is_asked_without_an_incident(triage: Run, log: Path) -> None:
    triage("diagnose", str(log))
    done = triage("chat", stdin="what fails most?\n/incidents\n/open 1\nwhy?\n")

    assert "1 incident among 1 diagnosed jobs" in done.stdout
    assert "By type: gpu-lost 1." in done.stdout
    assert "gpu-lost, established" in done.stdout


def test_a_fix_that_was_recorded_since_the_diagnosis_is_told(triage: Run, log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for file in log.iterdir():
        text = file.read_text().replace("771204", "771300").replace("-11-18", "-11-21").replace("Nov 18", "Nov 21")
        (other / file.name.replace("771204", "771300")).write_text(text.replace("gpu-04", "gpu-07"))
    for folder in (log, other):
        triage("diagnose", str(folder))
    triage("incidents", "resolve", "1", "--verdict", "confirmed", "--fix", "reseated the riser", "--worked", "yes")

    (turn,) = turns(triage("chat", "2", "--format", "json", stdin="what fixed it last time?\n").stdout)

    assert "Incident 1" in turn["answer"]
    assert "Fix: reseated the riser (it worked)." in turn["answer"]


def test_asking_makes_no_database(triage: Run, log: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "empty")
    assert "No incident is recorded yet" in triage("chat", stdin="what fails most?\n", TRIAGE_HOME=home).stdout
    done = triage(
        "chat", str(log), "--no-record", "--format", "json", stdin="why?\n/resolve confirmed\n", TRIAGE_HOME=home
    )

    why, resolve = turns(done.stdout)
    assert (why["session"], why["turn"], why["incident"]) == (None, None, None)
    assert "not recorded" in resolve["answer"]
    assert not (tmp_path / "empty" / "triage.db").exists()


def test_a_log_is_talked_about_though_the_database_is_broken(triage: Run, log: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "triage.db").write_bytes(b"no database at all" * 100)
    done = triage("chat", str(log), stdin="which nodes do I drain?\n", TRIAGE_HOME=str(home))

    assert done.returncode == 0
    assert "gpu-042: established" in done.stdout
    assert "not a database" in done.stderr
    assert triage("chat", "1", stdin="why?\n", TRIAGE_HOME=str(home)).returncode == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("4711",), "no incident 4711"),
        (("missing.log",), "missing.log"),
        (("--job", "1"), "no incident of job 1"),
        (("--resume",), "no conversation is kept yet"),
        (("--resume", "x"), "--resume takes the number of a conversation"),
        (("-",), "stdin is for what is said"),
        (("--format", "markdown"), "--format 'markdown' is not known"),
        (("--job", "1", "2"), "--job stands beside"),
    ],
)
def test_what_cannot_be_meant_is_one_line(triage: Run, args: tuple[str, ...], says: str) -> None:
    done = triage("chat", *args, stdin="why?\n")

    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_typed_and_answered_is_kept_without_secrets(triage: Run, log: Path, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    home = tmp_path / "home"
    triage("chat", str(log), stdin=f"is {secret} why it failed?\n", TRIAGE_HOME=str(home))

    with sqlite3.connect(home / "triage.db") as database:
        assert database.execute("SELECT asked FROM chat_turn").fetchall() == [
            ("is [redacted:git-token] why it failed?",)
        ]
    assert not any(secret.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_a_model_answers_with_tools_and_code_holds_it_to_the_log(triage: Run, log: Path) -> None:
    from tests.openai_server import Answer

    script = [
        Answer(tool_calls=(("read_lines", '{"file": "gpu-042.dmesg", "line": 6}'),)),
        "The GPU fell off the bus (E1). Node gpu-999 is broken too (E1).",
    ]
    with OpenAIServer(script) as server:
        done = triage("chat", str(log), "--format", "json", stdin="is it the node?\n", **server.env())

    (turn,) = turns(done.stdout)
    assert turn["answer"] == "The GPU fell off the bus (E1). \n"
    assert (turn["produced_by"], turn["unsupported"]) == ("llm:openai:scripted", 1)
    assert turn["tools"] == [{"name": "read_lines", "words": "file gpu-042.dmesg, line 6", "problem": ""}]
    assert [p["name"] for p in turn["prompts"]] == ["chat", "chat-question"]
    assert "gpu-999" in turn["notes"][0]
