"""`triage eval` as a user runs it: output, exit codes, interruption and resuming."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.conftest import REPO
from tests.evaluation import make
from tests.openai_server import OpenAIServer
from triage.errors import InputError
from triage.evaluation import record
from triage.evaluation.cases import Decisive, load_cases

LIGHT = ("--llm", "off", "--no-similar", "--no-baselines")


def long_log(lines: int) -> str:
    return "".join(f"step {at} loss {at % 7}.{at % 89}\n" for at in range(lines)) + make.KEY_ERROR


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    make.case(tmp_path / "cases", "a1", tags=["hard"])
    make.case(tmp_path / "cases", "a2", split="test", expect_failure_type="value-error", expect_must_not=["key-error"])
    make.healthy(tmp_path / "cases", "a3")
    return tmp_path / "cases"


def test_a_run_prints_a_table_and_where_it_lies(triage: Run, cases: Path, tmp_path: Path) -> None:
    done = triage("eval", "run", "cases", "--llm", "off", "--no-similar")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].split()[:4] == ["triage", "95", "%", "n"]
    rows = {line[:28].strip(): line[28:].split() for line in lines[2:13]}
    assert rows["Failure type exact"][:3] == ["67%", "21–94%", "3"]
    assert rows["False alarm"][:3] == ["0%", "0–79%", "1"]
    assert rows["Action acceptable"][:3] == ["-", "-", "0"]
    assert {"Node right, first", "Rank right, first", "Root-cause class right", "Wrong node accused"} <= set(rows)
    assert lines[14] == "3 cases, 3 diagnoses, all answered"
    assert max(map(len, lines)) <= 80
    place = tmp_path / lines[-1].removeprefix("The run is in ")
    assert place.parent == tmp_path / "eval-runs"
    assert [r["case"] for r in record.read_records(place)] == ["a1", "a2", "a3"]
    assert re.search("triage: evaluating: 3 of 3 in [0-9]+ s, 1 wrong\n", done.stderr)


def test_json_is_one_object_and_stderr_is_quiet_on_request(triage: Run, cases: Path) -> None:
    done = triage("eval", "run", "cases", *LIGHT, "--out", "run", "--format", "json", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["run"] == "run"
    assert found["metrics"]["schema"] == "triage.metrics/1"


def test_cases_are_chosen_by_id_split_and_tag(triage: Run, cases: Path, tmp_path: Path) -> None:
    for flags, expected in (
        (["--only", "a1,a3"], ["a1", "a3"]),
        (["--split", "test"], ["a2"]),
        (["--tag", "hard"], ["a1"]),
    ):
        out = "-".join(flags)
        assert triage("eval", "run", "cases", *LIGHT, "--out", out, *flags).returncode == 0
        assert [r["case"] for r in record.read_records(tmp_path / out)] == expected


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nowhere"], "triage: nowhere: no cases; give a folder whose subfolders hold a case.yaml"),
        (["cases", "--only", "b9"], "triage: --only: no case has the id b9"),
        (["cases", "--only", ","], "triage: --only ',' names no case; give ids"),
        (["cases", "--seed", "-1"], "triage: Invalid value for '--seed'"),
        (["cases", "--timeout", "inf"], "triage: Invalid value for '--timeout'"),
        (["cases", "--split", "train"], "triage: --split 'train' is not known; use dev or test"),
        (["cases", "--tag", "hang"], "triage: no case is left by --only, --split and --tag"),
        (["cases", "--out", "cases"], "triage: cases: holds something else than a run"),
    ],
)
def test_what_cannot_be_run_is_told_in_a_line(triage: Run, cases: Path, args: list[str], said: str) -> None:
    done = triage("eval", "run", *args, *LIGHT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_a_folder_named_twice_is_one_and_an_id_may_hold_a_comma(triage: Run, tmp_path: Path) -> None:
    make.case(tmp_path / "cases", "a1")
    make.case(tmp_path / "cases", "a,2")
    done = triage("eval", "run", "cases", "cases/../cases", *LIGHT, "--only", "a,2", "--out", "run")
    assert done.returncode == 0, done.stderr
    assert [r["case"] for r in record.read_records(tmp_path / "run")] == ["a,2"]


def test_a_name_that_gives_the_answer_away_is_warned_of(triage: Run, tmp_path: Path) -> None:
    make.case(tmp_path / "cases", "oom-7")
    done = triage("eval", "run", "cases", *LIGHT)
    assert "the id 'oom-7' says 'oom'; a name can give the answer away" in done.stderr


def test_a_model_is_asked_by_the_baselines_and_named_in_the_record(triage: Run, cases: Path, tmp_path: Path) -> None:
    with OpenAIServer(lambda _asked: '{"outcome": "failed", "failure_type": "key-error"}') as server:
        done = triage(
            "eval", "run", "cases", "--no-similar", "--llm", "openai:scripted", "--out", "run", **server.env()
        )
    assert done.returncode == 0
    assert "the model openai:scripted is asked in each diagnosis, and answers as two of the baselines" in done.stderr
    assert "tail-200-" in done.stdout
    assert record.read_run(tmp_path / "run")["model"] == "openai:scripted"
    records = record.read_records(tmp_path / "run")
    assert len(server.requests) == 4 * len(records)  # the diagnosis, its repair, and two baselines
    assert all("did not hold" in r["result"]["missing"][-1] for r in records)


def test_a_model_that_cannot_be_meant_is_told_before_anything_runs(triage: Run, cases: Path, tmp_path: Path) -> None:
    done = triage("eval", "run", "cases", "--no-similar", "--llm", "gpt-x", "--out", "run")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the model 'gpt-x' is not known" in done.stderr
    assert not (tmp_path / "run").exists()


def test_rescoring_prints_the_same_table(triage: Run, cases: Path, tmp_path: Path) -> None:
    first = triage("eval", "run", "cases", *LIGHT, "--out", "run").stdout
    (tmp_path / "run" / "metrics.json").unlink()
    again = triage("eval", "rescore", "run")
    assert again.returncode == 0
    assert first.startswith(again.stdout)
    assert triage("eval", "rescore", "cases").stderr.startswith("triage: cases/run.json: No such file")


GATE = "schema: triage.gate/1\nsplits:\n  all:\n    type_exact: {min: %s}\n"


def test_a_gate_decides_the_exit_code_of_a_run_and_alone(triage: Run, cases: Path, tmp_path: Path) -> None:
    (tmp_path / "low.yaml").write_text(GATE % 0.5)
    (tmp_path / "high.yaml").write_text(GATE % 0.9)
    done = triage("eval", "run", "cases", *LIGHT, "--out", "run", "--gate", "high.yaml", "-q")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "FAIL  Failure type exact (type_exact): 66.67% (20.77% to 93.85%) on 3 cases; below its floor of 90%"
    )
    assert done.stdout.endswith("The run is in run\n")
    assert triage("eval", "run", "cases", *LIGHT, "--out", "run", "--gate", "low.yaml").returncode == 0
    assert triage("eval", "gate", "run", "high.yaml").returncode == 1
    held = triage("eval", "gate", "run", "low.yaml")
    assert (held.returncode, held.stdout.splitlines()[-1]) == (0, "gate: passed, the one bound holds")


def test_a_run_that_is_not_finished_passes_no_gate_and_says_so(triage: Run, cases: Path, tmp_path: Path) -> None:
    (tmp_path / "low.yaml").write_text(GATE % 0)
    triage("eval", "run", "cases", *LIGHT, "--out", "run")
    records = record.read_records(tmp_path / "run")
    (tmp_path / "run" / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records[:2]))
    again = triage("eval", "rescore", "run")
    assert (again.returncode, again.stderr) == (0, "triage: run is not finished: 1 of 3 cases has no record (a3)\n")
    done = triage("eval", "gate", "run", "low.yaml")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "FAIL  1 of 3 cases has no record (a3)"
    command = "triage eval run cases --llm off --no-similar --no-baselines --out run"
    assert done.stderr == f"triage: run is not finished; go on with: {command}\n"
    (tmp_path / "run" / "metrics.json").unlink()
    assert triage("eval", "gate", "run", "low.yaml").stdout == done.stdout
    with pytest.raises(InputError) as caught:
        record.read_metrics(tmp_path / "run")
    assert f"1 of 3 cases has no record (a3); go on with `{command}`, or score what is there" in str(caught.value)


def test_a_gate_judges_the_records_and_not_figures_of_before(triage: Run, cases: Path, tmp_path: Path) -> None:
    (tmp_path / "high.yaml").write_text(GATE % 0.6)
    triage("eval", "run", "cases", *LIGHT, "--out", "run")
    assert triage("eval", "gate", "run", "high.yaml").returncode == 0
    records = record.read_records(tmp_path / "run")
    records[0]["result"]["failure_type"] = "type-error"
    (tmp_path / "run" / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    assert triage("eval", "gate", "run", "high.yaml").returncode == 1


def test_a_verdict_stands_when_nobody_reads_it(triage: Run, cases: Path, tmp_path: Path) -> None:
    (tmp_path / "high.yaml").write_text(GATE % 0.9)
    triage("eval", "run", "cases", *LIGHT, "--out", "run")
    for args in (
        ["eval", "gate", "run", "high.yaml"],
        ["eval", "run", "cases", *LIGHT, "--out", "run", "--gate", "high.yaml"],
    ):
        reader, writer = os.pipe()
        os.close(reader)
        env = {**os.environ, "PYTHONPATH": str(REPO)}
        done = subprocess.run(
            [sys.executable, "-m", "triage", *args],
            cwd=tmp_path,
            env=env,
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writer)
        assert done.returncode == 1
        assert b"Traceback" not in done.stderr and b"BrokenPipe" not in done.stderr


def test_bad_usage_keeps_its_code_when_stderr_is_closed(tmp_path: Path) -> None:
    command = f"PYTHONPATH={REPO} {sys.executable} -m triage eval run nowhere 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 2


def test_a_run_without_a_record_is_not_called_unlabelled(triage: Run, cases: Path, tmp_path: Path) -> None:
    (tmp_path / "low.yaml").write_text(GATE % 0)
    triage("eval", "run", "cases", *LIGHT, "--out", "run")
    (tmp_path / "run" / "records.jsonl").unlink()
    triage("eval", "rescore", "run")
    said = triage("eval", "gate", "run", "low.yaml").stdout
    assert "cannot be checked, no case has run" in said and "labelled" not in said


def test_a_gate_file_that_is_not_there_says_where_one_is_described(triage: Run, cases: Path) -> None:
    triage("eval", "run", "cases", *LIGHT, "--out", "run")
    done = triage("eval", "gate", "run")
    assert done.returncode == 2
    assert done.stderr.startswith("triage: eval/gate.yaml: ") and "docs/evaluation.md has a small one" in done.stderr


def test_a_resumed_run_says_what_is_there_and_what_is_not_chosen(triage: Run, cases: Path) -> None:
    triage("eval", "run", "cases", *LIGHT, "--out", "run", "--only", "a1,a3")
    done = triage("eval", "run", "cases", *LIGHT, "--out", "run", "--only", "a1,a2")
    assert "triage: run is resumed: 1 of 2 diagnoses are there\n" in done.stderr
    assert "triage: 1 other case of this run is not chosen now and stays as it is\n" in done.stderr
    other = triage("eval", "run", "cases", "--llm", "off", "--no-baselines", "--out", "run")
    assert other.returncode == 2
    assert (
        other.stderr.splitlines()[-1]
        == "triage: run: cannot be resumed: it was made with --no-similar; add --no-similar"
    )


def test_a_gate_that_cannot_be_read_stops_before_anything_runs(triage: Run, cases: Path, tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text(GATE.replace("type_exact", "type_exakt") % 0.5)
    done = triage("eval", "run", "cases", *LIGHT, "--out", "run", "--gate", "gate.yaml")
    assert (done.returncode, (tmp_path / "run").exists()) == (2, False)
    assert "type_exakt" in done.stderr


def test_two_runs_are_compared_case_by_case(triage: Run, cases: Path, tmp_path: Path) -> None:
    triage("eval", "run", "cases", *LIGHT, "--out", "before")
    triage("eval", "run", "cases", *LIGHT, "--out", "after")
    records = record.read_records(tmp_path / "after")
    records[0]["result"]["failure_type"] = "type-error"
    (tmp_path / "after" / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    done = triage("eval", "compare", "before", "after")
    assert done.returncode == 0, done.stderr
    assert "worse (1)" in done.stdout
    assert "a1" in done.stdout.split("worse (1)")[1]
    found = json.loads(triage("eval", "compare", "after", "before", "--format", "json").stdout)
    assert [entry["case"] for entry in found["better"]] == ["a1"]


def test_a_report_is_a_page_and_a_summary(triage: Run, cases: Path, tmp_path: Path) -> None:
    triage("eval", "run", "cases", *LIGHT, "--out", "run")
    (tmp_path / "run" / "metrics.json").unlink()
    done = triage("eval", "report", "run")
    assert (done.returncode, done.stdout) == (0, "run/report.html\nrun/summary.md\n")
    told = json.loads(triage("eval", "report", "run", "--format", "json").stdout)
    assert told == {"report": "run/report.html", "summary": "run/summary.md"}
    assert triage("eval", "report", "run", "-q").stdout == ""
    assert "tokens_per_shard" in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert (tmp_path / "run" / "summary.md").read_text("utf-8").startswith("# Evaluation of triage: 3 cases")


def test_a_table_of_labels_becomes_cases_that_run(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "key-error-run.log").write_text(make.KEY_ERROR)
    (tmp_path / "labels.csv").write_text("file,failure_type,outcome,evidence\nkey-error-run.log,key-error,failed,6\n")
    done = triage("eval", "import", "labels", "labels.csv", "logs", "--out", "mine")
    assert done.returncode == 0, done.stderr
    assert [Path(line).parent.name for line in done.stdout.splitlines()] == ["mine"]
    ran = triage("eval", "run", "mine", *LIGHT, "--out", "run")
    assert (ran.returncode, "give the answer away" in ran.stderr) == (0, False), ran.stderr
    assert [r["result"]["failure_type"] for r in record.read_records(tmp_path / "run")] == ["key-error"]


def test_a_recorded_incident_that_was_confirmed_becomes_a_case(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "job.out").write_text(make.KEY_ERROR)
    found = json.loads(triage("diagnose", "job.out", "--format", "json").stdout)
    (tmp_path / "incident.json").write_text(json.dumps({"result": found, "verdict": "confirmed"}))
    done = triage("eval", "import", "incident", "incident.json", "--out", "mine")
    assert done.returncode == 0, done.stderr
    (case,) = load_cases(tmp_path / "mine")
    assert (case.expect.failure_type, case.expect.evidence) == ("key-error", (Decisive("job.log", 6, 6),))


def test_a_job_trace_tells_what_failures_cost(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(
        "job_id,gpu_num,state,start_time,end_time,type\n"
        "1,8,COMPLETED,2023-03-01 00:00:00,2023-03-01 01:00:00,pretrain\n"
        "2,8,FAILED,2023-03-01 00:00:00,2023-03-01 02:00:00,pretrain\n"
    )
    found = json.loads(triage("eval", "import", "acme", "trace.csv", "--format", "json").stdout)
    assert found["weights"] == {"2-8": 16.0}
    assert "2-8" in triage("eval", "import", "acme", "trace.csv").stdout
    assert triage("eval", "import", "acme", "gone.csv").returncode == 2


# ------------------------------------------------------------------------------------------------ interruption
@pytest.fixture(
    params=["", "of-a-job-with-a-name-that-is-too-long-for-the-socket-of-a-server/" * 2], ids=["short", "long"]
)
def scratch(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Where temporary files go; workers are forked from a server where the path of its socket is not too long."""
    with tempfile.TemporaryDirectory(prefix="s-", dir="/tmp") as folder:
        (Path(folder) / request.param).mkdir(parents=True, exist_ok=True)
        yield Path(folder) / request.param


