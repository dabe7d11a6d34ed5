from __future__ import annotations

from triage.domain import RawLine, ScannedFile, ScannedRun, Template
from triage.ingest.assemble import assemble


def raw(number: int, text: str) -> RawLine:
    return RawLine(number, text.encode())


def template(id_: int, count: int, first: list[RawLine], last: list[RawLine] = [], **more: object) -> Template:  # noqa: B006
    return Template(
        id_, count, tuple(first), tuple(last), more.get("rule"), bool(more.get("hot")), more.get("ranks", ())
    )  # type: ignore[arg-type]


def test_lines_in_order_each_once_with_what_they_stand_for() -> None:
    step = template(0, 100, [raw(1, "step 1"), raw(3, "step 2")], [raw(110, "step 99")], rule="steps", ranks=(0, 1))
    boom = template(1, 1, [raw(2, "RuntimeError: boom")], hot=True)
    run = ScannedRun(
        1, 110, (step, boom), (raw(1, "step 1"), raw(109, "step 98"), raw(110, "step 99"), raw(2, "x")), 5000
    )
    file = assemble(ScannedFile("logs/rank_3.log", 5000, 110, (run,)))
    assert [(line.number, line.text, line.repeats, line.template) for line in file.lines] == [
        (1, "step 1", 97, 0),
        (2, "RuntimeError: boom", 1, 1),
        (3, "step 2", 1, 0),
        (109, "step 98", 1, 0),
        (110, "step 99", 1, 0),
    ]
    first, boom_line, *_ = file.lines
    assert (first.rule, first.ranks, first.hot) == ("steps", (0, 1), False)
    assert (boom_line.rule, boom_line.hot) == (None, True)
    assert file.dropped == {"steps": 100}
    assert file.rank == 3 and {line.rank for line in file.lines} == {3}
    assert file.runs == ()


def run_of(first_line: int, texts: list[str], hot: bool = False) -> ScannedRun:
    templates = tuple(template(i, 1, [raw(first_line + i, text)], hot=hot) for i, text in enumerate(texts))
    return ScannedRun(first_line, first_line + len(texts) - 1, templates, (), sum(map(len, texts)))


def test_the_last_run_is_read_and_the_earlier_ones_are_listed() -> None:
    one = run_of(1, ["start", "step 1", "step 2", "ValueError: bad shape"])
    two = run_of(
        5, ["start", "step a", "step b", "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2024-05-01T10:00:00 ***"]
    )
    file = assemble(ScannedFile("job.out", 100, 8, (one, two)), "job", ("job.out: cut",))
    assert (file.first_line, file.last_line, file.problems) == (5, 8, ("job.out: cut",))
    assert [line.number for line in file.lines] == [5, 6, 7, 8]
    assert [(r.first_line, r.last_line, r.outcome, r.ended_line) for r in file.runs] == [
        (1, 4, "failed", 4),
        (5, 8, "interrupted", 8),
    ]


def test_a_tail_of_a_few_lines_belongs_to_the_run_before() -> None:
    body = run_of(1, ["start", "one", "two", "three"])
    file = assemble(ScannedFile("job.out", 100, 6, (body, run_of(5, ["", "done"]))))
    assert [line.number for line in file.lines] == [1, 2, 3, 4, 5, 6]
    assert file.runs == ()
    assert len({line.template for line in file.lines}) == 6


def test_a_short_tail_with_a_telling_line_is_a_run() -> None:
    body = run_of(1, ["start", "one", "two", "three"])
    file = assemble(ScannedFile("job.out", 100, 5, (body, run_of(5, ["sbatch: error: no such partition"], hot=True))))
    assert [line.number for line in file.lines] == [5]


def test_an_empty_file() -> None:
    file = assemble(ScannedFile("job.out", 0, 0, ()))
    assert (file.lines, file.first_line, file.last_line) == ((), 1, 0)
