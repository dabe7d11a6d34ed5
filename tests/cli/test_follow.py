"""`triage compress --follow` as a process of its own."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPO

LOG = """\
starting
 iteration        1/     500 | elapsed time per iteration (ms): 501.2 | learning rate: 1.0E-4 | global batch size: 8 | lm loss: 9.1E+00 |
 iteration        2/     500 | elapsed time per iteration (ms): 501.2 | learning rate: 1.0E-4 | global batch size: 8 | lm loss: 9.0E+00 |

torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_text(LOG)
    return path


@pytest.fixture
def start(tmp_path: Path):
    """start("--follow", ...) -> a running process; killed at the end."""
    running: list[subprocess.Popen[str]] = []

    def run(*args: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "triage", "compress", *args]
        env = {**os.environ, "PYTHONPATH": str(REPO)}
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, cwd=tmp_path, env=env, stdout=pipe, stderr=pipe, text=True))
        return running[-1]

    yield run
    for process in running:
        process.kill()
        process.communicate()


def until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def test_text_with_numbers_and_an_account(triage, log):
    done = triage("compress", "--follow", "job.log", "--until-idle", "0.3")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "        1  starting",
        "           ... 3 lines up to 4: megatron.iteration 2, common.blank 1",
        "        5  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    ]
    assert lines[4].startswith("# 5 lines, ")
    assert lines[5:7] == ["# folded into another line: 0", "# kept as text of no repeating kind: 1"]


