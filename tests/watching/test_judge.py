"""The judge alone, round by round, with a clock of our own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triage.probing.values import Device, NodeView, Process
from triage.watching.judge import Judge
from triage.watching.limits import learned
from triage.watching.loop import Notices
from triage.watching.values import LogView, Options, Round, Scheduled, Status, Suspect

OPTIONS = Options(hang_time=1800, period=60)
UP = Scheduled("running", "Slurm: RUNNING")


class Job:
    """Ranks of two nodes, and what they do in a round."""

    def __init__(self, options: Options = OPTIONS, ranks: int = 4) -> None:
        self.judge = Judge(options)
        self.now = 1000.0
        self.log: LogView | None = None
        self.scheduled = Scheduled()
        self.hidden: dict[str, str] = {}
        self.devices: dict[str, list[float | None]] = {}
        self.throttled = ""
        self.ranks = {
            rank: Process(
                f"n{rank // 2}", 100 + rank, 1, 5, "python", "python train.py", "S", "futex_do_wait", "202",
                main_cpu=0.0, threads=9, io=(0, 0, 0, 0), main_io=(0, 0, 0, 0), ranks={"RANK": rank},
            )
            for rank in range(ranks)
        }  # fmt: skip

    def move(self, rank: int, *, main: int = 0, other: int = 0, cpu: float = 0.0, **changes: object) -> None:
        old = self.ranks[rank]
        assert old.io and old.main_io
        io = (old.io[0], old.io[1] + main + other, 0, 0)
        main_io = (old.main_io[0], old.main_io[1] + main, 0, 0)
        self.ranks[rank] = replace(
            old, io=io, main_io=main_io, cpu=old.cpu + cpu, main_cpu=(old.main_cpu or 0) + cpu, **changes
        )

    def look(self, seconds: float = 60.0) -> Status:
        self.now += seconds
        views = []
        for node in sorted({process.node for process in self.ranks.values()} | set(self.hidden)):
            if node in self.hidden:
                views.append(NodeView(node, problem=self.hidden[node]))
                continue
            mine = tuple(process for process in self.ranks.values() if process.node == node)
            devices = None
            if node in self.devices and self.judge.wants_more:
                devices = tuple(
                    Device(node, "GPU", str(n), util, 90.0 + n, throttled=self.throttled)
                    for n, util in enumerate(self.devices[node])
                )
            views.append(NodeView(node, mine, devices))
        return self.judge.take(Round(self.now, tuple(views), self.scheduled, self.log, True))


def silence(job: Job, minutes: int) -> Status:
    status = job.look()
    for _ in range(minutes):
        status = job.look()
    return status


def test_hung_after_the_hang_time_and_not_before() -> None:
    job = Job()
    assert silence(job, 29).state == "running"
    assert job.look().state == "hung"


def test_bytes_in_bulk_are_progress_whoever_moves_them() -> None:
    job = Job()
    job.look()
    for _ in range(60):
        job.move(0, other=8 << 20)
        assert job.look().state == "running"


def test_a_few_bytes_of_a_thread_beside_the_main_one_are_none() -> None:
    job = Job()
    job.look()
    status = None
    for _ in range(31):
        for rank in job.ranks:
            job.move(rank, other=3000, cpu=60)
        status = job.look()
    assert status and status.state == "hung"
    assert any("CPU" in word for word in status.words)


def test_a_few_bytes_of_the_ranks_themselves_are_progress_until_they_are_few_beside_what_is_usual() -> None:
    job = Job()
    job.look()
    for _ in range(40):
        job.move(0, main=2000)
        assert job.look().state == "running"
    for _ in range(29):
        job.move(0, main=100)
        assert job.look().state == "running"
    job.move(0, main=100)
    job.look()
    assert job.look().state == "hung"


def test_a_gpu_that_changes_works_and_one_that_does_not_hangs() -> None:
    job = Job()
    job.devices = {"n0": [97.0, 40.0], "n1": [100.0, 100.0]}
    job.look()
    for minute in range(120):
        job.devices["n0"][1] = 40.0 + 20 * (minute % 3)
        assert job.look().state == "running"
    job.devices["n0"][1] = 100.0
    status = silence(job, 45)
    assert status.state == "hung"
    assert any(word.endswith(": full without change, at 90 to 91 W") for word in status.words), status.words


def test_a_gpu_without_a_reading_is_not_idle() -> None:
    job = Job()
    job.devices = {"n0": [None]}
    status = silence(job, 31)
    assert status.state == "hung"
    assert not any("idle" in word for word in status.words)


def test_a_throttled_gpu_is_slow() -> None:
    job = Job()
    job.devices, job.throttled = {"n0": [99.0]}, "hardware thermal"
    job.look()
    job.move(0, main=100)
    status = job.look()
    assert (status.state, status.words[0]) == ("slow", "GPU 0 on n0 is held back: hardware thermal")
    job.devices["n0"] = []  # its readings end
    for _ in range(30):
        job.move(0, main=10**9)
        status = job.look()
    assert status.state == "running"


def test_a_rank_that_died_is_told_before_a_gpu_that_is_slow() -> None:
    job = Job()
    job.devices, job.throttled = {"n0": [99.0]}, "hardware thermal"
    job.look()
    del job.ranks[3]
    job.move(0, main=10**9)
    status = job.look()
    assert (status.state, [(s.rank, s.cause) for s in status.suspects]) == ("slow", [(3, "dead"), (None, "throttled")])


def test_a_watcher_that_slept_has_seen_no_silence() -> None:
    """Two hours in which we were stopped, or the machine was: one look later the job is not called hung."""
    job = Job()
    silence(job, 5)
    assert job.look(7200).state == "running"
    assert silence(job, 15).state == "running"


def test_a_node_that_is_not_seen_is_no_hang_and_no_dead_rank() -> None:
    job = Job()
    silence(job, 3)
    job.hidden = {"n1": "no answer within 30 s"}
    job.ranks = {rank: process for rank, process in job.ranks.items() if rank < 2}
    status = silence(job, 60)
    assert status.state != "hung"
    assert "n1 is not seen: no answer within 30 s" in status.words
    assert status.suspects == ()


def test_nobody_is_seen() -> None:
    job = Job()
    job.hidden = {"n0": "gone", "n1": "gone"}
    job.ranks = {}
    assert job.look().state == "unseen"


@pytest.mark.parametrize(
    ("changes", "cause", "word"),
    [
        ({"state": "D", "wchan": "rpc_wait_bit_killable"}, "blocked", "rpc_wait_bit_killable"),
        ({"state": "t"}, "stopped", "a debugger"),
        ({"wchan": "hrtimer_nanosleep"}, "asleep", "clock_nanosleep"),
        ({"wchan": "", "call": "230"}, "asleep", "clock_nanosleep"),
        ({"wchan": "unix_stream_read_generic"}, "waits", "unix_stream_read_generic"),
        ({"wchan": "", "state": "R", "call": ""}, "busy", "CPU"),
    ],
)
def test_the_rank_that_is_otherwise(changes: dict[str, str], cause: str, word: str) -> None:
    job = Job()
    job.move(2, **changes)
    status = silence(job, 31)
    assert [(s.rank, s.node, s.cause) for s in status.suspects] == [(2, "n1", cause)]
    assert word in status.suspects[0].why


def test_when_all_spin_the_one_that_does_not_is_odd() -> None:
    """NCCL's waits spin."""
    job = Job()
    job.look()
    status = None
    for _ in range(31):
        for rank in (0, 1, 3):
            job.move(rank, cpu=60, wchan="", state="R", call="")
        status = job.look()
    assert status and [s.rank for s in status.suspects] == [2]


