"""Runs commands in processes that are forked from one that has imported and compiled what each would: seconds a command.

Each command still has a process, an environment, a folder and streams of its own; only its start is not its own. What
tests the start (imports, encodings, signals, closed pipes) runs `python -m triage` itself.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import triage

READY = b"\n"
RUN_ELSEWHERE = (
    "triage.__main__", "triage.cli.mcp", "triage.cli.serve", "triage.collecting.on_node.", "triage.mcp", "triage.store.migrations.", "triage.web",
)  # fmt: skip
ON_USE = ("alembic.command", "alembic.config", "chromadb.api.rust", "tokenizers")
REQUEST = 1 << 20  # bytes, at most


def serve(channel: socket.socket) -> None:
    """One request after the other: arguments, environment and folder as JSON, with three descriptors; answered by the code."""
    _prepare()
    channel.sendall(READY)
    while True:
        raw, streams, _, _ = socket.recv_fds(channel, REQUEST, 3)
        if not raw:
            return
        request = json.loads(raw)
        if any("openai:" in text for text in (*request["args"], *request["env"].values())):
            import langchain_openai  # noqa: F401  takes a second
        child = os.fork()
        if child == 0:
            channel.close()
            _run(request, streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        channel.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _prepare() -> None:
    """Imports what commands do, and compiles signatures and filter rules by using them once."""
    for module in pkgutil.walk_packages(triage.__path__, "triage."):
        if not module.name.startswith(RUN_ELSEWHERE):
            importlib.import_module(module.name)
    for name in ON_USE:
        importlib.import_module(name)
    from triage import config, pipeline
    from triage.cli import recalling, wiring
    from triage.store.incidents import IncidentStore

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "job.log"
        log.write_text("step 1 loss 2.0\nRuntimeError: CUDA error: device-side assert triggered\n")
        chosen = config.load({"llm": "off", "home": folder})
        pipeline.diagnose([str(log)], wiring.evaluation_parts(chosen, similar=False))
        recalling.retriever(
            chosen
        )  # reads what triage knows; the index is not opened, for its threads would not be forked
        with IncidentStore.open(f"sqlite:///{folder}/triage.db") as store:
            store.list()
    gc.collect()
    gc.freeze()  # what is collected no more stays one memory with the children


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
