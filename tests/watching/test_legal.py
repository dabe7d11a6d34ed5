"""Real processes that look as if they hung, and do not; and some that do, without torch."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.watching.conftest import Seen, Starter, watch
from triage import reach
from triage.probing.probe import LocalProbe, Whose
from triage.watching import loop
from triage.watching.tails import Logs
from triage.watching.values import LogView, Options, Status

OPTIONS = Options(hang_time=2.0, period=0.4)
LONG = 6.0  # seconds of a phase; three times what would be a hang


def until_step(number: int) -> Callable[[Status], bool]:
    def reached(status: Status) -> bool:
        return status.state == "hung" or (status.step or 0) >= number

    return reached


@pytest.mark.parametrize("scenario", ["slow_checkpoint", "evaluation"])
def test_a_long_phase_is_told_and_not_called_hung(plain: Starter, tmp_path: Path, scenario: str) -> None:
    seen = watch(plain.start(scenario, tmp_path, seconds=LONG), OPTIONS, 40, until=until_step(12))
    assert seen.hung is None, seen.hung
    assert seen.last.step >= 12, "it went on"
    phase = next(told.status for _, told in seen.told if told.status.state == "phase")
    assert phase.words[0].startswith({"slow_checkpoint": "checkpoint for", "evaluation": "evaluation for"}[scenario])


def test_a_long_compilation(plain: Starter, tmp_path: Path) -> None:
    seen = watch(plain.start("compiling", tmp_path, seconds=LONG), OPTIONS, 40, until=until_step(3))
    assert seen.hung is None, seen.hung
    assert any("cc1plus at work" in word for _, told in seen.told for word in told.status.words)


def test_sleep_between_stages_that_write(plain: Starter, tmp_path: Path) -> None:
    seen = watch(plain.start("stages", tmp_path), OPTIONS, 6)
    assert seen.states == ["running"]


def test_a_job_that_ends(plain: Starter, tmp_path: Path) -> None:
    seen = watch(plain.start("finished", tmp_path), OPTIONS, 30)
    assert seen.states[-1] == "finished"
    assert seen.hung is None


def test_a_rank_that_is_started_again_is_not_dead(plain: Starter, tmp_path: Path) -> None:
    seen = watch(plain.start("restarting", tmp_path), OPTIONS, 6)
    assert seen.states == ["running"]


def test_all_ranks_asleep_are_hung_and_what_was_seen_is_said(plain: Starter, tmp_path: Path) -> None:
    seen = watch(plain.start("plain_asleep", tmp_path), OPTIONS, 30)
    assert seen.hung
    assert any("sleeps in clock_nanosleep" in word and "may be meant" in word for word in seen.hung.words)
    assert seen.hung.suspects == ()


def test_a_job_that_is_stopped_as_a_whole_is_suspended_until_it_goes_on(plain: Starter, tmp_path: Path) -> None:
    job = plain.start("stages", tmp_path)
    until_running(tmp_path)
    os.killpg(job, signal.SIGSTOP)
    seen = watch(job, OPTIONS, 4)
    assert seen.states[-1] == "suspended"
    (words,) = seen.last.words
    assert words.startswith("all of its 5 processes stopped by SIGSTOP (state T), for ")
    assert f"kill -CONT {job}" in seen.last.resume
    os.killpg(job, signal.SIGCONT)
    assert watch(job, OPTIONS, 2).states == ["running"]


def until_running(folder: Path) -> None:
    ends = time.monotonic() + 20
    while not list(folder.glob("stage_3_*")):
        assert time.monotonic() < ends
        time.sleep(0.05)


class Stuck(Logs):
    """Logs of a file system that does not answer any more."""

    def look(self, now: float) -> LogView:
        time.sleep(30)
        raise AssertionError


def test_logs_that_cannot_be_read_hold_nothing_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("step 1 loss 2.0\n")
    monkeypatch.setattr(loop, "_READING", 0.3)
    seen = Seen(lambda status: status.state == "hung")
    with subprocess.Popen(["sleep", "100"]) as job:
        probe = LocalProbe(reach.local(), Whose((job.pid,)))
        target = loop.Target("the job", probe, Stuck([str(tmp_path / "job.log")]))
        loop.Watcher(target, OPTIONS, seen, lambda: seen.is_over or time.monotonic() - seen.began > 20).run()
        job.kill()
    assert seen.hung
    assert "log not read: its file system does not answer" in seen.hung.words


FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.mark.skipif(not os.access(FREEZER, os.W_OK), reason="no freezer that we may use")
def test_a_frozen_group_is_suspended(plain: Starter, tmp_path: Path) -> None:
    group = FREEZER / f"triage-test-{os.getpid()}"
    group.mkdir()
    job = subprocess.Popen(["sleep", "100"])
    try:
        (group / "cgroup.procs").write_text(str(job.pid))
        (group / "freezer.state").write_text("FROZEN")
        seen = watch(job.pid, OPTIONS, 4)
        assert seen.states == ["suspended"]
        assert "freezer" in seen.last.words[0]
    finally:
        (group / "freezer.state").write_text("THAWED")
        job.kill()
        job.wait()
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)
