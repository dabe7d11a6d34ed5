"""Lines of files, whether a cited text stands in them, and whether compression kept them."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from triage.evaluation import lines
from triage.evaluation.cases import Decisive
from triage.evaluation.kept import kept


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"a\r\nb\rc\n\n", 3), (b"x" * (3 << 20) + b"\ny\n", 2)],
)
def test_lines_end_at_newlines_alone(tmp_path: Path, data: bytes, expected: int) -> None:
    (tmp_path / "x").write_bytes(data)
    assert lines.count(tmp_path / "x") == expected
    assert list(lines.pick(tmp_path / "x", range(1, 9))) == list(range(1, expected + 1))


def test_lines_are_split_wherever_the_pieces_end() -> None:
    for pieces in ([b"a\nbb\n\nc"], [b"a", b"\nb", b"b\n", b"\n", b"c"], [b"", b"a\n", b"bb", b"\n\nc", b""]):
        assert list(lines.bounded(pieces)) == [b"a", b"bb", b"", b"c"]
    assert list(lines.bounded([b"x\n"])) == [b"x"]
    assert list(lines.bounded([b"abc", b"def\ng"], 4)) == [b"abcd", b"g"]


def test_one_endless_line_takes_linear_time(tmp_path: Path) -> None:
    """64 MB in one line: adding each piece to what stood before would copy gigabytes."""
    started = time.process_time()
    assert list(map(len, lines.bounded(b"x" * 65536 for _ in range(1024)))) == [lines.LONGEST]
    assert time.process_time() - started < 2


def test_compressed_and_utf16_files_count_as_a_reader_sees_them(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    (tmp_path / "w.log").write_bytes("\ufeffone\ntwo\n".encode("utf-16-le"))
    for name in ("x.gz", "w.log"):
        assert lines.count(tmp_path / name) == 2
        assert lines.pick(tmp_path / name, [2, 7]) == {2: "two"}


@pytest.mark.parametrize(
    ("line", "text", "there"),
    [
        ("RuntimeError: CUDA error", "RuntimeError: CUDA error", True),
        ("\x1b[31mRuntimeError\x1b[0m: CUDA  error\r", "RuntimeError: CUDA error", True),
        ("10%|#\r20%|##\rKeyError: 1", "KeyError: 1", True),
        ("key=hf_abcdefgh bad", "key=[redacted:hf-token] bad", True),
        ("bad key=hf_abcdefgh", "key=[redacted:hf-token] bad", False),
        ("a" * 600, "a" * 500, True),
        ("RuntimeError: CUDA error", "RuntimeError: NCCL error", False),
        ("RuntimeError: CUDA error", "", False),
        ("\x1b[0m", "", True),
        ("caf\udce9 \ufffd end", "caf\ufffd end", False),
        ("nul\x00 byte", "nul\ufffd byte", True),
    ],
)
def test_a_cited_text_is_the_line_or_a_piece_of_it(line: str, text: str, there: bool) -> None:
    assert lines.shows(line, text) is there


def test_a_line_is_kept_by_its_number_or_inside_what_it_was_folded_into(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("[rank0]: NCCL error 12\nsome\n[rank7]: NCCL error 3\n[rank1]: other error\n")
    files = {"j": tmp_path / "j"}
    shown = [("j", 1, "[rank0]: NCCL error 12", 8), ("j", 2, "some", 1)]
    assert kept(Decisive("j", 2, 3), shown, files)
    assert kept(Decisive("j", 3, 3), shown, files)
    assert kept(Decisive("", 3, 3), shown, files)
    assert not kept(Decisive("j", 4, 4), shown, files)
    assert not kept(Decisive("j", 3, 3), [("j", 1, "[rank0]: NCCL error 12", 1)], files), "it stands for itself alone"
