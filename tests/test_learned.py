"""Learned rules in a run: applied after the shipped ones, counted, and never in the way of evidence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage import kb, learned, pipeline
from triage.cli.learned_rules import LearnedRules
from triage.compress.engine import Scanner
from triage.diagnose.judge import Knowledge
from triage.domain import Diagnosis, Filed, FilterRule, JobPrint, LearnedRule, RuleOrigin, RuleState
from triage.evidence.jobprint import job_print
from triage.evidence.match import Matcher
from triage.ingest import assemble, boundaries
from triage.parts import Parts
from triage.runbooks import runbooks
from triage.store.incidents import IncidentStore
from triage.store.rules import RuleStore

LAUNCH = "+ srun python -u /w/fuse.py --config a.yaml\nfusing shards of megatron.core\n"
SHARDS = "".join(f"fused shard {at} of plan quartz into slot {at % 7}\n" for at in range(200))
TAKEN = 199  # the last line of a file, and the last of its progress before an error, are shown
UNKNOWN = "error: quartz plan inconsistent, fused shard 77 twice\n"
KERR = "KeyError: 'tokens'\n"


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


@pytest.fixture
def url() -> str:
    return f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db"


@pytest.fixture
def store(url: str) -> Iterator[RuleStore]:
    with RuleStore.open(url) as opened:
        yield opened


def kind(text: str = LAUNCH) -> JobPrint:
    return job_print([text.encode()])


def rule(pattern: str, state: RuleState = "active") -> LearnedRule:
    return LearnedRule(FilterRule("", "", pattern), "", state, RuleOrigin("model"))


def parts(knowledge: Knowledge, url: str, writes: bool = True) -> Parts:
    def record(result: Diagnosis, document: dict) -> Filed:
        with IncidentStore.open(url) as incidents:
            return incidents.file(result, document, new=True)

    return Parts(knowledge, kb.filter_rules(), record=record if writes else None, rules=LearnedRules(url, writes))


def log(folder: Path, text: str, name: str = "job.log") -> list[str]:
    (folder / name).write_text(text)
    return [str(folder / name)]


def counts(store: RuleStore) -> list[tuple[int, int]]:
    return [(r.hits, r.runs) for r in store.list()]


def test_active_rules_are_applied_and_counted_in_every_run(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore
) -> None:
    store.add(kind(), [rule(r"^fused shard \d+ of plan \w+ into slot \d$"), rule("^never$")], "a")
    paths = log(tmp_path, LAUNCH + SHARDS)

    _, document = pipeline.diagnose(paths, parts(knowledge, url))
    folded = pipeline.compress(paths, parts(knowledge, url))

    assert {"rule": "learned.1", "lines": TAKEN} in document["compression"]["dropped"]
    assert folded.account.dropped["learned.1"] == TAKEN
    assert [line.number for line in folded.lines if "fused shard" in line.text] == [202]
    assert counts(store) == [(400, 2), (0, 0)]
    assert store.get("learned.1").last_used is not None


def test_a_shipped_rule_comes_first(tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore) -> None:
    iteration = " iteration {at}/ 500 | consumed samples: 9 | lm loss: 2.1E+00 | grad norm: 1.2 |\n"
    store.add(kind(), [rule("^iteration .*$")], "a")
    paths = log(tmp_path, LAUNCH + "".join(iteration.format(at=at) for at in range(30)))

    dropped = pipeline.compress(paths, parts(knowledge, url)).account.dropped

    assert dropped.get("learned.1", 0) == 0
    assert sum(dropped.values()) >= 30


def test_a_shadow_rule_is_counted_and_not_applied(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore
) -> None:
    store.add(kind(), [rule(r"^fused shard \d+ of", "shadow"), rule("^fus", "candidate"), rule("^f", "retired")], "a")
    paths = log(tmp_path, LAUNCH + SHARDS + "fused shard 7 of plan quartz: error: lost\n")

    _, document = pipeline.diagnose(paths, parts(knowledge, url))

    assert not any(entry["rule"].startswith("learned.") for entry in document["compression"]["dropped"])
    assert counts(store) == [(200, 1), (0, 0), (0, 0)]  # not the line that the guard keeps from all rules


def test_nothing_is_written_without_a_record(tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore) -> None:
    store.add(kind(), [rule(r"^fused shard \d+ of"), rule("^error: quartz")], "a")
    paths = log(tmp_path, LAUNCH + SHARDS + UNKNOWN)

    _, document = pipeline.diagnose(paths, parts(knowledge, url, writes=False))

    assert {"rule": "learned.1", "lines": TAKEN} in document["compression"]["dropped"]
    assert counts(store) == [(0, 0), (0, 0)]
    assert [r.state for r in store.list()] == ["active", "active"]
    assert any("learned.2" in note and "stays in force" in note for note in document["missing"])


def test_a_job_alike_uses_the_rules_and_another_does_not(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore
) -> None:
    store.add(kind(), [rule(r"^fused shard \d+ of")], "a")
    alike = LAUNCH.replace("a.yaml", "b.yaml")
    other = LAUNCH.replace("fuse.py", "melt.py")

    assert kind(alike).key != kind().key
    assert pipeline.compress(log(tmp_path, alike + SHARDS), parts(knowledge, url)).account.dropped["learned.1"] == TAKEN
    assert "learned.1" not in pipeline.compress(log(tmp_path, other + SHARDS), parts(knowledge, url)).account.dropped


def test_rank_files_and_a_folder_with_other_logs_are_the_same_job(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore
) -> None:
    store.add(kind(), [rule(r"^fused shard \d+ of")], "a")
    for rank in range(3):
        (tmp_path / f"rank_{rank}.log").write_text(LAUNCH + SHARDS)
    (tmp_path / "dmesg.txt").write_text("".join(f"[{at}.000001] usb 1-{at}: new device\n" for at in range(30)))

    assert pipeline.compress([str(tmp_path)], parts(knowledge, url)).account.dropped["learned.1"] == 3 * TAKEN


# ------------------------------------------------------------------------------------------------ evidence
def test_a_rule_that_hides_evidence_is_retired_and_the_incident_says_so(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore
) -> None:
    """The last line is an error that no signature knows, and the guard has no word for; a rule takes it."""
    store.add(kind(), [rule(r"^fused shard \d+ of"), rule("^quartz panicked"), rule("^quartz pan", "shadow")], "a")
    paths = log(tmp_path, LAUNCH + SHARDS + "quartz panicked over shard 77\n")
    without = pipeline.diagnose(paths, replace(parts(knowledge, url, writes=False), rules=None))[0]

    result, document = pipeline.diagnose(paths, parts(knowledge, url))

    assert without.outcome == "failed"
    kept = {"timing": {}, "incident": None, "missing": (), "inputs": (), "learned": ()}
    assert replace(result, **kept, compression=without.compression) == replace(without, **kept)
    assert [note for note in document["missing"] if "learned" in note] == [
        f"the learned filter rule learned.{n} would have hidden a line that is cited here (E1, {paths[0]}:203): it was retired"
        for n in (2, 3)
    ]
    assert [r.state for r in store.list()] == ["active", "retired", "retired"]
    event = store.history("learned.2")[-1]
    assert (event.who, event.what) == ("triage", "incident")
    assert event.reason == f"it would have hidden E1 of incident {result.incident}: quartz panicked over shard 77"
    assert "quartz panicked over shard 77" in store.protected_lines(but=learned.ROUTINE_SIGNATURES)

    _, after = pipeline.diagnose(paths, parts(knowledge, url))
    assert after["missing"] == list(without.missing)


def test_the_cited_line_is_in_the_compressed_log_of_the_same_run(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore
) -> None:
    store.add(kind(), [rule(r"^quartz|^fused")], "a")
    paths = log(tmp_path, LAUNCH + SHARDS + "quartz panicked over shard 77\n")
    folded = []

    pipeline.diagnose(paths, replace(parts(knowledge, url), folded=folded.append))

    assert [line.number for line in folded[0].lines if "quartz panicked" in line.text] == [203]


def test_a_signature_finds_its_line_whatever_a_rule_takes(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore
) -> None:
    store.add(kind(), [rule("^.*$")], "a")
    paths = log(tmp_path, LAUNCH + SHARDS + KERR)

    result, _ = pipeline.diagnose(paths, parts(knowledge, url))

    assert [e.text for e in result.evidence] == [KERR.strip()]
    assert store.get("learned.1").state == "retired"


def test_a_healthy_run_retires_nothing(tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore) -> None:
    store.add(kind(), [rule("^.*$")], "a")

    pipeline.diagnose(log(tmp_path, LAUNCH + SHARDS + "Training finished.\n"), parts(knowledge, url))

    assert store.get("learned.1").state == "active"


BROAD = ("^.*$", r"^.*\d.*$", r"[a-z ]+", r"^\s*\S+:?", r"(?i)error|fail|nccl", r"^.{0,60}$", "")
EXAMPLES = tuple(example for signature in kb.signatures() for example in signature.examples if "\n" not in example)


@pytest.fixture(scope="module")
def scanners(knowledge: Knowledge) -> list[Scanner]:
    """Without learned rules, then with ever broader ones."""
    matcher = knowledge.matcher
    sets = [(), *(tuple(FilterRule(f"learned.{n}", "", p) for n, p in enumerate(BROAD[at:])) for at in (0, 1, 3, 5))]
    return [
        Scanner(
            (*kb.filter_rules(), *rules), matcher.hot_patterns(), boundaries.Boundaries, signatures=matcher.patterns
        )
        for rules in sets
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(EXAMPLES),
            st.sampled_from(SHARDS.splitlines()[:9]),
            st.builds("{}: {}".format, st.integers(0, 99), st.sampled_from(EXAMPLES)),
            st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=30),
        ),
        max_size=40,
    )
)
def test_no_learned_rule_makes_a_signature_miss(
    knowledge: Knowledge, scanners: list[Scanner], lines: list[str]
) -> None:
    data = "".join(line + "\n" for line in lines).encode()

    def findings(scanner: Scanner) -> set[tuple[int, str]]:
        file = assemble.assemble(scanner.another(scanner.limits).scan("job.log", [data]))
        return {(f.line.number, f.signature.id) for f in knowledge.matcher.find([file])}

    expected = findings(scanners[0])
    assert all(findings(scanner) == expected for scanner in scanners[1:])


class Everything:
    """A rule that takes every line, in force for every job."""

    writes = False

    def in_force(self, job: JobPrint) -> tuple[LearnedRule, ...]:
        return (replace(rule("^.*$"), rule=FilterRule("learned.1", "", "^.*$")),)

    def find(self, rule: str) -> None:
        return None

    def settle(self, hits, retired) -> None:
        raise AssertionError


def test_real_logs_are_diagnosed_alike_though_a_rule_takes_every_line(shared: Path, knowledge: Knowledge) -> None:
    small = [path for path in sorted(shared.glob("logs/*/job.*")) if path.stat().st_size < 40_000]
    assert len(small) > 20
    used = Parts(knowledge, kb.filter_rules())
    without = [pipeline.diagnose([str(path)], used)[0] for path in small]

    found = [pipeline.diagnose([str(path)], replace(used, rules=Everything()))[0] for path in small]

    same = {"timing": {}, "missing": (), "learned": (), "compression": without[0].compression}
    assert [replace(d, **same) for d in found] == [replace(d, **same) for d in without]
    guilty = [d.outcome for d in found if any("learned.1" in note for note in d.missing)]
    assert len(guilty) >= 0.8 * sum(d.outcome != "healthy" for d in without)


# ------------------------------------------------------------------------------------------------ what may fail
def test_a_database_that_fails_is_said_and_no_obstacle(tmp_path: Path, knowledge: Knowledge) -> None:
    broken = tmp_path / "triage.db"
    broken.write_text("no database at all\n" * 100)

    _, document = pipeline.diagnose(
        log(tmp_path, LAUNCH + KERR),
        Parts(knowledge, kb.filter_rules(), rules=LearnedRules(f"sqlite:///{broken}", True)),
    )

    assert document["failure_type"] != "unknown"
    assert any(
        note.startswith("learned filter rules were not used: the incident database") for note in document["missing"]
    )


def test_a_database_that_breaks_before_the_end_is_said(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore
) -> None:
    store.add(kind(), [rule("^quartz panicked")], "a")

    class Gone(LearnedRules):
        def settle(self, hits, retired) -> None:
            Path(os.environ["TRIAGE_HOME"], "triage.db").write_text("gone" * 999)
            super().settle(hits, retired)

    used = replace(parts(knowledge, url), rules=Gone(url, True), record=None)
    _, document = pipeline.diagnose(log(tmp_path, LAUNCH + "quartz panicked\n"), used)

    assert "and learned.1 not retired" in document["missing"][-1]


def test_no_database_is_made_to_look_for_rules(tmp_path: Path, knowledge: Knowledge, url: str) -> None:
    pipeline.compress(log(tmp_path, LAUNCH + SHARDS), parts(knowledge, url))

    assert not Path(os.environ["TRIAGE_HOME"], "triage.db").exists()


def test_a_stored_pattern_that_does_not_compile_is_left_out(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore
) -> None:
    store.add(kind(), [rule("(?=x)"), rule(r"^fused shard \d+ of")], "a")

    folded = pipeline.compress(log(tmp_path, LAUNCH + SHARDS), parts(knowledge, url))

    assert folded.account.dropped["learned.2"] == TAKEN
    assert "the learned filter rules learned.1 do not compile" in folded.cut


# ------------------------------------------------------------------------------------------------ dropped
def taken(rule: str | FilterRule, paths: list[str], used: Parts) -> list[int]:
    return [shown.number for _, shown in pipeline.taken_by(rule, paths, used)]


@pytest.mark.parametrize("state", ["active", "shadow", "candidate", "retired"])
def test_what_a_learned_rule_takes_can_be_shown_in_any_state(
    tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore, state: RuleState
) -> None:
    store.add(kind(), [rule(r"^fused shard \d+ of", state)], "a")
    paths = log(tmp_path, LAUNCH + SHARDS)

    assert taken("learned.1", paths, parts(knowledge, url)) == list(range(3, 203))


def test_a_pattern_of_ones_own_can_be_tried(tmp_path: Path, knowledge: Knowledge, url: str, store: RuleStore) -> None:
    store.add(kind(), [rule(r"^fused shard \d+ of")], "a")
    paths = log(tmp_path, LAUNCH + SHARDS + "fused plan quartz\n" * 3)

    found = taken(FilterRule("pattern", "", "^fused"), paths, parts(knowledge, url))

    assert found == [203, 204, 205]  # not what a rule in force takes before it
