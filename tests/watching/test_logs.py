"""What logs say of a job's progress: real files, as they grow."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from triage.watching.tails import Logs
from triage.watching.values import LogView


class Grown:
    """A log that is written, and looked at each second of a clock of our own."""

    def __init__(self, folder: Path, name: str = "job.log", before: str = "") -> None:
        self.path = folder / name
        self.path.write_text(before)
        self.now = 100.0
        self.logs = Logs([str(self.path)])
        self.logs.look(self.now)

    def write(self, *lines: str, seconds: float = 1.0) -> LogView:
        with self.path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        return self.look(seconds)

    def look(self, seconds: float = 1.0) -> LogView:
        self.now += seconds
        return self.logs.look(self.now)


def test_steps_by_rank(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    log.write("[rank0]: step 5 loss 2.1", "[rank1]: step 5 loss 2.0", "[rank0]: step 6 loss 2.0")
    view = log.look(3.0)
    assert view.steps == {0: 6, 1: 5}
    assert (view.phase, view.quiet, view.trained) == ("train", 3.0, True)


def test_a_job_that_begins_again_at_an_earlier_step_trains(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    log.write("[rank1]: step 50 loss 2.1", "[rank0]: Building dataset index mapping")
    assert log.write("[rank1]: step 20 loss 2.1").phase == "train"


def test_what_is_no_progress(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    log.write("step 5 loss 2.1")
    for line in (
        "heartbeat 17: alive",
        "[W] watchdog: still waiting for rank 3",
        "WARNING: retrying",
        "step 5 loss 2.1",
        "GPU mem: 71.3 GiB",
        "ERROR: connection timed out",
    ):
        view = log.write(line)
        assert view.only_beats, line
    assert view.quiet == 6.0


def test_phases_and_how_long_they_take(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    phases = []
    for line in (
        "Building dataset index mapping",
        "torch.compile: compiling the model",
        "Starting training",
        "step 1 loss 9.9",
        "saving checkpoint to /data/ckpt/step_1",
        "successfully saved checkpoint",
        "Running evaluation on the validation set",
        "validation loss: 2.3",
        "step 2 loss 9.8",
        "training completed",
    ):
        phases.append(log.write(line).phase)
    assert phases == [
        "dataset", "compile", "first step", "train", "checkpoint", "train", "evaluation", "train", "train", "end",
    ]  # fmt: skip
    assert log.write("saving checkpoint to /data/ckpt/step_9").paths == ("/data/ckpt/step_9",)


def test_limits_are_learned_for_each_phase(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    for step in range(1, 8):
        log.write(f"step {2 * step} loss 1.5", seconds=10)
        log.write(f"step {2 * step + 1} loss 1.5", seconds=10)
        log.write("saving checkpoint to /data/ckpt", seconds=10)
        log.write("successfully saved checkpoint", seconds=300)
    assert log.look().limit < 100
    assert log.write("saving checkpoint to /data/ckpt").limit >= 600


def test_a_job_that_was_silent_before_we_came(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("step 5 loss 2.1\n")
    os.utime(path, (time.time() - 3000,) * 2)
    view = Logs([str(path)]).look(50_000.0)
    assert view.quiet is not None
    assert 2990 < view.quiet < 3100


def test_limits_of_a_log_that_was_there_before(tmp_path: Path) -> None:
    """Its own stamps tell how long its steps take: 10 minutes each."""
    path = tmp_path / "job.log"
    path.write_text("".join(f"2026-05-01 {n // 6:02}:{n % 6}0:00 step {n + 1} loss 1.5\n" for n in range(60)))
    view = Logs([str(path)]).look(50_000.0)
    assert view.limit >= 1200
    assert view.steps == {-1: 60}


def test_a_rotated_log_and_one_that_is_cut(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    log.write("step 5 loss 2.1")
    log.path.rename(tmp_path / "job.log.1")
    log.path.write_text("")
    for step in range(6, 12):
        view = log.write(f"step {step} loss 2.0")
    assert view.steps == {-1: 11}
    assert view.quiet == 0
    log.path.write_text("")
    log.look()
    log.look()
    assert log.write("step 1 loss 2.9", "step 2 loss 2.9").steps == {-1: 2}


def test_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    logs = Logs([str(tmp_path / "late.log")])
    view = logs.look(1.0)
    assert view.problems == (f"{tmp_path / 'late.log'}: no such file or folder",)
    (tmp_path / "late.log").write_text("step 1 loss 2.9\n")
    view = logs.look(2.0)
    assert (view.problems, view.steps) == ((), {-1: 1})


def test_steps_that_get_slower(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    for step in range(1, 20):
        log.write(f"step {step} loss 2.0", seconds=2)
    for step in range(20, 24):
        view = log.write(f"step {step} loss 2.0", seconds=9)
    assert (view.usual, view.step_time) == (2.0, 9.0)


def stamped(first: int, steps: int, seconds: float, begin: float = 0.0) -> list[str]:
    """Steps with stamps of whole seconds, of which several may be alike."""
    times = [begin + seconds * n for n in range(1, steps + 1)]
    return [
        f"2026-05-01 {int(t) // 3600:02}:{int(t) // 60 % 60:02}:{int(t) % 60:02} step {first + n} loss 1.5\n"
        for n, t in enumerate(times)
    ]


def test_a_job_that_was_slow_before_we_came(tmp_path: Path) -> None:
    """By the stamps of its log: 60 steps at 0.16 s, then 12 at 2.2 s."""
    path = tmp_path / "job.log"
    path.write_text("".join([*stamped(1, 60, 0.16), *stamped(61, 12, 2.2, begin=9.6)]))
    view = Logs([str(path)]).look(50_000.0)
    assert view.step_time == pytest.approx(2.2, rel=0.3)
    assert view.usual == pytest.approx(0.16, rel=0.4)


def test_a_job_that_was_fast_long_ago(tmp_path: Path) -> None:
    """Megabytes before the end of its log, of which pieces are read."""
    path = tmp_path / "job.log"
    fast, slow = stamped(1, 20_000, 0.5), stamped(20_001, 25_000, 2.0, begin=10_000)
    path.write_text("".join([*fast, *slow]))
    assert path.stat().st_size > (3 << 19)
    view = Logs([str(path)]).look(90_000.0)
    assert view.step_time == pytest.approx(2.0, rel=0.3)
    assert view.usual == pytest.approx(0.5, rel=0.4)


def test_a_line_that_is_only_new_is_told_from_one_that_shows_work(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    view = log.write("Serving HTTP on 127.0.0.1 port 18099")
    assert (view.shows, view.phase) == (False, "")
    view = log.write("shard 3 done: 100% 00:12", "usage: tail [-f]", "tail: invalid number of lines")
    assert (view.phase, view.said) == ("", "shard 3 done: 100% 00:12")
    assert log.write("step 5 loss 2.1").shows


def test_a_log_that_is_read_for_steps_alone(tmp_path: Path) -> None:
    """A monitor of the job may write to it whatever the job does."""
    path = tmp_path / "monitor.log"
    path.write_text("")
    logs = Logs()
    logs.add([str(path)], steps_only=True)
    logs.look(1.0)
    for now, line in enumerate(("rank 0 has 71.3 GiB in use", "rank 1 has 70.1 GiB in use"), 2):
        path.write_text(path.read_text() + line + "\n")
        assert logs.look(float(now)).quiet is None
    path.write_text(path.read_text() + "step 5 loss 2.1\n")
    assert logs.look(4.0).quiet == 0.0


def test_what_ended_the_program_until_it_goes_on(tmp_path: Path) -> None:
    log = Grown(tmp_path, "rank_2.log")
    log.write("step 5 loss 2.1", "Traceback (most recent call last):")
    view = log.write("torch.distributed.DistBackendError: NCCL error", "RuntimeError: and another")
    assert view.failure == "rank 2: torch.distributed.DistBackendError: NCCL error"
    assert log.write("step 6 loss 2.1").failure == ""


def test_a_bar_that_writes_over_itself(tmp_path: Path) -> None:
    """It ends no line until all is done; what it shows is read as it comes."""
    log = Grown(tmp_path)
    log.write("step 5 loss 2.1")
    for step in range(11, 14):
        with log.path.open("a") as file:
            file.write(f"\rTraining:  {step}%|##        | {step}/200 [00:01<00:10,  3.3it/s, loss=2.1]")
        view = log.look()
        assert (view.steps, view.quiet) == ({-1: step}, 0.0)
    assert log.look(7.0).quiet == 7.0
    assert log.write("", "Running evaluation").phase == "evaluation"


def test_a_secret_in_the_log_is_not_said(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    view = log.write("logging in with token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH")
    assert "hf_abcdef" not in view.said
    assert view.said.startswith("logging in")


def test_lines_behind_a_key_are_read(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    log.write("-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn", "-----END RSA PRIVATE KEY-----")
    assert log.write("step 5 loss 2.1").said == "step 5 loss 2.1"


def test_the_rank_of_a_file(tmp_path: Path) -> None:
    log = Grown(tmp_path, "rank_3.log")
    assert log.write("step 5 loss 2.1").steps == {3: 5}


def test_many_lines_at_once(tmp_path: Path) -> None:
    log = Grown(tmp_path)
    began = time.process_time()
    view = log.write(*(f"step {n} loss 2.1" for n in range(1, 30_000)))
    assert view.steps == {-1: 29_999}
    assert time.process_time() - began < 3


def test_a_phase_of_one_rank_outlives_what_the_others_wrote_before_it(tmp_path: Path) -> None:
    """Files are read one after the other: rank 1 made its step before rank 0 began to evaluate, and is read after it."""
    first, second = tmp_path / "rank_0.log", tmp_path / "rank_1.log"
    for path in (first, second):
        path.write_text("step 36/1000 loss 2.1\n")
    logs = Logs([str(first), str(second)])
    logs.look(0.0)
    with first.open("a") as file:
        file.write("step 38/1000 loss 2.0\nrunning evaluation\n")
    with second.open("a") as file:
        file.write("step 38/1000 loss 2.0\n")
    assert logs.look(1.0).phase == "evaluation"
    with second.open("a") as file:
        file.write("step 40/1000 loss 2.0\n")
    assert logs.look(2.0).phase == "train"
