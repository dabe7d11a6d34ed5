from triage.domain import Compression, Folded, LogLine
from triage.report import folded_json, render_folded


def document(*lines: LogLine, files=(("job.log", 9),), missing=(), kept: int = 10) -> dict:
    account = Compression(bytes_in=1_000_000, lines_in=2_000, lines_kept=len(lines), bytes_kept=kept)
    return folded_json(Folded(tuple(lines), account, (), files, missing))


def test_gaps_are_told_at_the_beginning_between_lines_and_at_the_end():
    lines = [LogLine("job.log", n, f"line {n}") for n in (3, 4, 6)]
    assert render_folded(document(*lines)).splitlines()[:7] == [
        "           ... 2 lines",
        "        3  line 3",
        "        4  line 4",
        "           ... 1 line",
        "        6  line 6",
        "           ... 3 lines",
        "",
    ]


def test_counts_have_separators_and_ranks_stand_with_them():
    line = LogLine("job.log", 9, "ERROR: x", repeats=1234, ranks=(0, 1, 2))
    assert "        9  ERROR: x  (x1,234, ranks 0-2)" in render_folded(document(line))
    alone = document(LogLine("job.log", 9, "ERROR: x", ranks=(3,)))
    assert alone["lines"][0]["ranks"] == [3]
    assert "ranks" not in render_folded(alone)


def test_something_kept_is_never_all_left_out():
    assert "over 99.9 % of bytes left out" in render_folded(document(LogLine("job.log", 9, "x")))
    assert "; 100.0 % of bytes left out" in render_folded(document(kept=0))
    assert "; 40.0 % of bytes left out" in render_folded(document(kept=600_000))


def test_what_was_not_read_and_files_without_a_line_are_told():
    files = (("a.log", 9), ("b.log", 5))
    made = document(LogLine("a.log", 9, "x"), files=files, missing=("c.gz: not read",))
    text = render_folded(made)
    assert made["missing"] == ["c.gz: not read"]
    assert "# not seen: c.gz: not read" in text
    assert "# 1 file of which nothing is shown" in text
    assert text.startswith("== a.log\n")
