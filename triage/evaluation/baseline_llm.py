"""What a model says to the log as it is: its last 200 lines, or all of it cut to a budget. The way many teams begin.

Both are asked with the prompt prompts/baseline.md and a schema of the answer. Secrets go before anything is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from triage import kb, prompts
from triage.errors import ModelError
from triage.evaluation.baselines import TAIL, numbered
from triage.llm.errors import ModelCutError, ModelDeclinedError, ModelNonsenseError, ModelTooLongError
from triage.llm.limits import Limited, Prices
from triage.llm.parse import find_object
from triage.llm.values import ChatModel, question
from triage.redact import LineRedactor

PROMPT = "baseline"
CALLS = 2  # a case
Ask = Callable[[str], str]
Lines = Iterable[tuple[int, str]]  # number, text
WHOLE_CHARS = 60_000  # about 32,000 tokens of log text
_HEAD = 0.25  # of the budget goes to the start, the rest to the end
_LINE = 500
# The model, not its server, is why there is no answer: that is an answer, and a wrong one.
_ITS_FAULT = (ModelTooLongError, ModelDeclinedError, ModelNonsenseError)


def answer_all(
    files: Mapping[str, Path], model: ChatModel, prices: Prices
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What the model answers to one job's files (name -> place), each with its usage; and in words what went wrong.

    A model that could not be asked has no answer, one that failed at the question has "unknown".
    """
    found: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    for name, baseline in (("tail-200-llm", _tail_of), ("whole-log-llm", _whole_of)):
        limited = Limited(model)
        try:
            found[name] = baseline(files, _asker(limited))
        except ModelError as error:
            notes.append(f"{name}: {error}")
            if isinstance(error, _ITS_FAULT):
                found[name] = understood("")
        if name in found:
            found[name]["usage"] = _usage(limited, prices)
    return found, notes


def _asker(model: ChatModel) -> Ask:
    def ask(prompt: str) -> str:
        try:
            return model.ask(question(prompt, schema=_schema())).text
        except ModelCutError as error:
            return error.reply.text

    return ask


def _schema() -> dict[str, Any]:
    labels = kb.taxonomy()
    fields = {
        "outcome": {"enum": sorted(labels.outcomes)},
        "failure_type": {"enum": list(labels.types)},
        "file": {"type": "string"},
        "line": {"type": "integer"},
        "action": {"enum": list(labels.actions)},
    }
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _usage(model: Limited, prices: Prices) -> dict[str, Any]:
    used = model.used
    return {
        "llm_calls": used.calls,
        "tokens_in": used.tokens_in,
        "tokens_out": used.tokens_out,
        "seconds": round(used.seconds, 3),
        "cost": prices.cost(used.tokens_in, used.tokens_out),
    }


def _tail_of(files: Mapping[str, Path], ask: Ask) -> dict[str, Any]:
    return tail([(name, deque(numbered(path), maxlen=TAIL)) for name, path in files.items()], ask)


def _whole_of(files: Mapping[str, Path], ask: Ask) -> dict[str, Any]:
    return whole([(name, numbered(path)) for name, path in files.items()], ask)


def tail(files: Sequence[tuple[str, Lines]], ask: Ask) -> dict[str, Any]:
    """The answer to the lines given, the last ones of each file."""
    return _asked([line for name, lines in files for line in _shown(name, lines)], "", ask)


def whole(files: Sequence[tuple[str, Lines]], ask: Ask, budget: int = WHOLE_CHARS) -> dict[str, Any]:
    """The answer to the whole log; of more than `budget` characters, to its start and end. Memory is bounded."""
    head: list[str] = []
    end: list[str] = []
    first, last, left_out = 0, 0, 0
    for name, lines in files:
        for line in _shown(name, lines):
            if not end and first + len(line) <= budget * _HEAD:
                head.append(line)
                first += len(line)
                continue
            end.append(line)
            last += len(line)
            if last > 4 * budget:  # now and then, not for each line
                end, last, left_out = _fitting(end, budget - first, left_out)
    end, _, left_out = _fitting(end, budget - first, left_out)
    gap = [f"... {left_out} lines left out ..."] if left_out else []
    return _asked([*head, *gap, *end], " (cut in its middle)" if left_out else "", ask)


def _fitting(lines: list[str], budget: int, left_out: int) -> tuple[list[str], int, int]:
    """The last lines that fit, their length, and how many were left out in all."""
    size, start = 0, len(lines)
    while start and size + len(lines[start - 1]) <= budget:
        start -= 1
        size += len(lines[start])
    return lines[start:], size, left_out + start


def _shown(name: str, lines: Lines) -> Iterator[str]:
    secrets = LineRedactor()
    for number, text in lines:
        yield f"{name}:{number}: {secrets.redact(text, number)[:_LINE]}"


def _asked(lines: Sequence[str], cut: str, ask: Ask) -> dict[str, Any]:
    labels = kb.taxonomy()
    prompt = prompts.load(PROMPT).fill(
        outcomes=", ".join(sorted(labels.outcomes)),
        actions=", ".join(labels.actions),
        types="\n".join(f"{kind.id}: {kind.means}" for kind in labels.types.values()),
        cut=cut,
        log="\n".join(lines),
    )
    return understood(ask(prompt))


def understood(reply: str) -> dict[str, Any]:
    """A model's reply as an answer; what is no JSON object, or no known label, counts as said: it is wrong, not an error."""
    found = find_object(reply)
    line = found.get("line")
    number = int(line) if isinstance(line, (int, str)) and str(line).isdigit() else 0
    return {
        "outcome": str(found.get("outcome", "unknown")),
        "failure_type": str(found.get("failure_type", "unknown")),
        "evidence": [{"file": str(found.get("file", "")), "line": number, "role": "root"}] if number else [],
        "action": str(found.get("action", "")),
    }
