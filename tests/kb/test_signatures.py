"""Each signature carries its own proof: lines it must match and lines it must not. This file checks the proofs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from triage import kb
from triage.domain import Signature
from triage.regex import PatternSet, compile_pattern, erase, skeleton

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("TRIAGE_SHARED", ROOT.parent / "shared"))
HEALTHY = sorted((ROOT / "eval" / "healthy").glob("*.log"))
SIGNATURES = kb.signatures()
ID = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
GROUPS = {"node", "rank", "local_rank", "gpu", "peer", "code", "pid", "path", "elapsed_ms", "seq", "op"}

each = pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.id)


def fires(signature: Signature, line: str, patterns: Iterable[str] | None = None) -> bool:
    def hit(some: Iterable[str]) -> bool:
        return any(compile_pattern(pattern, signature.id).search(line) for pattern in some)

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


@cache
def _root_hits(text: str) -> tuple[tuple[str, str], ...]:
    """(signature, line) of every root signature that fires in a text, whatever kind of file it is."""
    patterns = [(p, s) for s in SIGNATURES if s.role == "root" for p in s.patterns]
    known = PatternSet([p for p, _ in patterns])
    lines = {line.rsplit("\r", 1)[-1] for line in text.split("\n")}
    return tuple(
        sorted({(patterns[i][1].id, line) for line in lines for i in known.match(line) if fires(patterns[i][1], line)})
    )


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.stem)
def test_no_root_in_frightening_but_healthy_logs(path: Path) -> None:
    assert _root_hits(path.read_text("utf-8")) == ()


def _labelled(healthy: bool) -> Iterator[tuple[str, dict[str, object], list[Path]]]:
    for case in sorted((SHARED / "logs").glob("*/case.yaml")):
        doc = kb.read_yaml(case)
        if (doc["expect"]["outcome"] == "healthy") == healthy:
            files = [case.parent / name for name in doc["inputs"]]
            yield case.parent.name, doc, [f for f in files if f.is_file()]


def test_no_root_in_real_healthy_logs() -> None:
    cases = list(_labelled(healthy=True))
    if not cases:
        pytest.skip("the labelled logs are not beside this checkout (TRIAGE_SHARED)")
    fired = {
        name: hits
        for name, _, files in cases
        for hits in [[h for f in files for h in _root_hits(f.read_text("utf-8", "replace"))]]
        if hits
    }
    assert fired == {}


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.stem)
def test_erased_patterns_stay_narrow(path: Path) -> None:
    """A pattern that is little but digits and hex letters makes every line hot, and nothing could be folded."""
    skeletons = sorted({skeleton(line).decode("utf-8", "replace") for line in path.read_bytes().split(b"\n")})
    patterns = [(s.id, p) for s in SIGNATURES for p in s.patterns]
    known = PatternSet([erase(p) for _, p in patterns])
    hits: dict[tuple[str, str], int] = {}
    for line in skeletons:
        for i in known.match(line):
            hits[patterns[i]] = hits.get(patterns[i], 0) + 1
    assert {where: n for where, n in hits.items() if n > max(3, len(skeletons) // 10)} == {}
