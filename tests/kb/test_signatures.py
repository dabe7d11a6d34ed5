"""Each signature carries its own proof: lines it must match and lines it must not. This file checks the proofs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from triage import kb
from triage.domain import Signature
from triage.regex import PatternSet, compile_pattern, erase, skeleton

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("TRIAGE_SHARED", ROOT.parent / "shared"))
HEALTHY = sorted((ROOT / "eval" / "healthy").glob("*.log"))
SIGNATURES = kb.signatures()
ID = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
GROUPS = {
    "node",
    "rank",
    "local_rank",
    "gpu",
    "peer",
    "code",
    "pid",
    "path",
    "elapsed_ms",
    "seq",
    "op",
    "iteration",
    "until",
}

each = pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.id)


compiled = cache(compile_pattern)


def fires(signature: Signature, line: str, patterns: Iterable[str] | None = None) -> bool:
    def hit(some: Iterable[str]) -> bool:
        return any(compiled(pattern).search(line) for pattern in some)

    return hit(signature.patterns if patterns is None else patterns) and not hit(signature.unless)


# ------------------------------------------------------------------------------------------------ the proof of each
@each
def test_matches_its_examples(signature: Signature) -> None:
    assert len(signature.examples) >= 2
    assert [line for line in signature.examples if not fires(signature, line)] == []


@each
def test_leaves_its_counter_examples(signature: Signature) -> None:
    assert len(signature.counter_examples) >= 2
    assert [line for line in signature.counter_examples if fires(signature, line)] == []


@each
def test_every_pattern_is_needed(signature: Signature) -> None:
    for i, pattern in enumerate(signature.patterns):
        others = signature.patterns[:i] + signature.patterns[i + 1 :]
        assert any(not fires(signature, line, others) for line in signature.examples), f"nothing needs {pattern}"


@each
def test_every_exception_is_needed(signature: Signature) -> None:
    patterns = [compile_pattern(pattern) for pattern in signature.patterns]
    for exception in signature.unless:
        without = [line for line in signature.counter_examples if compile_pattern(exception).search(line)]
        assert any(p.search(line) for p in patterns for line in without), f"no counter-example needs {exception}"


@each
def test_erased_patterns_match_the_skeletons(signature: Signature) -> None:
    """The scan asks skeletons first; a signature that misses the skeleton of a line it matches would be lost."""
    for pattern in signature.patterns:
        erased = compile_pattern(erase(pattern), signature.id)
        for line in signature.examples:
            if compile_pattern(pattern).search(line):
                assert erased.search(skeleton(line.encode()).decode()), (pattern, line)


@each
def test_patterns_name_only_known_groups(signature: Signature) -> None:
    for pattern in signature.patterns:
        assert compile_pattern(pattern).groupindex.keys() <= GROUPS


@each
def test_is_complete_and_in_its_form(signature: Signature) -> None:
    assert ID.fullmatch(signature.id) and "." in signature.id
    assert 0 <= signature.weight <= 100
    assert signature.component
    assert signature.title == signature.title.strip() and not signature.title.endswith(".")
    assert signature.remedy.endswith(".")
    assert signature.check or signature.role == "benign" or signature.weight <= 20
    assert not (signature.node_fault and signature.root_cause_class in {"software-bug", "data-error"})


def test_ids_are_unique() -> None:
    ids = [s.id for path in sorted((kb.root() / "signatures").glob("*.yaml")) for s in kb.load_signatures(path)]
    assert len(ids) == len(set(ids))


# ------------------------------------------------------------------------------------------------ all together
# What no single line shows as a cause: these are read from silence, from a clean end or from consequences alone.
NOT_IN_A_LINE = {"healthy", "unknown"}


def test_every_failure_type_that_a_log_can_show_has_a_root() -> None:
    """A symptom type may do with a signature of the role cascade."""
    roots = {s.failure_type for s in SIGNATURES if s.role == "root"}
    seen = roots | {s.failure_type for s in SIGNATURES if s.role == "cascade"}
    types = kb.taxonomy().types
    missing = {name for name, t in types.items() if name not in (seen if t.symptom else roots)}
    assert missing <= NOT_IN_A_LINE


def test_each_xid_has_one_reading() -> None:
    """One signature a code: the fallback takes exactly the codes that nothing else decodes, whatever the line says."""
    xids = [s for s in SIGNATURES if s.id.startswith("xid.")]
    assert xids
    for code in range(1, 200):
        for text in (
            "pid=7, name=python, text",
            "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x",
            "RLW_REMAP Nonfatal XC0 i0 Link 02",
        ):
            line = f"NVRM: Xid (PCI:0000:5f:00): {code}, {text}"
            readers = [s.id for s in xids if fires(s, line)]
            assert len(readers) == 1, (line, readers)


def test_each_sxid_has_one_reading() -> None:
    sxids = [s for s in SIGNATURES if s.id.startswith("sxid.")]
    assert sxids
    for code in range(10000, 25000):
        for severity in ("Fatal", "Non-fatal"):
            line = f"nvidia-nvswitch0: SXid (PCI:0000:a6:00.0): {code}, {severity}, Link 1 text"
            readers = [s.id for s in sxids if fires(s, line)]
            assert len(readers) == 1, (line, readers)


@cache
def _known(role: str) -> tuple[PatternSet, tuple[Signature, ...]]:
    pairs = [(p, s) for s in SIGNATURES if s.role == role for p in s.patterns]
    return PatternSet([p for p, _ in pairs]), tuple(s for _, s in pairs)


def _hits(line: str, role: str = "root") -> set[str]:
    """Signatures of a role that fire on a line, in whatever kind of file. A progress bar counts in all its states."""
    known, owners = _known(role)
    states = line.split("\r")
    return {s.id for state in states for s in {owners[i] for i in known.match(state)} if fires(s, state)}


def _hits_of(path: Path, role: str = "root") -> list[tuple[int, str, str]]:
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    return [(n, i, line[:200]) for n, line in enumerate(lines, 1) for i in sorted(_hits(line, role))]


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.stem)
def test_no_root_in_frightening_but_healthy_logs(path: Path) -> None:
    assert 50 <= path.read_bytes().count(b"\n") <= 250
    assert _hits_of(path) == []


def test_consequences_in_healthy_logs_are_of_the_kernel_alone() -> None:
    """Xid 43 and 45 stand in a sound host's log whenever somebody's program was wrong; a job's own log has nothing."""
    fired = {i for path in HEALTHY for _, i, _ in _hits_of(path, "cascade")}
    assert fired == {"xid.43", "xid.45"}


