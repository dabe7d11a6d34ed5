from dataclasses import replace
from datetime import UTC, datetime

import pytest

from triage.compress.view import fold, rank_ranges
from triage.compress.wording import gist, wording
from triage.domain import Folded, JobLog, LogFile, LogLine
from triage.heads import split

PLENTY = 10_000
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "train.py", line 12, in <module>',
    "    main()",
    "ValueError: batch size 3 is not divisible",
)


def file(*lines: LogLine | str, name: str = "job.log", rank: int | None = None, dropped=None) -> LogFile:
    found = [line if isinstance(line, LogLine) else LogLine(name, at, line) for at, line in enumerate(lines, 1)]
    last = max((line.number for line in found), default=0)
    return LogFile(name, "job", tuple(found), 100, last, last_line=last, rank=rank, dropped=dropped or {})


def shown(folded: Folded) -> list[tuple[int, str, int, str]]:
    return [(line.number, line.text, line.repeats, rank_ranges(line.ranks)) for line in folded.lines]


def texts(folded: Folded) -> list[str]:
    return [line.text for line in folded.lines]


def test_rank_ranges():
    assert [rank_ranges(r) for r in ((), (3,), (0, 1, 2, 5), (7, 5, 6, 5))] == ["", "3", "0-2,5", "5-7"]


def test_routine_lines_are_left_out_and_counted():
    routine = LogLine("job.log", 2, "loss 2.1", rule="metrics", repeats=9)
    folded = fold(JobLog((file("start", routine, "end", dropped={"metrics": 9}),)), PLENTY)
    assert texts(folded) == ["start", "end"]
    assert folded.account.dropped == {"metrics": 9}


def test_consecutive_lines_of_a_template_become_one():
    lines = [LogLine("job.log", n, f"{n % 4}: shard {n} done", rank=n % 4, template=5) for n in range(1, 9)]
    folded = fold(JobLog((file(*lines, "end"),)), PLENTY)
    assert shown(folded) == [(1, "1: shard 1 done", 8, "0-3"), (9, "end", 1, "")]
    assert folded.account.folded == 7


def test_errors_that_differ_in_an_identifier_stay_apart():
    pairs = [
        ("node-3: ERROR: link down", "node-4: ERROR: link down"),
        ("ERROR: device /dev/nvme0 failed", "ERROR: device /dev/nvme1 failed"),
        ("WARNING: retry 1 of 5", "WARNING: retry 2 of 5"),
        ("[Rank 3] Watchdog error", "[Rank 4] Watchdog error"),
        ("ERROR: cannot open /a/b", "ERROR: cannot open /a/f"),
    ]
    for pair in pairs:
        lines = [LogLine("job.log", at, text, template=1) for at, text in enumerate(pair, 1)]
        assert texts(fold(JobLog((file(*lines),)), PLENTY)) == list(pair)


def test_errors_alike_but_for_label_and_time_become_one_with_their_ranks():
    texts_ = [f"{rank}: 2026-11-29 10:00:0{rank},123 ERROR: store unreachable" for rank in (0, 1, 2, 7)]
    lines = [LogLine("job.log", at, text, rank=int(text[0]), template=2) for at, text in enumerate(texts_, 1)]
    lines.insert(2, LogLine("job.log", 9, "something between", template=3))
    assert shown(fold(JobLog((file(*lines),)), PLENTY)) == [
        (1, texts_[0], 4, "0-2,7"),
        (9, "something between", 1, ""),
    ]


def test_a_line_that_stands_for_itself_has_its_own_rank_not_those_of_its_template():
    lines = [
        LogLine(
            "job.log", n, f"{n % 2}: ERROR: no manager for unit {n // 2}", rank=n % 2, template=1, ranks=(0, 1, 2, 3)
        )
        for n in range(4)
    ]
    assert [line[2:] for line in shown(fold(JobLog((file(*lines),)), PLENTY))] == [(2, "0-1"), (2, "0-1")]