def test_two_against_two_blame_nobody_without_cause() -> None:
    job = Job()
    for rank in (0, 1):
        job.move(rank, wchan="pipe_read")
    assert silence(job, 31).suspects == ()


def test_a_rank_that_died_and_one_that_never_came() -> None:
    job = Job(ranks=6)
    del job.ranks[4]
    silence(job, 3)
    del job.ranks[1]
    status = silence(job, 31)
    assert [(s.rank, s.cause) for s in status.suspects] == [(1, "dead"), (4, "dead")]
    assert "pid 101" in status.suspects[0].why


def test_what_a_node_did_while_it_was_not_seen_is_not_of_the_moment() -> None:
    """A few bytes a minute are none the more for having been counted late."""
    job = Job()
    for _ in range(8):
        for rank in job.ranks:
            job.move(rank, main=100_000)
        job.look()

    def stall(looks: int) -> Status:
        for _ in range(looks):
            job.move(2, main=9_000)
            status = job.look()
        return status

    stall(20)
    job.hidden["n1"] = "ssh could not reach it"
    stall(10)
    job.hidden.clear()
    assert stall(12).state == "hung"


def test_what_comes_to_the_job_dead_is_no_progress() -> None:
    job = Job()
    silence(job, 20)
    job.ranks[9] = replace(job.ranks[0], pid=900, state="Z", ranks={}, io=(10**9,) * 4, exit=0)
    assert silence(job, 12).state == "hung"


