from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import socket
from pathlib import Path

import pytest
import zstandard

from triage.errors import InputError
from triage.ingest import compressed
from triage.ingest.sources import Input, chunks, discover, natural

LOG = b"".join(b"step %d loss 2.0\n" % i for i in range(5000))


def read(path: Path) -> tuple[bytes, list[str]]:
    (item,), _ = discover([str(path)])
    problems: list[str] = []
    return b"".join(chunks(item, problems)), problems


def write(path: Path, content: bytes = LOG) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_folder_in_natural_order_named_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rank_10.log", "rank_2.log", "node1/stderr", "rank_0.log"):
        write(tmp_path / "logs" / name)
    monkeypatch.chdir(tmp_path)
    found, notes = discover(["logs/"])
    assert [item.name for item in found] == [
        "logs/rank_0.log",
        "logs/rank_2.log",
        "logs/rank_10.log",
        "logs/node1/stderr",
    ]
    assert notes == ()
    monkeypatch.chdir(tmp_path / "logs")
    assert next(item.name for item in discover(["."])[0]) == "rank_0.log"


PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "zst": zstandard.compress}


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_compressed_streams_joined_cut_and_damaged(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    # the name says nothing: the first bytes decide
    assert read(write(tmp_path / "whole.log", pack(LOG))) == (LOG, [])
    assert read(write(tmp_path / "joined.log", pack(LOG) + pack(b"end\n"))) == (LOG + b"end\n", [])
    packed = pack(os.urandom(100_000).hex().encode())
    content, problems = read(write(tmp_path / "cut.log", pack(b"first\n") + packed[: len(packed) // 2]))
    assert content.startswith(b"first\n")
    assert len(problems) == 1 and "cut or damaged after line" in problems[0]
    content, problems = read(write(tmp_path / "trailing.log", pack(LOG) + b"garbage behind it"))
    assert content == LOG and len(problems) == 1


def test_a_bomb_comes_in_small_pieces() -> None:
    for name, packed in {
        "gzip": gzip.compress(bytes(40_000_000)),
        "bzip2": bz2.compress(bytes(20_000_000)),
        "xz": lzma.compress(bytes(40_000_000)),
        "zstd": zstandard.compress(bytes(40_000_000)),
    }.items():
        pieces = compressed.decompress(name, iter([packed]))
        assert max(map(len, pieces)) <= 33_600_000


def test_plain_file_with_the_name_of_a_compressed_one(tmp_path: Path) -> None:
    assert read(write(tmp_path / "job.log.gz")) == (LOG, [])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_byte_order_marks(tmp_path: Path, encoding: str) -> None:
    text = "erste Zeile\r\nzweite äöü 你好\n" * 50_000
    content, problems = read(write(tmp_path / "windows.log", text.encode(encoding)))
    assert content.decode() == text
    assert problems == []


def test_what_is_no_log_is_left_out_and_said(tmp_path: Path) -> None:
    write(tmp_path / "job.out")
    write(tmp_path / "train.py")
    write(tmp_path / ".hidden")
    write(tmp_path / "empty.log", b"\n \n")
    write(tmp_path / "config.yaml", b"lr: 1\n")
    write(tmp_path / "core.123", b"\x7fELF" + bytes(1000))
    write(tmp_path / "noise.log", bytes(range(256)) * 100)
    os.mkfifo(tmp_path / "pipe")
    found, notes = discover([str(tmp_path)])
    assert [item.path for item in found] == [tmp_path / "job.out"]
    said = "\n".join(notes)
    for name in ("train.py", ".hidden", "empty.log", "config.yaml", "core.123", "noise.log", "pipe"):
        assert name in said


def test_settings_are_no_logs_but_what_clusters_write_in_the_same_formats_is_read(tmp_path: Path) -> None:
    write(tmp_path / "config.json", b'{\n"lr": 1\n}\n')
    write(tmp_path / "case.yaml", b"expect: healthy\n")
    write(tmp_path / "Makefile")
    write(tmp_path / "events.json", b'{"level":"info","msg":"a"}\n{"level":"error","msg":"b"}\n')
    write(tmp_path / "error.json", b'{"message": {"message": "ValueError: x", "extraInfo": {}}}')
    write(tmp_path / "pod.yaml", b"apiVersion: v1\nkind: Pod\n")
    found, notes = discover([str(tmp_path)])
    assert [(item.path.name, item.kind) for item in found if item.path] == [
        ("error.json", "job"),
        ("events.json", "job"),
        ("pod.yaml", "kubernetes"),
    ]
    assert "config.json" in "".join(notes) and "case.yaml" in "".join(notes) and "Makefile" in "".join(notes)


def test_the_hole_at_the_start_of_a_rotated_log(tmp_path: Path) -> None:
    (item,), _ = discover([str(write(tmp_path / "a.log", bytes(1 << 20) + LOG))])
    assert b"".join(chunks(item, [])).endswith(LOG)


def test_a_file_the_user_names_is_read_whatever_its_ending(tmp_path: Path) -> None:
    (item,), notes = discover([str(write(tmp_path / "notes.md"))])
    assert (item.size, notes) == (len(LOG), ())


def test_the_same_file_twice_is_one_input(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log")
    (tmp_path / "latest.log").symlink_to(log)
    (tmp_path / "loop").symlink_to(tmp_path)
    found, _ = discover([str(tmp_path), str(log)])
    assert [item.name for item in found] == [str(log)]


def test_one_bad_path_among_good_ones_is_a_note(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        found, notes = discover([str(tmp_path / "nope"), str(log), str(tmp_path / "s"), "a\0b"])
    assert [item.path for item in found] == [log]
    assert notes[0] == f"{tmp_path}/nope: no such file or folder"
    assert "socket" in notes[1]
    assert len(notes) == 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda d: d / "nope", "no such file"),
        (lambda d: d, "the folder is empty"),
        (lambda d: write(d / "sub" / "e.log", b"").parent, "empty"),
        (
            lambda d: write(d / "logs.tar.gz", gzip.compress(b"a.log".ljust(257, b"\0") + b"ustar\x0000" + bytes(300))),
            "unpack",
        ),
        (lambda d: write(d / "model.bin", b"\x7fELF" + bytes(999)), "binary"),
        (lambda d: write(d / "code" / "a.py").parent, "no log by its name"),
    ],
)
def test_nothing_readable_is_one_clear_error(tmp_path: Path, make, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as caught:
        discover([str(make(tmp_path))])
    assert words in caught.value.message
    assert "\n" not in str(caught.value)


def test_an_empty_log_that_is_named_is_an_input_of_its_own(tmp_path: Path) -> None:
    found, notes = discover([str(write(tmp_path / "e.log", b""))])
    assert ([item.kind for item in found], notes) == (["empty"], ())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    write(tmp_path / "a.log").chmod(0)
    write(tmp_path / "b.log")
    _, notes = discover([str(tmp_path)])
    assert "no permission" in notes[0]


def test_a_file_that_vanishes_while_being_read(tmp_path: Path) -> None:
    problems: list[str] = []
    assert list(chunks(Input("gone.log", tmp_path / "gone.log", 10), problems)) == []
    assert problems == ["no such file or folder; what came before was read"]


@pytest.mark.parametrize("given", [LOG, gzip.compress(LOG)], ids=["plain", "gzip"])
def test_stdin(monkeypatch: pytest.MonkeyPatch, given: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    (item,), _ = discover(["-"])
    assert item.name == "-"
    assert b"".join(chunks(item, [])) == LOG


def test_process_substitution_is_read_and_a_plain_pipe_is_not(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"hello\n")
    os.close(writer)
    (item,), _ = discover([f"/dev/fd/{reader}"])
    assert b"".join(chunks(item, [])) == b"hello\n"
    os.close(reader)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="named pipe"):
        discover([str(tmp_path / "pipe")])


def test_names_fit_for_a_terminal(tmp_path: Path) -> None:
    name = os.fsdecode(b"rank_0\xff\x1b[31m\n.log")
    write(tmp_path / name)
    (item,), _ = discover([str(tmp_path)])
    assert item.name == f"{tmp_path}/rank_0��[31m�.log"
    assert b"".join(chunks(item, [])) == LOG


def test_natural_order() -> None:
    assert sorted(["r10", "r9", "r1b", "r1"], key=natural) == ["r1", "r1b", "r9", "r10"]


def test_links_into_the_kernel_s_files_and_up_are_not_followed_and_those_out_of_the_folder_are_said(
    tmp_path: Path,
) -> None:
    beside, folder = tmp_path / "beside", tmp_path / "run"
    for made in (beside, folder):
        made.mkdir()
        (made / "job.log").write_text("step 1 loss 2.0\n")
    for name, target in (
        ("kmsg.txt", "/proc/kmsg"),
        ("self", "/proc/self"),
        ("up", ".."),
        ("same.log", "job.log"),
        ("out", str(beside)),
    ):
        (folder / name).symlink_to(target)
    found, notes = discover([str(folder)])
    assert [item.name for item in found] == [f"{folder}/job.log", f"{folder}/out/job.log"]
    told = dict(note.rsplit(": ", 1)[::-1] for note in notes)
    assert set(told["a link into the kernel's own files, left out"].split(", ")) == {
        f"{folder}/kmsg.txt",
        f"{folder}/self",
    }
    assert told["a link to a folder above, left out"] == f"{folder}/up"
    assert told["a link that leads out of the folder"] == f"{folder}/out"