def test_json_is_one_object_a_line(triage, log):
    done = triage("compress", "--follow", "job.log", "--until-idle", "0.3", "--format", "json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0] == {"file": "job.log", "line": 1, "text": "starting"}
    assert (events[2]["line"], events[2]["serious"]) == (5, True)
    assert events[1] == {
        "file": "job.log", "left_out": 3, "first": 2, "last": 4, "repeated": 0,
        "rules": {"megatron.iteration": 2, "common.blank": 1},
    }  # fmt: skip
    assert (events[3]["compression"]["lines_in"], events[3]["compression"]["novel"]) == (5, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_an_account(start, log, number):
    process = start("--follow", "job.log")
    line = process.stdout.readline()
    assert "starting" in line
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "# 5 lines, " in out
    assert err == ""


def test_a_stream_in_a_file_goes_on_after_a_kill(start, log, tmp_path):
    out = tmp_path / "small"
    out.write_text("a stream of mine\n")
    process = start("--follow", "job.log", "--out", "small")
    until((tmp_path / "small.state").exists)
    process.kill()
    process.wait()
    with log.open("a") as stream:
        stream.write("hello\n")
    done = start("--follow", "job.log", "--out", "small", "--until-idle", "0.3")
    said, err = done.communicate(timeout=60)
    assert (done.returncode, err) == (0, "")
    text = out.read_text().splitlines()
    assert [line.split(None, 1)[-1] for line in text[:5]] == [
        "stream of mine",
        "starting",
        "3 lines up to 4: megatron.iteration 2, common.blank 1",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "hello",
    ]
    assert said.startswith("# 6 lines, ")
    again = start("--follow", "job.log", "--out", "small", "--until-idle", "0.3")
    assert again.communicate(timeout=60) == (said, "")
    assert out.read_text().splitlines() == text


def test_who_takes_the_stream_away_gets_a_new_one(triage, log, tmp_path):
    args = ("compress", "--follow", "job.log", "--out", "small", "--until-idle", "0.3")
    triage(*args)
    first = (tmp_path / "small").read_text()
    (tmp_path / "small").unlink()
    triage(*args)
    assert (tmp_path / "small").read_text() == first


@pytest.mark.parametrize("others", [["other.log"], ["other.log", "third.log"]])
def test_a_stream_of_other_files_is_left_as_it_is(triage, log, tmp_path, others):
    for name in others:
        (tmp_path / name).write_text("hello\n")
    triage("compress", "--follow", "job.log", "--out", "small", "--until-idle", "0.1")
    before = [(tmp_path / name).read_bytes() for name in ("small", "small.state")]
    done = triage("compress", "--follow", *others, "--out", "small", "--until-idle", "0.1")
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert f"small is the stream of {log}, and other.log" in said
    assert "give another --out" in said
    assert [(tmp_path / name).read_bytes() for name in ("small", "small.state")] == before


def test_files_may_be_added_to_a_stream(triage, log, tmp_path):
    args = ("--out", "small", "--until-idle", "0.1")
    triage("compress", "--follow", "job.log", *args)
    (tmp_path / "other.log").write_text("hello\n")
    done = triage("compress", "--follow", "other.log", "job.log", *args)
    assert (done.returncode, done.stderr) == (0, "")
    assert "== other.log\n        1  hello\n" in (tmp_path / "small").read_text()
    assert (tmp_path / "small").read_text().count("starting") == 1
    assert triage("compress", "--follow", "job.log", *args).returncode == 2  # it would be read anew when it is back


def test_until_idle_0_reads_what_is_there(triage, log):
    done = triage("compress", "--follow", "job.log", "--until-idle", "0")
    assert done.returncode == 0
    assert "# 5 lines, " in done.stdout


def test_two_do_not_write_one_stream(start, triage, log, tmp_path):
    start("--follow", "job.log", "--out", "small")
    until((tmp_path / "small.state").exists)
    done = triage("compress", "--follow", "job.log", "--out", "small")
    assert done.returncode == 2
    assert "another triage is writing it" in done.stderr


def test_a_closed_pipe_is_no_error(start, log):
    process = start("--follow", "job.log", "--until-idle", "30")
    process.stdout.readline()
    process.stdout.close()
    for n in range(5):
        with log.open("a") as stream:
            stream.write(f"ERROR: node {n} is lost\n")
        time.sleep(0.3)
    assert process.wait(30) == 0
    assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--follow", "gone.log", "--until-idle", "0.1"], "gone.log: no such file or folder"),
        (["--follow", "."], ". is a folder; name the files to follow: ./*.out"),
        (["--follow", "-"], "--follow reads files, not stdin"),
        (["--follow", "job.log.gz"], "compressed with gzip"),
        (["--follow", "job.log", "--budget", "500"], "do not go with --follow"),
        (["--follow", "job.log", "--out", "./job.log"], "job.log is to be followed and to be written"),
        (["job.log", "--out", "x"], "go with --follow"),
        (["job.log", "--until-idle", "3"], "go with --follow"),
        (["--follow", "job.log", "--out", "gone/x"], "gone/x: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(triage, log, tmp_path, args, said):
    (tmp_path / "job.log.gz").write_bytes(gzip.compress(LOG.encode()))
    done = triage("compress", *args)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "state",
    [
        "",
        "{}",
        '{"schema": "triage.follow/1", "format": "text", "output": 0, "shown": ""}',
        '{"schema": "triage.follow/1", "format": "text", "shown": "", "files": {}}',
    ],
)
def test_a_damaged_state_is_one_line(triage, log, tmp_path, state):
    (tmp_path / "small").touch()
    (tmp_path / "small.state").write_text(state)
    done = triage("compress", "--follow", "job.log", "--out", "small")
    assert done.returncode == 2
    assert "small.state: " in done.stderr
    assert "remove it and the stream" in done.stderr


def test_another_format_is_one_line(triage, log):
    triage("compress", "--follow", "job.log", "--out", "small", "--until-idle", "0.1")
    done = triage("compress", "--follow", "job.log", "--out", "small", "--format", "json")
    assert done.returncode == 2
    assert "small is written in text; give --format text, or another --out" in done.stderr


def test_a_log_that_was_rotated_in_between_is_read_on_to_its_successor(triage, log, tmp_path):
    words = ("compress", "-f", "job.log", "--out", "small.out", "--until-idle", "0", "-q")
    assert triage(*words).returncode == 0
    log.rename(tmp_path / "job.log.1")
    log.write_text("RuntimeError: boom\n")
    assert triage(*words).returncode == 0
    assert "RuntimeError: boom" in (tmp_path / "small.out").read_text()


def test_what_is_no_state_of_triage_is_left_alone(triage, log, tmp_path):
    mine = tmp_path / "train.state"
    mine.write_text('{"step": 7}')
    done = triage("compress", "-f", "job.log", "--out", "train", "--until-idle", "0")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "train.state is in the way" in done.stderr
    assert mine.read_text() == '{"step": 7}'
    assert not (tmp_path / "train").exists()


def test_the_followed_file_is_not_written_by_any_of_its_names(triage, log, tmp_path):
    os.link(log, tmp_path / "alias")
    (tmp_path / "x.state").write_text("a log")
    for given, out in (("job.log", "alias"), ("x.state", "x")):
        done = triage("compress", "-f", given, "--out", out, "--until-idle", "0")
        assert (done.returncode, "is to be followed and to be written" in done.stderr) == (2, True)
    assert log.read_text() == LOG


def test_a_pipe_is_refused_and_not_waited_for(triage, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = triage("compress", "-f", "pipe", "--until-idle", "0")
    assert (done.returncode, "is a pipe or a device" in done.stderr) == (2, True)


def test_a_file_name_does_not_act_on_the_terminal(triage, log, tmp_path):
    evil = "x\x1b[2J\n# evil.log"
    (tmp_path / evil).write_text("hello\n")
    done = triage("compress", "-f", evil, "job.log", "--until-idle", "0")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "\n# evil" not in done.stdout
