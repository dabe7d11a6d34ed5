"""Diagnoses for the tests, and their JSON form."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone
from typing import Any

from triage.domain import (
    Diagnosis,
    Evidence,
    FilterRule,
    Hypothesis,
    JobPrint,
    LearnedRule,
    LearnedSignature,
    PromptUsed,
    Remedy,
    RuleOrigin,
    Signature,
    Similar,
    Suspects,
)

IST = timezone(timedelta(hours=5, minutes=30))

ECC = Diagnosis(
    outcome="failed",
    failure_type="ecc-error",
    category="infrastructure",
    root_cause_class="hardware-failure",
    status="established",
    root_cause="GPU 3 of gpu-017 had an uncorrectable ECC error. All other ranks then waited for it.",
    action="restart-excluding",
    evidence=(
        Evidence(
            id="E1",
            file="dmesg.txt",
            line=118,
            text="NVRM: Xid (PCI:0000:4e:00): 48, pid=4242, DBE (double bit error)",
            role="root",
            failure_type="ecc-error",
            title="double-bit ECC error",
            signature="xid-48",
            node="gpu-017",
            gpu="3",
            time=datetime(2026, 3, 1, 8, 15, 2, 123_456, IST),
        ),
        Evidence(
            id="E2",
            file="rank_12.log",
            line=90_211,
            text="[Rank 12] Watchdog caught collective timeout: WorkNCCL(SeqNum=88) — 100 % gone",
            role="cascade",
            failure_type="nccl-timeout",
            signature="nccl-watchdog",
            rank=12,
            node="gpu-016",
            repeats=63,
        ),
    ),
    chain=("E1", "E2"),
    hypotheses=(
        Hypothesis(
            "ecc-error",
            "hardware-failure",
            "uncorrectable ECC error",
            "established",
            ("E1",),
            (),
            "nvidia-smi -q -d ECC",
        ),
        Hypothesis("network-error", "network-failure", "the fabric lost a link", "hypothesis", ("E2",), ("E1",)),
    ),
    suspects=Suspects(nodes=("gpu-017",), ranks=(24, 25), gpus=("3",)),
    remediation=(
        Remedy(
            "Drain gpu-017",
            "its memory is at fault",
            "reversible",
            "scontrol update NodeName=gpu-017 State=DRAIN",
            ("E1",),
        ),
        Remedy("Restart from the last checkpoint", "nothing else is wrong", "reversible", incidents=("IL-0125",)),
    ),
    similar=(Similar("IL-0125", "ECC errors on one node", 0.82, "same failure type", "confirmed"),),
    produced_by="llm:small-1",
    timing={"ingest": 0.25},
    usage={"calls": 1, "tokens_in": 900},
    fingerprint="f3c0ffee",
)

OOM = Diagnosis(
    outcome="failed",
    failure_type="out-of-memory",
    category="framework",
    root_cause_class="resource-exhaustion",
    status="supported",
    root_cause="The batch does not fit.",
    action="fix-and-resubmit",
)

HUNG = dataclasses.replace(
    OOM, outcome="hung", failure_type="hang", category="unknown", root_cause="It waits for rank 7 on gpu-099"
)

PROMPTS = [{"name": "failure-agent", "version": 3, "sha256": "9f" * 32}]


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Near enough to the result of the pipeline; the store does not look inside but for `prompts`."""
    result: dict[str, Any] = {"schema": "triage.diagnosis/1", **dataclasses.asdict(diagnosis), "prompts": PROMPTS}
    for evidence in result["evidence"]:
        evidence["time"] = evidence["time"] and evidence["time"].isoformat()
    return {key: list(value) if isinstance(value, tuple) else value for key, value in result.items()}


JOB = JobPrint("8d1f0a", ("framework:megatron", "script:pretrain_gpt.py"))
OTHER_JOB = JobPrint("77aa10", ("script:finetune.py",))


def learned(pattern: str, state: Any = "active", reason: str = "", **fields: Any) -> LearnedRule:
    """A rule as the log agent hands it over."""
    origin = RuleOrigin(
        by="model",
        model="openai:small",
        prompts=(PromptUsed("write-rules", "1", "ab" * 32),),
        sample="cd" * 32,
        lines=("step 7 of shard 3",),
        votes=2,
        asked=3,
    )
    rule = FilterRule("", "steps of shards", pattern, ("step 7 of shard 3",), ("step lost",))
    return LearnedRule(rule, "", state, origin, reason, **fields)


def steps(number: int) -> LearnedRule:
    return learned(rf"^step \d+ of shard {number}$")


def signature(
    pattern: str, failure_type: str = "network-error", state: Any = "candidate", **fields: Any
) -> LearnedSignature:
    """A signature as learning hands it over."""
    found = Signature(
        id="",
        title="the lattice lost its quorum (learned from incident 1)",
        patterns=(pattern,),
        failure_type=failure_type,
        root_cause_class="network-failure",
        role="root",
        remedy="Reseat the lattice card.",
    )
    origin = RuleOrigin(by="mined", lines=("lattice 3 lost its quorum",))
    return LearnedSignature(found, state, origin, **fields)
