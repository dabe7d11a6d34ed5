"""The same file, one that has grown, another."""

from __future__ import annotations

import io
from pathlib import Path

from triage.ingest import sources
from triage.ingest.identity import ENDS, HEAD, digest, identify


def test_what_changes_and_what_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"begin" * HEAD)
    size, whole, head = digest(file)
    assert size == 5 * HEAD
    copy = tmp_path / "b.log"
    copy.write_bytes(file.read_bytes())
    assert digest(copy) == (size, whole, head)

    with file.open("ab") as more:
        more.write(b"and on")
    assert digest(file)[1] != whole
    assert digest(file)[2] == head

    file.write_bytes(b"Begin" + b"begin" * (HEAD - 1))
    assert digest(file)[0] == size
    assert digest(file)[2] != head


def test_a_large_file_is_known_by_its_size_and_ends(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    seen = set()
    for begin, middle, end in (
        (b"a", 3 * ENDS, b"z"),
        (b"b", 3 * ENDS, b"z"),
        (b"a", 3 * ENDS, b"y"),
        (b"a", 4 * ENDS, b"z"),
    ):
        file.write_bytes(begin + b"." * middle + end)
        seen.add(digest(file)[1])
    assert len(seen) == 4


def test_inputs(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a.log").write_bytes(b"x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"y\n")))
    inputs, _ = sources.discover(["a.log", "-"])
    (file, stream) = identify(inputs)
    assert (file.name, file.path, file.size) == ("a.log", str(tmp_path / "a.log"), 2)
    assert len(file.digest) == 64
    assert (stream.name, stream.path, stream.digest) == ("-", "", "")
    (tmp_path / "a.log").unlink()
    assert identify(inputs)[0].digest == ""
