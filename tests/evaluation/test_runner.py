"""Running cases: what the workers see, what goes wrong in one case, and what stays of it."""

from __future__ import annotations

import functools
import json
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation import make, spies
from tests.openai_server import Answer, OpenAIServer, status
from triage import config, kb
from triage.agents import failure_agent
from triage.cli import wiring
from triage.errors import InputError, TriageError
from triage.evaluation import record, runner, staging
from triage.evaluation.cases import load_cases

SECRET_ID = "zq7"
PRELOAD = ("triage.cli.eval_workers",)


def plan(make_parts: Callable[..., Any] = spies.plain, **changes: Any) -> runner.Plan:
    return runner.Plan(
        config.load({"llm": "off"}), make_parts, **{"jobs": 2, "baselines": False, "preload": PRELOAD, **changes}
    )


def run(folder: Path, out: Path, *args: Any, **changes: Any) -> dict[str, dict[str, Any]]:
    """Records by case."""
    runner.run(load_cases(folder), out, plan(*args, **changes))
    return {r["case"]: r for r in record.read_records(out)}


def test_a_run_leaves_a_record_that_stands_alone(tmp_path: Path) -> None:
    make.case(tmp_path / "cases", "a1", tags=["hard"], gpu_hours=8, expect_also_accept=["value-error"])
    make.healthy(tmp_path / "cases", "a2")
    found = run(tmp_path / "cases", tmp_path / "run", baselines=True)
    a1, a2 = found["a1"], found["a2"]
    assert (a1["result"]["failure_type"], a1["result"]["outcome"], a1["problem"]) == ("key-error", "failed", "")
    assert a1["result"]["schema"] == "triage.diagnosis/1"
    assert (a1["result"]["incident"], a2["result"]["outcome"]) == (None, "healthy")
    assert a1["expect"] == {
        "outcome": "failed",
        "failure_type": "key-error",
        "also_accept": ["value-error"],
        "evidence": [["job.out", 6, 6]],
    }
    assert (a1["files"], a1["tags"], a1["gpu_hours"], a1["split"]) == ({"job.out": 6}, ["hard"], 8.0, "dev")
    assert a1["compressed"]["decisive"] == [["job.out", 6, 6, True]]
    assert a1["labelled"] == [["job.out", 6, "KeyError: 'tokens_per_shard'"]]
    assert a1["compressed"]["bytes_in"] == len(make.KEY_ERROR)
    assert a1["citations"]["cited"] == a1["citations"]["valid"] == len(a1["result"]["evidence"]) > 0
    assert 0 < a1["seconds"] < 60
    assert 20 < a1["peak_mb"] < 4000
    assert set(a1["baselines"]) >= {"last-exception", "first-error", "keyword-table"}
    header = record.read_run(tmp_path / "run")
    assert (header["model"], header["repeats"], header["finished"] is not None) == ("off", 1, True)
    assert [c["sha256"] for c in header["cases"]] == [a1["sha256"], a2["sha256"]]
    assert len(header["kb_sha256"]) == len(header["code_sha256"]) == 64
    assert header["packages"]["numpy"]


