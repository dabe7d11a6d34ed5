"""`triage watch`, run as a user runs it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

STILL = ["--period", "0.3", "--hang-time", "1s", "--no-collect"]


def triage(*words: str, path: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "triage", *words],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, **env, **({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})},
    )


def events(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as job:
        yield job
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)


def test_a_hang_is_code_1_and_each_change_one_object(sleeper: subprocess.Popen[bytes]) -> None:
    done = triage("watch", "--pid", str(sleeper.pid), *STILL, "--until-hung", "--format", "json")
    assert (done.returncode, done.stderr) == (1, "")
    first, last = events(done.stdout)[0], events(done.stdout)[-1]
    assert (first["state"], last["state"], last["news"]) == ("running", "hung", "hung")
    assert last["schema"] == "triage.watch/1"
    assert last["quiet_seconds"] >= last["limit_seconds"] == 1.0
    assert last["collected"] is None


def test_a_job_that_ends_is_code_0() -> None:
    with subprocess.Popen(["sleep", "3"]) as job:
        done = triage("watch", "--pid", str(job.pid), "--period", "0.3", "--no-collect")
    assert done.returncode == 0
    assert "finished" in done.stdout.splitlines()[-1]


def test_logs_alone_that_are_silent_since_long(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("".join(f"step {n} loss {1 / n:.3f}\n" for n in range(1, 20)))
    os.utime(log, (time.time() - 3600,) * 2)
    done = triage("watch", "--logs", str(log), "--once", "--period", "0.3", "--no-collect", "--format", "json")
    assert done.returncode == 1
    last = events(done.stdout)[-1]
    assert last["step"] == 19
    assert 3500 < last["quiet_seconds"] < 3700


def test_the_platforms_variable_sets_the_hang_time(sleeper: subprocess.Popen[bytes]) -> None:
    def limit(**env: str) -> float:
        done = triage("watch", "--pid", str(sleeper.pid), "--once", "--period", "0.1", "--format", "json", **env)
        assert done.returncode == 0, done.stderr
        return float(events(done.stdout)[0]["limit_seconds"])

    assert limit() == 1800
    assert limit(MA_HANG_DETECT_TIME="7") == 420
    assert limit(MA_HANG_DETECT_TIME="7", TRIAGE_HANG_MINUTES="9") == 540


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to watch; give --pid PID, --job ID, --pod NAME or --logs FILE"),
        (["--pid", "99999999"], "there is no process 99999999 on this machine"),
        (["--pid", "-1"], "there is no process -1 on this machine"),
        (["--logs", "/no/such.log"], "/no/such.log: no such file"),
        (["--logs", "/tmp"], "/tmp is a folder"),
        (["--logs", "-"], "- is no file; for a pipe: job 2>&1 | tee job.log"),
        (["--pid", "1", "--job", "2"], "--pid and --job exclude each other"),
        (["--pid", "1", "--again", "5", "--no-collect"], "--again and --no-collect exclude each other"),
        (["--job", "x y"], "'x y' is no job id of Slurm"),
        (["--pid", "1", "--hang-time", "soon"], "--hang-time is 'soon'; give a span such as 30m, 90s or 2h"),
        (["--pid", "1", "--period", "0"], "--period is '0'"),
        (
            ["--check-heartbeat", "/no/such"],
            "/no/such: No such file or directory; is a watcher started with --heartbeat",
        ),
        (["--pid", "1", "--heartbeat", "/no/such/dir/beat"], "give --heartbeat a file that can be written"),
    ],
)
def test_what_cannot_be_watched_is_one_line_and_code_2(words: list[str], said: str) -> None:
    done = triage("watch", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_watcher_that_dies_is_noticed(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    beat = tmp_path / "beat.json"
    command = [sys.executable, "-m", "triage", "watch", "--pid", str(sleeper.pid), "--period", "0.3", "--heartbeat"]
    with subprocess.Popen([*command, str(beat)], stdout=subprocess.DEVNULL) as watcher:
        ends = time.monotonic() + 30
        while not beat.exists() or '"running"' not in beat.read_text():
            assert time.monotonic() < ends
            time.sleep(0.05)
        alive = triage("watch", "--check-heartbeat", str(beat))
        assert (alive.returncode, "is alive" in alive.stdout) == (0, True)
        watcher.kill()
    dead = triage("watch", "--check-heartbeat", str(beat))
    assert (dead.returncode, "is dead" in dead.stdout) == (1, True)


def test_a_watcher_that_is_told_to_end_says_so(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    beat = tmp_path / "beat.json"
    command = [sys.executable, "-m", "triage", "watch", "--pid", str(sleeper.pid), "--period", "60", "--heartbeat"]
    with subprocess.Popen([*command, str(beat)], stdout=subprocess.DEVNULL) as watcher:
        ends = time.monotonic() + 30
        while not beat.exists() or '"running"' not in beat.read_text():
            assert time.monotonic() < ends
            time.sleep(0.05)
        began = time.monotonic()
        watcher.terminate()
        assert watcher.wait(20) == 128 + signal.SIGTERM
        assert time.monotonic() - began < 10
    assert triage("watch", "--check-heartbeat", str(beat)).returncode == 1


def test_once_hung_it_collects_and_diagnoses(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    done = triage(
        "watch",
        "--pid",
        str(sleeper.pid),
        *STILL[:4],
        "--until-hung",
        "--collect",
        str(tmp_path),
        "--again",
        "0",
        "--format",
        "json",
    )
    assert done.returncode == 1
    last = events(done.stdout)[-1]
    assert Path(last["collected"]).parent == tmp_path
    assert (Path(last["collected"]) / "manifest.json").is_file()
    hung = next(event for event in events(done.stdout) if event["state"] == "hung")
    assert (hung["news"], hung["collected"], hung["next"]) == ("hung", None, None), (
        "told at once, and then what was found"
    )
    assert (last["news"], last["since"]) == ("cause", hung["since"])
    assert last["time"] > hung["time"], "it was known only when it was looked into"
    assert last["next"] == f"triage hang {last['collected']}"
    assert last["diagnosis"] or last["problems"]


def test_people_are_told_once_a_hang_and_when_it_is_over(tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    with subprocess.Popen(["sleep", "600"]) as job:
        command = [sys.executable, "-m", "triage", "watch", "--pid", str(job.pid), *STILL, "--quiet"]
        with subprocess.Popen([*command, "--notify", f"command:tee -a {told}"], stdout=subprocess.DEVNULL) as watcher:
            ends = time.monotonic() + 60
            while not told.exists() or not told.read_text():
                assert time.monotonic() < ends
                time.sleep(0.05)
            time.sleep(1.5)
            job.kill()
            job.wait()
            assert watcher.wait(60) == 1
    first, last = (json.loads(text) for text in told.read_text().replace("}{", "}\n{").splitlines())
    who = f"pid {job.pid} (asleep)"
    assert (first["title"], first["state"]) == (f"pid {job.pid} HUNG: {who}", "hung")
    assert "no progress for" in first["fields"]["seen"]
    assert (last["title"], last["state"], last["is_update"]) == (f"pid {job.pid} ended with an error", "failed", True)


def test_a_hang_that_is_over_before_its_cause_is_known_wakes_nobody(tmp_path: Path) -> None:
    """The second look at the stacks would come after ten seconds; the job goes on after five."""
    told, script = (
        tmp_path / "told.jsonl",
        "sleep 5; while :; do head -c 3000000 /dev/zero | cat >/dev/null; sleep 0.2; done",
    )
    with subprocess.Popen(["bash", "-c", script], start_new_session=True) as job:
        words = [*STILL[:4], "--collect", str(tmp_path / "hangs"), "--notify", f"command:tee -a {told}"]
        command = [sys.executable, "-m", "triage", "watch", "--pid", str(job.pid), *words, "--format", "json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
            assert watcher.stdout
            states = []
            while states[-2:] != ["hung", "running"]:
                states.append(json.loads(watcher.stdout.readline())["state"])
            watcher.terminate()
            assert watcher.wait(30) == 143
        os.killpg(job.pid, signal.SIGKILL)
    assert not told.exists()
    assert list((tmp_path / "hangs").iterdir()) == [], "nothing of what was broken off is left"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_collects_leaves_nothing_behind(
    sleeper: subprocess.Popen[bytes], tmp_path: Path, number: signal.Signals
) -> None:
    command = [
        sys.executable,
        "-m",
        "triage",
        "watch",
        "--pid",
        str(sleeper.pid),
        *STILL[:4],
        "--collect",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, text=True) as watcher:
        assert watcher.stdout
        while "collecting" not in watcher.stdout.readline():
            pass
        ends = time.monotonic() + 30
        while not (on_node := collectors(sleeper.pid)):
            assert time.monotonic() < ends
            time.sleep(0.05)
        os.killpg(watcher.pid, number)
        assert watcher.wait(30) == 128 + number
        assert watcher.stdout.read() == ""
    assert collectors(sleeper.pid) == [], on_node
    assert list(tmp_path.iterdir()) == []


def collectors(pid: int) -> list[str]:
    """What collects from this process on its node."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_text().split("\0")
                if words[1:4] == ["-I", "-S", "-"] and f'"pid": {pid},' in words[4]:
                    found.append(entry.name)
    return found


