"""How far the job came: last step, last checkpoint, the stage it was in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from triage.domain import LogFile, LogLine, Progress, Stage
from triage.heads import split

_STEP = re.compile(
    r"\biteration:?\s+(\d{1,9})\s*[/|]"  # Megatron
    r"|(?<![\w-])(?:global_?step|train_step|step|iter|iteration|update|batch)s?[\"']?\s{0,3}[:=#]?\s{0,6}(\d{1,9})(?![\d.]*\s*(?:%|it/s|s/it|ms|MB|GiB))"
    r"|\|\s*(\d{1,9})/\d{1,9}\s*\[\d"  # tqdm
    r"|\bit\s+(\d{1,9})\b"
    r"|^\s*\[\s*(\d{1,9})/\d{2,9}\](?=\s.{0,200}(?:loss|acc|ppl)\w{0,12}\s?[=:])",  # [61/1000] t=24.4s loss=2.5
    re.IGNORECASE,
)
# A line of these words may be a record of work; plain searches, as every kept line is asked.
_METRIC_WORDS = (
    "loss", "lr", "learning rate", "learning_rate", "grad norm", "grad_norm", "tokens/s", "token/s", "tok/sec", "samples/s",
    "sample/s", "it/s", "s/it", "throughput", "tflop", "elapsed time per", "acc", "step_avg", "perplexity", "ppl", "auc",
)  # fmt: skip
# A measure of what was trained, with its value.
# What was asked for and not what was done: options of a command, a configuration that is printed.
_OPTION = re.compile(r"(?:^|\s)--[a-z][\w-]{1,60}[ =]")
_SETTINGS = re.compile(
    r"\bNamespace\(|\b(?:config|configuration|args|arguments|hparams|hyper-?parameters)\b\W{1,4}", re.IGNORECASE
)
# Simulation codes: a counter at the head of the line, with figures behind it; or the time that is simulated.
_SOLVER = re.compile(
    r"^\s*(?:(?:Time ?|Sim\w* )?steps?|Cycle|Iteration|nstep|istep|ENERGY:|TIMING:|DAV:|RMM:)\s{0,3}[:=#]?\s{0,8}(\d{1,9})[\s,;:|]{1,8}(?:[\w./]{1,24}\s?[=:]\s?)?-?\d{1,9}\.\d{1,15}(?:e[+-]?\d{1,3})?(?![.\w:])"
    r"|^\s*Time = (?:(\d{1,9})(?![\d.e])|\d{1,9}\.\d{1,9}(?:e[+-]?\d{1,3})?)s?\s*$"
    r"|^Timing for main: time \S{8,40} on domain",
    re.IGNORECASE,
)
_ROW = re.compile(r"^\s*(\d{1,10})((?:\s+-?\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,3})?){3,30})\s*$")
_ROWS = 3  # on end, of as many columns, that count up
_RESULT = re.compile(
    r"\b(?:\w{0,20}(?:loss|acc|accuracy|perplexity|ppl|bleu|auc|f1|mse|rmse))\b[\s:='\"]{1,4}\d{1,9}\.\d", re.IGNORECASE
)
_DECIMAL = re.compile(r"\d\.\d")
# Bars of preparation are no training steps.
_OTHER_WORK = re.compile(
    r"\b(?:loading|load|download\w*|fetch\w*|filter\w*|map(?:ping)?|tokeniz\w*|generating|processing|preprocess\w*|applying|"
    r"packing|sharding|shards?|extracting|converting|caching|saving|uploading|inference|sampling|prefill|compil\w*)\b[^|]{0,80}(?::|%\|)",
    re.IGNORECASE,
)
# One of these stands in whatever the two patterns find: plain searches, as every record is asked.
_OTHER_WORDS = (
    "load", "fetch", "filter", "map", "tokeniz", "generating", "process", "applying", "packing", "shard", "extracting", "converting",
    "caching", "saving", "inference", "sampling", "prefill", "compil",
)  # fmt: skip
_SETTING_WORDS = ("namespace(", "config", "arg", "hparams", "hyper")
_BAR = re.compile(r"\[\d{1,4}:\d\d(?::\d\d)?<")
_CLOCK = re.compile(r"\[\d{1,4}:\d\d")
# A bar that never ended its line, so that whatever came next was printed behind it.
_BAR_HEAD = re.compile(r"^[^|]{0,60}\d{1,3}%\|[^|]{0,200}\|\s*\d{1,9}/\d{1,9}\s*\[[^\]]{1,80}\]")
_CHECKPOINT = re.compile(
    r"(?:saved?|saving|wrote|writing|finished saving|successfully saved)\b.{0,60}?\b(?:checkpoint|ckpt|model state|state dict|snapshot)"
    r"|checkpoint.{0,40}?\b(?:saved|written|complete)"
    r"|Saving model checkpoint to",
    re.IGNORECASE,
)
_CHECKPOINT_DONE = re.compile(r"success|\bsaved\b|finished|complete|written|wrote", re.IGNORECASE)
_WHERE_STEP = re.compile(
    r"(global_step|step|iteration|iter|checkpoint|ckpt)[\s:=_-]{0,3}(\d{1,9})(?![\d.]*(?:s|ms|%)\b)", re.IGNORECASE
)
_WHERE_EPOCH = re.compile(r"epoch[\s:=_-]{0,3}(\d{1,9})", re.IGNORECASE)
_WHERE_FILE = re.compile(
    r"(/(?:[\w.@=-]{1,80}/){0,20}(?!\w{0,40}rank)[\w@=-]{0,40}(?:step|iter|epoch|ckpt|checkpoint)[\w@=-]{0,30}\d[\w@=-]{0,30}\.(?:pt|pth|ckpt|safetensors|bin|distcp|npz|h5))\b"
)
_WHERE_PATH = re.compile(r"(/[\w./@=-]{2,200}|[\w.-]{1,80}\.(?:pt|pth|ckpt|safetensors|bin|distcp))")
_EVAL = re.compile(r"\b(?:evaluat(?:ing|ion)|validat(?:ing|ion)|valid loss|eval_loss|running eval)", re.IGNORECASE)
_INIT = re.compile(
    r"NCCL INFO|init_process_group|rendezvous|loading (?:model|checkpoint|weights)|building (?:model|dataset)|tokeniz|compil",
    re.IGNORECASE,
)
_ENDING = re.compile(r"training (?:completed|finished|done)|run summary|saving final|\[after training", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Step:
    line: LogLine
    number: int | None


def steps(file: LogFile) -> list[Step]:
    """Lines that show work going on: a step counter or a bar together with a metric or rate."""
    found = []
    for line in file.lines:
        step = step_of(line)
        if step is not None:
            found.append(step)
    return found or _rows(file)


def step_of(line: LogLine) -> Step | None:
    """Of a line alone; None for one that shows no work."""
    text = line.text if len(line.text) < 2000 else line.text[-2000:]
    if bar := _BAR_HEAD.match(line.text):
        text = bar[0]
    elif line.level in ("error", "fatal"):
        return None
    return _step(line, text)


def _step(line: LogLine, text: str) -> Step | None:
    """Of one line; text: what of it is looked at."""
    low = text.lower()
    measured = any(w in low for w in _METRIC_WORDS) or _BAR.search(text)
    if not measured or _is_other(text, low):
        return _solver_step(line)
    found = _STEP.search(text)
    if found and ("it/s" in low or "s/it" in low):
        *_, found = _STEP.finditer(text)  # a bar stands behind what is printed before it
    if found:
        return Step(line, int(next(g for g in found.groups() if g)))
    return Step(line, None) if "loss" in low and _DECIMAL.search(text) else _solver_step(line)


def _is_other(text: str, low: str) -> bool:
    if any(word in low for word in _OTHER_WORDS) and _OTHER_WORK.search(text):
        return True
    if "--" in text and len(_OPTION.findall(text)) > 1:
        return True
    return any(word in low for word in _SETTING_WORDS) and bool(_SETTINGS.search(text))


def _solver_step(line: LogLine) -> Step | None:
    found = _SOLVER.match(split(line.text[:300])[1])
    number = next((g for g in found.groups() if g), None) if found else None
    return Step(line, int(number) if number else None) if found else None


def _rows(file: LogFile) -> list[Step]:
    """Rows of a table whose first column counts up, as solvers print their state."""
    found: list[Step] = []
    columns = 0
    for line in file.lines:
        row = _ROW.match(line.text[:400])
        if row is None:
            continue
        number, width = int(row[1]), len(row[2].split())
        if found and (width != columns or number <= (found[-1].number or 0)):
            if len(found) < _ROWS:
                found.clear()
            elif width != columns:
                continue
        columns = width
        found.append(Step(line, number))
    return found if len(found) >= _ROWS else []


def is_other_work(line: LogLine) -> bool:
    """Is it the bar of a preparation: of loading, mapping, generating data?"""
    text = line.text[-2000:]
    return bool(_OTHER_WORK.search(text) and _CLOCK.search(text))


def signs(file: LogFile, worked: Sequence[Step]) -> tuple[LogLine, ...]:
    """Lines that show that the program does its work: its steps, checkpoints that were written, results of evaluations."""
    known = {step.line.number for step in worked}
    return tuple(
        line
        for line in file.lines
        if line.number in known
        or (
            line.level not in ("warning", "error", "fatal")
            and (_is_checkpoint(line.text) or _RESULT.search(line.text[:600]))
        )
    )


def progress(files: Sequence[LogFile], worked: Mapping[str, Sequence[Step]], failed_at: LogLine | None) -> Progress:
    """What was reached before the failure (or the end). worked: steps() of each file, by its name."""
    last: Step | None = None
    checkpoint: LogLine | None = None
    for file in files:
        for step in worked[file.name]:
            if step.number is not None and not _after(step.line, failed_at):
                last = step if last is None or step.number >= (last.number or 0) else last
        for line in file.lines:
            if _is_checkpoint(line.text) and not _after(line, failed_at):
                checkpoint = line
    return Progress(
        stage=_stage(files, last, failed_at),
        last_step=last.number if last else None,
        last_checkpoint=_where(checkpoint) if checkpoint else None,
        last_step_line=(last.line.file, last.line.number) if last else None,
        last_checkpoint_line=(checkpoint.file, checkpoint.number) if checkpoint else None,
        lost_time=_lost(files, checkpoint, failed_at),
    )


def _is_checkpoint(text: str) -> bool:
    low = text[:600].lower()
    if "check" not in low and "ckpt" not in low and "sav" not in low and "snapshot" not in low:
        return False
    return bool(_CHECKPOINT.search(low) and _CHECKPOINT_DONE.search(low))


def _after(line: LogLine, limit: LogLine | None) -> bool:
    return limit is not None and line.file == limit.file and line.number > limit.number


def _where(line: LogLine) -> str | None:
    """The checkpoint's own file where its name counts, else its step, epoch or path."""
    if named := _WHERE_FILE.search(line.text):
        return named[1]
    if step := _WHERE_STEP.search(line.text):
        return f"step {step[2]}"
    if epoch := _WHERE_EPOCH.search(line.text):
        return f"epoch {epoch[1]}"
    path = _WHERE_PATH.search(line.text)
    return path[1] if path else None


