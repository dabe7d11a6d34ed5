"""Which phase of a job a line opens, and whether it is only a sign of life. Pure."""

from __future__ import annotations

import re

from triage.domain import LogLine
from triage.evidence.progress import is_other_work, step_of
from triage.heads import split
from triage.watching.values import Phase

_PHASES: tuple[tuple[Phase, re.Pattern[str]], ...] = (
    (
        "end",
        re.compile(
            r"\btraining (?:is )?(?:completed?|finished|done|ended)\b|\bfinished training\b|run summary:|\[after training is done\]|\bjob (?:completed|finished)\b|\ball done\b",
            re.IGNORECASE,
        ),
    ),
    (
        "checkpoint",
        re.compile(
            r"\b(?:saving|writing|dumping|uploading|flushing|start(?:ed|ing)? (?:to )?sav(?:e|ing))\b.{0,80}\b(?:checkpoint|ckpt|snapshot|state[ _]dict|model)|\bcheckpoint(?:ing)? (?:started|begins|in progress)",
            re.IGNORECASE,
        ),
    ),
    (
        "compile",
        re.compile(
            r"\b(?:compil(?:ing|ation)|torch\.compile|torch_?inductor|max_?autotune|autotun(?:e|ing)|nvcc|ninja|building (?:cuda )?extension|jit (?:build|compil)|graph capture|capturing (?:the )?(?:cuda )?graphs?|lowering|xla)\b|\bCompiling module\b",
            re.IGNORECASE,
        ),
    ),
    (
        "evaluation",
        re.compile(
            r"\b(?:evaluat(?:ing|ion)|validat(?:ing|ion)|running (?:eval|validation|test)|eval(?:uation)? (?:started|begins|loop)|start(?:ing)? eval\w*)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "dataset",
        re.compile(
            r"\b(?:tokeniz(?:ing|ation)|preprocess(?:ing)?|building (?:the )?(?:dataset|index|train|shuffle|sample)|index mapping|loading (?:the )?(?:dataset|data)|dataset preparation|preparing (?:the )?(?:dataset|data)|shuffling|packing)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "first step",
        re.compile(
            r"\b(?:start(?:ing)? training|training (?:begins|starts|started)|begin(?:ning)? training|\*{3,} running training|before the start of training step)",
            re.IGNORECASE,
        ),
    ),
)
_SAVED = re.compile(
    r"\b(?:successfully )?(?:saved|wrote|written|finished saving|done saving)\b.{0,80}\b(?:checkpoint|ckpt|snapshot|state[ _]dict|model)|\bcheckpoint\b.{0,80}\b(?:saved|written|complete)",
    re.IGNORECASE,
)
_EVALUATED = re.compile(r"\b(?:eval|val|valid|validation|test)[_ ](?:loss|acc\w*|ppl|score)\b\W{1,4}\d", re.IGNORECASE)
_BEAT = re.compile(
    r"heart ?-?beat|keep-?alive|\b(?:still )?alive\b|\bping\b|watchdog|\bstill (?:waiting|running|here)\b|\bwaiting (?:for|on)\b|\bno progress\b|\bhealth ?check\b|\bidle\b|\buptime\b"
    r"|^\W*(?:gpu|cpu|mem\w*|ram|disk)[\w ./]{0,20}[:=]",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"\bTraceback \(most recent|timed? ?out\b|\bretry|^\s*usage:|^\S{1,60}: (?:cannot|can't|invalid|unrecognized|unknown|missing|no such)\b|command not found|No such file",
    re.IGNORECASE,
)
_RAISED = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Interrupt)(?::|\s*$)"
    r"|Segmentation fault|Killed$|Aborted\b|Bus error|Floating point exception|terminate called|srun: error:|slurmstepd: error:|mpirun noticed"
)
_OVER = re.compile(r"\b(?:done|finished|completed?|ended)\b", re.IGNORECASE)
_ENDS: tuple[Phase, ...] = ("compile", "evaluation", "dataset")  # phases that a line may end in its own words
_PATH = re.compile(r"(/(?:[\w.@=+-]{1,120}/){0,24}[\w.@=+-]{1,120})")
_DIGITS = re.compile(r"\d+")
MOST = 600  # characters of a line that are looked at


class Told:
    """What one line tells. step: its number; phase: that it opens; done: of what it ends; beat: it is a sign of life and no more."""

    __slots__ = ("beat", "done", "paths", "phase", "step", "worked")

    def __init__(self, line: LogLine) -> None:
        text = line.text[:MOST]
        step = None if line.level in ("error", "fatal") else step_of(line)
        self.worked = step is not None
        self.step = step.number if step else None
        self.done: Phase = "checkpoint" if _SAVED.search(text) else "evaluation" if _EVALUATED.search(text) else ""
        self.phase: Phase = "" if self.worked else self._opened(text, line)
        if self.phase in _ENDS and _OVER.search(text):
            self.done, self.phase = self.phase, ""
        self.beat = not self.worked and not self.done and not self.phase and is_beat(line)
        self.paths: tuple[str, ...] = tuple(_PATH.findall(text)[:2]) if self.phase == "checkpoint" else ()

    def _opened(self, text: str, line: LogLine) -> Phase:
        if line.level in ("error", "fatal") or self.done:
            return ""
        for phase, pattern in _PHASES:
            if pattern.search(text):
                return phase
        return "dataset" if is_other_work(line) else ""


def is_beat(line: LogLine) -> bool:
    """Does it say no more than that something lives, waits, retries or failed?"""
    text = line.text[:MOST]
    return line.level in ("warning", "error", "fatal") or bool(_BEAT.search(text) or _TROUBLE.search(text))


def raised(line: LogLine) -> str:
    """What ended the program, if the line says such a thing: an exception, a signal; "" else."""
    text = split(line.text[:MOST])[1].strip()
    if not _RAISED.match(text) and line.level != "fatal":
        return ""
    return (f"rank {line.rank}: " if line.rank is not None else "") + text[:300]


def kind(text: str) -> str:
    """Lines that differ in numbers alone are of one kind."""
    return _DIGITS.sub("0", text[:200])
