"""Real files that grow, are rotated, cut, deleted and come back."""

import itertools
import os
import random
from pathlib import Path

import pytest

from triage.ingest import tail as tail_module
from triage.ingest.tail import Lines, Mark, Tail, Turning


class Reader:
    """Gathers what a tail gives: bytes, and <turn> where numbers start again."""

    def __init__(self, path: Path, mark: Mark | None = None) -> None:
        self.tail = Tail(path, mark)
        self.got = b""

    def poll(self, times: int = 1) -> bytes:
        """What came."""
        before = len(self.got)
        for _ in range(times):
            for item in self.tail.poll():
                if isinstance(item, Lines):
                    data = b"".join(item.chunks)
                    assert len(data) == item.size
                    self.got += data
                else:
                    assert isinstance(item, Turning)
                    self.got += f"<{item.turn}>".encode()
        return self.got[before:]

    def rest(self) -> bytes:
        rest = self.tail.rest()
        return b"".join(rest.chunks) if rest else b""

    def again(self) -> "Reader":
        """A new process that goes on from here."""
        mark = self.mark
        self.tail.close()
        return Reader(self.tail.path, mark)

    @property
    def mark(self) -> Mark:
        return self.tail.mark()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "job.log"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


FEW = b"".join(b"line %d of the first file\n" % n for n in range(10))
OTHER = b"".join(b"line %d of another file\n" % n for n in range(10))


def test_lines_are_given_when_their_newline_comes(log):
    reader = Reader(log)
    append(log, b"one\ntw")
    assert reader.poll() == b"one\n"
    assert reader.rest() == b"tw"
    append(log, b"o")
    assert reader.poll() == b""
    append(log, b"\nthree")
    assert reader.poll() == b"two\n"
    assert reader.rest() == b"three"


def test_a_file_that_comes_later(log):
    reader = Reader(log)
    assert reader.poll() == b""
    assert reader.tail.why == "no such file or folder"
    append(log, b"one\n")
    assert reader.poll() == b"one\n"
    assert reader.tail.why == ""


def test_a_folder_that_comes_later(tmp_path):
    reader = Reader(tmp_path / "logs" / "job.log")
    reader.poll()
    (tmp_path / "logs").mkdir()
    append(tmp_path / "logs" / "job.log", b"one\n")
    assert reader.poll() == b"one\n"


def test_what_is_no_file_is_not_read(tmp_path, log):
    reader = Reader(tmp_path)
    assert reader.poll() == b""
    assert reader.tail.why == "a folder"
    os.mkfifo(log)
    assert Reader(log).poll() == b""


def test_bytes_cut_anywhere(log):
    data = b"\xff\xfe\x00\x1b[31m\r\n".join(FEW.split(b"\n")) + b"\n"
    reader = Reader(log)
    for at in range(0, len(data), 7):
        append(log, data[at : at + 7])
        reader.poll()
    assert reader.got == data


def test_rotation_ends_the_old_file_and_goes_on_with_the_new(log, tmp_path):
    reader = Reader(log)
    append(log, FEW)
    reader.poll()
    log.rename(tmp_path / "job.log.1")
    append(tmp_path / "job.log.1", b"late\n")  # the writer has not turned to the new file yet
    append(log, OTHER)
    append(tmp_path / "job.log.1", b"later, without a newline")
    reader.poll(4)
    assert reader.got == FEW + b"late\nlater, without a newline<rotated>" + OTHER


def test_rotation_while_the_path_is_empty_for_a_while(log, tmp_path):
    reader = Reader(log)
    append(log, FEW)
    reader.poll()
    log.rename(tmp_path / "job.log.1")
    reader.poll(50)
    append(tmp_path / "job.log.1", b"late\n")
    assert reader.poll(2) == b"late\n"
    append(log, OTHER)
    assert reader.poll(4) == b"<rotated>" + OTHER


def test_a_file_that_was_cut_begins_anew(log):
    reader = Reader(log)
    append(log, FEW + b"a line with no end")
    reader.poll()
    os.truncate(log, 0)
    append(log, b"new\n")
    reader.poll(4)
    assert reader.got == FEW + b"a line with no end<truncated>new\n"


def test_a_file_that_was_cut_and_has_outgrown_its_old_self(log):
    reader = Reader(log)
    append(log, FEW)
    reader.poll()
    log.write_bytes(OTHER * 9)
    reader.poll(4)
    assert reader.got == FEW + b"<truncated>" + OTHER * 9


def test_what_was_copied_away_before_the_cut_is_read_from_the_copy(log, tmp_path):
    reader = Reader(log)
    append(log, FEW + b"half")
    reader.poll()
    append(log, b" a line\nand more\nopen")  # not seen before the cut
    (tmp_path / "job.log.1").write_bytes(log.read_bytes())
    os.truncate(log, 0)
    append(log, OTHER)
    reader.poll(8)
    assert reader.got == FEW + b"half a line\nand more\nopen<rotated>" + OTHER


def test_a_hole_that_a_writer_leaves_after_the_cut(log):
    with log.open("wb", buffering=0) as writer:
        writer.write(FEW)
        reader = Reader(log)
        reader.poll()
        os.truncate(log, 0)
        writer.write(b"goes on behind a hole\n")
        reader.poll(4)
    assert reader.got == FEW + b"<truncated>" + b"\0" * len(FEW) + b"goes on behind a hole\n"


