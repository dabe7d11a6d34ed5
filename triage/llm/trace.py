"""Each exchange with a model as a line of a file, and a model that answers from such a file, without any other.

A line: {"schema", "key", "model", "request": {...}, "reply": {...} or "error": {"kind", "message", "hint", ...}, "sha256" of that}.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from triage.errors import InputError, ModelError
from triage.llm import errors
from triage.llm.clean import clean_reply, clean_request, clean_text
from triage.llm.errors import ModelBusyError, ModelCutError, ModelDownError, ModelTooLongError, ReplayError
from triage.llm.values import ChatModel, OnText, Reply, Request, ToolCall

SCHEMA = "triage.exchange/1"


class Recorder:
    """Asks another model and appends each exchange to a file, without secrets; errors are exchanges too."""

    def __init__(self, model: ChatModel, path: Path, key: str = "") -> None:
        """key: the model's, which must not be written. Errors: InputError when the file cannot be written."""
        self._model, self._path, self._key = model, path, key
        self._write("")

    @property
    def name(self) -> str:
        return self._model.name

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        request = clean_request(request)
        try:
            reply = clean_reply(self._model.ask(request, on_text), self._key)
        except ModelError as error:
            self._keep(request, {"error": _from_error(error, self._key)})
            raise
        self._keep(request, {"reply": asdict(reply)})
        return reply

    def _keep(self, request: Request, answer: dict[str, Any]) -> None:
        written = clean_request(request, self._key).to_json()  # the hash is of what a replay without our key will ask
        line = {
            "schema": SCHEMA,
            "key": request.key,
            "model": self.name,
            "request": written,
            **answer,
            "sha256": _sha256(answer),
        }
        self._write(json.dumps(line, ensure_ascii=False) + "\n")

    def _write(self, text: str) -> None:
        try:
            # A trace holds log text: others need not read it.
            with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as stream:
                stream.write(text.encode("utf-8", "replace"))
        except OSError as error:
            raise InputError(f"{self._path}: the trace cannot be written: {error.strerror or error}") from None


class Replayer:
    """Answers from a trace, by the hash of the request; the same request several times, in the order recorded."""

    def __init__(self, path: Path) -> None:
        """Errors: InputError for a file that is no trace."""
        self._path = path
        self._answers: dict[str, deque[Reply | ModelError]] = defaultdict(deque)
        model = ""
        for exchange in _exchanges(path):
            model = model or exchange.model
            self._answers[exchange.key].append(exchange.answer)
        self.name = f"{model} (replayed from {path.name})"

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """The text comes in one piece. Errors: ReplayError when the trace holds no (further) answer; an error that was recorded, as it was."""
        request = clean_request(request)
        left = self._answers.get(request.key)
        if not left:
            why = "holds no answer to this request" if left is None else "holds no further answer to this request"
            hint = "the input, the prompts, the limits or the similar incidents of the database have changed since; record it anew"
            raise ReplayError(f"{self._path} {why} ({request.key[:12]})", hint)
        reply = left.popleft()
        if isinstance(reply, ModelError):
            raise reply
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply


@dataclass(frozen=True, slots=True)
class _Exchange:
    key: str
    model: str
    answer: Reply | ModelError


class _OddError(ValueError):
    """What is wrong with a line."""


def _exchanges(path: Path) -> Iterator[_Exchange]:
    """Errors: InputError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the trace cannot be read: {error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield _exchange(line)
            except _OddError as error:
                raise InputError(f"{path}:{number}: {error}", "record it anew with --trace") from None
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                raise InputError(f"{path}:{number}: is no exchange of a trace ({SCHEMA})") from None


def _exchange(line: str) -> _Exchange:
    """Errors: those of reading what is not there, or not of its type; _OddError."""
    found = json.loads(line)
    if found["schema"] != SCHEMA or ("reply" in found) == ("error" in found):
        raise ValueError
    name = "reply" if "reply" in found else "error"
    answer = _to_reply(found[name]) if name == "reply" else _to_error(found[name])
    if found.get("sha256") != _sha256({name: found[name]}):
        raise _OddError("the answer is not the one that was recorded")
    return _Exchange(_of(str, found["key"]), _of(str, found["model"]), answer)


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError
    return value


def _sha256(answer: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).hexdigest()


def _from_error(error: ModelError, key: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": type(error).__name__,
        "message": clean_text(error.message, key),
        "hint": clean_text(error.hint, key),
    }
    if isinstance(error, (ModelBusyError, ModelDownError)):
        found["retry_after"] = error.retry_after
    if isinstance(error, ModelTooLongError):
        found["room"] = error.room
    if isinstance(error, ModelCutError):
        found["reply"] = asdict(clean_reply(error.reply, key))
    return found


_KINDS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ModelError)}


def _to_error(found: dict[str, Any]) -> ModelError:
    """Errors: as _exchange."""
    kind, message, hint = _KINDS[found["kind"]], _of(str, found["message"]), _of(str, found["hint"])
    if issubclass(kind, ModelCutError):
        return kind(message, hint, reply=_to_reply(found["reply"]))
    if issubclass(kind, (ModelBusyError, ModelDownError)):
        return kind(message, hint, _number_or_none(found["retry_after"]))
    if issubclass(kind, ModelTooLongError):
        room = found.get("room")
        return kind(message, hint, None if room is None else _of(int, room))
    return kind(message, hint)


def _number_or_none(value: Any) -> float | None:
    return None if value is None else float(value)


def _to_reply(found: dict[str, Any]) -> Reply:
    """Errors: as _exchange."""
    given = {name: _of(_FIELDS[name], value) for name, value in found.items() if name != "tool_calls"}
    calls = [ToolCall(**{name: _of(str, value) for name, value in call.items()}) for call in found["tool_calls"]]
    return Reply(**given, tool_calls=tuple(calls))


_FIELDS: dict[str, Any] = {
    "text": str, "finish": str, "tokens_in": int, "tokens_out": int, "model": str, "seconds": (int, float)
}  # fmt: skip
