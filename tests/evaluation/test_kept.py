from __future__ import annotations

from pathlib import Path

from triage.evaluation.cases import Decisive
from triage.evaluation.kept import alike, kept, texts


def test_lines_that_differ_in_rank_and_stamp_only_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        "[rank0] 10:00:01 RuntimeError: NCCL error\n"
        "[rank1] 10:00:02 RuntimeError: NCCL error\n"
        "[rank1] 10:00:03 out of memory\n"
        "\n\n"
        "[rank7] 10:00:09 RuntimeError: NCCL error\n"
    )
    (tmp_path / "other.log").write_text("[rank9] RuntimeError: NCCL error\n")
    files = {"job.log": tmp_path / "job.log", "other.log": tmp_path / "other.log"}
    ranges = [Decisive("job.log", n, n) for n in (1, 2, 3, 4, 5, 6)] + [Decisive("other.log", 1, 1), Decisive("", 1, 1)]
    assert alike(ranges, files) == [0, 0, 1, 2, 3, 0, 0, 4]  # empty lines and an unnamed file say nothing of their own
    assert alike((), files) == []


def test_different_errors_are_not_alike(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        "[rank0] Traceback (most recent call last):\n[rank0] KeyError: 'a'\n"
        "[rank1] Traceback (most recent call last):\n[rank1] TypeError: no\n"
        "[rank2] Traceback (most recent call last):\n[rank2] KeyError: 'b'\n"
        "lost node a\nlost node b\n====\n====\n"
    )
    ranges = [Decisive("job.log", a, z) for a, z in ((1, 2), (3, 4), (5, 6), (1, 1), (7, 7), (8, 8), (9, 9), (10, 10))]
    assert alike(ranges, {"job.log": tmp_path / "job.log"}) == [0, 1, 0, 2, 3, 4, 5, 6]


def test_a_rule_of_signs_stands_for_no_other_line(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("====\n----\n")
    shown = [("job.log", 1, "====", 2)]
    assert not kept(Decisive("job.log", 2, 2), shown, {"job.log": tmp_path / "job.log"})


def test_a_decisive_line_is_kept_by_its_number_or_in_the_line_that_stands_for_it(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("OSError: '/a/b' at 3\nOSError: '/c/d' at 9\nKeyError: x\n")
    files = {"job.log": log}
    shown = [("job.log", 1, "OSError: '/a/b' at 3", 2)]
    assert kept(Decisive("job.log", 1, 1), shown, files)
    assert kept(Decisive("job.log", 2, 2), shown, files)
    assert not kept(Decisive("job.log", 3, 3), shown, files)
    assert not kept(Decisive("", 2, 2), [("job.log", 1, "OSError: '/a/b' at 3", 1)], files)


def test_the_text_of_labelled_lines_is_cut_and_holds_no_secret(tmp_path: Path) -> None:
    secret = "sk-abcdefghijklmnopqrst0123456789"
    (tmp_path / "job.log").write_text(f"one\ntwo {secret}\nthree\nfour\nfive {'x' * 10_000}\nsix\n")
    (tmp_path / "other.log").write_text("else\n")
    files = {"job.log": tmp_path / "job.log"}
    assert texts([Decisive("job.log", 2, 2), Decisive("job.log", 1, 4), Decisive("", 6, 6)], files) == [
        ("job.log", 1, "one"),
        ("job.log", 2, "two [redacted:api-key]"),
        ("job.log", 3, "three"),
        ("job.log", 6, "six"),
    ]
    ((_, _, long),) = texts([Decisive("job.log", 5, 5)], files)
    assert len(long) == 300
    both = files | {"other.log": tmp_path / "other.log"}
    assert texts([Decisive("", 1, 1)], both) == [], "which file is meant is not known"
