"""A home on a disk that is full, or only to be read: what is there is read, and one cause is said once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.store.samples import ECC, HUNG
from triage import report
from triage.store.incidents import IncidentStore
from triage.store.values import Verdict

LOG = "".join(f"2026-01-01 12:00:{n:02} step {n} loss 2.5\n" for n in range(1, 31)) + (
    "2026-01-01 12:01:00 torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)
# Its own mounts are gone with the process that made them.
APART = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]


def _mounts() -> bool:
    try:
        return subprocess.run([*APART, "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


mounts = pytest.mark.skipif(not _mounts(), reason="this user may not mount")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    with IncidentStore.open(f"sqlite:///{folder}/home/triage.db") as store:
        for d in (ECC, HUNG):
            store.record(d, report.to_json(d))
        store.resolve(1, Verdict("confirmed", "ada"))
    yield folder / "home"
    for path in (folder, folder / "home"):
        path.chmod(0o700)


def mounted(home: Path, before: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of triage whose home is on a disk of its own. before: shell commands that make it so, in its folder."""
    disk, kept = home.parent, home.parent.with_name("kept")
    shutil.copytree(disk, kept)
    script = f'mount -t tmpfs -o size=8m none {disk} && cp -r {kept}/. {disk} && cd {disk} && {before} && cd {REPO} && exec "$@"'
    command = [*APART, script, "sh", sys.executable, "-m", "triage", *words]
    env = {
        "TRIAGE_HOME": str(home),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(REPO),
    }
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=120)


READ_ONLY = "mount -o remount,ro ."
BOUND = "mount --bind home home && mount -o remount,ro,bind home"  # of one device with the folder above it
FULL = "{ head -c 20m /dev/zero > filler 2>/dev/null || true; }"


@mounts
@pytest.mark.parametrize(
    ("before", "words"),
    [(READ_ONLY, "list"), (READ_ONLY, "show 1"), (READ_ONLY, "rules list"), (FULL, "list"), (FULL, "show 1")],
)
def test_what_can_only_be_read_is_read(home: Path, before: str, words: str) -> None:
    done = mounted(home, before, *(["incidents"] if words != "rules list" else []), *words.split())

    assert done.returncode == 0, done.stderr
    assert "cannot" not in done.stderr
    assert words == "rules list" or "ecc-error" in done.stdout


@mounts
@pytest.mark.parametrize("before", [READ_ONLY, FULL])
def test_what_can_only_be_read_is_backed_up(home: Path, tmp_path: Path, before: str) -> None:
    done = mounted(home, before, "incidents", "backup", str(tmp_path / "copy.db"))

    assert done.stdout.startswith(f"{tmp_path}/copy.db: 2 incidents"), done.stderr


@mounts
@pytest.mark.parametrize(
    ("before", "cause"),
    [
        (READ_ONLY, "{disk} is mounted read-only; set TRIAGE_HOME to a folder that can be written"),
        (BOUND, "{disk}/home is mounted read-only; set TRIAGE_HOME to a folder that can be written"),
        (FULL, "the disk {disk} is full; free some space, or set TRIAGE_HOME to a folder on another disk"),
    ],
    ids=["read-only", "bound read-only", "full"],
)
def test_one_cause_is_said_once(home: Path, tmp_path: Path, before: str, cause: str) -> None:
    (tmp_path / "job.log").write_text(LOG)

    done = mounted(home, before, "diagnose", str(tmp_path / "job.log"), "--format", "json")

    result = json.loads(done.stdout)
    told = "\n".join(result["missing"])
    assert (result["failure_type"], result["incident"]) == ("out-of-memory", None)
    assert told.count(cause.format(disk=home.parent)) == 1
    assert "the incident was not recorded" in told
    assert "is built anew" not in told
    assert "I/O error" not in told


@mounts
@pytest.mark.parametrize(
    ("before", "cause"),
    [
        (READ_ONLY, "{disk} is mounted read-only; set TRIAGE_HOME to a folder that can be written"),
        (FULL, "the disk {disk} is full; free some space, or set TRIAGE_HOME to a folder on another disk"),
    ],
)
def test_a_write_that_is_not_possible_says_why(home: Path, before: str, cause: str) -> None:
    done = mounted(home, before, "incidents", "resolve", "2", "--verdict", "rejected")

    assert done.returncode == 2
    assert done.stderr == f"triage: the incident database {home}/triage.db: {cause.format(disk=home.parent)}\n"


def test_a_folder_of_another_user_is_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write anywhere, so what the test's user may do is said here.
    monkeypatch.setattr("triage.disk.os.access", lambda *_: False)
    with IncidentStore.open(f"sqlite:///{home}/triage.db") as store:
        assert [s.id for s in store.list()] == [2, 1]
        with pytest.raises(Exception, match="attempt to write a readonly database; make it writable"):
            store.resolve(2, Verdict("rejected", "ada"))