def test_there_are_healthy_logs() -> None:
    assert len(HEALTHY) >= 10


def _labelled() -> list[tuple[Path, dict[str, Any]]]:
    cases = [(p.parent, kb.read_yaml(p)["expect"]) for p in sorted((SHARED / "logs").glob("*/case.yaml"))]
    if not cases:
        pytest.skip("the labelled logs are not beside this checkout (TRIAGE_SHARED)")
    return cases


def test_no_root_in_real_healthy_logs() -> None:
    logs = [log for case, expect in _labelled() if expect["outcome"] == "healthy" for log in case.glob("job.*")]
    assert len(logs) >= 20
    assert {str(log): hits for log in logs if (hits := _hits_of(log))} == {}


def test_decisive_lines_of_real_failures_are_known() -> None:
    """The lines that a person named as decisive: a signature with a say (root or cascade) fires on one of them."""
    missed, asked = [], 0
    for case, expect in _labelled():
        ranges = [(case / name, first, last) for name, first, last in expect.get("evidence", []) if name]
        if expect["outcome"] == "healthy" or not ranges:
            continue
        asked += 1
        lines = {log: log.read_bytes().decode("utf-8", "replace").split("\n") for log, _, _ in ranges}
        decisive = [line for log, first, last in ranges for line in lines[log][first - 1 : last]]
        if not any(_hits(line, role) for line in decisive for role in ("root", "cascade")):
            missed.append(case.name)
    assert len(missed) <= asked // 10, missed


def test_erased_patterns_stay_narrow() -> None:
    """A pattern that is little but digits and hex letters makes every line hot, and nothing could be folded."""
    raw = {line for path in HEALTHY for line in path.read_bytes().split(b"\n")}
    skeletons = {skeleton(line).decode("utf-8", "replace") for line in raw}
    wide = {}
    for signature in SIGNATURES:
        for pattern in signature.patterns:
            erased = compile_pattern(erase(pattern))
            hits = sum(1 for line in skeletons if erased.search(line))
            if hits > len(skeletons) // 30:
                wide[signature.id, pattern] = hits
    assert wide == {}


def test_faults_of_the_application_never_drain_a_node() -> None:
    """Xids 13, 31, 43 and 45 speak of the program, so the machine named must not be left out for them."""
    lines = [f"NVRM: Xid (PCI:0000:5f:00): {code}, pid=7, name=python, text" for code in (13, 31, 43, 45)]
    assert [s.id for s in SIGNATURES if s.node_fault and any(fires(s, line) for line in lines)] == []
