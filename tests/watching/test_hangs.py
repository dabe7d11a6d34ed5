"""Real ranks of torch over gloo that hang, each in its own way: noticed in time, with the right rank and cause."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.watching.conftest import Seen, Starter, watch
from triage.watching.values import Options, Status

pytestmark = pytest.mark.torch

OPTIONS = Options(hang_time=2.0, period=0.5)
PATIENCE = 30.0  # seconds; a busy machine takes its time to start


def hang(jobs: Starter, scenario: str, folder: Path, **more: object) -> Seen:
    return watch(jobs.start(scenario, folder, **more), OPTIONS, PATIENCE)


def check(seen: Seen, cause: str, *words: str) -> Status:
    """Noticed within two periods of the hang time, and only the odd rank is blamed, with what it does."""
    status = seen.hung
    assert status is not None, seen.states
    assert OPTIONS.hang_time <= status.quiet <= OPTIONS.hang_time + 2 * OPTIONS.period
    assert [(suspect.rank, suspect.cause) for suspect in status.suspects] == [(1, cause)]
    assert all(word in status.suspects[0].why for word in words), status.suspects[0].why
    assert status.step == 6
    return status


@pytest.mark.parametrize(
    ("scenario", "cause", "words"),
    [
        ("asleep", "asleep", ("sleeps in clock_nanosleep", "ranks 0,2-3 wait in futex")),
        ("c_call", "waits", ("pause", "ranks 0,2-3 wait in futex")),
        ("spinning", "busy", ("CPU", "ranks 0,2-3 wait in futex")),
        ("dead", "dead", ("has ended (exit code 1) while ranks 0,2-3 still live",)),
        ("dataloader", "workers", ("its 1 worker process", "sleeps in clock_nanosleep", "ranks 0,2-3 wait in futex")),
    ],
)
def test_the_rank_and_the_cause(
    torch_jobs: Starter, tmp_path: Path, scenario: str, cause: str, words: tuple[str, ...]
) -> None:
    check(hang(torch_jobs, scenario, tmp_path), cause, *words)


def test_a_stopped_rank_is_told_at_once_and_stays_suspended_until_it_goes_on(
    torch_jobs: Starter, tmp_path: Path
) -> None:
    """Well beyond the hang time, and though the logs were written a moment before."""
    job = torch_jobs.start("stopped", tmp_path)
    seen = watch(job, OPTIONS, PATIENCE, until=lambda status: status.state == "suspended")
    assert seen.last.words == ("stopped by SIGSTOP (state T): rank 1 of 4",)
    ((rank, cause, pid),) = [(one.rank, one.cause, one.pid) for one in seen.last.suspects]
    assert (rank, cause) == (1, "stopped")
    seen = watch(job, OPTIONS, 2.5 * OPTIONS.hang_time)
    assert seen.states == ["suspended"]
    assert [told.news for _, told in seen.told if told.news] == ["suspended"]
    assert pid is not None
    os.kill(pid, signal.SIGCONT)
    assert watch(job, OPTIONS, 3 * OPTIONS.period).last.state == "running"


def test_signs_of_life_are_no_progress(torch_jobs: Starter, tmp_path: Path) -> None:
    """A thread of each rank writes a line five times a second."""
    status = check(hang(torch_jobs, "heartbeats", tmp_path), "asleep")
    assert any("signs of life" in word for word in status.words)


def test_ranks_in_different_collectives_are_told_apart_by_their_stacks(torch_jobs: Starter, tmp_path: Path) -> None:
    """From outside all wait in the kernel's futex: nobody is blamed for that, and what is collected tells."""
    if not (shutil.which("py-spy") or Path(sys.executable).with_name("py-spy").exists()):
        pytest.skip("py-spy is not installed")
    pid = torch_jobs.start("other_collective", tmp_path)
    options = ["--hang-time", "2s", "--period", "0.5", "--until-hung", "--format", "json", "--collect", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "triage", "watch", "--pid", str(pid), *options],
        stdout=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    told = json.loads(done.stdout.splitlines()[-1])
    assert not told["problems"]
    assert any("all ranks alike" in word and "futex" in word for word in told["words"])
    assert told["diagnosis"]["failure_type"] == "collective-mismatch", told["diagnosis"]["root_cause"]
    assert [(suspect["rank"], suspect["cause"]) for suspect in told["suspects"]] == [(1, "stacks")]


def test_a_rank_in_state_d(torch_jobs: Starter, tmp_path: Path, frozen: str | None) -> None:
    """In a write to a frozen file system where one can be made; else as the parent of a vfork, which needs no right."""
    status = check(hang(torch_jobs, "blocked", tmp_path, frozen=frozen), "blocked", "state D")
    if frozen:
        assert "kernel_clone" not in status.suspects[0].why


@pytest.fixture
def frozen(tmp_path: Path) -> Iterator[str | None]:
    """A file system of its own in a file, frozen as soon as it is there."""
    image, place = tmp_path / "image", tmp_path / "mount"
    place.mkdir()
    image.write_bytes(b"\0" * (8 << 20))
    done = []

    def run(*argv: str) -> bool:
        try:
            return subprocess.run(argv, capture_output=True, timeout=20, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    if (
        os.getuid() == 0
        and run("mkfs.ext4", "-q", "-F", str(image))
        and run("mount", "-o", "loop", str(image), str(place))
    ):
        done.append(run("fsfreeze", "-f", str(place)))
    yield str(place) if done == [True] else None
    if done == [True]:
        run("fsfreeze", "-u", str(place))
    if done:
        run("umount", "-l", str(place))


def test_a_straggler_is_slow_and_not_hung(torch_jobs: Starter, tmp_path: Path) -> None:
    def is_slow(status: Status) -> bool:
        """Who it is shows a little after the first long step, on a busy machine."""
        return status.state == "hung" or (status.state == "slow" and bool(status.suspects))

    options = Options(hang_time=8.0, period=0.3)
    seen = watch(torch_jobs.start("straggler", tmp_path), options, PATIENCE, until=is_slow)
    assert seen.last.state == "slow", seen.last
    assert "times as long as before" in seen.last.words[0]
    assert [suspect.rank for suspect in seen.last.suspects] == [1]


def test_a_training_that_ends_was_never_hung(torch_jobs: Starter, tmp_path: Path) -> None:
    seen = watch(torch_jobs.start("training", tmp_path, steps=30), OPTIONS, PATIENCE)
    assert seen.hung is None
    assert seen.last.state == "finished"