def test_kernel_and_glog_stamps_count_as_time():
    lines = ["[  12.345678] NVRM: error", "[  13.345678] NVRM: error"]
    assert len(fold(JobLog((file(*lines),)), PLENTY).lines) == 1
    lines = ["[rank0]:[E1118 10:51:07.264660466 a.cpp:6] lost", "[rank3]:[E1118 10:51:08.264660466 a.cpp:6] lost"]
    assert len(fold(JobLog((file(*lines),)), PLENTY).lines) == 1


def test_interleaved_tracebacks_of_many_ranks_become_one_block():
    lines = [f"{rank}: {text}" for text in TRACEBACK for rank in range(4)]
    found = file(*(LogLine("job.log", at, text, rank=int(text[0])) for at, text in enumerate(lines, 1)))
    assert shown(fold(JobLog((found,)), PLENTY)) == [
        (1 + 4 * at, f"0: {text}", 4, "0-3") for at, text in enumerate(TRACEBACK)
    ]


def test_the_same_traceback_in_the_files_of_many_ranks_becomes_one_block():
    job = JobLog(tuple(file(f"hello {rank}", *TRACEBACK, name=f"rank_{rank}.log", rank=rank) for rank in range(3)))
    folded = fold(job, PLENTY)
    assert [line.text for line in folded.lines if line.repeats == 3] == list(TRACEBACK)
    assert {rank_ranges(line.ranks) for line in folded.lines if line.repeats == 3} == {"0-2"}


def test_tracebacks_that_differ_in_a_word_stay_whole():
    other = (*TRACEBACK[:-1], "ValueError: batch weight 3 is not divisible")
    assert texts(fold(JobLog((file(*TRACEBACK, *other),)), PLENTY)) == [*TRACEBACK, *other]


def test_tracebacks_that_differ_in_numbers_paths_and_what_is_quoted_become_one():
    blocks = [[*TRACEBACK[:-1], f"OSError: [Errno 28] No space left: '/tmp/pymp-{c * 8}'"] for c in "abcdefgh"]
    lines = [f"{rank}: {text}" for rank, block in enumerate(blocks) for text in block]
    found = file(*(LogLine("job.log", at, text, rank=int(text[0])) for at, text in enumerate(lines, 1)))
    assert shown(fold(JobLog((found,)), PLENTY)) == [(at, lines[at - 1], 8, "0-7") for at in range(1, 5)]


def test_a_jumble_of_unlabelled_tracebacks_folds_line_by_line():
    lines = [text for text in TRACEBACK for _ in range(4)]
    assert [(line.text, line.repeats) for line in fold(JobLog((file(*lines),)), PLENTY).lines] == [
        (text, 4) for text in TRACEBACK
    ]


def test_chained_exceptions_are_one_block():
    chain = (*TRACEBACK, "", "During handling of the above exception, another exception occurred:", "", *TRACEBACK)
    folded = fold(JobLog((file(*chain, *chain),)), PLENTY)
    assert [(line.text, line.repeats) for line in folded.lines] == [(text, 2) for text in chain]


def test_a_protected_line_is_shown_though_a_rule_or_fold_would_take_it():
    routine = LogLine("job.log", 1, "loss 2.1", rule="metrics", repeats=5, template=0)
    twin = [LogLine("job.log", n, "ERROR: x", template=1) for n in (2, 3)]
    folded = fold(JobLog((file(routine, *twin, dropped={"metrics": 5}),)), 1, [("job.log", 1), ("job.log", 3)])
    assert {line.number for line in folded.lines} >= {1, 3}
    assert folded.account.dropped == {"metrics": 4}


def test_the_budget_keeps_ends_and_onset_and_says_what_it_cut():
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)} speaks at length about nothing much" for n in range(600)]
    lines = [*words[:300], "node-7: ERROR: link down", *words[300:]]
    folded = fold(JobLog((file(*lines),)), 600)
    numbers = [line.number for line in folded.lines]
    assert {1, 2, 3, 301, 302, 600, 601} <= set(numbers)
    assert numbers == sorted(numbers)
    assert folded.account.tokens_kept <= 600
    assert folded.cut == (
        f"left out to fit 600 tokens: {601 - len(numbers)} of 600 other lines; "
        f"text of no repeating kind: 600 lines unlike each other, {len(numbers) - 1} shown",
    )
    assert folded.account.cut == 601 - len(numbers)


