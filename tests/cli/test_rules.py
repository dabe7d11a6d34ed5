"""`triage rules`: the whole output, from a database made by the store itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.databases import lay_down
from tests.store.samples import ECC, JOB, OTHER_JOB, as_json, learned
from triage.cli import rules
from triage.domain import Evidence
from triage.errors import NotFoundError, UsageError
from triage.evidence.jobprint import job_print
from triage.store.incidents import IncidentStore
from triage.store.rules import RuleStore

NOW = datetime(2026, 3, 1, 2, 59, 30, tzinfo=UTC)
LAUNCH = "+ srun python -u /w/fuse.py --config a.yaml\n"
SHARDS = "".join(f"step {at} of shard {at % 7}\n" for at in range(200))


def run(*words: str, code: int = 0) -> Result:
    """What the command says; an error is raised, as for the one place that prints it."""
    result = CliRunner().invoke(rules.app, words, standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert (result.return_value or result.exit_code) == code, result.output
    return result


@pytest.fixture(autouse=True)
def _user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")


def url() -> str:
    return f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db"


@pytest.fixture
def store() -> Iterator[RuleStore]:
    """learned.1: active; 2: shadow; 3: refused; 4: active, of another job. A minute between any two events."""
    minutes = iter(range(10_000))
    with RuleStore.open(lay_down(url()), lambda: NOW + timedelta(minutes=next(minutes))) as opened:
        opened.add(
            JOB,
            [
                learned(r"^step \d+ of shard \d+$"),
                learned(r"^step \d+ of shard \d{1,4}$", "shadow", "adopted"),
                learned("^.*shard.*$", "candidate", "it takes a line that has nothing to do with the log"),
            ],
            "log agent",
        )
        opened.add(OTHER_JOB, [learned("^x of shard$")], "log agent")
        opened.count({"learned.1": 400})
        yield opened


def test_the_list(store: RuleStore) -> None:
    assert run("list").stdout == (
        "RULE       STATE      LINES  RUNS  JOB              PATTERN\n"
        "learned.1  active       400     1  pretrain_gpt.py  ^step \\d+ of shard \\d+$\n"
        "learned.2  shadow         0     0  pretrain_gpt.py  ^step \\d+ of shard \\d{1,4}$\n"
        "learned.3  candidate      0     0  pretrain_gpt.py  ^.*shard.*$\n"
        "learned.4  active         0     0  finetune.py      ^x of shard$\n"
    )


def test_the_list_as_json_and_filtered(store: RuleStore) -> None:
    document = json.loads(run("list", "--state", "active", "--format", "json").stdout)

    assert document["schema"] == "triage.rules/1"
    assert [(r["id"], r["hits"], r["job"]["features"]) for r in document["rules"]] == [
        ("learned.1", 400, list(JOB.features)),
        ("learned.4", 0, list(OTHER_JOB.features)),
    ]
    assert "learned.4" in run("list", "--job", OTHER_JOB.key).stdout
    assert run("list", "--text", "nowhere").stderr == "triage: no rule fits these filters; leave one out\n"


def test_an_empty_list_says_so() -> None:
    result = run("list")
    assert (result.stdout, result.stderr) == ("", "triage: no rule was learned yet\n")


@pytest.mark.parametrize(
    "words", [("list", "--state", "good"), ("list", "--source", "oracle"), ("show", "x", "--format", "yaml")]
)
def test_slips_of_the_fingers(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        run(*words)


def test_all_of_a_rule(store: RuleStore) -> None:
    store.move("learned.3", "retired", "it takes\x1b[31m too much", "ada", "retire")

    assert run("show", "learned.3").stdout == (
        "learned.3  retired\n"
        "steps of shards\n"
        "\n"
        "Pattern:\n"
        "  ^.*shard.*$\n"
        "\n"
        "Why retired: it takes�[31m too much\n"
        "Took: 0 lines in 0 runs\n"
        "Job: framework megatron, script pretrain_gpt.py (8d1f0a)\n"
        "Learned from: model openai:small on 2026-03-01 03:03 UTC, 2 of 3 answers agreed\n"
        "Prompt: write-rules 1 (abababababab)\n"
        "Sample: cdcdcdcdcdcd\n"
        "\n"
        "Meant for:\n"
        "  step 7 of shard 3\n"
        "\n"
        "Examples:\n"
        "  step 7 of shard 3\n"
        "\n"
        "Must not take:\n"
        "  step lost\n"
        "\n"
        "History:\n"
        "  2026-03-01 03:00 UTC, learn by log agent: candidate; it takes a line that has\n"
        "      nothing to do with the log\n"
        "  2026-03-01 03:08 UTC, retire by ada: candidate -> retired; it takes\ufffd[31m too\n"
        "      much\n"
    )


def test_all_of_a_rule_as_json(store: RuleStore) -> None:
    document = json.loads(run("show", "learned.1", "--format", "json").stdout)

    assert (document["id"], document["state"], document["hits"], document["origin"]["votes"]) == (
        "learned.1", "active", 400, 2,
    )  # fmt: skip
    assert [(e["what"], e["after"], e["who"]) for e in document["history"]] == [("learn", "active", "log agent")]


def test_a_rule_that_is_not_there(store: RuleStore) -> None:
    for command in ("show", "approve", "retire"):
        with pytest.raises(NotFoundError, match=r"no learned rule 'learned\.9'"):
            run(command, "learned.9")


# ------------------------------------------------------------------------------------------------ approve, retire
def test_a_shadow_rule_is_verified_and_approved(store: RuleStore) -> None:
    store.move("learned.1", "retired", "", "ada", "retire")

    assert run("approve", "learned.2").stdout == "learned.2 is active: verified again\n"
    assert run("approve", "learned.2").stdout == "learned.2 is active already\n"
    assert (store.get("learned.2").state, store.get("learned.2").approved_by) == ("active", "ada")


def test_one_that_was_refused_needs_a_reason(store: RuleStore) -> None:
    with pytest.raises(UsageError, match=r"learned.3 is candidate: it takes a line .*: --reason WHY"):
        run("approve", "learned.3")
    assert store.get("learned.3").state == "candidate"


def test_a_refusal_can_be_outweighed_with_a_reason(store: RuleStore) -> None:
    """The same lines as learned.1 takes: a duplicate, which does no harm."""
    with pytest.raises(UsageError, match=r"learned.2 is refused: the rule learned.1 takes every line .*--anyway"):
        run("approve", "learned.2", "--reason", "wider")
    with pytest.raises(UsageError, match=r"--anyway --reason WHY"):
        run("approve", "learned.2", "--anyway")

    said = run("approve", "learned.2", "--anyway", "--reason", "wider").stdout

    assert said.startswith("learned.2 is active: wider; against: the rule learned.1 takes every line")
    assert store.history("learned.2")[-1].reason.startswith("wider; against: ")


def test_no_reason_outweighs_hidden_evidence(store: RuleStore) -> None:
    store.move("learned.1", "retired", "", "ada", "retire")
    line = Evidence("E1", "a.log", 9, "step 4 of shard 9", "root", "data-corruption")
    with IncidentStore.open(url()) as incidents:
        import dataclasses

        seen = dataclasses.replace(ECC, evidence=(line,))
        incidents.record(seen, as_json(seen))

    with pytest.raises(UsageError, match=r"it would hide a line that decided an incident.*no reason outweighs"):
        run("approve", "learned.2", "--anyway", "--reason", "I know better")
    assert store.get("learned.2").state == "shadow"


def test_retire(store: RuleStore) -> None:
    assert run("retire", "learned.1", "--reason", "hid my lines").stdout == "learned.1 is retired: hid my lines\n"
    assert run("retire", "learned.1").stdout == "learned.1 is retired already\n"
    assert run("retire", "learned.4").stdout == "learned.4 is retired\n"
    assert [r.rule.id for r in store.in_force(JOB.key)] == ["learned.2"]


def test_rollback(store: RuleStore) -> None:
    store.move("learned.2", "retired", "it would have hidden E1 of incident 7", "triage", "incident")
    run("retire", "learned.1")

    first = run("rollback")
    assert first.stdout.startswith("learned.1 is active: retire by ada of ")
    second = run("rollback", "--to", "2026-01-01")

    assert [line.split(":")[0] for line in second.stdout.splitlines()] == [
        "learned.1 is retired", "learned.3 is retired", "learned.4 is retired",
    ]  # fmt: skip
    assert second.stderr == ""
    third = run("rollback", "--to", "2026-03-01T03:07:45")  # when learned.2 was a shadow rule
    assert [line.split(":")[0] for line in third.stdout.splitlines()] == [
        "learned.1 is active", "learned.3 is candidate", "learned.4 is active",
    ]  # fmt: skip
    assert third.stderr == "triage: learned.2 stays as it is: it would have hidden evidence of an incident\n"
    for _ in range(4):
        run("rollback")
    assert run("rollback").stderr == "triage: there is nothing to take back\n"
    with pytest.raises(UsageError, match=r"--to 'yesterday' is no time"):
        run("rollback", "--to", "yesterday")


# ------------------------------------------------------------------------------------------------ test
@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "job.log").write_text(LAUNCH + SHARDS + "done\n")
    return str(tmp_path / "job.log")


def test_a_pattern_is_tried_on_a_log(log: str) -> None:
    result = run("test", "--pattern", r"^step \d+ of shard \d+$", "--limit", "2", log)

    assert result.stdout == (
        f"{log}:2:step 0 of shard 0\n{log}:3:step 1 of shard 1\n\ntakes 200 lines (2 shown)\nverification: accepted\n"
    )


def test_a_broad_pattern_is_refused_with_the_reason(log: str) -> None:
    result = run("test", "--pattern", "^.*$", "--format", "json", "--limit", "0", log, code=1)

    document = json.loads(result.stdout)
    assert (document["rule"], document["pattern"], document["lines"]) == ("pattern", "^.*$", [])
    assert document["taken"] >= 200
    assert document["verification"]["check"] == "specific"


def test_a_rule_in_force_is_tried_as_if_it_were_not(store: RuleStore, log: str) -> None:
    job = job_print([Path(log).read_bytes()])
    store.add(job, [learned(r"^step \d+ of shard \d+$", "active")], "log agent")

    result = run("test", "learned.5", log)

    assert result.stdout.endswith("takes 200 lines (20 shown)\nverification: accepted\n")
    assert store.get("learned.5").hits == 0  # a trial is not counted


def test_what_a_trial_needs(store: RuleStore, log: str) -> None:
    with pytest.raises(UsageError, match=r"no log to test on"):
        run("test", "learned.1")
    with pytest.raises(NotFoundError):
        run("test", "learned.9", log)
    with pytest.raises(UsageError, match=r"megatron.iteration is a shipped rule"):
        run("test", "megatron.iteration", log)
    with pytest.raises(UsageError, match=r"--pattern cannot be used"):
        run("test", "--pattern", "(?=x)", log)


def test_the_real_command(triage, store: RuleStore, log: str) -> None:
    done = triage("rules", "test", "--pattern", "^.*$", log)
    assert (done.returncode, done.stderr) == (1, "")
    assert "verification: refused (specific)" in done.stdout

    store.add(job_print([Path(log).read_bytes()]), [learned(r"^step \d+ of shard \d+$", "active")], "log agent")
    assert triage("compress", log, "--dropped", "learned.5").stdout.count("of shard") == 200
    assert triage("compress", log, "--no-record").returncode == 0
    assert store.get("learned.5").hits == 0
    assert "learned.5" in triage("compress", log).stdout
    assert store.get("learned.5").hits == 200
    wrong = triage("rules", "show", "learned.77")
    assert (wrong.returncode, wrong.stderr) == (2, "triage: no learned rule 'learned.77'; see: triage rules list\n")


def test_stdin_is_known_by_its_head_and_read_as_a_whole(triage, store: RuleStore, log: str) -> None:
    text = Path(log).read_text()
    store.add(job_print([text.encode()]), [learned(r"^step \d+ of shard \d+$", "active")], "log agent")

    document = json.loads(triage("compress", "-", "--format", "json", stdin=text).stdout)

    assert document["compression"]["lines_in"] == 202
    assert {"rule": "learned.5", "lines": 200} in document["compression"]["dropped"]