def test_ranks_of_a_node_that_was_never_seen_are_not_dead() -> None:
    job = Job(ranks=6)
    job.log = LogView("train", steps={0: 41}, quiet=2000, said="step 41", trained=True, limit=9)
    for rank in (2, 3):
        del job.ranks[rank]
    job.hidden["n1"] = "ssh could not reach it"
    assert "n1 is not seen" in " ".join((status := silence(job, 31)).words)
    assert status.suspects == ()
    job.hidden.clear()
    assert {s.rank for s in silence(job, 31).suspects} == {2, 3}


def test_the_log_says_which_rank_is_behind() -> None:
    job = Job()
    job.log = LogView("train", steps={0: 41, 1: 41, 2: 40, 3: 41}, quiet=2000, said="step 41", trained=True, limit=9)
    status = silence(job, 31)
    assert [(s.rank, s.cause) for s in status.suspects] == [(2, "behind")]
    assert "last steps: 40 on rank 2; 41 on rank 0-1,3" in status.words


def test_the_jobs_own_history_may_ask_for_more_patience() -> None:
    job = Job()
    for quiet in range(0, 3300, 60):
        job.log = LogView("checkpoint", quiet=quiet, limit=3600, trained=True)
        assert job.look().state != "hung", quiet
    job.log = LogView("checkpoint", quiet=3660, limit=3600, trained=True)
    silence(job, 10)
    assert job.look().state == "hung"


def test_where_steps_are_known_a_few_bytes_are_no_progress() -> None:
    job = Job()
    job.look()
    for quiet in range(0, 1860, 60):
        job.move(0, main=900)
        job.log = LogView("train", quiet=quiet, limit=100, trained=True, steps={-1: 7})
        status = job.look()
        assert status.state == ("hung" if quiet >= 1800 else "running"), quiet


def test_what_one_rank_moves_steadily_itself_is_progress_whatever_its_log_says() -> None:
    """Sleep between stages, each of which writes some tens of kilobytes."""
    job = Job()
    job.look()
    for quiet in range(0, 7200, 60):
        job.move(1, main=100_000, wchan="hrtimer_nanosleep")
        job.log = LogView("train", quiet=quiet, limit=100, trained=True, steps={-1: 7})
        assert job.look().state == "running", quiet


def test_what_the_scheduler_says_goes_first() -> None:
    job = Job()
    silence(job, 31)
    job.scheduled = Scheduled("suspended", "Slurm: SUSPENDED")
    assert job.look().state == "suspended"
    job.scheduled, job.ranks = UP, {}
    assert job.look().state == "unseen"


