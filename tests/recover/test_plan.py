"""The plan for a diagnosis: what is looked at, ended, drained, and whether the job is started again."""

from __future__ import annotations

from typing import Any

import pytest

from triage.errors import UsageError
from triage.recover.hosts import named
from triage.recover.plan import Case, plan, scheduler_of
from triage.recover.resume import Resume
from triage.recover.step import Plan, Step
from triage.risk import of_command


def result(**told: Any) -> dict[str, Any]:
    base = {
        "outcome": "failed",
        "failure_type": "ecc-error",
        "status": "established",
        "action": "restart-excluding",
        "job": "4711",
        "suspects": {"nodes": ["gpu-017.cluster.example"]},
        "evidence": [{"id": "E1", "role": "root"}, {"id": "E2", "role": "cascade"}],
        "remediation": [{"step": "Look at the counters of the GPU."}],
    }
    return base | told


def made(scheduler: str = "slurm", case: dict[str, Any] | None = None, **told: Any) -> Plan:
    return plan(Case(12, result(**told), scheduler, **(case or {})))


def of(found: Plan, kind: str) -> list[Step]:
    return [step for step in found.steps if step.kind == kind]


def test_a_sick_node_is_drained_and_the_job_queued_without_it() -> None:
    found = made()
    assert found.restart
    (drain,) = of(found, "drain")
    assert drain.argv == ("scontrol", "update", "NodeName=gpu-017", "State=DRAIN", "Reason=triage:ecc-error:12")
    assert drain.undo == "scontrol update NodeName=gpu-017 State=RESUME"
    assert drain.evidence == ("E1",)
    assert [s.argv[:3] for s in of(found, "resubmit")] == [
        ("scontrol", "requeuehold", "4711"),
        ("scontrol", "update", "JobId=4711"),
        ("scontrol", "release", "4711"),
    ]
    assert of(found, "resubmit")[0].unless[:1] == ("squeue",)
    assert of(found, "resubmit")[1].argv[3] == "ExcNodeList=gpu-017"


def test_every_step_has_a_reason_its_true_risk_and_a_way_back() -> None:
    for scheduler in ("slurm", "kubernetes", "pbs", "lsf", "sge", "flux", ""):
        for told in ({}, {"outcome": "hung"}, {"suspects": {"nodes": []}, "failure_type": "nccl-timeout"}):
            found = made(scheduler, {"nodes": ("n1", "n2"), "script": "/x/job.sh", "kill_switch": "/x/stop"}, **told)
            assert found.steps
            for step in found.steps:
                assert step.what and step.why
                if step.argv:
                    assert step.risk == of_command(step.argv)
                    assert step.undo or step.risk == "read-only"


@pytest.mark.parametrize(
    ("scheduler", "drain", "undo", "submit"),
    [
        ("kubernetes", "kubectl cordon gpu-017", "kubectl uncordon gpu-017", None),
        ("pbs", "pbsnodes -o -C triage:ecc-error:12 gpu-017", "pbsnodes -r gpu-017", "qsub /x/job.sh"),
        ("sge", "qmod -d '*@gpu-017'", "qmod -e '*@gpu-017'", "qsub -l 'h=!(gpu-017)' /x/job.sh"),
        (
            "flux",
            "flux resource drain gpu-017 triage:ecc-error:12",
            "flux resource undrain gpu-017",
            "flux batch --requires=-host:gpu-017 /x/job.sh",
        ),
        (
            "slurm",
            "scontrol update NodeName=gpu-017 State=DRAIN Reason=triage:ecc-error:12",
            "scontrol update NodeName=gpu-017 State=RESUME",
            "sbatch --exclude=gpu-017 /x/job.sh",
        ),
    ],
)
def test_each_scheduler_is_spoken_to_in_its_own_words(
    scheduler: str, drain: str, undo: str, submit: str | None
) -> None:
    found = made(scheduler, {"script": "/x/job.sh"})
    assert [(s.command, s.undo) for s in of(found, "drain")] == [(drain, undo)]
    assert [s.command for s in of(found, "resubmit")] == ([submit] if submit else [])


@pytest.mark.parametrize(
    ("told", "steps", "why"),
    [
        ({"recurrence": {"kind": "same-step", "incidents": [3, 7]}}, (100,), "at the same step"),
        ({"action": "fix-and-resubmit"}, (100,), "the failure is the job's own"),
        ({"action": "escalate"}, (100,), "the cluster or its storage"),
        ({}, (100, 100, 90, 100), "started 3 times without coming further"),
        ({"failure_type": "unknown", "suspects": {"nodes": []}}, (100, 100), "a restart did not help"),
    ],
)
def test_what_would_fail_again_is_not_started_again(told: dict[str, Any], steps: tuple[int, ...], why: str) -> None:
    found = made(case={"steps": steps}, **told)
    assert not found.restart
    assert why in found.verdict
    assert not of(found, "resubmit")
    assert any("triage incidents show 12" in note for note in found.notes)
    (stop,) = of(found, "stop")
    assert stop.incidents == tuple(map(str, told.get("recurrence", {}).get("incidents", ())))


