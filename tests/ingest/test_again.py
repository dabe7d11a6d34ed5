"""Lines of a file read a second time are those that the scan numbered."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from triage.errors import InputError
from triage.ingest.again import raw_lines
from triage.ingest.text import MAX_DECODED

TEXTS = [f"line {n} {'x' * (n % 97)}".encode() for n in range(1, 20_001)]  # a megabyte: several pieces


@pytest.fixture
def large(tmp_path: Path) -> Path:
    (tmp_path / "a.log").write_bytes(b"\n".join(TEXTS))
    return tmp_path / "a.log"


@pytest.mark.parametrize("first", [1, 2, 1777, 9_999, 19_999, 20_000])
def test_from_any_line_on(large: Path, first: int) -> None:
    found = list(raw_lines(str(large), first))
    assert [line.number for line in found] == list(range(first, 20_001))
    assert [line.raw for line in found] == TEXTS[first - 1 :]


def test_what_is_packed_or_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\n".join(TEXTS) + b"\n"))
    assert next(raw_lines(str(tmp_path / "a.gz"), 15_000)).raw == TEXTS[14_999]
    (tmp_path / "b.log").write_bytes("one\ntwo\nthree\n".encode("utf-16"))
    assert [line.raw for line in raw_lines(str(tmp_path / "b.log"), 2)] == [b"two", b"three"]


def test_beyond_the_end_there_is_nothing(large: Path) -> None:
    assert list(raw_lines(str(large), 20_001)) == []


def test_a_line_of_megabytes_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"one\n" + b"y" * (3 * MAX_DECODED) + b"\nthree\n")
    found = list(raw_lines(str(tmp_path / "a.log"), 2))
    assert [(line.number, len(line.raw)) for line in found] == [(2, MAX_DECODED), (3, 5)]


def test_what_cannot_be_read_again_is_said(large: Path) -> None:
    for name in ("-", str(large.parent / "gone.log"), str(large.parent)):
        with pytest.raises(InputError, match="cannot be read a second time"):
            next(raw_lines(name))
    with pytest.raises(InputError, match=r"line 15000 .* is too far in"):
        next(raw_lines(str(large), 15_000, patience=-1.0))
