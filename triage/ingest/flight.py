"""A flight-recorder dump of PyTorch as lines of text: the n-th entry is line n, what each group reached stands after them.

Dumps are pickles, and a pickle can run anything: these are read by an unpickler that refuses every class, so that only
numbers, text, lists and dictionaries come out. The JSON form of the same is read too.
Format: torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 2.x.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

MOST_BYTES = 256 << 20
_MOST_TEXT = 400  # of one value of an entry
_DEEPEST = 6  # lists within lists


class DumpError(Exception):
    """A dump that cannot be read; says why in words."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise DumpError(f"it asks for {module}.{name}, which no flight recorder writes; nothing of it was run")

    def persistent_load(self, _pid: object) -> NoReturn:
        raise DumpError("it refers to objects outside itself, which no flight recorder does; nothing of it was run")


def lines(raw: bytes) -> Iterator[str]:
    """Errors: DumpError."""
    dump = _load(raw)
    entries = dump.get("entries")
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise DumpError("it holds no list of entries")
    yield from (_entry(entry) for entry in entries)
    yield from _groups(dump, entries)


def _load(raw: bytes) -> Mapping[str, Any]:
    try:
        dump = json.loads(raw) if raw.lstrip()[:1] == b"{" else _Plain(io.BytesIO(raw)).load()
    except DumpError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged pickle raises nearly anything
        raise DumpError(f"it is cut or damaged ({type(error).__name__})") from None
    if not isinstance(dump, dict):
        raise DumpError("it is no dictionary")
    return dump


def _entry(entry: Mapping[str, Any]) -> str:
    """Finished entries read otherwise than unfinished ones, for it is these that tell who waits."""
    state = _word(entry.get("state"))
    begun = _time(entry.get("time_discovered_started_ns"))
    told = [
        f"{_time(entry.get('time_created_ns'))} flight recorder:",
        "done" if state == "completed" else "unfinished",
        f"group={_group(entry)}",
        f"seq={_number(entry.get('p2p_seq_id' if entry.get('is_p2p') else 'collective_seq_id', entry.get('seq_id')))}",
        f"op={_word(entry.get('profiling_name')).replace(' ', '')}",
        f"in={_list(entry.get('input_sizes'))}",
        f"out={_list(entry.get('output_sizes'))}",
        f"dtype={_list(entry.get('input_dtypes'))}",
        f"state={state}",
    ]
    return " ".join((*told, *([f"started={begun}"] if begun != "-" else []), *_frame(entry.get("frames"))))


def _groups(dump: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Of each group that is configured or met: its ranks, and the last collective that this rank enqueued in it."""
    last: dict[str, int] = {}
    for entry in entries:
        if not entry.get("is_p2p"):
            seq = _number(entry.get("collective_seq_id", entry.get("seq_id")))
            last[_group(entry)] = max(last.get(_group(entry), -1), seq)
    config = dump.get("pg_config")
    names: dict[str, tuple[str, str]] = {}
    for key, about in config.items() if isinstance(config, dict) else ():
        if isinstance(about, dict):
            name = _word(about.get("name", key))
            names[name] = (_word(about.get("desc")) or "-", _list(about.get("ranks")))
    for name in dict.fromkeys((*names, *last)):
        desc, ranks = names.get(name, ("-", "-"))
        enqueued = last.get(name, -1)
        yield f"flight recorder: group={name} desc={desc.replace(' ', '_')} ranks={ranks} last_enqueued={enqueued}"


def _group(entry: Mapping[str, Any]) -> str:
    named = entry.get("process_group")
    if isinstance(named, list | tuple) and named:
        return _word(named[0])
    return _word(named) or str(_number(entry.get("pg_id")))


def _frame(frames: Any) -> Iterator[str]:
    """Where in Python the collective was called: the innermost frame outside torch."""
    known = [f for f in frames if isinstance(f, dict)] if isinstance(frames, list) else []
    own = [f for f in known if "/torch/" not in _word(f.get("filename"))]
    for frame in (own or known)[:1]:
        yield f"at {_word(frame.get('filename'))}:{_number(frame.get('line'))} {_word(frame.get('name'))}"


def _list(value: Any) -> str:
    if isinstance(value, str):
        return "".join(value[: 2 * _MOST_TEXT].split())[:_MOST_TEXT] or "-"
    if not isinstance(value, list | tuple) or not value:
        return "-"
    told, length = [], 0
    for piece in _written(value, _DEEPEST):
        told.append(piece)
        length += len(piece)
        if length > _MOST_TEXT:
            break
    return "".join(told)[:_MOST_TEXT]


def _written(value: Any, depth: int) -> Iterator[str]:
    """As str() of it without its blanks, piece by piece: a pickle of a few kB may hold lists that written out fill all memory."""
    if isinstance(value, list | tuple) and depth:
        opens, closes = "[]" if isinstance(value, list) else "()"
        yield opens
        for n, item in enumerate(value):
            yield "," if n else ""
            yield from _written(item, depth - 1)
        yield closes
    elif isinstance(value, str):
        yield repr("".join(value[:_MOST_TEXT].split()))
    else:
        yield str(_number(value)) if isinstance(value, int) else "..."


def _word(value: Any) -> str:
    if isinstance(value, int):
        return str(_number(value))
    return " ".join(value[: 2 * _MOST_TEXT].split())[:_MOST_TEXT] if isinstance(value, str) else ""


def _number(value: Any) -> int:
    """-1 for what is none, or none that a counter of 64 bits holds."""
    return value if isinstance(value, int) and abs(value) < 1 << 64 else -1


def _time(ns: Any) -> str:
    if not isinstance(ns, int) or not 0 < ns < 1 << 62:
        return "-"
    return datetime.fromtimestamp(ns // 1000 / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