def test_every_line_is_accounted_for():
    routine = LogLine("job.log", 3, "loss 2.1", rule="metrics", repeats=90, template=0)
    lines = [LogLine("job.log", n, f"word {n}", template=7) for n in (1, 2)]
    found = LogFile(
        "job.log", "job", (*lines, routine, *file(*TRACEBACK).lines), 1, 2000, first_line=1001, last_line=2000,
        dropped={"metrics": 90},
    )  # fmt: skip
    for room in (1, 40, PLENTY):
        folded = fold(JobLog((found,)), room)
        a = folded.account
        assert a.lines_kept + a.folded + a.cut + sum(a.dropped.values()) == 1000
        assert folded.cut[0] == "job.log: lines 1-1000 belong to earlier runs"


def test_a_huge_line_is_shortened_in_its_middle():
    (line,) = fold(JobLog((file("a" * 5000 + "z"),)), PLENTY).lines
    assert len(line.text) < 1100
    assert line.text.startswith("aaa")
    assert line.text.endswith("z")


def test_a_flood_of_one_kind_of_error_does_not_hide_another():
    flood = [f"[ERROR] cannot move /data/{chr(97 + n % 26)}{n}.mid" for n in range(500)]
    folded = fold(JobLog((file("start", *flood[:250], "OSError: disk quota exceeded", *flood[250:], "end"),)), 400)
    assert "OSError: disk quota exceeded" in texts(folded)
    assert folded.account.tokens_kept <= 400


def test_a_long_traceback_gives_its_end_before_its_frames():
    frames = [text for n in range(200) for text in (f'  File "a{n}.py", line {n}, in f', f"    call_{n}(x)")]
    folded = fold(JobLog((file("start", TRACEBACK[0], *frames, "ValueError: no", *["tail"] * 3),)), 300)
    assert {"ValueError: no", "    call_199(x)"} <= set(texts(folded))


def test_gist_is_what_remains_without_names_and_numbers():
    assert gist("Fatal error on MAPS_MUS-a_1.mid: [Errno 13] at /a/b") == "Fatal error on Errno at"
    assert gist("0x7f12 == 12") == "0x7f12 == 12"


@pytest.mark.parametrize(
    ("text", "labels", "body"),
    [
        ("3: hello", "3:", "hello"),
        ("0: [rank12]:   File x", "0:[rank12]:", "  File x"),
        ("[1,7]<stderr>: x", "[1,7]<stderr>:", "x"),
        ("(Worker pid=7, ip=10.0.0.1) x", "(Worker pid=7, ip=10.0.0.1)", "x"),
        ("2026-11-29 10:00:01,234 x", "", "x"),
        ("[2026-11-29T10:00:01.234567Z] 5: x", "5:", "x"),
        ("Nov 29 10:00:01 host kernel: x", "", "host kernel: x"),
        ("[15:29:44:893254]:[Warning]:x", "", "[Warning]:x"),
        ("[rank0]:[E1118 10:51:07.264660466 a.cpp:6] x", "[rank0]:", "[E a.cpp:6] x"),
        ("E1118 10:51:07.264660 123 a.cc:6] x", "", "E 123 a.cc:6] x"),
        ("12:05 lunch", "", "12:05 lunch"),
    ],
)
def test_labels_and_stamps_are_split_off(text, labels, body):
    assert split(text) == (labels, body)


def test_a_wording_is_shown_a_few_times_and_then_counted():
    lines = [
        text
        for n in range(40)
        for text in (f"answer to 'question {chr(97 + n % 26)}'", *[f"{chr(97 + n)}{m} word" for m in "pqrs"])
    ]
    folded = fold(JobLog((file(*lines, "one", "two"),)), PLENTY)
    answers = [line for line in folded.lines if line.text.startswith("answer")]
    assert [line.repeats for line in answers] == [1, 1, 38]
    assert texts(folded)[-2:] == ["one", "two"]


