"""TRIAGE_OFFLINE=1: no process of a command opens a connection or asks a name server, whatever else is set."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import REPO
from tests.evaluation import make

# In every Python process that a command starts: each address and each name that is asked for goes into a file.
HOOK = """
import os, sys

def note(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg") and isinstance(args[1], tuple):
        told = args[1]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        told = args[0]
    else:
        return
    with open(os.environ["CONNECTIONS"], "a") as file:
        file.write(f"{event} {told}\\n")

sys.addaudithook(note)
with open(os.environ["CONNECTIONS"] + ".processes", "a") as file:
    file.write("one\\n")
"""


class Listener:
    """Takes connections on this machine and says how many came: those of native code too."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.came = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.came += 1
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    found = Listener()
    yield found
    found.close()


@pytest.fixture
def env(tmp_path: Path, listener: Listener) -> dict[str, str]:
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    (tmp_path / "job.out").write_text("+ srun python /home/ada/fuse.py\n" + make.KEY_ERROR)
    make.case(tmp_path / "cases", "a1")
    return {
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "hook"), str(REPO)]),
        "CONNECTIONS": str(tmp_path / "connections"),
        "TRIAGE_HOME": str(tmp_path / "home"),
        "TRIAGE_LLM": "openai:any",
        "TRIAGE_LLM_BASE_URL": f"{listener.url}/v1",
        "TRIAGE_LLM_API_KEY": "test-key-0123456789",
        "TRIAGE_CHROMA_URL": listener.url,
        "TRIAGE_NOTIFY": f"slack:{listener.url}; mailto:ada@localhost",
        "TRIAGE_SMTP_URL": listener.url.replace("http", "smtp"),
        "HTTPS_PROXY": listener.url,
        "HTTP_PROXY": listener.url,
    }


def connections(env: dict[str, str]) -> list[str]:
    path = Path(env["CONNECTIONS"])
    return path.read_text().splitlines() if path.exists() else []


COMMANDS = [
    ("diagnose", "job.out", "--format", "json", "--notify", "settings"),
    ("rules", "learn", "job.out"),
    ("compress", "job.out"),
    ("eval", "run", "cases", "--out", "run", "--jobs", "2"),
    ("kb", "search", "CUDA error"),
    ("config", "check"),
]


@pytest.mark.parametrize(
    ("command", "embedding"),
    [*((command, "") for command in COMMANDS), (COMMANDS[0], "sentence-transformers:any/model")],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else value[:8],
)
def test_no_connection_is_opened(
    triage: Run, env: dict[str, str], listener: Listener, command: tuple[str, ...], embedding: str
) -> None:
    more = {"TRIAGE_EMBEDDING": embedding} if embedding else {}
    done = triage(*command, **{**env, **more}, TRIAGE_OFFLINE="1")
    assert Path(env["CONNECTIONS"] + ".processes").exists()
    assert (connections(env), listener.came) == ([], 0)
    assert "Traceback" not in done.stderr
    if command[0] != "config" and not embedding:  # which needs torch
        assert done.returncode in (0, 1), done.stderr


def test_a_database_on_a_server_is_refused_in_one_line(triage: Run, env: dict[str, str]) -> None:
    url = "postgresql+psycopg://triage:hunter22@127.0.0.1:5432/triage"
    done = triage("diagnose", "job.out", **env, TRIAGE_DATABASE_URL=url, TRIAGE_OFFLINE="1")
    assert (done.returncode, connections(env)) == (2, [])
    assert "TRIAGE_DATABASE_URL names a server" in done.stderr
    assert "hunter22" not in done.stderr


def test_without_it_the_same_settings_do_connect(triage: Run, env: dict[str, str], listener: Listener) -> None:
    """The proof that the tests above could fail."""
    triage("diagnose", "job.out", **env)
    assert listener.came > 0
    assert any(line.startswith("socket.connect") for line in connections(env))