def _lost(files: Sequence[LogFile], checkpoint: LogLine | None, failed: LogLine | None) -> str | None:
    saved, died = _clock(files, checkpoint), _clock(files, failed)
    if saved is None or died is None or died < saved:
        return None
    seconds = int((died - saved).total_seconds())
    minutes = seconds // 60
    span = (
        f"{minutes // 60} h {minutes % 60} min"
        if minutes >= 60
        else f"{minutes} min"
        if minutes > 1
        else f"{seconds} s"
    )
    return f"{span} since the last checkpoint"


def _clock(files: Sequence[LogFile], line: LogLine | None) -> datetime | None:
    """The time of a line, or of the last one before it that has one."""
    if line is None or line.time:
        return line.time if line else None
    before = [x.time for f in files if f.name == line.file for x in f.lines if x.number <= line.number and x.time]
    return before[-1] if before else None


def _stage(files: Sequence[LogFile], last: Step | None, failed: LogLine | None) -> Stage:
    before = [
        line.text[:400]
        for file in files
        if failed is None or file.name == failed.file
        for line in file.lines
        if failed is None or line.number < failed.number
    ][-40:]
    recent = " ".join(before[-12:])
    if last is not None:
        if _ENDING.search(recent):
            return "teardown"
        if _CHECKPOINT.search(recent):
            return "checkpoint"
        return "eval" if _EVAL.search(recent) else "train"
    if any(_INIT.search(text) for text in before):
        return "init"
    return "launch" if before or failed else "unknown"
