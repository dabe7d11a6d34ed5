"""Words of logs, and how rare ones count."""

from __future__ import annotations

import pytest

from triage.retrieve.lexical import Lexicon, words


def terms(text: str) -> list[str]:
    return [term for term, _ in words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234", ["xid:79", "xid"]),
        ("Xid 79", ["xid:79", "xid"]),
        ("exited with exit code: 137", ["code:137"]),
        ("NCCL_ASYNC_ERROR_HANDLING=1", ["nccl_async_error_handling", "async", "error", "handl"]),
        ("c10::CUDAError", ["cudaerror", "cuda", "error"]),
        ("cudaErrorECCUncorrectable", ["cudaerroreccuncorrectable", "ecc", "uncorrectable"]),
        ("the job crashes; it crashed while crashing", ["crash"]),
    ],
)
def test_terms_of_a_line(text: str, expected: list[str]) -> None:
    assert set(expected) <= set(terms(text))


def test_what_differs_between_two_runs_is_no_term() -> None:
    one = "2024-03-01T10:11:12.123 node-a 10.0.0.1:29500 0x7f00deadbeef pid 123456: Xid 79"
    other = "2025-12-31 23:59:59,001 node-a 10.9.8.7:1 0x1 pid 98: Xid 79"
    assert set(terms(one)) == set(terms(other))


def test_of_an_absolute_path_only_the_end_counts() -> None:
    found = set(terms('File "/home/someone/shared/lib/site-packages/torch/utils/data/dataloader.py", line 1011'))
    assert {"util", "data", "dataloader"} <= found
    assert not found & {"home", "someone", "shared", "package"}


def test_numbers_of_a_code_tell_two_faults_apart() -> None:
    assert set(terms("Xid 79")) != set(terms("Xid 74"))


def test_a_text_is_found_by_its_rare_words() -> None:
    lexicon = Lexicon(
        {
            "fabric": ["training failed", "link flap on mlx5_0"],
            "memory": ["training failed", "out of memory on the GPU"],
            "disk": ["training failed", "no space left"],
        }
    )
    scores = lexicon.scores("training failed after a link flap")
    assert max(scores, key=scores.__getitem__) == "fabric"
    assert scores["fabric"] > 3 * scores["disk"] > 0
    assert lexicon.shared("fabric", "Training failed after a LINK flap") == ("flap", "LINK")


def test_scores_stay_in_bounds_whatever_the_query() -> None:
    lexicon = Lexicon({"a": ["NCCL watchdog timeout " * 50], "b": ["x"]})
    for query in ("", "timeout", "NCCL watchdog timeout", "word " * 10_000 + "NCCL watchdog timeout", "\x00\ufffd"):
        assert all(0 <= score <= 1 for score in lexicon.scores(query).values()), query
    assert lexicon.scores("nothing of this is there") == {}


def test_one_common_word_is_no_match() -> None:
    lexicon = Lexicon({f"i{n}": [f"error number {chr(97 + n)}{chr(98 + n)}{chr(99 + n)}"] for n in range(20)})
    assert max(lexicon.scores("error").values()) < 0.01
    assert lexicon.scores("an error with klm")["i10"] > 0.1


def test_nothing_to_search() -> None:
    assert Lexicon({}).scores("anything") == {}