def test_metrics_are_made_again_from_the_records_alone(tmp_path: Path) -> None:
    make.case(tmp_path / "cases", "a1")
    run(tmp_path / "cases", tmp_path / "run")
    before = record.read_metrics(tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    (tmp_path / "cases").rename(tmp_path / "gone")
    assert runner.rescore(tmp_path / "run") == before == record.read_metrics(tmp_path / "run")
    assert before["splits"]["all"]["type_exact"]["value"] == 1.0


def test_nothing_of_the_case_but_its_inputs_reaches_the_worker(tmp_path: Path) -> None:
    folder = make.case(tmp_path / "labelled", SECRET_ID, inputs=["."], source="marker-source", tags=["hard"])
    (folder / "ranks").mkdir()
    (folder / "ranks" / "1.log").write_text("step 1\n")
    run(tmp_path / "labelled", tmp_path / "run", functools.partial(spies.watched, notes=tmp_path / "notes"))
    notes = [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]
    opened = [n for n in notes if n[0] == "open"]
    assert any("job.out" in n[1] for n in opened), "the spy sees what is opened"
    for note in notes:
        for word in (SECRET_ID, "labelled", "case.yaml", "marker-source"):
            assert word not in " ".join(note), note
    looks = [n for n in notes if n[0] == "look"]
    assert looks
    for _, here, seen, links, argv, env, home, database in looks:
        assert Path(here.strip("'")).name == "job"
        assert (links, argv) == ("[]", "['triage']")
        files = eval(seen)
        assert {Path(p).relative_to(here.strip("'")).as_posix() for p in files if "/job/" in p} == {
            "job.out",
            "ranks",
            "ranks/1.log",
        }
        assert {t for p, t in files.items() if p.endswith((".out", ".log"))} == {staging._WRITTEN}
        user = os.environ["TRIAGE_HOME"]
        assert user not in home + database
        assert f"'TRIAGE_HOME': {home}" in env


def test_what_is_sent_to_a_worker_holds_no_label(tmp_path: Path) -> None:
    make.case(tmp_path / "labelled", SECRET_ID, expect_root_cause_class="software-bug", source="marker-source")
    (case,) = load_cases(tmp_path / "labelled")
    sent = pickle.dumps(staging.stage(case, tmp_path / "0"))
    for word in (SECRET_ID, "labelled", "key-error", "software-bug", "marker-source", "failed", case.sha256):
        assert word.encode() not in sent
    assert b"job.out" in sent


FACTS = {"JobID": "4242", "State": "CANCELLED by 100", "exit_code": "0:15", "Reason": "a | b\n c"}


def test_the_facts_of_the_scheduler_reach_the_pipeline(tmp_path: Path) -> None:
    """As sacct prints them, in a file beside the inputs; a time limit is seen nowhere else."""
    log = "step 1 loss 2.5\nstep 2 loss 2.4\n"
    timeout = {"JobID": "4242", "State": "TIMEOUT", "ExitCode": "0:0"}
    make.case(tmp_path / "cases", "a1", log, scheduler=timeout, expect_evidence=None)
    make.case(tmp_path / "cases", "a2", log, expect_evidence=None)
    found = run(tmp_path / "cases", tmp_path / "run")
    assert found["a1"]["result"]["failure_type"] == "time-limit"
    (cited,) = [e for e in found["a1"]["result"]["evidence"] if e["failure_type"] == "time-limit"]
    assert (cited["file"], cited["line"], cited["text"]) == ("sacct.txt", 2, "4242|TIMEOUT|0:0")
    assert found["a1"]["citations"]["cited"] == found["a1"]["citations"]["valid"]
    assert found["a1"]["scheduler"] == timeout
    assert found["a2"]["result"]["failure_type"] != "time-limit"


def test_facts_are_staged_without_a_label_and_only_where_no_input_tells_them(tmp_path: Path) -> None:
    make.case(tmp_path / "labelled", SECRET_ID, scheduler=FACTS, source="marker-source")
    told = make.case(tmp_path / "labelled", "a2", scheduler=FACTS, inputs=["job.out", "jobs.txt"])
    (told / "jobs.txt").write_text("JobID|JobName|State|ExitCode\n4242|train|FAILED|1:0\n")
    other = make.case(tmp_path / "labelled", "a3", scheduler=FACTS, inputs=["job.out", "sacct.txt"])
    (other / "sacct.txt").write_text("sacct: error: slurmdbd is not there\n")
    tasks = {c.id: staging.stage(c, tmp_path / c.id) for c in load_cases(tmp_path / "labelled")}
    assert tasks[SECRET_ID].inputs == tasks[SECRET_ID].files == ("job.out", "sacct.txt")
    text = (tasks[SECRET_ID].job / "sacct.txt").read_text()
    assert text == "JobID|State|ExitCode|Reason\n4242|CANCELLED by 100|0:15|a b c\n"
    assert tasks["a2"].files == ("job.out", "jobs.txt")
    assert tasks["a3"].files == ("job.out", "sacct.txt", "scheduler-sacct.txt")


def test_a_model_answers_as_two_of_the_baselines(tmp_path: Path) -> None:
    reply = '{"outcome": "failed", "failure_type": "key-error", "file": "job.out", "line": 6}'
    make.case(tmp_path / "cases", "a1", expect_root_cause_class="software-bug")
    make.case(tmp_path / "cases", "a2")
    answers = iter([Answer(reply, usage=(900, 100)), status(401, "no"), reply, reply])
    # The diagnosis asks as well; what it is told does not hold, and the rules' answer stands.
    script = lambda asked: "no" if "What the rules found" in asked.text else next(answers)  # noqa: E731
    with OpenAIServer(script) as server:
        settings = replace(
            config.load({"llm": "openai:scripted"}), llm_base_url=server.url, llm_api_key="key-0123456789", llm_price_in=1.0, llm_price_out=2.0
        )  # fmt: skip
        asking = replace(plan(baselines=True, jobs=1, make_model=wiring.model), settings=settings)
        runner.run(load_cases(tmp_path / "cases"), tmp_path / "run", asking)
    first, second = sorted(record.read_records(tmp_path / "run"), key=lambda r: len(r["baselines"]))
    assert (first["problem"], second["problem"], second["notes"]) == ("", "", [])
    assert "whole-log-llm: " in first["notes"][0]
    assert "HTTP 401" in first["notes"][0]
    assert first["baselines"]["tail-200-llm"]["usage"]["cost"] == pytest.approx(0.0011)
    assert set(second["baselines"]) - set(first["baselines"]) == {"whole-log-llm"}
    header = record.read_run(tmp_path / "run")
    assert (header["model"], [p["name"] for p in header["prompts"]]) == (
        "openai:scripted",
        ["baseline", *failure_agent.PROMPTS],
    )
    assert len(header["prompts"][0]["sha256"]) == 64
    assert "key-0123456789" not in (tmp_path / "run" / "run.json").read_text()
    figures = record.read_metrics(tmp_path / "run")["baselines"]["tail-200-llm"]
    assert figures["type_exact"]["value"] == 1.0
    assert figures["tokens"]["value"] == pytest.approx((1000 + 110) / 2)
    assert "tokens" not in record.read_metrics(tmp_path / "run")["baselines"]["first-error"]
    # The prompt of the diagnosis lists all labels there are.
    wire = json.dumps([r.body for r in server.requests if "What the rules found" not in r.text])
    assert "software-bug" not in wire
    assert str(tmp_path) not in wire


def test_the_users_home_is_not_touched_and_similar_incidents_are_found(tmp_path: Path) -> None:
    home = Path(os.environ["TRIAGE_HOME"])
    parts = functools.partial(wiring.evaluation_parts, similar=True)
    labels: dict[str, Any] = {"expect_evidence": None, "expect_failure_type": "ecc-error"}
    make.case(tmp_path / "cases", "a1", "RuntimeError: CUDA error: uncorrectable ECC error encountered\n", **labels)
    result = run(tmp_path / "cases", tmp_path / "run", parts, prepare=wiring.fill_index)["a1"]["result"]
    assert result["similar"]
    assert not [note for note in result["missing"] if "similar" in note], "the index was there"
    assert not home.exists() or list(home.iterdir()) == []


def test_what_goes_wrong_in_one_case_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    for name, order in (("c1", "@raise"), ("c2", "@die"), ("c3", "@exit"), ("c4", "@sleep"), ("c5", ""), ("c6", "")):
        make.case(cases, name, f"{order}\n{make.KEY_ERROR}" if order else make.KEY_ERROR)
    started = time.monotonic()
    found = run(cases, tmp_path / "run", spies.obedient, seconds=8)
    assert {name: r["problem"] for name, r in found.items()} == {
        "c1": "crash: ZeroDivisionError: the log told so at spies.py:30",
        "c2": "crash: the worker was killed by SIGKILL",
        "c3": "crash: the worker ended with exit code 3",
        "c4": "timeout",
        "c5": "",
        "c6": "",
    }
    assert time.monotonic() - started < 58, "the sleeping worker was not waited for"
    assert [found[name]["result"] is None for name in sorted(found)] == [True] * 4 + [False] * 2
    assert found["c4"]["seconds"] == 8
    figures = record.read_metrics(tmp_path / "run")["splits"]["all"]
    assert (figures["type_exact"]["value"], figures["type_exact"]["n"]) == (pytest.approx(2 / 6, abs=1e-3), 6)


def test_unreadable_input_is_an_error_of_its_case(tmp_path: Path) -> None:
    folder = make.case(tmp_path / "cases", "a1", expect_evidence=None)
    (folder / "job.out").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 40)
    assert run(tmp_path / "cases", tmp_path / "run")["a1"]["problem"].startswith("error: nothing to read")


