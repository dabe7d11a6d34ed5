"""`triage incidents export`: from a log, diagnosed and resolved, to a case that the evaluation takes."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from triage import pipeline
from triage.cli import incidents, wiring
from triage.errors import InputError, UsageError
from triage.evaluation.cases import load_cases
from triage.store.incidents import IncidentStore
from triage.store.values import Verdict

SECRET = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz1234567890AbCdEfGhIj"
LOG = (
    f"export OPENAI_API_KEY={SECRET}\n"
    + "".join(f"2026-01-01 12:00:{n:02} step {n} loss 2.5 lr 0.1\n" for n in range(1, 31))
    + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB\n"
)


def run(*words: str) -> Result:
    result = CliRunner().invoke(incidents.app, ["export", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def store():
    with IncidentStore.open(f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db") as opened:
        yield opened


def diagnose(*paths: Path) -> int:
    parts = wiring.parts(wiring.settings("off"), lambda _text: None, similar=False)
    found = pipeline.diagnose([str(p) for p in paths], parts)[0]
    assert (found.incident, found.failure_type) == (1, "out-of-memory")
    return found.incident


def made(done: Result) -> Path:
    return Path(done.stdout.strip())


@pytest.mark.parametrize("packed", [False, True])
def test_a_confirmed_incident_is_a_case_without_secrets(tmp_path: Path, store: IncidentStore, packed: bool) -> None:
    log = tmp_path / ("oom_train.log.gz" if packed else "oom_train.log")
    log.write_bytes(gzip.compress(LOG.encode()) if packed else LOG.encode())
    diagnose(log)
    store.resolve(1, Verdict("confirmed", "ada"))

    done = run("1", "--case", str(tmp_path / "cases"))

    assert done.stderr == ""
    (case,) = load_cases(tmp_path / "cases")
    assert case.folder == made(done)
    assert case.inputs == ("job.log",)
    text = (case.folder / "job.log").read_text()
    assert SECRET not in text
    assert text.split("\n")[1:] == LOG.split("\n")[1:]  # line for line
    assert case.expect.failure_type == "out-of-memory"
    assert [(d.first, d.last) for d in case.expect.evidence or ()] == [(32, 32)]
    assert case.warnings == ()
    assert "oom" not in (case.folder / "case.yaml").read_text().replace("out-of-memory", "")


def test_a_corrected_one_has_the_labels_that_were_given(tmp_path: Path, store: IncidentStore) -> None:
    (tmp_path / "a.log").write_text(LOG)
    diagnose(tmp_path / "a.log")
    store.resolve(1, Verdict("corrected", "ada", failure_type="nvlink-error", root_cause_class="hardware-failure"))

    expect = yaml.safe_load((made(run("1", "--case", str(tmp_path / "cases"))) / "case.yaml").read_text())["expect"]

    assert (expect["failure_type"], expect["root_cause_class"]) == ("nvlink-error", "hardware-failure")
    assert expect["must_not"] == ["out-of-memory"]
    assert "evidence" not in expect


def test_several_files_keep_what_their_names_tell(tmp_path: Path, store: IncidentStore) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in range(3):
        (folder / f"rank_{rank}.log").write_text(LOG if rank == 1 else LOG.replace("torch.OutOfMemoryError", "done"))
    diagnose(folder)
    store.resolve(1, Verdict("confirmed", "ada"))

    case = made(run("1", "--case", str(tmp_path / "cases")))

    assert sorted(p.name for p in case.iterdir()) == ["case.yaml", "rank_0.log", "rank_1.log", "rank_2.log"]


def test_a_log_that_changed_is_left_and_the_cited_lines_stand_alone(tmp_path: Path, store: IncidentStore) -> None:
    log = tmp_path / "a.log"
    log.write_text(LOG)
    diagnose(log)
    store.resolve(1, Verdict("confirmed", "ada"))
    log.write_text(LOG + "and on\n")

    done = run("1", "--case", str(tmp_path / "cases"))

    assert f"alone: {log} has changed since; --logs PATH gives the log" in done.stderr
    assert (made(done) / "job.log").read_text().splitlines() == [e["text"] for e in store.get(1).result["evidence"]]
    (case,) = load_cases(tmp_path / "cases")
    assert case.expect.failure_type == "out-of-memory"

    elsewhere = tmp_path / "kept" / "b.log"
    elsewhere.parent.mkdir()
    elsewhere.write_text(LOG)
    whole = run("1", "--case", str(tmp_path / "whole"), "--logs", str(elsewhere))
    assert whole.stderr == ""
    assert len((made(whole) / "job.log").read_text().splitlines()) == 32


def test_what_cannot_be_a_case_is_said(tmp_path: Path, store: IncidentStore) -> None:
    (tmp_path / "a.log").write_text(LOG)
    diagnose(tmp_path / "a.log")
    cases = tmp_path / "cases"

    with pytest.raises(UsageError, match="nobody has said what incident 1 was; triage incidents resolve 1"):
        run("1", "--case", str(cases))
    store.resolve(1, Verdict("rejected", "ada"))
    with pytest.raises(UsageError, match="nobody has said what incident 1 was"):
        run("1", "--case", str(cases))
    store.resolve(1, Verdict("confirmed", "ada"))
    (tmp_path / "short.log").write_text("other\n")
    for name, text in (("short", "other\n"), ("long", "other\n" * 50), ("next", LOG.replace("79.15", "39.39"))):
        wrong = tmp_path / f"{name}.log"
        wrong.write_text(text)
        with pytest.raises(InputError, match=rf"^{wrong} is not the log of incident 1: its line \d+ is not the one"):
            run("1", "--case", str(cases), "--logs", str(wrong))
    assert not cases.exists()


def test_what_shows_no_failure_is_no_case(tmp_path: Path, store: IncidentStore) -> None:
    (tmp_path / "empty.log").touch()
    parts = wiring.parts(wiring.settings("off"), lambda _text: None, similar=False)
    pipeline.diagnose([str(tmp_path / "empty.log")], parts)
    cases = str(tmp_path / "cases")

    store.resolve(1, Verdict("confirmed", "ada", fix="x", worked="yes"))
    with pytest.raises(UsageError, match="what incident 1 was is not known: its verdict names no failure; once it is"):
        run("1", "--case", cases)
    store.resolve(1, Verdict("corrected", "ada", failure_type="out-of-memory"))
    with pytest.raises(UsageError, match="incident 1 cites no line; a case needs a line"):
        run("1", "--case", cases)
    (tmp_path / "other.log").write_text("step 1\n")
    with pytest.raises(UsageError, match="incident 1 cites no line"):
        run("1", "--case", cases, "--logs", str(tmp_path / "other.log"))


def test_given_logs_of_which_no_line_is_cited_are_said(tmp_path: Path, store: IncidentStore) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in range(2):
        (folder / f"rank_{rank}.log").write_text(LOG if rank else "starting\n")
    diagnose(folder)
    store.resolve(1, Verdict("confirmed", "ada"))
    (folder / "rank_0.log").write_text("another\n")

    done = run("1", "--case", str(tmp_path / "cases"), "--logs", str(folder))

    assert "rank_0.log is not the file that was read, and none of its lines is cited" in done.stderr