@pytest.mark.parametrize("steps", [(), (None,), (100,), (100, 200, 300, 400, 500), (100, 200, 200, 150)])
def test_a_fault_that_passes_is_retried_as_long_as_the_job_comes_further(steps: tuple[int | None, ...]) -> None:
    assert made(case={"steps": steps}).restart


def test_a_healthy_job_needs_nothing() -> None:
    found = made(outcome="healthy")
    assert (found.restart, found.steps) == (False, ())


def test_a_hung_job_is_ended_gently_first_and_who_may_not_is_told_what_to_do() -> None:
    found = made(case={"kill_switch": "/run/stop"}, outcome="hung", action="kill-and-restart", suspects={"nodes": []})
    kinds = [step.kind for step in found.steps if step.kind in ("kill-switch", "cancel", "resubmit")]
    assert kinds == ["kill-switch", *["cancel"] * 4, *["resubmit"] * 2]
    assert [s.argv[1:] for s in of(found, "cancel")] == [
        ("--batch", "--signal=USR1", "4711"),
        ("--signal=TERM", "4711"),
        ("4711",),
        ("--full", "--signal=KILL", "4711"),
    ]
    assert all(s.risk == "destructive" and s.while_[0] == "squeue" for s in of(found, "cancel"))
    assert of(found, "kill-switch")[0].argv == ("touch", "--", "/run/stop")
    assert any("coordinator" in note for note in found.notes)
    assert any("--kill-on-bad-exit=1" in note for note in found.notes)


def test_a_fault_between_nodes_that_accuses_none_gets_a_node_test() -> None:
    found = made(case={"nodes": ("n01", "n02", "n03")}, failure_type="nccl-timeout", suspects={"nodes": []})
    (test,) = of(found, "node-test")
    assert test.argv[-5:] == ("--nodes", "n[01-03]", "--incident", "12", "--yes")
    named = made(
        case={"nodes": ("n01", "n02", "n03"), "without": ("n02",)}, failure_type="nccl-timeout", suspects={"nodes": []}
    )
    assert not of(named, "node-test")
    assert "NodeName=n02" in of(named, "drain")[0].argv


def test_names_that_are_none_of_a_node_or_job_reach_no_command() -> None:
    evil = ["$(reboot)", "--all", "a;b", "../x", "n1 n2"]
    found = made(case={"nodes": tuple(evil)}, job="4711; rm -rf /", suspects={"nodes": evil}, failure_type="x; y")
    assert [step.argv for step in found.steps if step.argv] == []


def test_the_checkpoint_is_said_with_the_steps_lost() -> None:
    found = made(case={"resume": Resume("/c/iter_0000100", 100, "--load /c --ckpt-step 100", 21)})
    back = next(s for s in of(found, "do") if "checkpoint" in s.what)
    assert "--ckpt-step 100" in back.what
    assert "21 steps lost" in back.why


def test_the_scheduler_is_the_recorded_one_or_that_of_the_remedies() -> None:
    assert scheduler_of({"remediation": [{"step": "x", "command": "kubectl get pods"}]}) == "kubernetes"
    assert scheduler_of({"remediation": [{"step": "x", "command": "kubectl get pods"}]}, "slurm") == "slurm"
    assert scheduler_of({"remediation": [{"step": "run sbatch again"}]}) == "slurm"
    assert scheduler_of({}) == ""


def test_a_node_that_is_none_of_the_jobs_is_left_alone_and_said() -> None:
    found = made(case={"nodes": ("gpu-001", "gpu-002")}, suspects={"nodes": ["gpu-099", "gpu-002.cluster.example"]})
    (drain,) = of(found, "drain")
    assert drain.argv[2] == "NodeName=gpu-002"
    assert any(note.startswith("gpu-099 is named by the log and is none") for note in found.notes)
    tested = made(case={"nodes": ("gpu-001",), "without": ("gpu-099",)}, suspects={"nodes": []})
    assert "NodeName=gpu-099" in of(tested, "drain")[0].argv  # a person named it


@pytest.mark.parametrize("word", ["ALL", "all", "All", "allremote", "none"])
def test_a_word_for_all_nodes_is_no_name_of_one(word: str) -> None:
    assert not of(made(suspects={"nodes": [word]}), "drain")
    assert not any(word in step.argv for step in made(scheduler="lsf", suspects={"nodes": [word]}).steps)
    assert of(made(suspects={"nodes": [f"{word}-3"]}), "drain")


def test_an_unknown_cause_is_retried_once() -> None:
    told = {"failure_type": "unknown", "action": "escalate", "suspects": {"nodes": []}}
    assert "one restart may show more" in made(**told).verdict
    assert not made(case={"steps": (50, 50)}, **told).restart


def test_a_job_submitted_before_is_seen_to_first_where_it_cannot_be_asked_after() -> None:
    found = made(scheduler="pbs", case={"script": "/x/job.sh", "submitted": ("88.head",)})
    (see,) = [step for step in found.steps if step.first and "88.head" in step.what]
    assert found.steps.index(see) < found.steps.index(of(found, "resubmit")[0])


