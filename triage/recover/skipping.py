"""After a spike of the loss: from which step to go back, which batches to leave out, and how a framework is told. Pure.

As PaLM's team did it: back about a hundred steps, and past some hundred batches around the spike. The batches are not bad of themselves;
it is they together with the weights of that moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from triage.domain import LogLine
from triage.evidence.spikes import Spike

BEFORE = 20  # steps between the checkpoint to go back to and the spike: it has begun before it shows
SKIPPED = 200  # batches, half of them before the spike; PaLM left out 200 to 500
_SAVED = re.compile(
    r"(?i)(?:sav(?:ed|ing)|wrote|written)\b[^\n]{0,200}?(?:iteration|global_?step|step|iter|checkpoint)[\s_=:-]{0,12}0*(\d{1,12})(?![\d.]*\s?(?:s|ms|GB|%)\b)"
)
_FRAMEWORKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("metaseq", re.compile(r"\btrain_inner\b|\bnum_updates\b")),
    ("Megatron", re.compile(r"\blm loss: .*\bnumber of nan iterations:")),
    ("Hugging Face", re.compile(r"^\s*(?:\S{0,200}\s*)?\{'loss': ")),
    ("torchtitan", re.compile(r"\[titan\]|\broot - INFO - .*\bstep: +\d+ +loss:")),
    ("Lightning", re.compile(r"\bv_num=")),
)


@dataclass(frozen=True, slots=True)
class Skip:
    """first, last: steps whose batches are left out; samples: as many, where the log says how large a batch is."""

    rewind_to: int  # the step of the checkpoint
    first: int
    last: int
    samples: int | None
    settings: str


def healthy_before(saved: Iterable[int], spike: Spike) -> int | None:
    """Of the steps that were saved, the last one far enough before the spike; a later one may hold its beginning."""
    if spike.first.step is None:
        return None
    return max((step for step in saved if step <= spike.first.step - BEFORE), default=None)


def saved_steps(lines: Iterable[LogLine]) -> list[int]:
    """The steps of the checkpoints that these lines tell of."""
    said = (
        _SAVED.search(line.text[:1000])
        for line in lines
        if ("heckpoint" in line.text or "global_step" in line.text) and line.level not in ("error", "fatal")
    )
    return [int(found[1]) for found in said if found]


def skip(spike: Spike, saved: Iterable[int], framework: str) -> Skip | None:
    """None where there is nothing to go back to, or the loss came back by itself and needs nothing."""
    at, rewind = spike.first.step, healthy_before(saved, spike)
    if at is None or rewind is None or spike.kind == "gradient" or spike.back is not None:
        return None
    first = max(rewind + 1, at - SKIPPED // 2)
    last = first + SKIPPED - 1
    batch = spike.first.batch
    return Skip(
        rewind, first, last, batch * (last - first + 1) if batch else None, settings(framework, rewind, first, last)
    )


def framework_of(lines: Iterable[LogLine]) -> str:
    """The one whose records these are, "" where none is known."""
    for line in lines:
        for name, pattern in _FRAMEWORKS:
            if pattern.search(line.text[:2000]):
                return name
    return ""


def settings(framework: str, step: int, first: int, last: int) -> str:
    """What to set. A framework that cannot skip gets another order of its data, which parts the batches as well."""
    return {
        "Megatron": f"--ckpt-step {step} --iterations-to-skip $(seq -s ' ' {first} {last})"
        f" (Megatron-DeepSpeed: --skip-train-iteration-range {first}-{last})",
        "metaseq": f"--restore-file checkpoint_{step}.pt with another --seed: metaseq skips no range, another order of the data parts these batches;"
        " the OPT runs also lowered the learning rate and the clipping to 0.3 for a while",
        "Hugging Face": f"--resume_from_checkpoint .../checkpoint-{step} --data_seed <another>, with --ignore_data_skip so that the"
        " new order begins at once",
        "torchtitan": f"--checkpoint.load_step {step} --training.seed <another>",
        "Lightning": f"ckpt_path of step {step}, and another seed of the sampler (seed_everything(..., workers=True))",
    }.get(
        framework,
        f"the checkpoint of step {step}, and steps {first} to {last} left out of the data or another data seed",
    )
