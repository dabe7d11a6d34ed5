"""Every filter rule proves itself by its examples and counter-examples, and no rule takes a decisive line."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from triage import kb
from triage.compress.classify import Classifier
from triage.compress.linewise import AFTER_PREFIX, RULE_END, confine
from triage.domain import FilterRule
from triage.regex import PatternSet, compile_pattern, skeleton

RULES = kb.filter_rules()
SHARED = Path(os.environ.get("TRIAGE_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")

# Lines of failures that no rule was written for, as people and programs word them.
NOVEL = (
    "node gpu-17 stopped answering, taking it out of the job",
    "The loader gave up on shard 00017 after 5 attempts",
    "Could not reach the metadata service",
    "rank 12 has not reported for 1800 seconds",
    "12: rank 12 left the group",
    "step 4000: rank 3 lost its heartbeat after 60 s",
    "checkpoint shard 12 is shorter than its header says",
    "Saving checkpoint at step 100 did not finish: quota used up",
    "Loading dataset... gave up after 3 tries",
    "loss: nan",
    "step 12 | loss nan | lr 1e-4",
    "{'loss': nan, 'grad_norm': 1.2, 'epoch': 0.1}",
    "iteration 12/ 500 | lm loss: inf | grad norm: 0.1 |",
    "Epoch 3: 42%|####2     | 420/1000 [05:11<07:09,  1.35it/s, loss=nan]",
    "[rank3]: the collective did not return in time",
    "the scheduler took the node away",
    "job 4242 was stopped by its owner",
    "worker 3 (pid 4242) got signal 9",
    "Killed",
    "[1]    4242 killed     python train.py",
    "Bus fault while reading page 12",
    "Out of memory: Killed process 4242 (python3)",
    "nvidia-smi: no devices were found",
    "Unable to determine the device handle for GPU 0000:07:00.0: GPU is lost.",
    "NVRM: Xid (PCI:0000:07:00): 79, pid=1234, GPU has fallen off the bus.",
    "mlx5_0: port 1 link is down",
    "gpu-17:1234:1250 [3] NCCL WARN Call to recv from 10.0.0.1<4242> returned Broken pipe",
    "gpu-17:1234:1250 [3] NCCL INFO transport/net_ib.cc:1121 -> 6",
    "gpu-17:1234:1250 [3] NCCL INFO [Service thread] Connection closed by localRank 3",
    "gpu-17:1234:1250 [3] NCCL INFO comm 0x5581 rank 3 nranks 8 cudaDev 3 busId a1000 - Abort COMPLETE",
    "slurmstepd: *** JOB 4242 ON gpu-17 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***",
    "srun: got SIGCONT",
    "mount /scratch is gone",
    "Stale file handle",
    "I/O on /data/shard-3 took 900 s",
    "LustreError: 11-0: scratch-OST0003 operation ost_read to node 10.0.0.4@o2ib is unreachable",
    "assert tokens.max() < vocab_size",
    "Segmentation fault (core dumped)",
    "terminate called after throwing an instance of 'c10::Error'",
    "exit code: 137",
    "Return code: -9",
    "the peer closed the connection",
    "device ordinal 8 does not exist",
    "reward model returned an empty batch, stopping",
    "please check the node's power supply",
    "  host      : gpu-17",
    "  time      : 2026-01-02_03:04:05",
    "  rank      : 3 (local_rank: 3)",
    "  exitcode  : -9 (pid: 4242)",
    "  error_file: <N/A>",
    "Root Cause (first observed failure):",
    "(raylet) Node 10.0.0.3 left the cluster [repeated 3x across cluster]",
    "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-5, 'epoch': 0.1}",
    "W0317 10:00:14.527971 125344 x2num.py:13] NaN or Inf found in input tensor.",
    "(raylet) file_system_monitor.cc:116: /tmp/ray is over 95% full, available space: 26.4 GB",
    "GPU available: False, used: False",
    "wandb: Network error",
    "tokenizer vocabulary and embedding differ: 32000 against 32001",
)

TRACEBACK = (
    "Traceback (most recent call last):",
    "[rank3]: Traceback (most recent call last):",
    '  File "x.py", line 3, in f',
    '12:   File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1553, in _call_impl',
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/x.bin'",
    "KeyError: 'model'",
    "AssertionError",
    "KeyboardInterrupt",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
    "    raise RuntimeError(msg)",
    "    ~~~~~~^^^^^^^^^",
    "mypkg.errors.ShardError: shard 3",
)


def as_scanned(rule: FilterRule) -> str:
    """The pattern as the scan uses it: `^` stands after rank labels and time stamps too."""
    return confine(rule.pattern, AFTER_PREFIX, RULE_END)


@functools.cache
def compiled() -> dict[str, Any]:
    return {rule.id: compile_pattern(as_scanned(rule), rule.id) for rule in RULES}


@functools.cache
def all_rules() -> PatternSet:
    return PatternSet([as_scanned(rule) for rule in RULES])


def takers(line: str) -> list[str]:
    """The ids of the rules that take the line."""
    return [RULES[index].id for index in all_rules().match(line)]


def named(rules: tuple[FilterRule, ...]) -> list[Any]:
    return [pytest.param(rule, id=rule.id) for rule in rules]


@pytest.mark.parametrize("rule", named(RULES))
def test_rule_proves_itself(rule: FilterRule) -> None:
    assert rule.examples
    assert rule.counter_examples
    assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)+", rule.id)
    pattern = compiled()[rule.id]
    assert [e for e in rule.examples if not pattern.search(e)] == []
    assert [e for e in rule.counter_examples if pattern.search(e)] == []


@pytest.mark.parametrize("rule", named(RULES))
def test_rule_is_needed(rule: FilterRule) -> None:
    """Without the rule at least one of its examples stays in the log."""
    assert [e for e in rule.examples if takers(e) == [rule.id]]


def test_there_are_many_rules_and_their_ids_name_their_file() -> None:
    assert len(RULES) >= 175
    for path in sorted((kb.root() / "filters").glob("*.yaml")):
        for rule in kb.load_filters(path):
            assert rule.id.split(".")[0] == path.stem


def test_counter_examples_stay_in_the_log() -> None:
    """A line that one rule names as not routine is taken by no other."""
    taken = {e: takers(e) for rule in RULES for e in rule.counter_examples}
    assert {e: ids for e, ids in taken.items() if ids} == {}


@pytest.mark.parametrize("line", NOVEL)
def test_novel_lines_stay(line: str) -> None:
    assert takers(line) == []


@pytest.mark.parametrize("line", TRACEBACK)
def test_traceback_lines_stay(line: str) -> None:
    assert takers(line) == []


PREFIXES = (
    "",
    "12: ",
    "[rank3]:",
    "[default0]:",
    "[1,3]<stdout>:",
    "(Worker pid=7) ",
    "gpu-17: ",
    "2026-01-02 03:04:05,123 - INFO - ",
    "[2026-01-02 03:04:05] ",
    "INFO:train:",
    "I0102 03:04:05.123456 4242 train.py:12] ",
)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_change_nothing(prefix: str) -> None:
    assert takers(prefix + "iteration 12 | loss: 2.31 | grad norm: 0.5")
    assert not takers(prefix + "iteration 12 | loss: nan | grad norm: 0.5")
    assert not takers(prefix + "rank 12 has not reported for 1800 seconds")


def test_decisive_lines_of_signatures_stay() -> None:
    examples = [(s.id, e) for s in kb.signatures() if s.role in ("root", "cascade") for e in s.examples]
    taken = {(sid, e): takers(e) for sid, e in examples}
    assert {key: ids for key, ids in taken.items() if ids} == {}


def is_routine(scan: Classifier, line: str) -> bool:
    """Whether the scan drops the line: a rule takes it, and it carries no mark of trouble."""
    raw = line.encode()
    return scan.kind(scan.shape(raw, skeleton(raw)), raw).rule >= 0


def labelled_ranges() -> Iterator[tuple[str, str, list[str]]]:
    """(case:file:line, failure type, lines) of each range of evidence that people marked."""
    for path in sorted((SHARED / "logs").glob("*/case.yaml")):
        expect = yaml.safe_load(path.read_text("utf-8"))["expect"]
        for name, first, last in expect.get("evidence") or []:
            if not (path.parent / name).is_file():
                continue
            raw = (path.parent / name).read_bytes().split(b"\n")[first - 1 : last]
            lines = [line.decode("utf-8", "replace") for line in raw if line.strip()]
            yield f"{path.parent.name}:{name}:{first}", expect["failure_type"], lines


@pytest.mark.skipif(not (SHARED / "logs").is_dir(), reason="the labelled logs are not on this machine")
def test_labelled_evidence_stays() -> None:
    """Every marked line stays; of a loss spike's range the finite records may go, not the spike."""
    ranges = list(labelled_ranges())
    assert len(ranges) > 50
    scan = Classifier(RULES, [])
    lost = {}
    for where, failure_type, lines in ranges:
        taken = [line[:200] for line in lines if is_routine(scan, line)]
        if taken and (failure_type != "loss-spike" or len(taken) == len(lines)):
            lost[where] = taken
    assert lost == {}
