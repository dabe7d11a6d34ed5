"""What a run was made with: enough to tell whether two runs can be compared, and to make one again."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import triage
from triage import config, kb, prompts
from triage.config import Settings
from triage.redact import redact

_PACKAGES = (
    "ahocorasick-rs", "alembic", "chromadb", "filelock", "google-re2", "httpx", "langchain", "langchain-openai", "numpy", "onnxruntime", "openai",
    "platformdirs", "pyyaml", "rich", "sqlalchemy", "tokenizers", "typer", "zstandard",
)  # fmt: skip
_NOT_TOLD = ("home", "database_url")  # an evaluation has a home and a database of its own


def header(settings: Settings, asked: Iterable[str] = ()) -> dict[str, Any]:
    """The fields of run.json that tell of the program, its knowledge and its surroundings. asked: names of prompts."""
    here = Path(triage.__file__).parent
    return {
        "version": triage.__version__,
        **_commit(here.parent),
        "command": redact(shlex.join(["triage", *sys.argv[1:]])),
        "settings": _settings(settings),
        "model": settings.llm,
        "prompts": [prompts.load(name).to_json() for name in asked],
        "packages": _packages(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "kb_sha256": _sha256(kb.root(), kb.root().rglob("*.yaml")),
        "code_sha256": _sha256(here, here.rglob("*.py")),
    }


def _settings(settings: Settings) -> dict[str, Any]:
    told = [s.name for s in config.SETTINGS if not s.secret and s.name not in _NOT_TOLD]
    return {name: _plain(getattr(settings, name)) for name in told}


def _plain(value: Any) -> Any:
    return redact(value) if isinstance(value, str) else value


def _packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _commit(checkout: Path) -> dict[str, Any]:
    """The commit of the checkout that runs, and whether its files were changed since; empty for an installed package."""
    if not (checkout / ".git").exists():
        return {"commit": "", "changed": False}
    commit = _git(checkout, "rev-parse", "HEAD")
    return {"commit": commit, "changed": bool(_git(checkout, "status", "--porcelain", "--", "triage", "kb", "prompts"))}


def _git(checkout: Path, *args: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(checkout), *args], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""


def _sha256(root: Path, files: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for path in sorted(files):
        whole.update(f"{path.relative_to(root).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