def test_one_look_that_finds_a_shorter_file_is_not_believed(log, monkeypatch):
    """As an NFS client shows it whose cached attributes are behind."""
    reader = Reader(log)
    append(log, FEW)
    reader.poll()
    real = os.pread
    monkeypatch.setattr(tail_module.os, "pread", lambda file, size, at: real(file, size, at)[:3])
    assert reader.poll() == b""
    monkeypatch.setattr(tail_module.os, "pread", real)
    append(log, b"more\n")
    assert reader.poll() == b"more\n"


def test_a_file_that_was_deleted_and_comes_back(log):
    reader = Reader(log)
    append(log, FEW)
    reader.poll()
    log.unlink()
    assert reader.poll(30) == b"<deleted>"
    assert reader.tail.why == "no such file or folder"
    append(log, OTHER)
    assert reader.poll() == OTHER


def test_a_stale_file_is_left(log, monkeypatch):
    reader = Reader(log)
    append(log, FEW)
    reader.poll()

    append(log, b"more\n")
    real, calls = os.pread, itertools.count()

    def stale_once(*args: int) -> bytes:
        if next(calls) == 0:
            raise OSError(116, "Stale file handle")
        return real(*args)

    monkeypatch.setattr(tail_module.os, "pread", stale_once)
    assert reader.poll(2) == b"more\n"


def test_a_line_too_long_to_hold_is_given_whole(log, monkeypatch):
    monkeypatch.setattr(tail_module, "_HELD", 100)
    reader = Reader(log)
    line = b"".join(b"\r%d%%" % n for n in range(500))
    for at in range(0, len(line), 90):
        append(log, line[at : at + 90])
        assert reader.poll() == b""
        assert reader.rest() == line[: at + 90]
    append(log, b"\nnext\n")
    assert reader.poll() == line + b"\nnext\n"


# ------------------------------------------------------------------------------------------ a new process
def test_a_new_process_goes_on_where_the_last_one_stopped(log):
    reader = Reader(log)
    append(log, FEW + b"half")
    reader.poll()
    reader = reader.again()
    append(log, b" a line\n")
    assert reader.poll() == b"half a line\n"


def test_a_new_process_finds_the_file_under_its_new_name(log, tmp_path):
    reader = Reader(log)
    append(log, FEW)
    reader.poll()
    append(log, b"not seen\n")
    mark = reader.mark
    log.rename(tmp_path / "job.log.1")
    append(log, OTHER)
    reader = Reader(log, mark)
    reader.poll(4)
    assert reader.got == b"not seen\n<rotated>" + OTHER


def test_a_new_process_finds_the_copy(log, tmp_path):
    reader = Reader(log)
    append(log, FEW)
    reader.poll()
    append(log, b"not seen\n")
    mark = reader.mark
    (tmp_path / "job.log-20260102").write_bytes(log.read_bytes())
    log.write_bytes(OTHER * 20)
    reader = Reader(log, mark)
    reader.poll(4)
    assert reader.got == b"not seen\n<rotated>" + OTHER * 20


def test_a_new_process_says_when_the_file_is_gone(log):
    reader = Reader(log)
    append(log, FEW)
    reader.poll()
    mark = reader.mark
    log.write_bytes(OTHER * 20)
    reader = Reader(log, mark)
    assert reader.poll() == b"<replaced>" + OTHER * 20


def test_a_new_process_waits_for_a_file_that_is_not_there_and_keeps_its_place(log, tmp_path):
    reader = Reader(log)
    append(log, FEW)
    reader.poll()
    mark = reader.mark
    away = tmp_path / "elsewhere"
    log.rename(away)
    reader = Reader(log, mark)
    reader.poll(3)
    assert reader.mark == mark
    away.rename(log)
    append(log, b"more\n")
    assert reader.poll() == b"more\n"


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_to_the_file_no_line_is_lost_or_doubled(log, tmp_path, seed, monkeypatch):
    """Appends cut anywhere, rotations, copies with a cut, new processes, in any order; looks now and then."""
    monkeypatch.setattr(tail_module, "_HELD", 40)
    monkeypatch.setattr(tail_module, "CHUNK", 64)
    chance = random.Random(seed)
    reader = Reader(log)
    got = pending = written = b""
    for n in range(150):
        do = chance.choice("aaaaaappppprcn")
        if do == "a":
            pending += b"line %d %s\n" % (n, b"x" * chance.randrange(60))
            cut = chance.randrange(len(pending) + 1)
            append(log, pending[:cut])
            written, pending = written + pending[:cut], pending[cut:]
        elif do == "p":
            reader.poll()
        elif do == "n":
            got += reader.got
            reader = reader.again()
        elif log.exists() and log.stat().st_size > 200:
            reader.poll(40)  # of two rotations between two looks, the file in the middle would not be found
            pending += b"line %d, perhaps not seen before it is moved\n" % n
            append(log, pending)
            written, pending = written + pending + b"|", b""
            old = tmp_path / f"job.log.{n}"
            if do == "r":
                log.rename(old)
                log.touch()
            else:
                old.write_bytes(log.read_bytes())
                os.truncate(log, 0)
    append(log, pending)
    reader.poll(99)
    got += reader.got + reader.rest()
    for turn in (b"<rotated>", b"<truncated>", b"<replaced>"):
        got = got.replace(turn, b"|")
    assert got == written + pending