def test_a_case_that_went_wrong_runs_again_on_request_only(tmp_path: Path) -> None:
    make.case(tmp_path / "cases", "a1", "@raise\n" + make.KEY_ERROR)
    run(tmp_path / "cases", tmp_path / "run", spies.obedient)
    assert run(tmp_path / "cases", tmp_path / "run")["a1"]["problem"].startswith("crash")
    assert run(tmp_path / "cases", tmp_path / "run", again=True)["a1"]["problem"] == ""
    assert (tmp_path / "run" / "records.jsonl").read_text().count("\n") == 1


def test_a_resumed_run_does_what_is_new_or_changed_alone(tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    make.case(cases, "a1")
    make.case(cases, "a2")
    first = run(cases, tmp_path / "run")
    make.case(cases, "a3")
    (cases / "a2" / "job.out").write_text(make.KEY_ERROR + "one line more\n")
    second = run(cases, tmp_path / "run")
    assert second["a1"] == first["a1"]
    assert (second["a2"]["files"], set(second)) == ({"job.out": 7}, {"a1", "a2", "a3"})
    assert len((tmp_path / "run" / "records.jsonl").read_text().splitlines()) == 3


def test_repeats_are_records_of_their_own(tmp_path: Path) -> None:
    make.case(tmp_path / "cases", "a1")
    runner.run(load_cases(tmp_path / "cases"), tmp_path / "run", plan(repeats=3))
    assert [r["repeat"] for r in record.read_records(tmp_path / "run")] == [0, 1, 2]
    assert record.read_metrics(tmp_path / "run")["repeats"] == 3


@pytest.mark.parametrize("evidence", [["job.out", 6, 7], ["other.out", 1, 1], ["", 7, 7]])
def test_labels_beyond_the_file_stop_the_run_before_it_starts(tmp_path: Path, evidence: list[Any]) -> None:
    make.case(tmp_path / "cases", "a1", expect_evidence=[evidence])
    with pytest.raises(InputError, match=r"a1/case.yaml: expect.evidence\[0\]: "):
        run(tmp_path / "cases", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_workers_that_cannot_start_end_the_run_with_the_reason(tmp_path: Path) -> None:
    make.case(tmp_path / "cases", "a1")
    with pytest.raises(TriageError, match="this knowledge base cannot be used"):
        run(tmp_path / "cases", tmp_path / "run", spies.unable)
    with pytest.raises(TriageError, match="3 workers in a row did not start, the last ended with exit code 7"):
        run(tmp_path / "cases", tmp_path / "run2", spies.dying)


def test_knowledge_has_one_hash(tmp_path: Path) -> None:
    make.case(tmp_path / "cases", "a1")
    run(tmp_path / "cases", tmp_path / "run")
    changed = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**changed, "kb_sha256": "0" * 64}))
    with pytest.raises(TriageError, match="cannot be resumed: it was made with knowledge "):
        run(tmp_path / "cases", tmp_path / "run")
    assert kb.root().is_dir()


