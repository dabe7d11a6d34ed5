"""What may become a signature: each test of the verifier refuses what it is for, with a reason that says which."""

from __future__ import annotations

import functools

import pytest

from tests.store.samples import signature
from triage import kb
from triage.domain import LogLine
from triage.signing.pattern import proposals
from triage.signing.verify import Banks, Case, Verifier

LINE = "[rank3]: RingError: peer 3 on gpu-17 lost the quorum of lattice 9"
PATTERN = r"RingError: peer \d+ on [\w.-]+ lost the quorum"
CASE = Case("network-error", (LINE,))
ROUTINE = tuple(example for rule in kb.filter_rules() for example in rule.examples)


@functools.cache
def verifier(**more: object) -> Verifier:
    return Verifier(Banks(kb.signatures(), kb.unrelated_lines(), ROUTINE, kb.protected_lines(), **more))  # type: ignore[arg-type]


def test_a_good_one_is_accepted() -> None:
    assert verifier().check(PATTERN, CASE).accepted
    assert verifier().check(proposals(LINE)[0], CASE).accepted


@pytest.mark.parametrize(
    ("pattern", "check", "says"),
    [
        (" ", "empty", "would match every line"),
        ("(?=RingError)RingError: peer", "compiles", "no look-around"),
        (r"(RingError) \1", "compiles", "does not compile"),
        (r"(?:\w{1,300}){300}RingError: peer", "compiles", "does not compile"),
        ("RingError: peer|" * 80, "size", "at most 1000"),
        (r"(?:\w{1,90}[a-z]{1,90}){9}RingError: peer", "size", "steps"),
        (r"RingError: peer|key=sk-abcdefghij0123456789KLMN", "secret", "looks like a secret"),
        ("RingError: peer 4 on gpu", "named", "does not match a line that it is meant for"),
        ("rror", "general", "needs only 4 letters"),
        ("lost", "general", "needs only 4 letters"),
        (r"RingError: peer|\d", "general", "needs only 0 letters"),
        (r"RingError: .*lattice", "general", "room for any message"),
        (r"(?:[a-zA-Z]+[: ]*)+RingError: peer", "named", "does not match"),
        (r"RingError: (?:[\w-]+\s*)+lattice", "general", "room for any message"),
        (r"RingError: peer|most recent call last", "general", "the account of any failure"),
        (r"RingError: peer|The library closes at six", "unrelated", "nothing to do with any job"),
        (r"RingError: peer|consumed samples: +\d+", "healthy", "go well"),
        (r"RingError: peer|evaluation harness warmed", "unshown", 'has "evaluation harness warmed" as an alternative'),
        (r"RingError: peer (?:\d+ on|drained)", "unshown", '"drained"'),
        (r"RingError: peer \d+(?: was cut)? on", "unshown", '" was cut"'),
        (r"RingError: peer|Watchdog caught collective", "shadows", "that the signature td.watchdog-timeout is for"),
    ],
)
def test_a_bad_one_is_refused_with_its_reason(pattern: str, check: str, says: str) -> None:
    result = verifier().check(pattern, CASE)
    assert (result.accepted, result.check) == (False, check)
    assert says in result.reason


def test_alternatives_that_the_lines_of_the_incident_need_are_taken() -> None:
    lines = (LINE, LINE.replace("lost the quorum", "left the lattice"))
    pattern = r"RingError: peer \d+ on [\w.-]+ (?:lost the quorum|left the lattice)"
    assert verifier().check(pattern, Case("network-error", lines)).accepted
    assert verifier().check(pattern, Case("network-error", lines[:1])).check == "unshown"


@pytest.mark.parametrize(
    "line",
    [
        '[rank0]:   File "/opt/fuse/ring.py", line 12, in braid_the_lattice',
        "frame #7: braid::Lattice::quorum(braid::Ring const&) + 0x57 (0x7f12a in libbraid.so)",
        "  host      : lattice-seventeen.example.org",
        "[11615.415225] memory: usage 307200kB, limit 307200kB, failcnt 69",
    ],
)
def test_a_row_of_the_account_of_a_failure_is_no_cause(line: str) -> None:
    for pattern in proposals(line):
        assert verifier().check(pattern, Case("network-error", (line,))).check in ("general", "shadows")


