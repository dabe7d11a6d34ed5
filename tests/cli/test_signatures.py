"""Learned signatures from end to end: a failure that nothing knows, its outcome, and the same failure in another job."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.openai_server import Asked, OpenAIServer, status
from triage import config, pipeline
from triage.cli import incidents, rules, wiring
from triage.domain import LearnedSignature, RuleOrigin
from triage.errors import UsageError
from triage.parts import Parts
from triage.store.signatures import SignatureStore

ONE = "learned-signature.1"
BECAUSE = ("--verdict", "corrected", "--type", "network-error", "--cause", "a bent fibre", "--fix", "replace the fibre")
LAST = "card {rank} on {host} lost the quorum of ring {start} after 17.3 s"


def log(path: Path, host: str = "gpu-17", rank: int = 3, start: int = 100, last: str = LAST, steps: str = "") -> str:
    """A job's log that ends on an error that triage does not know."""
    step = steps or "iteration {n} of 9000 loss 2.{d} took 0.{d} s"
    lines = ["+ srun python -u /home/ada/fuse.py --config a.yaml"]
    lines += [
        f"2026-03-03 02:{n // 60 % 60:02d}:{n % 60:02d} [INFO] {step.format(n=n, d=n % 90 + 10, host=host)}"
        for n in range(start, start + 120)
    ]
    lines += [f"2026-03-03 03:09:00 [ERROR] {last.format(host=host, rank=rank, start=start)}", "closing"]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def run(app: Any, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, words, standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert (result.return_value or result.exit_code) == code, result.output
    return result


def diagnosis(path: str, llm: str | None = None) -> dict[str, Any]:
    """What `triage diagnose` records and prints, without the search for similar incidents."""
    settings = config.load({"llm": llm})
    parts = wiring.parts(settings, lambda _text: None, similar=False)
    return pipeline.diagnose([path], wiring.with_good_runs(parts, settings, writes=True))[1]


def resolved(incident: int, *words: str) -> dict[str, Any]:
    return dict(json.loads(run(incidents.app, "resolve", str(incident), *words, "--format", "json").stdout)["learned"])


def known() -> list[LearnedSignature]:
    with SignatureStore.open(f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db") as store:
        return list(store.list())


@pytest.fixture
def learned(tmp_path: Path) -> LearnedSignature:
    """The candidate of incident 1."""
    assert diagnosis(log(tmp_path / "a.out"))["failure_type"] == "unknown"
    resolved(1, *BECAUSE)
    return known()[0]


# ------------------------------------------------------------------------------------------------ the way of a good one
def test_a_corrected_unknown_gives_a_candidate_that_has_no_part_in_a_diagnosis(
    tmp_path: Path, learned: LearnedSignature
) -> None:
    assert (learned.id, learned.state, learned.incident, learned.confirmed) == (ONE, "candidate", 1, 1)
    assert (learned.signature.failure_type, learned.signature.remedy) == (
        "network-error",
        "as done in incident 1: replace the fibre",
    )
    assert learned.signature.title == "a bent fibre (learned from incident 1)"
    assert learned.expires is not None
    assert diagnosis(log(tmp_path / "b.out"))["failure_type"] == "unknown"


def test_approved_it_answers_the_same_failure_in_another_job(tmp_path: Path, learned: LearnedSignature) -> None:
    assert run(rules.app, "approve", ONE).stdout == f"{ONE} is active: verified again\n"

    found = diagnosis(log(tmp_path / "b.out", "node-b", 511, 4000))

    assert (found["failure_type"], found["status"], found["produced_by"]) == ("network-error", "established", "rules")
    (root,) = [e for e in found["evidence"] if e["role"] == "root"]
    assert (root["signature"], root["title"]) == (ONE, "a bent fibre (learned from incident 1)")
    assert any("replace the fibre" in step["step"].lower() for step in found["remediation"])


def test_what_was_recorded_without_it_stays_the_same_failure(tmp_path: Path) -> None:
    raised = "FrobnicatorError: the flux capacitor of ring {start} has lost its phase lock"
    taught = diagnosis(log(tmp_path / "a.out", last=raised))
    resolved(1, "--verdict", "confirmed", "--cause", "firmware", "--fix", "flash it", "--worked", "yes")
    run(rules.app, "approve", ONE)

    found = diagnosis(log(tmp_path / "b.out", "node-b", 511, 4000, last=raised))

    assert found["evidence"][0]["signature"] == ONE
    assert found["fingerprint"] == taught["fingerprint"] != ""


def test_a_second_confirmed_incident_puts_it_in_force_and_no_person_has_approved_it(
    tmp_path: Path, learned: LearnedSignature
) -> None:
    diagnosis(log(tmp_path / "b.out", "node-b", 511, 4000))
    done = run(incidents.app, "resolve", "2", "--verdict", "corrected", "--type", "network-error")

    assert done.stderr == f"triage: {ONE} is active: confirmed by 2 incidents: 1, 2\n"
    assert (known()[0].state, known()[0].approved_by) == ("active", "")
    found = diagnosis(log(tmp_path / "c.out", "x9", 0, 7))
    assert (found["failure_type"], found["status"]) == ("network-error", "supported")
    # And a person may still look at it.
    run(rules.app, "approve", ONE)
    assert diagnosis(log(tmp_path / "c.out", "x9", 0, 7))["status"] == "established"


def test_what_a_person_typed_stays_as_it_is_spelled_and_shows_what_it_destroys(tmp_path: Path) -> None:
    diagnosis(log(tmp_path / "a.out"))
    fix = "rm -rf /data/ckpt && scancel -u alice; token=hf_abcdefghijABCDEFGHIJ0123"
    resolved(1, "--verdict", "corrected", "--type", "network-error", "--fix", fix)
    run(rules.app, "approve", ONE)

    found = diagnosis(log(tmp_path / "b.out", "node-b", 511, 4000))

    (step,) = [step for step in found["remediation"] if "scancel" in step["step"]]
    assert step["step"].startswith("as done in incident 1: rm -rf /data/ckpt && scancel -u alice; token=[redacted:")
    assert step["risk"] == "destructive"


def test_a_line_of_no_trouble_does_not_take_the_cause_from_an_exception(tmp_path: Path) -> None:
    """Neither for a signature of an error, nor for one that was learned from such a line."""
    diagnosis(log(tmp_path / "a.out", last="card {rank} lost the quorum of ring {start}"))
    resolved(1, *BECAUSE)
    run(rules.app, "approve", ONE)
    quiet = "2026-03-03 03:08:00 [INFO] card 7 lost the quorum of ring 4\n"
    path = Path(log(tmp_path / "b.out", last="RuntimeError: shapes cannot be braided"))
    path.write_text(quiet + path.read_text())
    assert diagnosis(str(path))["failure_type"] == "runtime-error"

    other = log(tmp_path / "d.out", last="RuntimeError: shapes cannot be braided")
    Path(other).write_text(
        "2026-03-03 03:08:00 [INFO] the seventh lattice gave up its quorum\n" + Path(other).read_text()
    )
    with SignatureStore.open(f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db") as store:
        origin = RuleOrigin("mined", lines=("[INFO] the seventh lattice gave up its quorum",))
        made = dataclasses.replace(
            known()[0],
            signature=dataclasses.replace(known()[0].signature, patterns=("seventh lattice gave up",)),
            origin=origin,
        )
        stored = store.add(made, "ada")
        store.move(stored.id, "active", "", "ada", "approve")
    assert diagnosis(other)["failure_type"] == "runtime-error"


def test_the_number_of_confirmations_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_SIGNATURE_CONFIRMATIONS", "1")
    diagnosis(log(tmp_path / "a.out"))
    resolved(1, *BECAUSE)
    assert (known()[0].state, known()[0].reason) == ("active", "confirmed by 1 incident: 1")


def test_an_exception_that_only_its_class_is_known_of(tmp_path: Path) -> None:
    """Confirmed, it is covered; corrected to something else, it gives a signature that is stronger than the class."""
    path = log(tmp_path / "a.out", last="ValueError: no bucket for shard {rank} of ring {start}")
    assert diagnosis(path)["failure_type"] == "value-error"
    assert resolved(1, "--verdict", "confirmed")["covered"] is True
    assert known() == []

    resolved(1, "--verdict", "corrected", "--type", "dataset-loading-error")
    run(rules.app, "approve", ONE)

    assert diagnosis(path)["failure_type"] == "dataset-loading-error"


def test_an_evaluation_takes_no_notice_of_it(learned: LearnedSignature) -> None:
    run(rules.app, "approve", ONE)

    def ids(parts: Parts) -> set[str]:
        return {s.id for s in parts.knowledge.matcher.signatures}

    settings = config.load()
    assert ONE in ids(wiring.parts(settings, lambda _text: None))
    assert ONE not in ids(wiring.evaluation_parts(settings, similar=False))


# ------------------------------------------------------------------------------------------------ with a model
@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch):
    """Answers what `answer` holds to the question for a pattern; to all others that it does not know."""

    def said(asked: Asked) -> str:
        wanted = "signature of a failure" in asked.text
        return json.dumps({"pattern": answer[0]}) if wanted else json.dumps({"failure_type": "unknown"})

    answer = [r"card \d+ on [\w.-]+ lost the quorum of ring"]
    with OpenAIServer(said) as running:
        for name, value in running.env().items():
            monkeypatch.setenv(name, value)
        yield running, answer


def test_a_model_writes_the_pattern_and_is_not_asked_about_the_failure_again(tmp_path: Path, server) -> None:
    running, answer = server
    diagnosis(log(tmp_path / "a.out"), "off")
    resolved(1, *BECAUSE)

    (signature,) = known()
    assert (signature.pattern, signature.origin.by) == (answer[0], "model")
    assert [prompt.name for prompt in signature.origin.prompts] == ["signature-write"]
    run(rules.app, "approve", ONE)
    calls = len(running.requests)
    found = diagnosis(log(tmp_path / "b.out", "node-b", 511, 4000))
    assert (found["failure_type"], found["produced_by"], len(running.requests)) == ("network-error", "rules", calls)
    diagnosis(log(tmp_path / "c.out", last="the moon is {rank}"))
    assert len(running.requests) > calls


def test_what_a_model_wrote_waits_for_a_person(tmp_path: Path, server) -> None:
    diagnosis(log(tmp_path / "a.out"), "off")
    done = run(incidents.app, "resolve", "1", *BECAUSE)
    assert f"{ONE} is a candidate that the model wrote, in force by triage rules approve {ONE}: " in done.stderr
    diagnosis(log(tmp_path / "b.out", "node-b", 511, 4000), "off")
    resolved(2, *BECAUSE)

    assert (known()[0].state, known()[0].confirmed) == ("candidate", 2)
    run(rules.app, "approve", ONE)
    assert known()[0].state == "active"


@pytest.mark.parametrize(
    ("pattern", "check"),
    [
        ("(?=card).*quorum", "compiles"),
        (r"(?:\w{1,300}){300} quorum", "compiles"),
        ("quorum", "general"),
        (r"card (?:[\w.-]+\s*)+after", "general"),
        (r"lost the quorum of ring|Watchdog caught collective operation timeout", "shadows"),
        (r"lost the quorum of ring|iteration \d+ of \d+ loss", "not-root"),
        (r"card \d+ on gpu-99 lost the quorum", "named"),
        (r"lost the quorum of ring|evaluation harness warmed|cluster agent heartbeat", "unshown"),
    ],
)
def test_a_bad_pattern_of_a_model_is_refused_and_code_writes_its_own(
    tmp_path: Path, server, pattern: str, check: str
) -> None:
    _, answer = server
    answer[0] = pattern
    diagnosis(log(tmp_path / "a.out"), "off")

    done = run(incidents.app, "resolve", "1", *BECAUSE)

    assert f"the pattern of openai:scripted was refused ({check}): " in done.stderr
    assert [s.origin.by for s in known()] == ["mined"]


def test_a_model_that_is_down_costs_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer([status(401)]) as running:
        for name, value in running.env().items():
            monkeypatch.setenv(name, value)
        diagnosis(log(tmp_path / "a.out"), "off")
        done = run(incidents.app, "resolve", "1", *BECAUSE)
        assert "wrote no pattern: " in done.stderr
        assert [s.origin.by for s in known()] == ["mined"]
        calls = len(running.requests)
        run(rules.app, "learn", "--incident", "1", "--llm", "off")
        assert len(running.requests) == calls


# ------------------------------------------------------------------------------------------------ what is refused
@pytest.mark.parametrize(
    ("pattern", "check"),
    [
        ("error", "named"),
        ("card", "general"),
        (r"card \d+ on .* lost the quorum", "general"),
        ("(?!x)card", "compiles"),
    ],
)
def test_a_bad_pattern_of_a_person_is_refused_with_its_reason(tmp_path: Path, pattern: str, check: str) -> None:
    diagnosis(log(tmp_path / "a.out"))
    resolved(1, "--verdict", "rejected")
    run(incidents.app, "resolve", "1", *BECAUSE, "--llm", "off")
    run(rules.app, "retire", ONE)

    done = run(rules.app, "learn", "--incident", "1", "--pattern", pattern, code=1)

    assert done.stdout.startswith(f"no signature was learned ({check}): ")
    assert len(known()) == 1


def test_what_a_good_run_prints_is_no_signature(tmp_path: Path) -> None:
    last = "ring {start} lost the quorum for a moment on {host}"
    good = tmp_path / "good.out"
    body = Path(log(good, last="x")).read_text().splitlines()[:-2]
    body[60] = "2026-03-03 02:30:00 [INFO] ring 7 lost the quorum for a moment on gpu-2"
    good.write_text("\n".join([*body, "Training completed.", "exiting program at iteration 500"]) + "\n")
    assert diagnosis(str(good))["outcome"] == "healthy"
    diagnosis(log(tmp_path / "bad.out", last=last))

    lesson = resolved(2, *BECAUSE)

    assert lesson["verification"]["check"] == "healthy"
    assert known() == []


def test_what_the_log_itself_says_while_it_goes_on_is_no_signature(tmp_path: Path) -> None:
    last = "ring lost the quorum at step {start}"
    path = log(tmp_path / "a.out", last=last, steps="ring lost the quorum at step {n}, iteration {n} loss 2.{d}")
    diagnosis(path)
    assert resolved(1, *BECAUSE)["verification"]["check"] == "not-root"
    assert known() == []


def test_a_job_that_stood_still_has_no_line_to_learn_from(tmp_path: Path) -> None:
    path = tmp_path / "a.out"
    lines = Path(log(path)).read_text().splitlines()[:-2]
    lines.append("2026-03-04 09:00:00 slurmstepd: error: *** JOB 4711 ON gpu-17 CANCELLED AT 2026-03-04T09:00:00 ***")
    path.write_text("\n".join(lines) + "\n")
    found = diagnosis(str(path))
    lesson = resolved(1, "--verdict", "corrected", "--type", "storage-error")
    assert (found["outcome"], lesson["signature"]) == ("hung", None)
    assert lesson["verification"]["check"] in ("routine", "shadows", "not-root", "healthy")


def test_that_nothing_was_learned_does_not_sound_as_if_the_outcome_were_lost(tmp_path: Path) -> None:
    diagnosis(log(tmp_path / "a.out"))
    done = run(incidents.app, "resolve", "1", "--verdict", "corrected", "--cause", "who knows")
    assert done.stderr.startswith("triage: the outcome is kept and counts; no signature was learned (outcome): ")


def test_an_incident_without_an_outcome_teaches_nothing(tmp_path: Path) -> None:
    diagnosis(log(tmp_path / "a.out"))
    with pytest.raises(UsageError, match="incident 1 has no outcome yet"):
        run(rules.app, "learn", "--incident", "1")
    run(incidents.app, "resolve", "1", "--verdict", "corrected", "--cause", "who knows")
    done = run(rules.app, "learn", "--incident", "1", code=1)
    assert "(outcome): the outcome does not say which failure it was: correct it with a failure type" in done.stdout
    with pytest.raises(UsageError, match="incident 1 cites no line E9"):
        run(rules.app, "learn", "--incident", "1", "--line", "E9")
    with pytest.raises(UsageError, match="nothing to learn from"):
        run(rules.app, "learn")


# ------------------------------------------------------------------------------------------------ log text is data
def test_signs_of_regular_expressions_in_a_line_stay_signs(tmp_path: Path) -> None:
    last = "lattice says (a+)+$ [x]* .* | {rank} (?i) and stops ring {start}"
    diagnosis(log(tmp_path / "a.out", last=last))
    resolved(1, *BECAUSE)
    run(rules.app, "approve", ONE)

    pattern = re.compile(known()[0].pattern)
    assert pattern.search(last.format(rank=9, start=2))
    assert not pattern.search("lattice says zzz | 9 (?i) and stops ring 2")
    assert diagnosis(log(tmp_path / "b.out", rank=7, start=900, last=last))["failure_type"] == "network-error"


def test_a_secret_of_the_line_is_in_no_pattern(tmp_path: Path) -> None:
    secret = "hf_abcdefghijABCDEFGHIJ0123"
    last = "ring login of card {rank} with token=" + secret + " was refused by the lattice"
    diagnosis(log(tmp_path / "a.out", last=last))
    resolved(1, *BECAUSE)
    run(rules.app, "approve", ONE)

    assert secret.encode() not in Path(os.environ["TRIAGE_HOME"], "triage.db").read_bytes()
    other = last.replace("0123", "9876")
    assert diagnosis(log(tmp_path / "b.out", last=other))["evidence"][0]["signature"] == ONE


# ------------------------------------------------------------------------------------------------ the way out
def test_an_outcome_that_contradicts_it_retires_it_for_good(tmp_path: Path, learned: LearnedSignature) -> None:
    run(rules.app, "approve", ONE)
    diagnosis(log(tmp_path / "b.out", "node-b", 511, 4000))

    done = run(incidents.app, "resolve", "2", "--verdict", "rejected")

    assert done.stderr == f"triage: {ONE} is retired: the outcome of incident 2 contradicts it: rejected\n"
    held = run(rules.app, "rollback")  # of the approval
    assert held.stderr == f"triage: {ONE} stays as it is: an outcome contradicts it\n"
    assert diagnosis(log(tmp_path / "b.out"))["failure_type"] == "unknown"
    done = run(rules.app, "learn", "--incident", "1", "--llm", "off", code=1)
    assert f"(duplicate): it is {ONE}, retired: the outcome of incident 2" in done.stdout
    with pytest.raises(UsageError, match="--reason WHY"):
        run(rules.app, "approve", ONE)
    run(rules.app, "approve", ONE, "--reason", "the rejection was a slip")
    assert known()[0].state == "active"


def test_corrected_to_another_failure_it_is_retired_and_the_other_one_learned(
    tmp_path: Path, learned: LearnedSignature
) -> None:
    run(rules.app, "approve", ONE)
    diagnosis(log(tmp_path / "b.out", "node-b", 511, 4000))
    resolved(2, "--verdict", "corrected", "--type", "storage-error", "--cause", "the ring file system")
    assert [(s.state, s.signature.failure_type) for s in known()] == [
        ("retired", "network-error"), ("candidate", "storage-error"),
    ]  # fmt: skip


def test_an_outcome_is_of_the_reading_that_it_was_said_of(tmp_path: Path, learned: LearnedSignature) -> None:
    path = log(tmp_path / "b.out", "node-b", 511, 4000)
    diagnosis(path)
    resolved(2, "--verdict", "rejected")  # that it is unknown
    run(rules.app, "approve", ONE)
    assert diagnosis(path)["failure_type"] == "network-error"

    run(rules.app, "learn", "--incident", "2", "--llm", "off")

    assert known()[0].state == "active"


def test_a_candidate_that_nobody_confirms_expires(learned: LearnedSignature, monkeypatch: pytest.MonkeyPatch) -> None:
    later = datetime.now(UTC) + timedelta(days=91)
    with SignatureStore.open(f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db", lambda: later) as store:
        assert [s.id for s in store.expire()] == [ONE]
    assert "nobody confirmed it in time" in run(rules.app, "show", ONE).stdout


def test_retire_and_the_way_back(tmp_path: Path, learned: LearnedSignature) -> None:
    run(rules.app, "approve", ONE)
    assert run(rules.app, "retire", ONE, "--reason", "too wide").stdout == f"{ONE} is retired: too wide\n"
    assert run(rules.app, "retire", ONE).stdout == f"{ONE} is retired already\n"
    assert run(rules.app, "rollback").stdout.startswith(f"{ONE} is active: retire by ")
    assert run(rules.app, "rollback").stdout.startswith(f"{ONE} is candidate: approve by ")
    assert run(rules.app, "rollback").stdout.startswith(f"{ONE} is retired: learn by ")
    assert diagnosis(log(tmp_path / "b.out"))["failure_type"] == "unknown"


# ------------------------------------------------------------------------------------------------ what is shown
def test_list_and_show(learned: LearnedSignature) -> None:
    shown = run(rules.app, "list").stdout
    assert shown.startswith("SIGNATURE            STATE      INCIDENT  CONFIRMED  TYPE           PATTERN\n")
    assert f"{ONE}  candidate         1          1  network-error  " in shown
    assert run(rules.app, "list", "--kind", "signature").stdout == shown
    assert run(rules.app, "list", "--kind", "filter").stderr == "triage: no rule fits these filters; leave one out\n"
    document = json.loads(run(rules.app, "list", "--format", "json").stdout)
    assert (document["rules"], [s["id"] for s in document["signatures"]]) == ([], [ONE])

    text = run(rules.app, "show", ONE).stdout
    for words in (
        f"{ONE}  candidate\n",
        "Remedy: as done in incident 1: replace the fibre\n",
        "Outcomes: incident 1 confirmed\n",
        "Expires: ",
    ):
        assert words in text
    document = json.loads(run(rules.app, "show", ONE, "--format", "json").stdout)
    assert document["origin"]["lines"] == [LAST_LINE]
    assert [event["what"] for event in document["history"]] == ["learn"]
    assert document["outcomes"] == [{"incident": 1, "verdict": "confirmed"}]


LAST_LINE = "2026-03-03 03:09:00 [ERROR] card 3 on gpu-17 lost the quorum of ring 100 after 17.3 s"


def test_a_trial_on_a_log(tmp_path: Path, learned: LearnedSignature) -> None:
    path = log(tmp_path / "b.out", "node-b", 511, 4000)
    done = run(rules.app, "test", ONE, path)
    assert done.stdout.startswith(f"{path}:122:2026-03-03 03:09:00 [ERROR] card 511 on node-b lost the quorum")
    assert done.stdout.endswith("takes 1 line\nverification: accepted\n")

    good = tmp_path / "good.out"
    body = Path(log(good)).read_text().splitlines()[:-2]
    body[60] = "2026-03-03 02:30:00 [INFO] card 3 on gpu-2 lost the quorum of ring 4 after 0.1 s"
    good.write_text("\n".join([*body, "Training completed.", "exiting program at iteration 500"]) + "\n")
    done = run(rules.app, "test", ONE, str(good), code=1)
    assert "verification: refused (healthy)" in done.stdout


def test_a_pattern_of_a_person_replaces_the_candidate_of_its_incident(learned: LearnedSignature) -> None:
    words = ("learn", "--incident", "1", "--pattern")
    assert run(rules.app, *words, learned.pattern, "--dry-run").stdout.startswith("it would be a candidate")
    run(rules.app, *words, "quorum", code=1)
    assert [s.state for s in known()] == ["candidate"]  # a refused one replaces nothing

    done = run(rules.app, *words, r"card \d+ on [\w.-]+ lost the quorum")

    assert f"{ONE} is retired: learned-signature.2 replaces it\nlearned-signature.2 is a candidate" in done.stdout
    assert [(s.state, s.origin.by) for s in known()] == [("retired", "mined"), ("candidate", "user")]
    run(rules.app, "approve", "learned-signature.2")
    done = run(rules.app, *words, r"card \d+ on [\w.-]+ lost")
    assert "learned-signature.2 knows this failure; retire it first to use a pattern of your own" in done.stdout


def test_a_dry_run_keeps_nothing(tmp_path: Path, learned: LearnedSignature) -> None:
    run(rules.app, "retire", ONE)
    before = known()
    pattern = r"card \d+ on [\w.-]+ lost the quorum"
    words = ("learn", "--incident", "1", "--pattern", pattern)
    assert run(rules.app, *words, "--dry-run").stdout == f"it would be a candidate: {pattern}\n"
    assert known() == before
    made = json.loads(run(rules.app, *words, "--format", "json").stdout)["signature"]
    assert (made["id"], made["source"], made["pattern"]) == ("learned-signature.2", "user", pattern)


def test_the_log_may_be_gone_or_another_one(tmp_path: Path) -> None:
    path = Path(log(tmp_path / "a.out"))
    diagnosis(str(path))
    text = path.read_text()
    path.write_text("something else\n")
    done = run(incidents.app, "resolve", "1", *BECAUSE)
    assert "the incident's log is another one now: the signature was not tried on it" in done.stderr
    path.unlink()
    run(rules.app, "retire", ONE)
    words = ("learn", "--incident", "1", "--pattern", r"card \d+ on [\w.-]+ lost the quorum")
    assert "not there any more" in run(rules.app, *words, "--dry-run").stderr
    moved = tmp_path / "moved.out"
    moved.write_text(text)
    assert run(rules.app, *words, str(moved), "--dry-run").stderr == ""
    moved.write_text("something else\n")
    with pytest.raises(UsageError, match="is not the log of incident 1"):
        run(rules.app, *words, str(moved))


def test_a_database_that_cannot_be_read_costs_a_note_and_not_the_diagnosis(tmp_path: Path) -> None:
    Path(os.environ["TRIAGE_HOME"], "triage.db").write_text("no database, and longer than a header of one " * 9)
    found = diagnosis(log(tmp_path / "a.out"))
    (note,) = (note for note in found["missing"] if "learned signatures were not used" in note)
    assert "is not a database" in note and "the incident was not recorded" in note


def test_the_real_commands(triage, tmp_path: Path) -> None:
    path, other = log(tmp_path / "a.out"), log(tmp_path / "b.out", "node-b", 511, 4000)
    assert triage("diagnose", path, "--quiet").returncode == 1
    done = triage("incidents", "resolve", "1", *BECAUSE)
    assert done.returncode == 0
    assert done.stdout.startswith("incident 1: corrected by ")
    assert done.stderr.startswith(
        f"triage: {ONE} is a candidate, in force after 1 more confirmed incident or by triage rules"
    )
    assert triage("rules", "approve", ONE).stdout == f"{ONE} is active: verified again\n"
    done = triage("diagnose", other, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["failure_type"], found["evidence"][0]["signature"]) == ("network-error", ONE)
    wrong = triage("rules", "show", "learned-signature.77")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
