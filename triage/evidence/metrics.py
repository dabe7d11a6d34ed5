"""What the lines of a training run measure, whatever framework prints them: loss, gradient norm, learning rate, samples. Pure."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from triage.domain import LogFile, LogLine
from triage.evidence.progress import Step, steps

_VALUE = r"['\"]?\s{0,3}[:=]?\s{0,8}['\"]?(?:tensor\()?([-+]?(?:\d{1,12}(?:\.\d{0,18})?(?:[eE][+-]?\d{1,3})?|nan|inf(?:inity)?)\b)"
# `lm loss: 2.3E+00`, `'loss': '2.3'`, `"loss": "2.3"`, `loss=2.3`, `train/loss 2.3`, `train_loss_step=2.3`; not `loss scale`, not `eval_loss`.
_LOSS = re.compile(
    rf"(?<![\w.-])(?:lm[ _]|train(?:ing)?[ _/]|total[ _]|step[ _])?loss(?:_step|\(avg\))?{_VALUE}", re.IGNORECASE
)
_LM = re.compile(rf"(?<![\w.-])lm[ _]loss{_VALUE}", re.IGNORECASE)
_NOT_TRAINED = re.compile(
    r"(?:\b|_)(?:val|valid|validation|eval|evaluation|test|dev|aux|z|balance|balancing|mtp|router)[\s_/-]{0,3}$",
    re.IGNORECASE,
)
_EVALUATED = re.compile(
    r"(?i)^\W{0,8}(?:step \d+ )?\W{0,4}(?:validation|evaluation|valid|eval|test)\b|validation loss at|['\"]eval_|\bvalid_loss\b|['\"]train_runtime['\"]|\|\s*valid\s*\|"
)
_EVALUATED_WORDS = ("val", "test", "train_runtime")  # one of them stands in whatever _EVALUATED finds
_NORM = re.compile(rf"(?<![\w-])(?:total_|global_)?(?:grad(?:ient)?[ _-]?norm|gnorm)(?:/total)?{_VALUE}", re.IGNORECASE)
_RATE = re.compile(rf"(?<![\w-])(?:learning[ _]rate|lr){_VALUE}", re.IGNORECASE)
_EPOCH = re.compile(rf"\bepoch{_VALUE}", re.IGNORECASE)
_EPOCH_LINE = re.compile(r"\s{0,4}Epoch:? (\d{1,6})(?: ?/ ?\d{1,6})?\s*$")
_SAMPLES = re.compile(r"(?i)\bconsumed[ _]samples\W{1,14}(\d{1,15})")
_BATCH = re.compile(r"(?i)\bglobal[ _]batch[ _]size\W{1,14}(\d{1,9})")
_NAN_COUNT = re.compile(r"(?i)\bnumber of nan iterations:\s{0,8}([1-9]\d{0,8})")
_UNEXPECTED = re.compile(r"\biteration (\d{1,12}): Unexpected result (?:nan|inf)")
_UPDATES = re.compile(r"\bnum_updates['\"]?\s?[:=]\s?['\"]?(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Point:
    """One record of a run. step: its own number, else that of the bar before it; loss: NaN where it is said to be none."""

    line: LogLine
    step: int | None
    loss: float | None = None
    norm: float | None = None
    rate: float | None = None
    epoch: float | None = None
    samples: int | None = None
    batch: int | None = None


def points(file: LogFile) -> list[Point]:
    """Of the lines that show training, in order; those of one step that several ranks print as one, at their median."""
    found: list[list[Point]] = []
    bar: int | None = None  # the number of a line before that measures nothing
    epochs = [(line.number, int(said[1])) for line in file.lines if (said := _EPOCH_LINE.match(line.text[:80]))]
    for step in steps(file):
        own = _number(step)
        point = _point(step.line, own if own is not None else bar)
        if point is not None and point.epoch is None and epochs:
            at = bisect.bisect(epochs, (step.line.number, 0)) - 1
            point = replace(point, epoch=epochs[at][1] if at >= 0 else None)
        if point is None:
            bar = own
            continue
        if own is not None and found and found[-1][0].step == own:
            found[-1].append(point)
        else:
            found.append([point])
        bar = None
    told = [_together(group) for group in found]
    return sorted([*told, *_told_broken(file)], key=lambda p: p.line.number)


def _told_broken(file: LogFile) -> Iterator[Point]:
    """Of lines in which a framework itself says that a step gave no number."""
    for line in file.lines:
        if "Unexpected result" in line.text and (said := _UNEXPECTED.search(line.text[:2000])):
            yield Point(line, int(said[1]), math.nan)


def _number(step: Step) -> int | None:
    told = _UPDATES.search(step.line.text) if "num_updates" in step.line.text else None
    return int(told[1]) if told else step.number


def _point(line: LogLine, number: int | None) -> Point | None:
    text = line.text if len(line.text) < 4000 else line.text[-4000:]
    low = text.lower()
    if any(word in low for word in _EVALUATED_WORDS) and _EVALUATED.search(text):
        return None
    loss, norm = _loss(text), _first(_NORM, text)
    if loss is None and _NAN_COUNT.search(text):
        loss = math.nan
    if loss is None and norm is None:
        return None
    if loss == 0 and norm is not None and math.isnan(norm):
        loss = math.nan  # Hugging Face logs no NaN as a loss
    whole = {
        name: int(m[1]) if (m := found.search(text)) else None
        for name, found in (("samples", _SAMPLES), ("batch", _BATCH))
    }
    return Point(line, number, loss, norm, _finite(_first(_RATE, text)), _finite(_first(_EPOCH, text)), **whole)


def _loss(text: str) -> float | None:
    if said := _LM.search(text):
        return float(said[1])
    for said in _LOSS.finditer(text):
        if not _NOT_TRAINED.search(text, max(0, said.start() - 24), said.start()):
            return float(said[1])
    return None


def _first(pattern: re.Pattern[str], text: str) -> float | None:
    said = pattern.search(text)
    return float(said[1]) if said else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _together(group: Sequence[Point]) -> Point:
    """One record of a step: a loss that is NaN on one rank is NaN."""
    if len(group) == 1:
        return group[0]
    losses = [p.loss for p in group if p.loss is not None]
    norms = [p.norm for p in group if p.norm is not None]
    first = group[0]
    loss = next((x for x in losses if not math.isfinite(x)), median(losses) if losses else None)
    norm = next((x for x in norms if not math.isfinite(x)), median(norms) if norms else None)
    return Point(first.line, first.step, loss, norm, first.rate, first.epoch, first.samples, first.batch)


def losses(found: Sequence[Step]) -> Iterator[tuple[LogLine, float]]:
    """The finite losses of these steps, with their lines."""
    for step in found:
        value = _loss(step.line.text)
        if value is not None and math.isfinite(value):
            yield step.line, value