def test_the_ends_of_each_file_are_shown_though_their_wording_was_often_seen():
    files = [file("start", *["step at '/a/x' done"] * 3, f"last step of '{name}'", name=name) for name in "pqrst"]
    folded = fold(JobLog(tuple(files)), PLENTY)
    assert [line.file for line in folded.lines if line.text.startswith("last step")] == list("pqrst")


def test_errors_of_one_wording_fold_only_when_there_is_no_room_and_then_the_first_few_stay():
    flood = [f"PermissionError: [Errno 13] Permission denied: '/data/{chr(97 + n % 26)}/{n}.mid'" for n in range(60)]
    job = JobLog((file("start", *flood, "end"),))
    assert len(fold(job, PLENTY).lines) == 62
    pressed = fold(job, 300)
    assert [line.repeats for line in pressed.lines if "Errno" in line.text] == [1, 1, 58]
    assert pressed.account.cut == 0


def test_what_ended_earlier_runs_is_shown_and_accounted_for():
    found = LogFile(
        "job.log", "job", file("again", "ok").lines, 1, 300, first_line=299, last_line=300,
        earlier=(LogLine("job.log", 120, "ValueError: no"), LogLine("job.log", 290, "ValueError: no")),
    )  # fmt: skip
    folded = fold(JobLog((found,)), PLENTY)
    assert shown(folded)[0] == (120, "ValueError: no", 2, "")
    assert folded.account.folded == 1
    assert folded.account.cut == 0
    assert folded.cut == ("job.log: lines 1-298 belong to earlier runs, of which only what ended them is shown",)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("cannot read '/a/b.mid' at 3", "cannot read '/x/y/z' at 17", True),
        ("mask: {1, 2, 3}", "mask: {4, 5, 6, 7}", True),
        ("commit 3fa9c1d2 pushed", "commit 0011aabb pushed", True),
        ("loss 2.5", "lost 2.5", False),
        ("node-a failed", "node-b failed", False),
        ("it's so: 'a'", "it's so: 'b'", True),
    ],
)
def test_wording(one, other, same):
    assert (wording(one) == wording(other)) is same


def test_text_that_tells_of_no_trouble_gets_a_part_of_the_budget_only():
    words = [
        f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)} speaks of nothing much" for n in range(900)
    ]
    folded = fold(JobLog((file(*words),)), 4000)
    assert 1500 < folded.account.tokens_kept <= 2400
    trouble = [f"node-{chr(97 + n % 26)}{chr(97 + n // 26)}: ERROR: link down" for n in range(300)]
    assert fold(JobLog((file(*words, *trouble),)), 4000).account.tokens_kept > 3500


def test_errors_that_differ_in_their_process_become_one_across_labelled_ranks():
    says = "[node-a:0:{pid} unique id 0] ERROR no manager", "node-a:{pid}:{pid} [0] NCCL WARN no link (pid={pid})"
    for said in says:
        lines = [
            LogLine("job.log", n + 1, f"{n}: " + said.format(pid=85181 + n), rank=n, level="error") for n in range(16)
        ]
        assert shown(fold(JobLog((file(*lines),)), PLENTY)) == [(1, lines[0].text, 16, "0-15")]


def test_a_line_of_one_rank_has_it():
    (line,) = fold(JobLog((file("hello", rank=3),)), PLENTY).lines
    assert line.ranks == (3,)


def test_a_cited_traceback_alike_to_an_earlier_one_is_its_cited_line_alone():
    folded = fold(JobLog((file(*TRACEBACK, *TRACEBACK, "end"),)), PLENTY, [("job.log", 4), ("job.log", 8)])
    assert [(line.number, line.repeats) for line in folded.lines] == [(1, 2), (2, 2), (3, 2), (4, 1), (8, 1), (9, 1)]