def test_a_channel_that_does_not_answer_holds_nothing_up(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """A command that was begun is left to end, as it may be telling somebody."""
    beat, noted = tmp_path / "beat.json", tmp_path / "pid"
    words = [*STILL, "--heartbeat", str(beat), "--notify", f"command:sh -c 'echo $$ >{noted}; exec sleep 600'"]
    command = [sys.executable, "-m", "triage", "watch", "--pid", str(sleeper.pid), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout
        while "HUNG" not in watcher.stdout.readline():
            pass
        told = time.time()
        ends = time.monotonic() + 20
        while json.loads(beat.read_text())["time"] < told + 1.0:
            assert time.monotonic() < ends
            time.sleep(0.1)
        began = time.monotonic()
        watcher.terminate()
        watcher.terminate()  # as those who end a group do: it is one signal
        assert watcher.wait(20) == 143
        assert time.monotonic() - began < 15
        assert watcher.stderr
        assert "1 message was not sent to the end" in watcher.stderr.read()
    os.kill(int(noted.read_text()), signal.SIGKILL)
    assert not json.loads(beat.read_text())["ended"]


def test_a_script_that_watches_itself_does_not_take_its_watcher_for_the_job(tmp_path: Path) -> None:
    """Both print to one file, and what is told of the hang is no progress of the job."""
    watcher = f"{sys.executable} -m triage watch --pid $$ {' '.join(STILL)} & echo loading; exec sleep 600"
    log = tmp_path / "job.log"
    with log.open("w") as out, subprocess.Popen(["sh", "-c", watcher], stdout=out, start_new_session=True) as job:
        ends = time.monotonic() + 60
        while "HUNG" not in log.read_text():
            assert time.monotonic() < ends
            time.sleep(0.1)
        time.sleep(2.5)
        os.killpg(job.pid, signal.SIGKILL)
    text = log.read_text()
    assert text.count("HUNG") == 1, text
    assert "running" not in text.partition("HUNG")[2]


def test_how_it_ended_is_told_and_what_to_do(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    script = "read go; echo 'RuntimeError: the mesh is empty' >&2; exit 3"
    with log.open("w") as err, subprocess.Popen(["sh", "-c", script], stderr=err, stdin=subprocess.PIPE) as job:
        words = ["--period", "0.3", "--no-collect", "--format", "json"]
        command = [sys.executable, "-m", "triage", "watch", "--pid", str(job.pid), *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
            assert watcher.stdout
            watcher.stdout.readline()
            job.communicate(b"\n")
            last = events(watcher.stdout.read())[-1]
            assert watcher.wait(30) == 1
    assert (last["state"], last["news"], last["next"]) == ("failed", "failed", f"triage diagnose {log}")
    assert last["words"][-1] == "the log says: RuntimeError: the mesh is empty"


def test_one_that_had_ended_when_we_came(tmp_path: Path) -> None:
    """Nobody took note of it yet."""
    with subprocess.Popen(["sh", "-c", "exit 3"]) as job:
        os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT)
        done = triage("watch", "--pid", str(job.pid), "--format", "json")
    assert done.returncode == 1
    assert events(done.stdout)[-1]["words"] == [f"ended with an error: pid {job.pid} (sh): exit code 3"]


def test_a_job_of_slurm_where_there_is_no_slurm(tmp_path: Path) -> None:
    done = triage("watch", "--job", "4711", PATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("triage: job 4711 cannot be watched: Slurm does not answer")
    assert len(done.stderr.splitlines()) == 1


SCONTROL = """\
JobId=4711 JobName=train
   UserId=u(1) GroupId=g(1)
   JobState={state} Reason={reason} Dependency=(null)
   NodeList={nodes}
   StdOut=/no/such/out
"""


def slurm(folder: Path, state: str, reason: str = "None", nodes: str = "n1") -> str:
    """Commands of Slurm: no accounting; srun runs here what it should run on the node."""
    (folder / "job").write_text(SCONTROL.format(state=state, reason=reason, nodes=nodes))
    for name, script in {
        "sacct": "echo 'Slurm accounting storage is disabled' >&2; exit 1",
        "scontrol": f"cat {folder}/job",
        "srun": f'echo "$@" >> {folder}/srun.log; while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    }.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return str(folder)


def test_a_slurm_job_by_steps_beside_its_own(tmp_path: Path) -> None:
    env = {**os.environ, "SLURM_JOB_ID": "4711", "SLURM_PROCID": "0"}
    with subprocess.Popen(["sleep", "600"], env=env) as job:
        try:
            done = triage(
                "watch", "--job", "4711", *STILL, "--until-hung", "--format", "json", path=slurm(tmp_path, "RUNNING")
            )
        finally:
            job.kill()
    assert done.returncode == 1, done.stderr
    last = events(done.stdout)[-1]
    assert last["state"] == "hung"
    assert "--jobid=4711 --overlap --gres=gpu:0" in (tmp_path / "srun.log").read_text()


@pytest.mark.parametrize(
    ("state", "reason", "told"),
    [("PENDING", "Priority", "queued"), ("SUSPENDED", "None", "suspended"), ("PREEMPTED", "None", "preempted")],
)
def test_what_slurm_says_of_the_job(tmp_path: Path, state: str, reason: str, told: str) -> None:
    done = triage(
        "watch", "--job", "4711", "--once", "--period", "0.1", "--format", "json", path=slurm(tmp_path, state, reason)
    )
    assert done.returncode == 0, done.stderr
    assert events(done.stdout)[0]["state"] == told
    assert state in events(done.stdout)[0]["words"][0]


def test_a_node_that_does_not_answer_is_no_hang(tmp_path: Path) -> None:
    path = slurm(tmp_path, "RUNNING")
    (tmp_path / "srun").write_text("#!/bin/sh\necho 'srun: error: Unable to contact slurmd' >&2; exit 1\n")
    done = triage("watch", "--job", "4711", "--once", *STILL, "--format", "json", path=path)
    assert done.returncode == 2
    assert "n1 is not seen: srun: error: Unable to contact slurmd" in done.stderr


KUBECTL = """#!/bin/sh
case "$*" in
  get*) echo '{{"status": {status}}}' ;;
  exec*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
esac
"""


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ('{"phase": "Pending"}', "queued"),
        ('{"phase": "Running"}', "running"),
        ('{"phase": "Failed", "reason": "Evicted"}', "preempted"),
        ('{"phase": "Succeeded"}', "finished"),
    ],
)
def test_a_pod(tmp_path: Path, status: str, told: str) -> None:
    (tmp_path / "kubectl").write_text(KUBECTL.format(status=status))
    (tmp_path / "kubectl").chmod(0o755)
    done = triage("watch", "--pod", "train-0", "--once", "--period", "0.1", "--format", "json", path=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert events(done.stdout)[0]["state"] == told


def test_a_pod_is_named_as_everywhere(tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "no pod: $*" >&2; exit 1\n')
    (tmp_path / "kubectl").chmod(0o755)
    assert "no pod: get pod train-0 -n ml -o json" in triage("watch", "--pod", "ml/train-0", path=str(tmp_path)).stderr
    assert "'-w' is no pod of Kubernetes" in triage("watch", "--pod", "-w").stderr
