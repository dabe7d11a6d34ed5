"""Runs commands in processes that are forked from one that has imported and compiled what each would: seconds a command.

Each command still has a process, an environment, a folder and streams of its own; only its start is not its own. What
tests the start (imports, encodings, signals, closed pipes) runs `python -m triage` itself.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import sys
import tempfile
import time
from typing import Any

READY = b"\n"
REQUEST = 1 << 20  # bytes, at most


def serve(channel: socket.socket) -> None:
    """One request after the other: arguments, environment and folder as JSON, with three descriptors; answered by the code."""
    _prepare()
    channel.sendall(READY)
    while True:
        raw, streams, _, _ = socket.recv_fds(channel, REQUEST, 3)
        if not raw:
            return
        child = os.fork()
        if child == 0:
            channel.close()
            _run(json.loads(raw), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        channel.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _prepare() -> None:
    """Imports what most commands do, and compiles signatures and filter rules by using them once."""
    import chromadb  # noqa: F401
    import sqlalchemy.orm  # noqa: F401

    from triage import config, pipeline
    from triage.cli import chat, chat_open, chat_print, diagnose, incidents, rules, wiring  # noqa: F401

    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        log.write("step 1 loss 2.0\n")
        log.flush()
        pipeline.diagnose([log.name], wiring.evaluation_parts(config.load({"llm": "off"}), similar=False))


def _run(request: dict[str, Any], streams: list[int]) -> None:
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the life of the process
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.argv = ["triage", *request["args"]]
        code = _main()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _main() -> int:
    from triage.cli.main import main

    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
