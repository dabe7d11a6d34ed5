"""A made-up run folder with every kind of answer that a report must show, and text that tries to break out of it."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

from triage.evaluation import metrics, record

HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script><!--",
    '"><img src=x onerror="document.title=\'owned\'">',
    "\x1b[31mRuntimeError\x1b[0m: \x1b]0;title\x07 red \x00\x07 bell",
    "user\u202egnp.exe\u2066 and \u200bzero width, \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "'single' \"double\" `back` & &amp; &lt;b&gt; ${x} {{x}} ]]> \r\n next",
    "javascript:alert(1) " + "A" * 600,
    "\ud800 lone surrogate and \U000e0041 a tag",
)
KINDS = {  # type -> outcome, class, action, a line that shows it
    "out-of-memory": ("failed", "resource-exhaustion", "fix-and-resubmit", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB"),
    "gpu-lost": ("failed", "hardware-failure", "restart-excluding", "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."),
    "nccl-timeout": ("failed", "unknown", "restart", "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4718, OpType=ALLREDUCE)"),
    "network-error": ("failed", "network-failure", "restart-excluding", "transport retry counter exceeded, mlx5_2:1 port down"),
    "node-failure": ("failed", "hardware-failure", "restart-excluding", "slurmstepd: error: *** JOB 771204 CANCELLED DUE TO NODE FAILURE ***"),
    "storage-error": ("failed", "dependency-failure", "escalate", "OSError: [Errno 5] Input/output error: '/lustre/ckpt/step_9000'"),
    "key-error": ("failed", "software-bug", "fix-and-resubmit", "KeyError: 'lm_head.weight'"),
    "import-error": ("failed", "config-error", "fix-and-resubmit", "ModuleNotFoundError: No module named 'flash_attn'"),
    "disk-full": ("failed", "resource-exhaustion", "escalate", "OSError: [Errno 28] No space left on device"),
    "hang": ("hung", "unknown", "kill-and-restart", "rank 5 has issued no collective for 1800 s"),
    "time-limit": ("interrupted", "operator-action", "restart", "slurmstepd: error: *** STEP 1.0 CANCELLED AT 2026-03-01 DUE TO TIME LIMIT ***"),
    "healthy": ("healthy", "none", "none", ""),
}  # fmt: skip
NAMES = tuple(KINDS)
TAGS = ("cascade", "hardware", "multi-file", "slurm", "misleading", "large")


def write(folder: Path, cases: int = 60, repeats: int = 1, model: str = "off", seed: int = 7) -> Path:
    """The run folder: run.json, records.jsonl and metrics.json."""
    folder.mkdir(parents=True, exist_ok=True)
    found = records(cases, repeats, model, seed)
    (folder / record.RECORDS).write_text("".join(json.dumps(r) + "\n" for r in found), "ascii")
    (folder / record.RUN).write_text(json.dumps(run(found, repeats, model)), "ascii")
    record.write_metrics(folder, metrics.score(found, resamples=200))
    return folder


def run(found: list[dict[str, Any]], repeats: int = 1, model: str = "off") -> dict[str, Any]:
    prompts = [] if model == "off" else [{"name": "failure", "version": 3, "sha256": "c" * 64}]
    return {
        "schema": record.SCHEMA, "started": "2026-03-02T03:00:00+00:00", "finished": "2026-03-02T03:01:30+00:00", "version": "0.1.0",
        "commit": "0123456789abcdef", "command": "triage eval run eval/cases --llm off", "settings": {"token_budget": 12000, "llm": model},
        "model": model, "prompts": prompts, "seed": 0, "repeats": repeats, "jobs": 2, "packages": {"numpy": "2.4.6", "pyyaml": "6.0.4"},
        "python": "3.11.2", "platform": "Linux", "kb_sha256": "ab" * 32,
        "cases": [{k: r[k] for k in ("case", "sha256", "split", "tags")} | {"id": r["case"]} for r in found if not r["repeat"]],
    }  # fmt: skip


def records(cases: int = 60, repeats: int = 1, model: str = "off", seed: int = 7) -> list[dict[str, Any]]:
    """Deterministic. Case c000 is a false alarm, c001 a missed failure, c002 crashed, c003 timed out; the rest is a mixture."""
    chance = random.Random(seed)
    return [_record(i, n, chance, model) for i in range(cases) for n in range(repeats)]


def _record(i: int, repeat: int, chance: random.Random, model: str) -> dict[str, Any]:
    want = {0: "healthy", 1: "gpu-lost"}.get(i, NAMES[i % len(NAMES)])
    got = {0: "out-of-memory", 1: "healthy"}.get(i) or (want if chance.random() < 0.75 else chance.choice(NAMES))
    nasty = HOSTILE[i % len(HOSTILE)]
    files = {"job.out": 5000} if i % 3 else {"job.out": 5000, "node/gpu-042.dmesg": 300}
    problem = {2: f"crash: ValueError: {nasty}", 3: "timeout"}.get(i, "")
    ranges = (
        [] if want == "healthy" else [["job.out", 100 + i, 102 + i], ["job.out", 400, 400], [list(files)[-1], 77, 77]]
    )
    spent = round(0.05 * 1.12 ** chance.randint(0, 40), 3)
    return {
        "case": f"c{i:03}", "sha256": hashlib.sha256(str(i).encode()).hexdigest(), "repeat": repeat, "split": "test" if i % 4 == 0 else "dev",
        "tags": [*(["healthy"] if want == "healthy" else []), *chance.sample(TAGS, 2)], "source": f"made up {nasty[:40]}", "synthetic": True,
        "gpu_hours": float(8 * i) if i % 2 else None, "expect": _expect(i, want, ranges), "labelled": [["job.out", 100 + i, nasty], ["job.out", 400, f"rank 3: {nasty[:300]}"]][: len(ranges)], "files": files,
        "result": None if problem else _result(i, want, got, nasty, ranges, chance, model), "problem": problem, "seconds": spent,
        "peak_mb": round(120 + 40 * chance.random() + 60 * (i % 7 == 0), 1),
        "compressed": {"bytes_in": 400_000 + i, "bytes_kept": 9_000 + 50 * i, "decisive": [[*r, True] for r in ranges]},
        "citations": None if problem else {"cited": 3, "valid": 3 - (i % 20 == 9)},
        "baselines": {name: _baseline(want, share, ranges, chance) for name, share in (("keyword-table", 0.5), ("last-exception", 0.4), ("first-error", 0.3))},
    }  # fmt: skip


def _expect(i: int, want: str, ranges: list[Any]) -> dict[str, Any]:
    outcome, cause, action, _ = KINDS[want]
    found: dict[str, Any] = {
        "outcome": outcome, "failure_type": want, "root_cause_class": cause, "action": [action], "evidence": ranges,
        "also_accept": ["network-error"] if want == "nccl-timeout" else [], "why": f"The label's reason. {HOSTILE[i % len(HOSTILE)][:80]}",
    }  # fmt: skip
    if cause == "hardware-failure":
        found |= {"nodes": [f"gpu-{i:03}"], "ranks": [i % 8], "must_not": ["key-error", "out-of-memory"]}
    if want in ("out-of-memory", "disk-full"):
        found |= {"must_mention": [["memory", "space"], ["GiB", "device"]], "nodes": []}
    return found


def _result(
    i: int, want: str, got: str, nasty: str, ranges: list[Any], chance: random.Random, model: str
) -> dict[str, Any]:
    outcome, cause, action, line = KINDS[got]
    status = (
        chance.choice(("established", "established", "supported", "hypothesis"))
        if got == want
        else chance.choice(("supported", "hypothesis", "unknown"))
    )
    first = 101 + i if ranges and chance.random() < 0.8 else 3000
    cited = [] if got == "healthy" else [
        {"id": "E1", "file": "job.out", "line": first, "text": line, "role": "root", "failure_type": got, "repeats": 1 + i % 5},
        {"id": "E2", "file": "job.out", "line": 4000, "text": nasty[:500], "role": "cascade", "failure_type": got, "repeats": 1},
        {"id": "E3", "file": "job.out", "line": 400, "text": f"rank {i % 8}: {nasty}"[:500], "role": "context", "failure_type": got, "repeats": 1},
    ]  # fmt: skip
    accused = [f"gpu-{i:03}"] if cause == "hardware-failure" else []
    return {
        "schema": "triage.diagnosis/1", "incident": None, "outcome": outcome, "failure_type": got, "category": "", "root_cause_class": cause,
        "status": status, "root_cause": f"{line or 'The job finished.'} ({nasty[:120]})", "evidence": cited, "chain": ["E1"],
        "hypotheses": [{"failure_type": t, "root_cause_class": "unknown", "root_cause": nasty, "status": "hypothesis", "for": [], "against": [], "check": ""} for t in (got, "runtime-error")],
        "suspects": {"nodes": accused, "ranks": [i % 8] if accused else [], "gpus": []}, "action": action,
        "remediation": [{"step": f"Look at the node. {nasty[:60]}", "why": "", "risk": "read-only", "evidence": ["E1"], "incidents": []}],
        "similar": [], "runs": [], "progress": {"stage": "train"}, "compression": {}, "produced_by": "rules", "prompts": [],
        "missing": [f"dmesg of the node was not given {nasty[:30]}"] if i % 5 == 0 else [], "files": ["job.out"], "timing": {},
        "usage": {"llm_calls": 0, "tokens_in": 0, "tokens_out": 0} if model == "off" else {"llm_calls": 2, "tokens_in": 3000 + 10 * i, "tokens_out": 240, "cost": 0.004},
    }  # fmt: skip


def _baseline(want: str, share: float, ranges: list[Any], chance: random.Random) -> dict[str, Any]:
    got = want if chance.random() < share else chance.choice(NAMES)
    outcome, _, action, _ = KINDS[got]
    lines = [{"file": "job.out", "line": ranges[0][1], "role": "root"}] if ranges and chance.random() < share else []
    return {"outcome": outcome, "failure_type": got, "evidence": lines, "action": action}
