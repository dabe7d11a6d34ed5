import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compress.seed import EVERYTHING, RULES, kept, scanner
from tests.compress.test_scan_properties import LOGS, SMALL
from triage.compress.dropped import Shown, dropped
from triage.errors import NotFoundError

DATA = b"""\
start
worker 1 added
one
two
three
worker 2 dead
worker 3 added
worker 4 added\r
four
"""


def numbers(context: int) -> list[tuple[int, bool]]:
    return [(line.number, line.taken) for line in dropped(scanner(EVERYTHING), "worker", [DATA], context)]


def test_the_lines_a_rule_took_come_with_their_numbers():
    assert list(dropped(scanner(), "worker", [DATA])) == [
        Shown(2, "worker 1 added", True),
        Shown(7, "worker 3 added", True),
        Shown(8, "worker 4 added", True),
    ]


def test_context_is_shown_once_and_in_order():
    t, f = True, False
    assert numbers(1) == [(1, f), (2, t), (3, f), (6, f), (7, t), (8, t), (9, f)]
    assert numbers(2) == [(1, f), (2, t), (3, f), (4, f), (5, f), (6, f), (7, t), (8, t), (9, f)]
    assert [n for n, _ in numbers(50)] == list(range(1, 10))


@settings(deadline=None)
@given(LOGS, st.sampled_from([SMALL, EVERYTHING]), st.integers(0, 3))
def test_what_is_shown_is_what_the_scan_counted(data, limits, context):
    scanned = scanner(limits).scan("job.log", [data])
    for rule in RULES:
        lines = list(dropped(scanner(limits), rule.id, [data], context))
        assert [line.number for line in lines if line.taken] == [n for n, _, kind in kept(scanned) if kind == rule.id]
        assert all(a.number < b.number for a, b in itertools.pairwise(lines))


def test_lines_come_before_the_file_ends():
    def endless():
        while True:
            yield b"worker 1 added\n" * 10_000

    assert [line.number for line in itertools.islice(dropped(scanner(), "worker", endless()), 3)] == [1, 2, 3]


def test_secrets_are_replaced():
    (line,) = dropped(
        scanner(), "metrics", [b"iteration 1/ 9 | export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"]
    )
    assert "wJalrXUtnFEMI" not in line.text


def test_an_unknown_rule_is_named_with_those_alike():
    with pytest.raises(NotFoundError, match="no filter rule 'metric'; perhaps metrics"):
        dropped(scanner(), "metric", [])
