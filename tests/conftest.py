"""Every test runs without network, with its own home and a clean environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith("TRIAGE_") and name != "TRIAGE_SHARED":
            monkeypatch.delenv(name)
    monkeypatch.setenv("TRIAGE_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    yield


@pytest.fixture(autouse=True)
def _no_network(socket_enabled: None) -> Iterator[None]:
    import pytest_socket

    pytest_socket.socket_allow_hosts(["127.0.0.1", "localhost", "::1"], allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real logs beside the project, where it is present."""
    path = Path(os.environ.get("TRIAGE_SHARED", REPO.parent / "shared"))
    if not (path / "logs").is_dir():
        pytest.skip("the real logs are not beside this checkout (set TRIAGE_SHARED)")
    return path
