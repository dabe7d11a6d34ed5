from triage.compress.engine import Scanner
from triage.domain import FilterRule

RULES = (FilterRule("metrics", "metric lines", r"^(?:\d+: )?iteration\s+\d+ \| loss .*$"),)


def scan(data: bytes, **kwargs):
    return Scanner(RULES, kwargs.pop("hot", ()), **kwargs).scan("job.log", [data])


def test_lines_are_counted_by_newline_and_routine_ones_by_rule():
    found = scan(b"0: iteration 1 | loss 2.5\r\n1: iteration 2 | loss 2.4\nhello\rworld")
    assert (found.lines_in, found.bytes_in) == (3, 64)
    (run,) = found.runs
    assert [(t.rule, t.count, t.first[0].raw) for t in run.templates] == [
        ("metrics", 2, b"0: iteration 1 | loss 2.5"),
        (None, 1, b"world"),
    ]


def test_no_rule_takes_an_error():
    found = scan(b"iteration 1 | loss 2.5 ERROR: gradient overflow")
    assert found.runs[0].templates[0].rule is None
