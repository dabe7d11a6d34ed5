"""Real processes without a rank in their environment, as multiprocessing starts them: who holds the others up, by pid or by its log."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.watching.conftest import Seen, Starter, watch
from triage.watching.values import Options, Status

OPTIONS = Options(hang_time=1.5, period=0.4)
PATIENCE = 30.0


def hang(jobs: Starter, folder: Path, odd: str, **more: object) -> tuple[int, Seen]:
    job = jobs.start("ring", folder, odd=odd, numbered=False, **more)
    return job, watch(job, OPTIONS, PATIENCE, until=lambda status: status.state in ("hung", "suspended"))


def surest(status: Status) -> tuple[int | None, str, int, str]:
    """Of the first suspect: rank, cause, pid and what is said of it. Beside it none but those whose logs end earlier."""
    first, *others = status.suspects
    assert all(other.cause == "behind" for other in others)
    return first.rank, first.cause, first.pid or 0, first.why


@pytest.mark.parametrize(
    ("odd", "state", "cause", "words"),
    [
        ("stop", "suspended", "stopped", "is stopped by a signal (SIGSTOP)"),
        ("die", "hung", "dead", "has ended (killed by SIGKILL) while 3 processes still live"),
        ("spin", "hung", "busy", "while 3 processes wait in anon_pipe_read"),
    ],
)
def test_the_odd_one_is_named_by_pid_and_program_and_never_the_launcher(
    plain: Starter, tmp_path: Path, odd: str, state: str, cause: str, words: str
) -> None:
    job, seen = hang(plain, tmp_path, odd)
    rank, found, pid, why = surest(seen.last)
    assert (seen.last.state, rank, found) == (state, None, cause)
    assert pid not in (0, job)
    assert f"pid {pid} (python" in why
    assert words.replace("anon_pipe", "pipe") in why.replace("anon_pipe", "pipe")


def test_ranks_are_numbered_by_the_logs_that_they_hold_open(plain: Starter, tmp_path: Path) -> None:
    """Those are read for their steps too."""
    job, seen = hang(plain, tmp_path, "stop", log=True)
    rank, cause, pid, _ = surest(seen.last)
    assert (rank, cause) == (1, "stopped")
    assert seen.last.words == ("stopped by SIGSTOP (state T): rank 1 of 4",)
    assert seen.last.step is not None
    os.kill(pid, signal.SIGCONT)
    assert watch(job, OPTIONS, 2.0).last.state == "running"


def test_workers_that_wait_for_work_at_one_queue_are_not_blamed(plain: Starter, tmp_path: Path) -> None:
    seen = watch(plain.start("workers", tmp_path, numbered=False), OPTIONS, PATIENCE)
    assert seen.hung
    assert seen.hung.suspects == ()


def test_one_that_was_killed_and_those_that_failed_for_it(plain: Starter, tmp_path: Path) -> None:
    """Though their launcher ends with code 0."""
    seen = watch(plain.start("failing", tmp_path), OPTIONS, PATIENCE)
    assert seen.last.state == "failed"
    assert seen.last.words[0].startswith("ended with an error: rank 1, pid ")
    assert "killed by SIGKILL; rank 0, pid" in seen.last.words[0]
    assert seen.last.words[1].startswith("the log says: rank ")
    assert seen.last.words[1].endswith("RuntimeError: Connection closed by peer")


def test_a_server_that_nobody_asks_is_idle_and_one_with_a_client_may_hang(plain: Starter, tmp_path: Path) -> None:
    import socket

    job = plain.start("server", tmp_path, world=1, numbered=False)
    seen = watch(job, OPTIONS, PATIENCE, until=lambda status: status.state in ("hung", "idle"))
    port = int((tmp_path / "port").read_text())
    assert seen.last.state == "idle"
    assert f"port {port}" in seen.last.words[0]
    with socket.create_connection(("127.0.0.1", port)):
        seen = watch(job, OPTIONS, PATIENCE, until=lambda status: status.state in ("hung", "idle"))
        assert seen.last.state == "hung"


def test_a_rank_that_listens_is_never_idle(plain: Starter, tmp_path: Path) -> None:
    job = plain.start("server", tmp_path, world=1)
    seen = watch(job, OPTIONS, PATIENCE, until=lambda status: status.state in ("hung", "idle"))
    assert seen.last.state == "hung"


def test_workers_that_are_ended_once_the_work_is_done_fail_no_job(plain: Starter, tmp_path: Path) -> None:
    """The one who started them ends well."""
    seen = watch(plain.start("ended_workers", tmp_path, numbered=False), OPTIONS, PATIENCE)
    assert (seen.last.state, seen.last.words[0]) == ("finished", "ended with exit code 0")