def test_names_of_nodes_may_stand_apart_and_never_run_together() -> None:
    assert named("gpu1 gpu2,gpu3\ngpu[4-5, 7]") == ("gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu7")
    for wrong in ("", " , ", "gpu1 ALL", "gpu1;reboot", "gpu1 gpu["):
        with pytest.raises(UsageError):
            named(wrong)


def test_where_no_node_can_be_tested_the_plan_says_so() -> None:
    between = {"failure_type": "nccl-timeout", "suspects": {"nodes": []}}
    (note,) = [note for note in made(**between).notes if "not known" in note]
    assert "sacct -X -j 4711" in note and "triage recover node-test --nodes LIST --incident 12" in note
    assert not any("not known" in note for note in made(case={"nodes": ("n1", "n2")}, **between).notes)
    assert not any("tests none" in note for note in made().notes)


def test_a_kill_switch_that_is_not_used_is_told() -> None:
    case = {"kill_switch": "/x/stop"}
    assert any("--kill-switch was left out" in note for note in made(case=case).notes)
    assert not any("--kill-switch" in note for note in made(case=case, outcome="hung").notes)


def test_of_a_diagnosis_that_a_person_said_is_wrong_nothing_is_done() -> None:
    said = "ada rejected this diagnosis: a person pulled the cable."
    for told in ({}, {"outcome": "hung"}, {"action": "rollback-and-skip"}):
        found = made(case={"refuted": said, "script": "/x/job.sh", "nodes": ("gpu-017", "gpu-018")}, **told)
        assert not found.restart and "a person pulled the cable" in found.verdict
        assert {step.risk for step in found.steps} == {"read-only"}
    named_by_hand = made(case={"refuted": said, "script": "/x/job.sh", "without": ("gpu-018",)})
    assert [step.argv[2] for step in of(named_by_hand, "drain")] == ["NodeName=gpu-018"]
    assert [step.command for step in of(named_by_hand, "resubmit")] == ["sbatch --exclude=gpu-018 /x/job.sh"]


@pytest.mark.parametrize("scheduler", ["slurm", "kubernetes", "pbs", ""])
def test_a_job_is_not_put_back_on_a_faulty_node_that_no_line_names(scheduler: str) -> None:
    told = {"failure_type": "gpu-lost", "suspects": {"nodes": [], "gpus": ["0000:9b:00"]}}
    found = made(scheduler, {"nodes": ("gpu-017",), "script": "/x/job.sh"}, **told)
    (find,) = [step for step in found.steps if step.first and "node at fault" in step.what]
    assert "0000:9b:00" in find.what and "gpu-017" in find.why and "no line names it" in found.verdict
    again = [step for step in found.steps if step.what.startswith("Submit the job again")]
    assert found.steps.index(find) < found.steps.index(again[0])
    assert not [step for step in made(case={"without": ("gpu-017",)}, **told).steps if "node at fault" in step.what]
    tested = made(case={"nodes": ("n1", "n2")}, **told)
    assert of(tested, "node-test") and not [step for step in tested.steps if "node at fault" in step.what]


def test_a_node_that_logs_call_by_two_names_is_one() -> None:
    told = {"failure_type": "nccl-timeout", "action": "restart", "suspects": {"nodes": []}}
    assert not of(made(case={"nodes": ("gpu017", "gpu017.unity.example.edu")}, **told), "node-test")
    (test,) = of(made(case={"nodes": ("gpu017", "gpu018.example.edu", "gpu017.example.edu")}, **told), "node-test")
    assert "gpu[017-018]" in test.argv


def test_who_drains_in_kubernetes_is_told_which_cluster_is_spoken_to() -> None:
    assert any("current context" in note for note in made("kubernetes").notes)
    assert not any("current context" in note for note in made().notes)


def test_a_job_that_somebody_ended_is_not_put_back_behind_his_back() -> None:
    ended = {"outcome": "interrupted", "failure_type": "cancelled", "action": "none", "suspects": {"nodes": []}}
    found = made(case={"script": "/x/job.sh"}, **ended)
    (ask,) = [step for step in found.steps if step.first and "whoever ended" in step.what]
    assert found.steps.index(ask) < found.steps.index(of(found, "resubmit")[0])
    assert "if it is wanted back" in found.verdict
    preempted = made(**ended | {"failure_type": "preempted", "action": "restart"})
    assert "ended from outside" in preempted.verdict and not any("whoever" in step.what for step in preempted.steps)


@pytest.mark.parametrize(
    ("named", "shown"),
    [("/c/run 1/iter_0000100", "checkpoints '/c/run 1'"), ("step 100", "checkpoints DIR"), ("", "checkpoints DIR")],
)
def test_the_folder_of_the_checkpoint_that_the_log_names_is_the_one_to_look_into(named: str, shown: str) -> None:
    steps = made(progress={"last_checkpoint": named}).steps
    assert any(step.what.endswith(shown) for step in steps)
