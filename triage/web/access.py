"""Who may do what: tokens that are known by their hash, signed sessions for browsers, and what a form must carry."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from triage.errors import UsageError

Role = Literal["read", "write"]
ROLES: tuple[Role, ...] = get_args(Role)
SESSION_SECONDS = 12 * 3600
SHORTEST = 20  # characters of a token that somebody chose: hashes of shorter ones can be guessed
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SECONDS = re.compile(r"[0-9]{1,12}")
_HASHED = "sha256="


@dataclass(frozen=True, slots=True)
class Token:
    """name: stands in the record for who used it; digest: SHA-256 of the token, which is kept nowhere."""

    name: str
    role: Role
    digest: bytes


@dataclass(frozen=True, slots=True)
class Caller:
    """session: of a browser, "" for a program with a token."""

    name: str
    role: Role
    session: str = ""

    @property
    def writes(self) -> bool:
        return self.role == "write"


def token(name: str, role: str, text: str) -> Token:
    """text: the token, or sha256= and its hash in hex. Errors: UsageError."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"the name of a token is {name!r}", "use up to 64 letters, digits, - and _")
    if role not in ROLES:
        raise UsageError(f"the role of token {name} is {role!r}", f"use {' or '.join(ROLES)}")
    if text.startswith(_HASHED):
        try:
            digest = bytes.fromhex(text.removeprefix(_HASHED))
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise UsageError(
                f"the hash of token {name} is no SHA-256 in hex", "make one: triage serve --new-token NAME"
            )
    elif len(text) < SHORTEST or not text.isascii():
        raise UsageError(
            f"token {name} is shorter than {SHORTEST} characters, or not of ASCII",
            "make one: triage serve --new-token NAME",
        )
    else:
        digest = hashed(text)
    return Token(name, "write" if role == "write" else "read", digest)


def parse(setting: str) -> tuple[Token, ...]:
    """NAME:ROLE:TOKEN, with semicolons between. Errors: UsageError, which never shows a token."""
    found = []
    for number, part in enumerate(filter(None, (p.strip() for p in setting.split(";"))), 1):
        pieces = part.split(":", 2)
        if len(pieces) != 3:
            raise UsageError(f"serve_tokens: entry {number} is not NAME:ROLE:TOKEN", "such as oncall:write:sha256=...")
        found.append(token(*pieces))
    return tuple(found)


def hashed(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def fresh() -> str:
    """A token of 256 bits."""
    return secrets.token_urlsafe(32)


class Access:
    """key: signs sessions; one that changes ends them all."""

    def __init__(self, tokens: Sequence[Token], key: bytes) -> None:
        self._tokens, self._key = tuple(tokens), key

    def by_token(self, text: str) -> Caller | None:
        """Each token is compared in full, so that time tells nothing."""
        digest, found = hashed(text), None
        for known in self._tokens:
            if hmac.compare_digest(digest, known.digest):
                found = Caller(known.name, known.role)
        return found

    def session(self, caller: Caller) -> str:
        """What the browser keeps as its cookie."""
        ends = int(time.time()) + SESSION_SECONDS
        head = f"{caller.name}.{ends}.{secrets.token_urlsafe(16)}"
        return f"{head}.{self._sign('session', head + self._secret_of(caller.name))}"

    def by_session(self, cookie: str) -> Caller | None:
        parts = cookie.split(".")
        if len(cookie) > 400 or len(parts) != 4 or not _SECONDS.fullmatch(parts[1]):
            return None
        name, ends, _, signature = parts
        known = next((t for t in self._tokens if t.name == name), None)
        if known is None or int(ends) < time.time():
            return None
        expected = self._sign("session", cookie.rpartition(".")[0] + known.digest.hex())
        same = hmac.compare_digest(signature.encode("utf-8", "surrogatepass"), expected.encode())
        return Caller(known.name, known.role, cookie) if same else None

    def form_token(self, caller: Caller) -> str:
        """What a form of this session carries, and no other site knows."""
        return self._sign("form", caller.session)

    def form_fits(self, caller: Caller, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self.form_token(caller).encode())

    def _secret_of(self, name: str) -> str:
        return next((t.digest.hex() for t in self._tokens if t.name == name), "")

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}:{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
