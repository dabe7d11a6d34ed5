"""Tracebacks of one rank, of interleaved ranks, chained ones, and text that only looks like one."""

from __future__ import annotations

from tests.helpers import lines
from triage.evidence.tracebacks import find_tracebacks
from triage.heads import split

PLAIN = """
starting
Traceback (most recent call last):
  File "/w/train.py", line 10, in <module>
    main()
  File "/w/train.py", line 4, in main
    raise KeyError('text')
KeyError: 'text'
done
"""


def test_one_traceback_names_its_exception_and_frames() -> None:
    (found,) = find_tracebacks(lines(PLAIN))
    assert (found.exception, found.message, found.end.number) == ("KeyError", "'text'", 7)
    assert [(f.file, f.line, f.function) for f in found.frames] == [
        ("/w/train.py", 10, "<module>"),
        ("/w/train.py", 4, "main"),
    ]


def test_interleaved_ranks_are_told_apart_by_their_tags() -> None:
    text = """
[rank0]: Traceback (most recent call last):
[rank1]: Traceback (most recent call last):
[rank0]:   File "a.py", line 1, in f
[rank1]:   File "b.py", line 2, in g
[rank0]:     x = 1
[rank1]: ValueError: from one
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.
"""
    found = find_tracebacks(lines(text))
    assert [(t.exception, t.stream) for t in found] == [("ValueError", "[rank1]:"), ("OutOfMemoryError", "[rank0]:")]
    assert found[0].frames[0].file == "b.py"


def test_a_chain_is_linked_to_the_exception_it_began_with() -> None:
    text = """
Traceback (most recent call last):
  File "a.py", line 1, in f
ConnectionRefusedError: [Errno 111] Connection refused

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 2, in g
urllib3.exceptions.MaxRetryError: too many

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "c.py", line 3, in h
requests.exceptions.ConnectionError: gave up
"""
    found = find_tracebacks(lines(text))
    assert [t.link for t in found] == ["", "cause", "context"]
    assert found[-1].first.exception == "ConnectionRefusedError"


def test_srun_labels_and_mpirun_tags_are_streams() -> None:
    assert split('17:   File "a.py", line 1') == ("17:", '  File "a.py", line 1')
    assert split("[1,5]<stderr>:ValueError: x") == ("[1,5]<stderr>:", "ValueError: x")
    assert split("(Worker pid=12, ip=10.0.0.1) ValueError: x")[1] == "ValueError: x"
    assert split("2024-01-01 10:00:00,123 - ERROR boom") == ("", "- ERROR boom")


def test_a_traceback_without_end_is_given_up() -> None:
    assert find_tracebacks(lines('Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x')) == []


def test_an_exception_with_an_unusual_name_is_found_by_its_module() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\nhydra.errors.Missing: no key'
    assert [t.exception for t in find_tracebacks(lines(text))] == ["Missing"]
