"""Training that left its way, told by its own figures: a loss far above its level, a loss scale that ran out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triage.domain import JobLog, Signature
from triage.evidence.losses import diverged
from triage.evidence.match import Finding
from triage.evidence.progress import Step
from triage.evidence.scales import run_out

DIVERGED = Signature(
    id="loss.diverged",
    title="the loss rose far above its own level and did not come back",
    patterns=(),
    failure_type="loss-spike",
    root_cause_class="unknown",
    role="root",
    remedy="Go back to a checkpoint before the rise; lower the learning rate or its peak, or skip the data that followed.",
    component="training",
    weight=60,
    check="loss, gradient norm and learning rate around the rise",
)

SCALE_RAN_OUT = Signature(
    id="loss.scale-ran-out",
    title="every step overflowed, and the loss scale was halved until nothing was left of it",
    patterns=(),
    failure_type="loss-spike",
    root_cause_class="config-error",
    role="root",
    remedy="Go back to a checkpoint before the first overflow; lower the learning rate, or use bf16 instead of fp16.",
    component="training",
    weight=85,
    check="loss, gradient norm and learning rate before the first overflow",
)
LASTING = frozenset({DIVERGED.id, SCALE_RAN_OUT.id})  # steps that follow are no sign that these were outlived


def find(log: JobLog, steps: Mapping[str, Sequence[Step]]) -> Iterator[Finding]:
    """In each file, the line where it began."""
    for file in log.files:
        if line := diverged(steps[file.name]):
            yield Finding(line, DIVERGED)
        if line := run_out(file.lines):
            yield Finding(line, SCALE_RAN_OUT)