@contextmanager
def started(tmp_path: Path, scratch: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process group of its own, as a shell starts it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "triage", "eval", "run", "cases", *LIGHT, "--jobs", "1", "--out", "run", *args],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPO), "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def wait_for_records(path: Path, at_least: int) -> None:
    until = time.monotonic() + 90
    while time.monotonic() < until:
        if path.is_file() and path.read_bytes().count(b"\n") >= at_least:
            return
        time.sleep(0.002)
    pytest.fail("the run wrote no record")


def wait_until_gone(group: int, scratch: Path) -> None:
    """No process of the group is left, and no temporary file."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        pytest.fail("a worker outlived the run")
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "to_group", "code"),
    [(signal.SIGINT, True, 130), (signal.SIGTERM, False, 130), (signal.SIGKILL, False, -signal.SIGKILL)],
)
@pytest.mark.parametrize("scratch", [""], indirect=True)
def test_an_interrupted_run_keeps_what_is_done_and_goes_on(
    triage: Run, tmp_path: Path, scratch: Path, number: signal.Signals, to_group: bool, code: int
) -> None:
    for at in range(8):
        make.case(tmp_path / "cases", f"a{at}", long_log(40_000), expect_evidence=None)
    records = tmp_path / "run" / "records.jsonl"
    with started(tmp_path, scratch) as process:
        wait_for_records(records, 2)
        (os.killpg if to_group else os.kill)(process.pid, number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    if code == 130:
        kept = re.search(r"triage: (\d) of 8 diagnoses are kept; to go on: (triage .*)\n$", err)
        assert kept and int(kept[1]) >= 2
        assert shlex.split(kept[2]) == ["triage", "eval", "run", "cases", *LIGHT, "--jobs", "1", "--out", "run"]
    wait_until_gone(process.pid, scratch)
    before = record.read_records(tmp_path / "run")
    assert 2 <= len(before) < 8, "it was interrupted in the middle"
    assert record.read_run(tmp_path / "run")["finished"] is None
    with records.open("a") as stream:
        stream.write('{"case": "a7", "sha')  # as a full disk or a lost machine leaves it

    done = triage("eval", "run", "cases", *LIGHT, "--out", "run")
    assert done.returncode == 0, done.stderr
    after: dict[str, Any] = {r["case"]: r for r in record.read_records(tmp_path / "run")}
    assert sorted(after) == [f"a{at}" for at in range(8)]
    assert [after[r["case"]] for r in before] == before, "what was done is not done again"
    assert all(r["problem"] == "" for r in after.values())
    assert record.read_run(tmp_path / "run")["finished"]


def test_an_interruption_while_the_workers_start_is_quiet_too(triage: Run, tmp_path: Path, scratch: Path) -> None:
    make.case(tmp_path / "cases", "a1")
    with started(tmp_path, scratch) as process:
        until = time.monotonic() + 60
        while not (tmp_path / "run" / "run.json").is_file() and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(0.15)  # the first worker imports now
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [line[:7] for line in err.splitlines()] == ["triage:"]
    assert "nothing was done yet; to begin again: triage eval run cases" in err
    wait_until_gone(process.pid, scratch)
    assert triage("eval", "run", "cases", *LIGHT, "--out", "run").returncode == 0
