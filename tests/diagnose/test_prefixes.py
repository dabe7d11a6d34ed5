"""Whatever a launcher, a container or a logger puts before the lines of a program, the failure is the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from tests.helpers import job
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.evidence.match import Matcher
from triage.runbooks import runbooks


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


WORKED = [f"step {i} loss 2.{90 - i}" for i in range(5)]
FRAMES = ["Traceback (most recent call last):", '  File "/w/train.py", line 9, in step', "    loss = model(batch)"]
ENDS = {
    "key-error": "KeyError: 'labels'",
    "assertion-error": "AssertionError",
    "out-of-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB",
    "storage-error": "OSError: [Errno 116] Stale file handle",
}


def each(before: str) -> Callable[[Sequence[str]], list[str]]:
    return lambda lines: [before + line for line in lines]


WRAPPED: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "logging": each("2025-06-12 10:00:00,123 - train - ERROR - "),
    "logging, of a child": each("2025-06-12 10:00:00,123 - train - INFO - "),
    "logging, basic": each("ERROR:root:"),
    "loguru": each("2025-06-12 10:00:00.123 | ERROR    | __main__:main:88 - "),
    "glog": each("E0612 10:00:00.123456  3311 train.py:88] "),
    "logfmt": lambda lines: [f'time="2025-06-12T10:00:00Z" level=error msg={json.dumps(line)}' for line in lines],
    "container runtime": each("2026-01-17T18:48:10.418481013+01:00 stderr F "),
    "docker": lambda lines: [json.dumps({"log": line + "\n", "stream": "stderr"}) for line in lines],
    "compose": each("trainer-1  | "),
    "kubectl": each("[pod/llm-worker-3/pytorch] "),
    "mpirun": each("[1,3]<stderr>:"),
    "horovod": each("Fri Sep 11 07:07:20 2020[3]<stderr>:"),
    "ray": each("(RayTrainWorker pid=311, ip=10.0.0.4) "),
    "cloud logging": lambda lines: [json.dumps({"severity": "ERROR", "textPayload": "\n".join(lines)})],
    "structlog": lambda lines: [json.dumps({"event": "failed", "level": "error", "exception": "\n".join(lines)})],
}


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("way", WRAPPED)
def test_the_kind_of_a_failure_does_not_hang_on_what_wraps_its_lines(way: str, kind: str, knowledge: Knowledge) -> None:
    told = judge(job("\n".join([*WORKED, *WRAPPED[way]([*FRAMES, ENDS[kind]])])), knowledge)
    assert (told.outcome, told.failure_type) == ("failed", kind)


def test_an_error_in_a_record_that_work_went_on_after_is_none(knowledge: Knowledge) -> None:
    caught = "2025-06-12 10:00:00,123 - data - ERROR - ValueError: bad sample 12, skipping"
    steps = [f"iteration {i}/ 1000 | lm loss: 2.{i} | elapsed time per iteration (ms): 500.1" for i in range(1, 60)]
    done = "[after training is done] datetime: 2026-11-29 21:11:07"
    assert judge(job("\n".join([*steps[:9], caught, *steps[9:], done])), knowledge).outcome == "healthy"
