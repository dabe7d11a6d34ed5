"""Several processes find what one finds."""

from __future__ import annotations

import dataclasses
import gzip
import os
import random
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.compress.seed import HOT, RULES, SIGNATURES
from tests.compress.test_scan_properties import LOGS
from tests.examples import examples
from triage import scanning
from triage.compress.engine import ScanLimits, Scanner
from triage.ingest import boundaries, sources, streams

LIMITS = ScanLimits(block=200, portion=2, line_limit=8192, line_keep=20, hot=(3, 2), plain=(2, 2), routine=(1, 2))
TIGHT = dataclasses.replace(LIMITS, max_templates=5, budget=4000, head_lines=2, tail_lines=3)
START = b"Sun Aug 17 00:40:32 2025\n+ python train.py\nSLURM_JOB_ID=4242\nworker 1 added\n"
AGAIN = b"Traceback (most recent call last):\nValueError: bad\n" + START.replace(b"4242", b"4243")
CANCEL = b"slurmstepd: error: *** JOB 4242 ON n1 CANCELLED AT 2025-11-02T04:16:29 DUE TO TIME LIMIT ***\n" + START


def scanner(limits: ScanLimits) -> Scanner:
    return Scanner(RULES, HOT, boundaries.Boundaries, limits, SIGNATURES)


SCANNERS = [scanner(LIMITS), scanner(TIGHT)]


@dataclasses.dataclass
class Content:
    item: streams.Input
    problems: list[str]
    pieces: Iterator[bytes]


def content(path: Path) -> Content:
    (item,), _ = sources.discover([str(path)])
    problems: list[str] = []
    return Content(item, problems, streams.chunks(item, problems))


@pytest.fixture
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "_in_order", lambda _jobs, work, tasks: map(work, tasks))


@pytest.mark.usefixtures("in_one_process")
@settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.one_of(LOGS, LOGS, st.sampled_from([START, AGAIN, CANCEL, b"x" * 700, b"y" * 9000])), max_size=8),
    st.integers(1, 3),
    st.sampled_from(SCANNERS),
    st.booleans(),
)
def test_parts_of_a_file_make_the_same_scan(pieces: list[bytes], times: int, one: Scanner, opens: bool) -> None:
    data = (START if opens else b"") + b"\n".join(pieces * times)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.log"
        path.write_bytes(data)
        item = streams.Input("job.log", path, len(data))
        assert scanning._large(one.another(one.limits), item, 2) == one.another(one.limits).scan("job.log", [data])


@pytest.mark.usefixtures("in_one_process")
def test_a_run_opens_wherever_a_part_ends(tmp_path: Path) -> None:
    """What ended the run before may stand in a part that was not read again."""
    path = tmp_path / "job.log"
    for shift in range(0, 1800, 15):
        data = START + b"worker 1 added\n" * (300 + shift // 15) + AGAIN + b"worker 2 added\n" * 300
        path.write_bytes(data)
        found = scanning._large(SCANNERS[0].another(LIMITS), streams.Input("job.log", path, len(data)), 2)
        assert found == SCANNERS[0].another(LIMITS).scan("job.log", [data])
        assert len(found.runs) > 1


def lines(count: int) -> bytes:
    rng = random.Random(7)
    kinds = (
        b"%d: iteration %d/ 500 | lm loss: 2.%d |", b"worker %d added in %d of %d", b"exit code %d, then %d and %d",
        b"%d%%|##| %d/%d [\r\x1b[K", b"ERROR: link %d of %d down %d", b"%d: nothing %d to see %d",
    )  # fmt: skip
    return b"\n".join(rng.choice(kinds) % tuple(rng.randrange(10**4) for _ in range(3)) for _ in range(count))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "LARGE", 10_000)


LARGER = dataclasses.replace(LIMITS, block=4096)


@pytest.mark.usefixtures("small")
def test_processes_scan_a_large_file_together(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_bytes(lines(4000) + b"\n" + AGAIN + lines(4000) + b"\nend")
    alone = scanning.read(scanner(LARGER), [content(tmp_path / "job.log")], 1, lambda _text: None)
    assert scanning.read(scanner(LARGER), [content(tmp_path / "job.log")], 3, lambda _text: None) == alone
    assert alone[0].lines_in == 8007


@pytest.mark.usefixtures("small")
def test_processes_share_many_files(tmp_path: Path) -> None:
    for rank in range(7):
        (tmp_path / f"rank_{rank}.log").write_bytes(lines(100 + rank))
    told: list[str] = []
    items, _ = sources.discover([str(tmp_path)])
    names = [Path(item.name) for item in items]
    alone = scanning.read(scanner(LARGER), [content(name) for name in names], 1, lambda _text: None)
    assert scanning.read(scanner(LARGER), [content(name) for name in names], 2, told.append) == alone
    assert told[-1] == f"reading {tmp_path}/rank_6.log (7/7)"


@pytest.mark.usefixtures("small")
def test_this_process_goes_on_alone_when_a_worker_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job.log").write_bytes(lines(8000))
    alone = scanning.read(scanner(LARGER), [content(tmp_path / "job.log")], 1, lambda _text: None)
    parent, digest, died = os.getpid(), scanning._digest, tmp_path / "died"

    def dying(*args: object) -> object:
        if os.getpid() != parent:
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return digest(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(scanning, "_digest", dying)
    monkeypatch.setattr(scanning.threading, "active_count", lambda: 1)  # tests of other files leave threads
    assert scanning.read(scanner(LARGER), [content(tmp_path / "job.log")], 2, lambda _text: None) == alone
    assert died.exists()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("encoded", [
    lambda text: text.decode().encode("utf-16"), lambda text: b"\xef\xbb\xbf" + text, gzip.compress,
])  # fmt: skip
def test_what_must_be_decoded_is_read_by_one_process(tmp_path: Path, encoded: Callable[[bytes], bytes]) -> None:
    (tmp_path / "job.log").write_bytes(encoded(lines(4000)))
    assert not streams.is_plain(content(tmp_path / "job.log").item)
    (found,) = scanning.read(scanner(LARGER), [content(tmp_path / "job.log")], 2, lambda _text: None)
    assert found.lines_in == 4000


def test_small_inputs_and_threads_need_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "_in_order", None)
    (tmp_path / "job.log").write_bytes(lines(2000))
    assert scanning.read(scanner(LARGER), [content(tmp_path / "job.log")], 8, lambda _text: None)[0].lines_in == 2000
    monkeypatch.setattr(scanning, "LARGE", 1000)
    monkeypatch.setattr(scanning.threading, "active_count", lambda: 2)
    assert scanning.read(scanner(LARGER), [content(tmp_path / "job.log")], 8, lambda _text: None)[0].lines_in == 2000
