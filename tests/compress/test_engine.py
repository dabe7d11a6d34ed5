import dataclasses
import tracemalloc

import pytest

from tests.compress.seed import EVERYTHING, kept, scan, scanner
from triage.compress.engine import ScanLimits
from triage.domain import ScannedFile, Template


def templates(found: ScannedFile) -> dict[bytes, Template]:
    """By first kept line, of the last run."""
    return {template.first[0].raw: template for template in found.runs[-1].templates if template.first}


def test_nothing_in_a_file_makes_no_run():
    assert (scan(b"").lines_in, scan(b"").runs) == (0, ())
    assert scan([b"", b""]).runs == ()


def test_lines_are_counted_by_newline_and_routine_ones_by_rule():
    found = scan(b"0: iteration 1/ 9 | loss 2.5\r\n1: iteration 2/ 9 | loss 2.4\nhello\rworld")
    assert (found.lines_in, found.bytes_in) == (3, 70)
    assert [(t.rule, t.count, t.first[0].raw) for t in found.runs[0].templates] == [
        ("metrics", 2, b"0: iteration 1/ 9 | loss 2.5"),
        (None, 1, b"world"),
    ]


def test_a_file_cut_in_a_line_yields_that_line():
    assert kept(scan(b"one\ntwo\nthr"))[-1] == (3, b"thr", "")


def test_occurrences_kept_are_the_first_and_the_last():
    data = b"".join(b"word %d\n" % n for n in range(1, 101))
    (template,) = scan(data).runs[0].templates
    assert [line.number for line in template.first] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [line.number for line in template.last] == [93, 94, 95, 96, 97, 98, 99, 100]
    assert template.count == 100


def test_hot_lines_are_kept_by_the_thousand_even_between_twins_that_are_not():
    lines = [b"exit code 0"] * 100_000
    for at in range(10_000, 15_000, 5):
        lines[at] = b"exit code 9"
    found = scan(b"\n".join(lines))
    assert [number for number, _, kind in kept(found) if kind == "hot"] == list(range(10_001, 15_001, 5))
    assert sum(t.count for t in found.runs[0].templates) == 100_000


def test_errors_that_no_signature_knows_are_kept_by_the_hundred():
    data = b"".join(b"ERROR: link %d down\n" % n for n in range(400))
    assert len(kept(scan(data))) == 400


def test_coloured_lines_of_a_skeleton_are_told_apart():
    lines = [b"\x1b[31mwork\x1b[0mer %d added" % n for n in range(50)]
    lines[25] = b"\x1b[31mwork\x1b[0mer 25 dead"
    found = scan(b"\n".join(lines), EVERYTHING)
    assert [number for number, _, kind in kept(found) if kind == "hot"] == [26]
    assert {kind for _, _, kind in kept(found)} == {"worker", "hot"}


def test_a_rule_takes_over_after_a_first_line_that_it_may_not_take():
    data = b"5 done, errors: 2\n" + b"5 done, errors: 0\n" * 5000
    counts = {t.rule: t.count for t in scan(data).runs[0].templates}
    assert counts[None] < 10
    assert counts["counts"] > 4990


