"""A follower that is killed at any moment and started again writes what one writes that nobody disturbed."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import REPO

RETRY = """4: Traceback (most recent call last):
4:   File "b.py", line 7, in get
4:     open()
4: OSError: not there, <object at 0x{n}>"""


def start(out: Path, until_idle: float, file: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.following.child", str(out), "json", str(until_idle), str(file)],
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )


def committed(out: Path) -> float:
    state = out.with_name("out.state")
    return state.stat().st_mtime if state.exists() else 0.0


def lines(chance: random.Random, first: int, count: int) -> bytes:
    kinds = (
        "worker {n} added",
        "worker {n} added",
        "iteration {n}/ 500 | lm loss: 2.1 |",
        "",
        "loaded shard {n}",
        "word{w} is new",
        "ERROR: node {n} is lost",
        "ERROR: disk full",
        RETRY,
        "10%|# | 1/10 [\r50%|## | 5/10 [\rERROR: painted over {n}\r100%|###| 10/10 [",
        '3: Traceback (most recent call last):\n3:   File "a.py", line {n}, in f\n3:     f()\n3: ValueError: {n}',
        "\x1b[31mcolour\x1b[0m \xff {w}",
    )
    made = []
    for n in range(first, first + count):
        word = "".join("ghijklmnop"[int(d)] for d in str(n))
        made.append(chance.choice(kinds).replace("{n}", str(n)).replace("{w}", word))
    return "\n".join(made).encode("latin-1") + b"\n"


def test_kills_lose_and_double_nothing(tmp_path):
    undisturbed_by(8, 5, tmp_path)


@pytest.mark.service  # a minute
def test_fifty_kills_lose_and_double_nothing(tmp_path):
    undisturbed_by(50, 17, tmp_path)


def undisturbed_by(kills: int, rotate: int, tmp_path: Path) -> None:
    """rotate: kills between two rotations; of two that no follower saw the first new file is lost."""
    chance = random.Random(4)
    log, out, straight = tmp_path / "job.log", tmp_path / "out", tmp_path / "straight"
    whole = [b""]  # the content of each file that was at the path
    undisturbed = start(straight, 5, log)
    pending = b""
    rotated = 0
    for n in range(kills):
        follower = start(out, 999, log)
        before, end = committed(out), 0.0
        while not end or time.monotonic() < end:
            if not end and (n % 5 == 4 or committed(out) != before):  # some die before they have done anything
                end = time.monotonic() + chance.uniform(0, 0.3)
            pending += lines(chance, n * 100_000 + len(whole[-1]), chance.randrange(1, 30))
            cut = chance.randrange(len(pending) + 1)
            with log.open("ab") as stream:
                stream.write(pending[:cut])
            whole[-1] += pending[:cut]
            pending = pending[cut:]
            time.sleep(chance.uniform(0, 0.04))
        follower.kill()
        follower.wait()
        if n % rotate == rotate - 1:
            with log.open("ab") as stream:
                stream.write(pending)
            whole[-1] += pending
            pending = b""
            log.rename(tmp_path / f"job.log.{n}")
            log.touch()
            whole.append(b"")
            rotated += 1
    assert undisturbed.wait(60) == 0
    assert start(out, 1, log).wait(60) == 0
    found = out.read_text("utf-8")
    assert found == straight.read_text("utf-8")
    events = [json.loads(line) for line in found.splitlines()]
    assert sum("turn" in event for event in events) == rotated == kills // rotate
    accounted = sum("text" in event and "turn" not in event for event in events)
    accounted += sum(event.get("left_out", 0) for event in events)
    total = sum(data.count(b"\n") for data in whole) + (not whole[-1].endswith(b"\n"))
    assert accounted == events[-1]["compression"]["lines_in"] == total
    assert events[-1]["compression"]["bytes_in"] == sum(map(len, whole))
