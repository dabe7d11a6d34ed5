"""The file of tokens that `triage serve --new-token` makes: names, roles and hashes, readable for its owner alone."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from triage.errors import InputError, UsageError
from triage.web.access import Token, fresh, hashed, token

TOKENS, KEY = "tokens.json", "session.key"


def load(folder: Path) -> tuple[Token, ...]:
    """Errors: InputError for a file that cannot be read or is none of ours; UsageError."""
    file = folder / TOKENS
    try:
        entries = json.loads(file.read_text("utf-8"))
        return tuple(token(e["name"], e["role"], f"sha256={e['sha256']}") for e in entries)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} cannot be read: {error}", "delete it, and make the tokens anew") from None


def add(folder: Path, name: str, role: str) -> str:
    """A new token, which is told once and kept as its hash. Errors: UsageError for a name that is taken, InputError."""
    made = fresh()
    entry, known = token(name, role, f"sha256={hashed(made).hex()}"), load(folder)
    if any(t.name == entry.name for t in known):
        raise UsageError(f"there is a token {name} already", f"delete its entry in {folder / TOKENS} first")
    _write(folder / TOKENS, _dump((*known, entry)))
    return made


def session_key(folder: Path) -> bytes:
    """Signs sessions; kept, so that a restart ends none. Errors: InputError."""
    file = folder / KEY
    try:
        return bytes.fromhex(file.read_text("ascii"))
    except FileNotFoundError:
        key = secrets.token_bytes(32)
        _write(file, key.hex())
        return key
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}", "delete it: everybody signs in once more") from None


def _dump(tokens: Sequence[Token]) -> str:
    return json.dumps([{"name": t.name, "role": t.role, "sha256": t.digest.hex()} for t in tokens], indent=1) + "\n"


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = file.with_name(f"{file.name}.{os.getpid()}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            out.write(text)
        beside.replace(file)
    except OSError as error:
        raise InputError(
            f"{file} cannot be written: {error.strerror}", "set TRIAGE_HOME to a folder that can be"
        ) from None