def test_a_line_that_is_known_as_context_is_no_cause() -> None:
    line = "dgxa-14 kernel: pcieport 0000:00:03.1: AER: Corrected error received: 0000:01:00.0"
    (pattern,) = proposals(line)
    assert not verifier().check(pattern, Case("network-error", (line,))).accepted


def test_a_word_of_many_errors_is_one_of_another_signature() -> None:
    line = "RuntimeError: quorum"
    result = verifier().check("RuntimeError", Case("network-error", (line,)))
    assert (result.check, "signature" in result.reason) == ("shadows", True)


def test_what_a_good_run_printed_is_healthy() -> None:
    known = Verifier(Banks(kb.signatures(), healthy=("RingError: peer 9 on gpu-3 lost the quorum, found it again",)))
    result = known.check(PATTERN, CASE)
    assert (result.check, "found it again" in result.reason) == ("healthy", True)


def test_a_line_that_a_strong_signature_knows_gives_no_other() -> None:
    line = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"
    (pattern,) = proposals(line)
    assert verifier().check(pattern, Case("out-of-memory", (line,))).check == "duplicate"
    assert verifier().check(pattern, Case("network-error", (line,))).check == "shadows"


def test_the_class_of_an_exception_alone_bars_nothing() -> None:
    line = "ValueError: no bucket for shard 17"
    (pattern,) = proposals(line)
    assert verifier().check(pattern, Case("dataset-loading-error", (line,))).accepted


def test_a_line_that_decided_another_incident_is_not_taken_but_its_own_may_be() -> None:
    other = "RingError: peer 5 on gpu-2 lost the quorum: host reboots"
    decided = Verifier(Banks(kb.signatures(), decided=(other,)))
    assert decided.check(PATTERN, CASE).check == "shadows"
    again = Verifier(Banks(kb.signatures(), decided=(LINE.replace("17", "19"),)))
    assert again.check(PATTERN, CASE).accepted
    cause = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 MiB, RingError: peer 5 on n2 lost the quorum"
    recorded = Verifier(Banks(kb.signatures(), causes=(cause, LINE)))
    assert recorded.check(PATTERN, CASE).check == "shadows"


def test_learned_ones() -> None:
    def check(*known, but: str = "") -> tuple[str, str]:
        found = Verifier(Banks(kb.signatures(), learned=known)).check(PATTERN, CASE, but)
        return found.check, found.reason

    import dataclasses

    def stored(state: str, failure_type: str = "network-error"):
        made = signature("RingError: peer", failure_type, state, reason="too wide")
        return dataclasses.replace(made, signature=dataclasses.replace(made.signature, id="learned-signature.1"))

    assert check(stored("candidate"))[0] == "duplicate"
    assert check(stored("active"), but="learned-signature.1")[0] == ""
    assert check(stored("active", "storage-error"))[0] == "shadows"
    assert check(stored("candidate", "storage-error"))[0] == ""
    assert check(stored("retired"))[0] == ""  # another pattern may do better
    gone = stored("retired")
    gone = dataclasses.replace(gone, signature=dataclasses.replace(gone.signature, patterns=(PATTERN,)))
    assert check(gone) == ("duplicate", "it is learned-signature.1, retired: too wide")


# ------------------------------------------------------------------------------------------------ the incident's own log
def at(number: int, text: str, **fields: object) -> LogLine:
    return LogLine("job.log", number, text, **fields)  # type: ignore[arg-type]


def on_log(*lines: LogLine, beside: tuple[str, ...] = (), worked: int = 0) -> str:
    return verifier().check(PATTERN, Case("network-error", (LINE,), (), beside, lines, {"job.log": worked})).check


def test_only_the_root_of_its_own_log() -> None:
    root = at(40, LINE)
    assert on_log(root) == ""
    assert on_log(root, at(41, LINE.replace("rank3", "rank5").replace("17", "18"))) == ""
    assert on_log(at(3, "RingError: peer 3 on gpu-17 lost the quorum, asked again"), root) == "not-root"
    assert on_log(root, at(3, LINE, rule="learned.4")) == "healthy"
    assert on_log(at(3, LINE), root, worked=20) == "not-root"
    assert on_log(at(3, LINE), root, worked=2) == ""
    assert on_log(root, beside=("RingError: peer 3 on gpu-17 lost the quorum and closed the socket",)) == "not-root"
