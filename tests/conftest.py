"""Every test runs without network, with its own home and a clean environment."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_socket

import tests.examples  # noqa: F401  its profile is named on the command line

REPO = Path(__file__).resolve().parents[1]
_count = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """Only this machine may be reached; once a session, as looking up hosts for each of thousands of tests is slow."""
    pytest_socket.socket_allow_hosts(["127.0.0.1", "localhost", "::1"], allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()


@pytest.fixture(scope="session", autouse=True)
def _interrupts() -> None:
    """In the background of a shell Ctrl-C is ignored, and programs that are started from there would ignore it too."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def _own_home(_homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("TRIAGE_") and n != "TRIAGE_SHARED"]:
        monkeypatch.delenv(name)
    own = _homes / str(next(_count))
    (own / "home").mkdir(parents=True)
    monkeypatch.setenv("TRIAGE_HOME", str(own / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own / "config"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real logs beside the project, where it is present."""
    path = Path(os.environ.get("TRIAGE_SHARED", REPO.parent / "shared"))
    if not (path / "logs").is_dir():
        pytest.skip("the real logs are not beside this checkout (set TRIAGE_SHARED)")
    return path
