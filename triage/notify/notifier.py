"""Tells each channel of an incident once, and again when it changes, over restarts of who watches."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from triage.notify.channels import Channel
from triage.notify.message import Message
from triage.notify.send import SECONDS, Delivery, Sent, send

FILE = "notified.json"
_FORGOTTEN = 30 * 86400.0  # seconds after which a key is told of anew
_CLAIM = 10 * SECONDS  # seconds after which who began to send is taken to have died
_LOCKING = 10.0
_Told = dict[str, dict[str, Any]]  # channel and key -> digest that was told last, sending (digest), at (epoch)


class Notifier:
    """home: the folder whose state file says what was sent; many processes may share it."""

    def __init__(self, channels: Sequence[Channel], home: Path, delivery: Delivery) -> None:
        self._channels, self._file, self._delivery = tuple(channels), home / FILE, delivery
        self.problem = ""  # why the state file is not used: then a message may come twice, which is better than never

    def send(self, message: Message) -> tuple[Sent, ...]:
        """To the channels that were not told so yet; a channel that failed is tried with the next message. Never raises."""
        fresh = dict.fromkeys(self._channels, False)  # and whether it was told of the key before
        with self._state() as told:
            if told is not None:
                fresh = self._claimed(told, message)
        sent: dict[Channel, Sent] = {}
        for is_update in (False, True):
            some = [channel for channel, before in fresh.items() if before == is_update]
            done = send(some, replace(message, is_update=is_update), self._delivery) if some else ()
            sent.update(zip(some, done, strict=True))
        with self._state() as told:
            for channel, one in sent.items():
                entry = (told or {}).get(_name(channel, message), {})
                entry |= {"sending": "", "at": time.time()} | ({} if one.problem else {"digest": message.digest})
        return tuple(sent.values())

    def send_anyway(self, message: Message) -> tuple[Sent, ...]:
        """To all of them, whatever they were told."""
        return send(self._channels, message, self._delivery)

    def _claimed(self, told: _Told, message: Message) -> dict[Channel, bool]:
        """Those to send to now, to which nobody else sends from here on."""
        now, fresh = time.time(), {}
        for name in [name for name, entry in told.items() if now - entry["at"] > _FORGOTTEN]:
            del told[name]
        for channel in self._channels:
            entry = told.setdefault(_name(channel, message), {"digest": "", "sending": "", "at": now})
            is_claimed = entry["sending"] == message.digest and now - entry["at"] < _CLAIM
            if entry["digest"] != message.digest and not is_claimed:
                entry |= {"sending": message.digest, "at": now}
                fresh[channel] = bool(entry["digest"])
        return fresh

    @contextlib.contextmanager
    def _state(self) -> Iterator[_Told | None]:
        """What was told, held alone, and written when left; None where the file cannot be used."""
        from filelock import FileLock, Timeout

        lock = FileLock(self._file.with_suffix(".lock"), timeout=_LOCKING)
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock.acquire()
        except (OSError, Timeout) as error:
            self.problem = f"{self._file} cannot be used, so messages may come twice: {error}"
            yield None
            return
        try:
            told = self._read()
            yield told
            self._write(told)
        finally:
            lock.release()

    def _read(self) -> _Told:
        """A file that was damaged is begun anew."""
        try:
            told = json.loads(self._file.read_text("utf-8"))
            return {name: entry for name, entry in told.items() if _is_sound(entry)}
        except (OSError, ValueError, AttributeError):
            return {}

    def _write(self, told: _Told) -> None:
        new = self._file.with_suffix(".new")
        try:
            new.touch(0o600)
            new.write_text(json.dumps(told), "utf-8")
            new.replace(self._file)
        except OSError as error:
            self.problem = f"{self._file} cannot be written, so messages may come twice: {error}"


def _is_sound(entry: object) -> bool:
    return isinstance(entry, dict) and [type(entry.get(name)) for name in ("digest", "sending", "at")] == [
        str,
        str,
        float,
    ]


def _name(channel: Channel, message: Message) -> str:
    """Of a channel that is no secret: two of one host are told apart by a digest of where they lead."""
    where = hashlib.sha256(repr((channel.url, channel.argv, channel.to)).encode()).hexdigest()[:12]
    return f"{channel.name} {where} {message.key}"
