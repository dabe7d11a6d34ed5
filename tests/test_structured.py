"""The words of JSON log lines and of loggers' records, of objects that were cut, and of what is neither."""

from __future__ import annotations

import json

import pytest

from tests.helpers import lines
from triage import kb
from triage.evidence.match import Matcher
from triage.evidence.tracebacks import find_tracebacks
from triage.structured import readings

RAISED = (
    "Traceback (most recent call last):\n  File \"/app/train.py\", line 9, in loop\n    step(batch)\nKeyError: 'labels'"
)


@pytest.mark.parametrize(
    ("logged", "said"),
    [
        ({"level": "ERROR", "message": "loss is nan"}, ("loss is nan",)),
        ({"log": "KeyError: 'labels'\n", "stream": "stderr", "time": "2025-06-01T10:00:00Z"}, ("KeyError: 'labels'",)),
        ({"msg": "failed", "exc_info": RAISED}, ("failed", *RAISED.split("\n"))),
        ({"message": "x", "exception": {"type": "KeyError", "message": "'labels'"}}, ("x", "KeyError: 'labels'")),
        (
            {"event": "x", "exception": [{"exc_type": "ValueError", "exc_value": "bad", "frames": []}]},
            ("x", "ValueError: bad"),
        ),
        ({"step": 10, "loss": 2.1}, ()),
        ({"prompt": "why RuntimeError: CUDA out of memory?", "score": 1}, ()),
    ],
)
def test_the_words_of_an_object_are_those_of_the_program(logged: dict[str, object], said: tuple[str, ...]) -> None:
    assert readings(json.dumps(logged)) == said
    assert readings("2025-06-01T10:00:00Z stdout F " + json.dumps(logged)) == said


@pytest.mark.parametrize(
    "text", ["KeyError: 'labels'", "config = {'a': 1}", "loss {nan}", "", "x" * 400 + '{"message": "late"}']
)
def test_a_line_that_is_no_object_wraps_nothing(text: str) -> None:
    assert readings(text) == ()


@pytest.mark.parametrize(
    "record",
    [
        "2025-06-12 10:00:00,123 - train - {} - KeyError: 'labels'",
        "{}:root:KeyError: 'labels'",
        "2025-06-12 10:00:00.123 | {}    | __main__:main:88 - KeyError: 'labels'",
        'time="2025-06-12T10:00:00Z" level={} msg="KeyError: \'labels\'"',
    ],
)
def test_a_record_of_an_error_holds_the_words_of_the_program(record: str) -> None:
    assert readings(record.format("ERROR")) == ("KeyError: 'labels'",)
    assert readings(record.format("INFO")) == ()
    assert readings(record.format("INFO"), quiet=True) == ("KeyError: 'labels'",)
    assert readings(record.format("NAME"), quiet=True) == ()


def test_an_object_that_was_cut_is_read_as_far_as_it_goes() -> None:
    whole = json.dumps({"level": "ERROR", "exc_info": RAISED, "host": "n1"})
    assert readings(whole[: whole.index('", "host"')])[-1] == "KeyError: 'labels'"


def test_signatures_and_tracebacks_are_found_in_objects() -> None:
    matcher = Matcher(kb.signatures())
    (line,) = lines(
        json.dumps({"level": "ERROR", "message": "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has"})
    )
    assert matcher.match(line)[0].signature.id == "cuda.out-of-memory"
    (line,) = lines(json.dumps({"severity": "ERROR", "exception": RAISED}))
    assert matcher.match(line)[0].signature.failure_type == "key-error"
    (found,) = find_tracebacks([line])
    assert (found.exception, found.end, found.frames[0].source) == ("KeyError", line, "step(batch)")


def test_a_traceback_over_several_objects_is_one() -> None:
    wrapped = "\n".join(json.dumps({"log": text + "\n", "stream": "stderr"}) for text in RAISED.split("\n"))
    (found,) = find_tracebacks(lines(wrapped))
    assert (found.exception, found.end.number, found.frames[0].line) == ("KeyError", 4, 9)