def test_a_worker_that_dies_while_it_starts_is_replaced(tmp_path: Path) -> None:
    for at in range(3):
        make.case(tmp_path / "cases", f"a{at}")
    for jobs in (1, 2):
        found = run(
            tmp_path / "cases",
            tmp_path / f"run{jobs}",
            functools.partial(spies.dying_once, mark=tmp_path / f"mark{jobs}"),
            jobs=jobs,
        )
        assert [r["problem"] for r in found.values()] == ["", "", ""]
        assert (tmp_path / f"mark{jobs}").exists()


def test_inputs_that_go_while_it_runs_cost_their_case_alone(tmp_path: Path) -> None:
    for name in ("a1", "a2", "a3"):
        make.case(tmp_path / "cases", name)
    cases = load_cases(tmp_path / "cases")
    gone = tmp_path / "cases" / "a2" / "job.out"
    runner.run(cases, tmp_path / "run", plan(jobs=1), lambda *_: gone.unlink(missing_ok=True))
    found = {r["case"]: r["problem"] for r in record.read_records(tmp_path / "run")}
    assert (found["a1"], found["a3"]) == ("", "")
    assert found["a2"].startswith("error: ") and "cannot be copied" in found["a2"]


@pytest.mark.parametrize("name", ["-", "a\x1bb.log", os.fsdecode(b"a\xffb.log")])
def test_odd_names_of_inputs_are_files_like_any_other(tmp_path: Path, name: str) -> None:
    folder = make.case(tmp_path / "cases", "a1", inputs=["."], expect_evidence=None)
    (folder / "job.out").rename(folder / name)
    if name == "-":
        path = folder / "case.yaml"
        path.write_text(path.read_text().replace("- .", "- '-'"))
    (made,) = run(tmp_path / "cases", tmp_path / "run").values()
    assert (made["problem"], made["result"]["failure_type"]) == ("", "key-error")
    assert made["citations"]["valid"] == made["citations"]["cited"] > 0


def test_secrets_of_labels_stay_out_of_the_record(tmp_path: Path) -> None:
    secret = "password=hunter2horse"
    make.case(
        tmp_path / "cases",
        "a1",
        source=f"copied with {secret}",
        expect_why=f"see {secret}",
        scheduler={"State": "FAILED", "Comment": secret},
    )
    run(tmp_path / "cases", tmp_path / "run")
    assert "hunter2horse" not in (tmp_path / "run" / "records.jsonl").read_text()
