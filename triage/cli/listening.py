"""A process that answers over HTTP: its socket, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import Any

import uvicorn

from triage.cli import output
from triage.errors import UsageError

QUICKLY = 3  # seconds that answers under way are given at the end

LATE = 1.0  # seconds more, for what is only to be put away


class Server(uvicorn.Server):
    """told: is said once it answers; interrupted: ended by Ctrl-C."""

    def __init__(self, asgi: Any, told: str) -> None:
        super().__init__(
            uvicorn.Config(
                asgi,
                log_config=None,
                access_log=False,
                lifespan="on",
                server_header=False,
                date_header=True,
                timeout_graceful_shutdown=QUICKLY,
                timeout_keep_alive=75,  # a busy server must not take a client for one that has gone
                h11_max_incomplete_event_size=64 << 10,
                ws="none",
            )
        )
        self._told = told
        self.interrupted = False
        for number in (signal.SIGINT, signal.SIGTERM):  # raised again at the end, where nothing is left to do
            signal.signal(number, lambda *_: None)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            output.note(self._told)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """A thread that waits for a model cannot be ended, so soon after this the process is."""
        await super().shutdown(sockets)
        late = threading.Timer(LATE, self._end)
        late.daemon = True
        late.start()

    def _end(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(self.code)

    @property
    def code(self) -> int:
        """Of the process, once it has ended."""
        return 130 if self.interrupted else 0

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.interrupted = sig == signal.SIGINT
        super().handle_exit(sig, frame)


def listen(host: str, port: int) -> socket.socket:
    """Errors: UsageError when it cannot be had."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, number)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(256)
    except OSError as error:
        raise UsageError(
            f"{host}:{port} cannot be listened on: {error.strerror}", "give another --port or --host"
        ) from None
    return made