def test_a_shortened_traceback_is_its_headers_and_where_each_ends():
    def chained(kind: str) -> list[str]:
        frames = [
            text for n in range(40) for text in (f'  File "a.py", line {n}, in {kind}{"ab"[n % 2]}', f"    {kind}()")
        ]
        between = "During handling of the above exception, another exception occurred:"
        return [TRACEBACK[0], *frames, f"KeyError: {kind}", between, TRACEBACK[0], *frames, f"ValueError: {kind}"]

    lines = [text for kind in ("read", "send", "load", "save") for text in chained(kind)]
    folded = fold(JobLog((file("start", *lines, "end"),)), 2000)
    found = texts(folded)
    assert folded.account.cut > 0
    for kind in ("read", "send", "load", "save"):
        assert {f"KeyError: {kind}", f"ValueError: {kind}"} <= set(found)
    assert found.count(TRACEBACK[0]) == 8
    gaps = sum(b.number - a.number > 1 for a, b in zip(folded.lines, folded.lines[1:], strict=False))
    assert gaps <= 8


def test_the_last_line_of_a_file_is_shown_though_a_rule_takes_it_or_it_was_said_long_before():
    routine = LogLine("job.log", 900, "loss 2.1", rule="metrics", repeats=1)
    assert texts(fold(JobLog((file("start", routine, dropped={"metrics": 1}),)), PLENTY)) == ["start", "loss 2.1"]
    said = [LogLine("job.log", n, "UserWarning: lowered") for n in (1, 2, 900)]
    folded = fold(JobLog((file(*said, ""),)), PLENTY)
    assert [(line.number, line.repeats) for line in folded.lines if line.text] == [(1, 2), (900, 1)]


def test_the_last_signs_of_life_before_the_first_error_are_shown():
    at = datetime(2026, 11, 29, 10, tzinfo=UTC)
    steps = [
        LogLine("job.log", n, f"10:00:{n % 60:02} shard {n} moved", time=at, template=3, rule="learned.1")
        for n in range(1, 40)
    ]
    stamped = LogLine("job.log", 40, "10:01:00 all is calm", time=at, rule="calm")
    job = JobLog((file(*steps, stamped, *TRACEBACK, dropped={"learned.1": 39, "calm": 1}),))
    folded = fold(job, PLENTY)
    assert texts(folded)[:2] == ["10:00:39 shard 39 moved", "10:01:00 all is calm"]
    assert folded.account.dropped == {"learned.1": 38}
    assert "shard 39" not in "".join(texts(fold(JobLog((file(*steps, stamped, "end"),)), PLENTY)))


def book(lines: int) -> list[str]:
    words = [f"{a}{b}{c}" for a in "qrstuv" for b in "aeiou" for c in "lmnprstvwz"]
    return [" ".join(words[(n * k + k) % 300] for k in (1, 7, 11, 13)) for n in range(lines)]


def test_of_text_of_no_repeating_kind_a_few_passages_are_shown():
    text = book(1500)
    text[400] = "he was unable to see the " + text[400]
    text[900] = "without warning the door was opened " + text[900]
    text[1200] = "OSError: [Errno 28] No space left on device"
    folded = fold(JobLog((file(*text),)), 4000)
    gaps = sum(b.number - a.number > 1 for a, b in zip(folded.lines, folded.lines[1:], strict=False))
    assert gaps <= 12
    assert 1201 in [line.number for line in folded.lines]
    assert folded.account.lines_kept > 60
    assert "text of no repeating kind" in folded.cut[0]


def test_a_lone_short_line_is_shown_rather_than_the_mark_of_a_gap():
    errors = [
        f"ERROR: {a}{b} went wrong in a way that takes many words to tell" for a in "abcdefgh" for b in "pqrstuvw"
    ]
    lines = [text for error in errors for text in (error, f"so {error[7:9]}")]
    folded = fold(JobLog((file(*lines, "end"),)), 2200)
    numbers = {line.number for line in folded.lines}
    assert not [line for line in folded.lines if line.number + 2 in numbers and line.number + 1 not in numbers]


def test_what_was_not_read_is_told():
    job = JobLog(
        (replace(file("hello"), problems=("2 bytes were no text", "to bound memory, x")),), ("a.gz: not read",)
    )
    folded = fold(job, PLENTY)
    assert folded.missing == ("a.gz: not read", "job.log: 2 bytes were no text")
    assert folded.files == (("job.log", 1),)
