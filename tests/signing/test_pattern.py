"""Patterns that code writes from a line: they find it in another job, and nothing the line says acts as an operator."""

from __future__ import annotations

import pytest

from triage.regex import compile_pattern
from triage.signing.pattern import proposals


def finds(pattern: str, line: str) -> bool:
    return compile_pattern(pattern).search(line) is not None


@pytest.mark.parametrize(
    ("line", "elsewhere"),
    [
        (
            "2026-03-03 02:09:00 [ERROR] ring exchange stalled on gpu-18 after 17.3 s",
            "[rank7]: ring exchange stalled on node-a after 4 s",
        ),
        ("[rank3]: RingError: peer 3 of 8 vanished", "12: RingError: peer 31 of 512 vanished"),
        ("lattice card 0xdeadbeef at 10.0.0.7:30126 fell off", "lattice card 0x01ab at 192.168.4.11:9 fell off"),
        ("cannot map /data/one/shard_00017.bin into the ring", "cannot map /scratch/x/y.idx into the ring"),
        ("ring clock is +0100 off by 1e-05", "ring clock is -30 off by 3.5E+2"),
        ("quorum lost in phase 'warm up'", "quorum lost in phase 'decay'"),
        ("mail to ada@example.org bounced, ring closes", "mail to b.c@d.example.com bounced, ring closes"),
        ("训练终止 节点 gpu-3 失联", "训练终止 节点 gpu-771 失联"),
    ],
)
def test_what_is_of_one_job_alone_is_left_open(line: str, elsewhere: str) -> None:
    widest = proposals(line)[0]
    assert finds(widest, line)
    assert finds(widest, elsewhere)


def test_the_words_stay() -> None:
    (pattern,) = proposals("RingError: peer 3 vanished")
    assert not finds(pattern, "RingError: peer 3 answered")
    assert not finds(pattern, "StringError: peer 3 vanished")
    assert not finds(pattern, "RingError: peer 3 vanishedly")


def test_a_node_that_is_no_host_by_its_form_is_left_open_where_it_is_known() -> None:
    line = "gateway hydra closed the ring"
    assert not finds(proposals(line)[0], "gateway medusa closed the ring")
    assert finds(proposals(line, ["hydra", ""])[0], "gateway medusa closed the ring")


def test_what_is_quoted_is_kept_in_the_narrower_one() -> None:
    wide, narrow = proposals("RingError: no such phase 'warmup 3'")
    assert finds(wide, "RingError: no such phase 'other'")
    assert not finds(narrow, "RingError: no such phase 'other'")
    assert finds(narrow, "RingError: no such phase 'warmup 4'")


@pytest.mark.parametrize("evil", ["(a+)+$", ".*", "|", "[x]*", "^", "\\d", "(?i)", "a{1,9}", "x?", "\\", "%{ANY}"])
def test_no_sign_of_the_line_becomes_an_operator(evil: str) -> None:
    line = f"ring refused token {evil} of phase"
    pattern = proposals(line)[0]
    assert finds(pattern, line)
    assert not finds(pattern, "ring refused token zzz of phase")
    assert not finds(pattern, "zzz")


def test_no_secret_is_in_the_pattern_and_the_line_is_found_with_it_and_without() -> None:
    (pattern,) = proposals("ring login with key=[redacted:api-key] was refused by the lattice")
    assert "redacted" not in pattern
    assert finds(pattern, "ring login with key=sk-abc123def456ghi7 was refused by the lattice")
    assert finds(pattern, "ring login with key=[redacted:api-key] was refused by the lattice")
    word = "kQxWvUtSrQpOnMlKjIhGfEdCbAzYxWvUtS"  # letters alone, with no name before it
    assert word not in proposals(f"ring login with {word} was refused")[0]


def test_a_long_line_gives_a_bounded_pattern_that_finds_it() -> None:
    line = "RingError: " + " ".join(f"lattice{n} says no," for n in range(400))
    pattern = proposals(line)[0]
    assert len(pattern) < 1000
    assert finds(pattern, line)
    cut = f"ringe stopped at {'the lattice said no again and ' * 30}"[:500]  # begins and ends in a word
    assert "ringe" not in proposals(cut)[0]


@pytest.mark.parametrize("line", ["", "   "])
def test_nothing_gives_nothing(line: str) -> None:
    assert proposals(line) == ()
