"""The epilog as Slurm starts it, with programs in the place of scontrol and triage."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.cluster import until
from triage.slurm.epilog import Epilog

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("setsid", "flock", "timeout"))), reason="setsid, flock or timeout is not there"
)
TASK = 'case $3 in 10*) of="ArrayJobId=100 ArrayTaskId=1 " ;; esac\nprintf "JobId=$3 ${of}JobName=x\\n   JobState=FAILED Reason=None\\n"'


class Site:
    """A node with the epilog; what the diagnosis does is a shell script."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.locks = folder, folder / "log", folder / "locks"
        self.settings = folder / "settings"
        self.locks.mkdir(mode=0o700)
        self.program("scontrol", TASK)

    def program(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run(self, job: str, body: str = 'echo "called $*"', **told: Any) -> None:
        self.program("triage", body)
        made = Epilog(str(self.folder / "triage"), str(self.settings), str(self.log), **told).script()
        path = self.folder / "epilog"
        path.write_text(made.replace("/run/triage-epilog", str(self.locks)))
        path.chmod(0o755)
        env = {"PATH": f"{self.folder}:{os.environ['PATH']}", "SLURM_JOB_ID": job}
        assert subprocess.run([path], env=env, check=False, capture_output=True, timeout=60).returncode == 0

    def told(self, words: str) -> str:
        until(lambda: self.log.exists() and words in self.log.read_text(), words, 30)
        return self.log.read_text()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_settings_are_taken_as_they_stand(site: Site, tmp_path: Path) -> None:
    url, notify = "postgresql://u:p$4w@h/db?a=1&b=`id`", f"slack:https://x;touch {tmp_path}/PWNED"
    site.settings.write_text(
        f"# ours\r\nTRIAGE_DATABASE_URL={url}\n\r\nTRIAGE_NOTIFY={notify}\nTRIAGE_A='b c'\r\nPPID=1\nif then (\nTRIAGE_Z=last"
    )
    log = site.run("4242", 'echo "$* :$TRIAGE_DATABASE_URL:$TRIAGE_NOTIFY:$TRIAGE_A:$TRIAGE_Z:"') or site.told("ended")
    assert f"diagnose --job 4242 --quiet --notify settings :{url}:{notify}:b c:last:" in log
    assert f"line 7 of {site.settings} is not NAME=value" in log
    assert log.count("is not NAME=value") == 1
    assert not (tmp_path / "PWNED").exists()


def test_what_triage_says_on_stderr_is_in_the_log(site: Site) -> None:
    site.run("4242", "echo 'triage: cannot reach the database' >&2; exit 2")
    assert "triage: cannot reach the database\n" in site.told("ended with 2")


def test_tasks_are_diagnosed_once_and_what_a_killed_one_left_mutes_none(site: Site) -> None:
    (site.locks / "array.100").mkdir()
    (site.locks / "tasks.100").touch()
    site.run("106", gather=1)
    site.run("107", gather=1)
    assert site.told("ended with 0").count("called diagnose --job 100 --quiet") == 1
    until(lambda: not list(site.locks.glob("waiting.*")), "the end of both", 30)
    assert site.log.read_text().count("called") == 1
    assert not (site.locks / "tasks.100").exists()


def test_no_more_than_so_many_jobs_wait_at_a_time(site: Site) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    for number in range(3):
        (site.locks / f"waiting.{number}.{gone.pid}").touch()
    site.run("41", waiting=1)
    site.told("called diagnose --job 41 --quiet")
    (site.locks / f"waiting.x.{os.getpid()}").touch()
    site.run("42", waiting=1)
    assert "1 others wait for a diagnosis; if this job failed, run: " in site.told("diagnose --job 42")
    time.sleep(0.3)
    assert "called diagnose --job 42" not in site.log.read_text()