def test_ranks_come_from_the_labels_of_lines_that_no_rule_takes():
    data = b"".join(b"%d: hello\n[rank%d]: bye\n%d: [rank%d]: both\n" % (n, n, n // 8, n) for n in range(16))
    found = templates(scan(data))
    assert found[b"0: hello"].ranks == tuple(range(16))
    assert found[b"[rank0]: bye"].ranks == tuple(range(16))
    assert found[b"0: [rank0]: both"].ranks == tuple(range(16))
    assert templates(scan(b"10:02: hello\n"))[b"10:02: hello"].ranks == ()


def test_edges_are_the_head_and_the_tail_word_for_word():
    data = b"".join(b"iteration %d/ 9 | x\n" % n for n in range(1, 1001))
    edges = scan(data).runs[0].edges
    assert [line.number for line in edges] == [*range(1, 61), *range(701, 1001)]
    assert edges[-1].raw == b"iteration 1000/ 9 | x"
    assert [line.number for line in scan(data[:2000]).runs[0].edges] == list(range(1, data[:2000].count(b"\n") + 2))


# ------------------------------------------------------------------------------------------------ odd lines
@pytest.mark.parametrize("size", [65_536, 1_000_000])
def test_a_line_of_megabytes_is_cut_in_its_middle_and_never_held_whole(size):
    def chunks():
        yield b"before\nstart"
        for _ in range(40_000_000 // size):
            yield b"x" * size
        yield b"end\nafter\n"

    tracemalloc.start()
    found = scan(chunks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.lines_in, found.bytes_in) == (3, 40_000_000 // size * size + 22)
    raw = {number: raw for number, raw, _ in kept(found)}
    assert raw[2].startswith(b"startxxx")
    assert raw[2].endswith(b"xxxend")
    assert len(raw[2]) < 140_000
    assert b"bytes cut]" in raw[2]
    assert peak < 12_000_000


def test_a_line_within_the_limit_is_kept_whole():
    limits = ScanLimits(line_limit=9000, line_keep=10)
    assert kept(scan(b"y" * 9000, limits)) == [(1, b"y" * 9000, "")]
    assert kept(scan(b"y" * 9001, limits))[0][1] == b"y" * 10 + b" ...[8981 bytes cut]... " + b"y" * 10


def test_an_error_that_a_progress_bar_painted_over_is_found_in_a_line_of_any_length():
    bars = b"".join(b"\r %d%%|##| %d/9 [" % (n % 100, n) for n in range(60_000))
    data = b"start" + bars + b"\rCUDA out of memory" + bars + b"\nend"
    for limits in (ScanLimits(), ScanLimits(block=1000, line_limit=5000)):
        (_, raw, kind), _ = kept(scan(data, limits))
        assert kind == "hot"
        assert raw.split(" ⏎ ".encode()) == [b"CUDA out of memory", b" 99%|##| 59999/9 ["]


def test_a_progress_bar_is_known_by_its_last_state():
    assert kept(scan(b"\r 1%|#| 1/9 [\r 9%|##| 9/9 [\r\x1b[K\r\n")) == [(1, b" 9%|##| 9/9 [", "bar")]


def test_bytes_that_are_no_text():
    data = b"\x00\x00\xff\xfeab\n" + bytes(range(256)) + b"\n\n"
    assert scan(data).lines_in == data.count(b"\n")
    wide = "Killed\n".encode("utf-16-le")
    assert [kind for _, _, kind in kept(scan(wide))] == ["hot", "blank"]


# ------------------------------------------------------------------------------------------------ runs
class Attempts:
    """A run opens at each line `== attempt N` and at each repetition of the file's first line."""

    first = b""

    def openings(self, block, first_number):
        lines = block.lines
        assert len(lines) == len(block) == sum(block.counts.values())
        if first_number == 1:
            self.first = lines[0]
        return [
            at
            for at, line in enumerate(lines)
            if first_number + at > 1 and (line.startswith(b"== attempt") or line == self.first)
        ]


def test_runs_are_split_where_the_finder_says():
    data = b"hello\na\nb 1\n== attempt 1\nb 2\n== attempt 2\nhello\nb 3\nb 4"
    found = scan(data, runs=Attempts)
    assert [(run.first_line, run.last_line, run.started_by) for run in found.runs] == [
        (1, 3, ""), (4, 5, "== attempt 1"), (6, 6, "== attempt 2"), (7, 9, "hello"),
    ]  # fmt: skip
    assert [sum(t.count for t in run.templates) for run in found.runs] == [3, 2, 1, 3]
    assert sum(run.bytes_in for run in found.runs) == found.bytes_in == len(data)
    assert [line.number for line in found.runs[-1].edges] == [7, 8, 9]
    ids = [t.id for run in found.runs for t in run.templates]
    assert ids == sorted(set(ids))


def test_very_many_runs_keep_the_last_ones_in_full():
    limits = ScanLimits(max_runs=20)
    data = b"".join(b"== attempt %d\nword %d\n" % (n, n) for n in range(300))
    found = scan(data, limits, runs=Attempts)
    assert found.runs[-1].templates[0].first[0].raw == b"== attempt 299"
    assert len(found.runs) < 60
    assert [(a.last_line + 1) for a in found.runs[:-1]] == [b.first_line for b in found.runs[1:]]
    assert sum(t.count for run in found.runs for t in run.templates) == 600
    assert sum(run.bytes_in for run in found.runs) == len(data)
    assert any("earlier run" in problem for problem in found.problems)


# ------------------------------------------------------------------------------------------------ bounds
def words(n: int) -> bytes:
    """A word of its own skeleton."""
    return b"".join(bytes([103 + (n >> shift) % 16]) for shift in (0, 4, 8, 12, 16))


def test_a_small_budget_keeps_head_tail_and_hot_lines_and_says_what_it_gave_up():
    lines = [b"some words " + words(n) + b" and a longer text that fills the budget" for n in range(30_000)]
    for at in range(5_000, 25_000, 100):
        lines[at] = b"exit code 9"
    found = scan(b"\n".join(lines), ScanLimits(budget=1 << 20))
    (run,) = found.runs
    numbers = {number for number, _, _ in kept(found)}
    assert sum(kind == "hot" for _, _, kind in kept(found)) == 200
    assert [line.number for line in run.edges] == [*range(1, 61), *range(29_701, 30_001)]
    assert {1, 2, 3, 30_000} <= numbers
    assert sum(len(raw) + 150 for _, raw, _ in kept(found)) < 1 << 20
    assert sum(t.count for t in run.templates) == 30_000
    assert "were only counted" in found.problems[0]


def test_a_flood_of_hot_lines_stays_within_the_budget():
    lines = [b"exit code 9 " + words(n) + b" with words that fill the budget" for n in range(30_000)]
    found = scan(b"\n".join(lines), ScanLimits(budget=1 << 20))
    assert sum(len(raw) + 150 for _, raw, _ in kept(found)) < 1 << 20
    assert sum(t.count for t in found.runs[0].templates) == 30_000
    assert found.problems


def test_memory_stays_bounded_on_lines_that_are_all_different():
    def chunks():
        for start in range(0, 20_000, 1000):
            yield b"".join(
                words(n) + b" a line unlike all others, long as lines are\n" for n in range(start, start + 1000)
            )

    tracemalloc.start()
    found = scan(chunks(), ScanLimits(budget=2 << 20, max_templates=1000, block=64 << 10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(t.count for t in found.runs[0].templates) == 20_000
    assert peak < 8 << 20


def test_earlier_runs_give_way_to_the_last():
    line = b" a line with enough words to fill the budget of the file in time\n"
    data = b"".join(b"== attempt %d\n" % n + b"".join(words(k) + line for k in range(700)) for n in range(6))
    found = scan(data, ScanLimits(budget=1 << 20), runs=Attempts)
    assert len(found.runs) == 6
    assert len(found.runs[-1].templates) == 701
    assert len(found.runs[1].templates) == 1
    assert sum(t.count for run in found.runs for t in run.templates) == 6 * 701


def test_one_scanner_serves_file_after_file():
    one = scanner(EVERYTHING)
    data = b"worker 1 added\nworker 2 dead\n"
    first = one.scan("a", [data])
    assert one.scan("a", [b"other\n"]).lines_in == 1
    assert one.scan("a", [data]) == first
    assert one.scan("b", [data]) == dataclasses.replace(first, name="b")
