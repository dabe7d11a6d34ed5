"""Logs of containers, streamed from a server into files."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube import objects
from tests.kube.server import ApiServer
from triage.kube import logs, read
from triage.kube.client import Cluster
from triage.kube.logs import Fetched, Look, fetch

pytest.importorskip("kubernetes")
KEY = ("ml", "train-0", "main", False)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    with ApiServer() as started:
        monkeypatch.setenv("KUBECONFIG", str(started.kubeconfig(tmp_path / "config")))
        started.add(objects.pod("train-0"), objects.pod("train-1"))
        yield started


def look(pod: str = "train-0", previous: bool = False) -> Look:
    found = read.pod(objects.pod(pod))
    return Look(found, found.containers[0], previous)


def fetched(server: ApiServer, folder: Path, *looks: Look) -> list[Fetched]:
    folder.mkdir(exist_ok=True)
    told: list[str] = []
    found = fetch(Cluster(), looks or (look(),), folder, told.append)
    assert told[-1] == f"reading logs of pods ({len(found)}/{len(found)})"
    return found


def text(one: Fetched) -> str:
    assert one.path
    return one.path.read_text("utf-8", "surrogateescape")


def test_one_log_is_kept_as_it_is_but_for_its_secrets(server: ApiServer, tmp_path: Path) -> None:
    server.logs[KEY] = b"step 1\nexport HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n\xff\xfe odd\nno newline"
    (one,) = fetched(server, tmp_path / "logs")
    assert one.note == "" and text(one).startswith("step 1\nexport HF_TOKEN=[redacted")
    assert one.path and one.path.read_bytes().endswith(b"\n\xff\xfe odd\nno newline\n")
    assert "hf_abcdef" not in text(one)


def test_when_each_line_was_written_is_known_beside_its_text(server: ApiServer, tmp_path: Path) -> None:
    server.logs[KEY] = b"2025-01-01 00:00:00 of another clock\n\nthe third\n"
    server.logs["ml", "train-1", "main", True] = b"of the second\n"
    first, second = fetched(server, tmp_path / "logs", look(), look("train-1", previous=True))
    assert text(first) == "2025-01-01 00:00:00 of another clock\n\nthe third\n"
    assert first.stamps and [f"{first.stamps.at(n):%H:%M:%S.%f}" for n in (1, 2, 3, 4)] == ["08:00:00.000000", "08:00:01.000000", "08:00:02.000000", "08:00:02.000000"]  # fmt: skip
    assert first.stamps.at(0) is None
    assert second.path and second.path.name == "train-1_main.previous.log"


def test_a_log_that_does_not_fit_on_the_disk_is_said_and_leaves_nothing(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 30_000)
    server.logs[KEY] = b"".join(b"line %06d\n" % n for n in range(20_000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        (one,) = fetched(server, tmp_path / "logs")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (one.path, one.note) == (None, "the log of train-0/main was not read: it cannot be written: File too large")
    assert list((tmp_path / "logs").iterdir()) == []


def test_of_a_long_log_beginning_and_end_are_kept(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 30_000)
    server.logs[KEY] = b"".join(b"line %06d\n" % n for n in range(20_000))
    (one,) = fetched(server, tmp_path / "logs")
    lines = text(one).splitlines()
    assert lines[0] == "line 000000" and lines[-1] == "line 019999"
    assert one.path and one.path.stat().st_size < 31_000
    (gap,) = [n for n, line in enumerate(lines) if line.startswith("[triage: ")]
    assert one.stamps
    for at in (1, gap + 2, len(lines)):
        said = int(lines[at - 1].split()[1])
        assert f"{one.stamps.at(at):%M:%S}" == f"{said // 60 % 60:02d}:{said % 60:02d}"
    missing = int(lines[gap + 1].split()[1]) - int(lines[gap - 1].split()[1]) - 1
    assert lines[gap] == f"[triage: {missing * 12} bytes left out]"
    assert one.note == f"{missing * 12} bytes in the middle of the log of train-0/main were left out"
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["train-0_main.log"]


def test_a_log_that_breaks_off_is_read_as_far_as_it_came(server: ApiServer, tmp_path: Path) -> None:
    server.logs[KEY] = b"a line\n" * 1000
    server.broken.add(KEY)
    (one,) = fetched(server, tmp_path / "logs")
    assert text(one).startswith("a line\n") and 100 < len(text(one)) < 1000
    assert one.note.startswith("the log of train-0/main broke off: the answer broke off")


def test_what_the_server_has_not_is_said(server: ApiServer, tmp_path: Path) -> None:
    (none,) = fetched(server, tmp_path / "logs", look(previous=True))
    assert none.path is None and 'previous terminated container "main"' in none.note
    server.log_errors[KEY] = (
        500,
        'Get "https://10.0.0.7:10250/containerLogs/ml/train-0/main": dial tcp 10.0.0.7:10250: i/o timeout',
    )
    (silent,) = fetched(server, tmp_path / "logs")
    assert "10250: i/o timeout" in silent.note
    del server.log_errors[KEY]
    server.logs[KEY] = b"unable to retrieve container logs for containerd://0a1b"
    (rotated,) = fetched(server, tmp_path / "logs")
    assert rotated.path is None and "is gone from its node" in rotated.note
    assert not list((tmp_path / "logs").iterdir())


def test_what_was_read_before_stays_when_the_pod_is_gone(server: ApiServer, tmp_path: Path) -> None:
    server.logs[KEY] = b"the last words\n"
    fetched(server, tmp_path / "logs")
    server.objects.clear()
    (one,) = fetched(server, tmp_path / "logs")
    assert text(one) == "the last words\n"
    assert (
        one.note == 'the log of train-0/main was not read: pods "train-0" not found; what was read of it before is used'
    )


def test_a_line_without_end_fills_no_memory(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_LONGEST", 10_000)
    server.logs[KEY] = b"x" * 50_000
    (one,) = fetched(server, tmp_path / "logs")
    assert text(one).count("\n") >= 2 and text(one).count("x") == 50_000


def test_no_name_that_a_server_gives_leaves_the_folder() -> None:
    assert look("../../etc/x").name == ".._.._etc_x_main.log"