def test_a_suspended_job_says_what_lets_it_go_on_and_later_for_how_long_and_who_waits() -> None:
    job = Job()
    silence(job, 2)
    job.move(2, state="T")
    first = job.look()
    assert (first.state, first.words) == ("suspended", ("stopped by SIGSTOP (state T): rank 2 of 4",))
    assert first.resume == "see who stopped it (scheduler, a person); on n1: kill -CONT 102 goes on"
    late = silence(job, 29)
    assert late.words == (
        "stopped by SIGSTOP (state T): rank 2 of 4, for 30 min",
        "ranks 0-1,3 wait for it: no progress for 33 min",
    )
    assert late.resume == first.resume
    job.move(2, state="S")
    assert job.look().resume == ""
    job.move(2, state="T")
    assert job.look().held == 0.0


def test_nobody_waits_for_a_stopped_rank_while_the_others_move() -> None:
    job = Job()
    silence(job, 2)
    job.move(2, state="T")
    for _ in range(31):
        job.move(0, main=1_000_000)
        status = job.look()
    assert status.words == ("stopped by SIGSTOP (state T): rank 2 of 4, for 30 min",)


def test_a_signal_lets_no_frozen_or_traced_job_go_on() -> None:
    job = Job()
    for rank in job.ranks:
        job.move(rank, frozen=True)
    assert "once its control group is thawed" in job.look().resume
    for rank in job.ranks:
        job.move(rank, frozen=False, state="t")
    job.look()
    assert "grep TracerPid /proc/100/status" in silence(job, 2).resume


def test_a_whole_new_run_of_fewer_ranks_has_no_dead() -> None:
    job = Job()
    silence(job, 3)
    job.ranks = {
        rank: replace(process, pid=process.pid + 500, start=90_000) for rank, process in job.ranks.items() if rank < 3
    }
    status = silence(job, 40)
    assert status.state == "hung"
    assert status.suspects == ()


def test_io_that_is_not_readable_is_said_and_is_no_hang() -> None:
    job = Job()
    for rank in job.ranks:
        job.ranks[rank] = replace(job.ranks[rank], io=None, main_io=None)
    status = silence(job, 60)
    assert status.state == "unseen"
    assert any("not readable: watch as the job's user or as root" in word for word in status.words)


def test_limits_are_learned_from_median_and_spread() -> None:
    assert learned([10.0, 10.0]) == 0.0
    assert learned([10.0] * 50) == 20.0
    assert learned([10.0] * 50 + [100.0]) == 200.0, "twice the longest that was right"
    assert learned([8.0, 9.0, 10.0, 11.0, 12.0]) == pytest.approx(10 + 10 * 1.4826)


def test_news_once_a_hang_and_again_on_change() -> None:
    notices = Notices(hang_time=1800)
    one = Status("hung", suspects=(Suspect("dead", "", 1),))
    two = Status("hung", suspects=(Suspect("dead", "", 2),))
    running = Status("running")
    said = [notices.due(s) for s in (running, one, one, two, two, running, running, one)]
    assert said == [None, "hung", None, "suspects changed", None, "moving again", None, "hung"]
    flickering = Notices(1800)
    said = [flickering.due(s) for s in (one, two, one, two, Status("hung"), one)]
    assert said == ["hung", "suspects changed", None, None, None, None]
    assert flickering.standing
    assert [flickering.due(Status("failed")), Notices(1800).due(Status("failed"))] == ["failed", "failed"]
    assert [notices.due(Status("finished")), notices.due(Status("finished"))] == ["ended", None]
    patient = Notices(1800)
    said = [patient.due(Status("suspended", held=seconds)) for seconds in (0.0, 1799.0, 1800.0, 1900.0)]
    assert said == [None, None, "suspended", None]


def test_what_is_said_of_a_suspect_is_said_once_and_the_dead_do_not_do_what_the_living_do() -> None:
    alone = Job(ranks=1)
    alone.move(0, wchan="hrtimer_nanosleep")
    status = silence(alone, 31)
    (suspect,) = status.suspects
    assert (status.state, suspect.cause) == ("hung", "asleep")
    assert suspect.why not in status.words
    job = Job()
    silence(job, 2)
    del job.ranks[2]
    words = silence(job, 31).words
    assert any(word.startswith("ranks 0-1,3 alike: each waits in futex") for word in words)
