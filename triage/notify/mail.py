"""Sends by SMTP. With a login, never over a connection that is not encrypted."""

from __future__ import annotations

import contextlib
import hashlib
import smtplib
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import unquote, urlsplit

from triage.errors import UsageError
from triage.notify.message import Message, as_text
from triage.notify.tries import Refused, Tries, TryAgain

_TIMEOUT = 10.0  # seconds of one step of the conversation
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    is_tls: bool = False  # from the first byte on; else by STARTTLS
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str) -> Server:
        """smtp://[USER:PASSWORD@]HOST[:PORT] or smtps://...; "": the mail server of this machine. Errors: UsageError."""
        if not url:
            return cls("localhost", 25)
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            parts, host, port = urlsplit(""), "", None
        if parts.scheme not in ("smtp", "smtps") or not host:
            raise UsageError(
                "smtp_url is no URL of a mail server", "write smtp://user:password@host:587 or smtps://host"
            )
        is_tls = parts.scheme == "smtps"
        usual = 465 if is_tls else 587 if parts.username else 25
        return cls(host, port or usual, is_tls, unquote(parts.username or ""), unquote(parts.password or ""))


def mail(to: tuple[str, ...], message: Message, server: Server, sender: str, seconds: float) -> None:
    """Repeats for a while what may go well later, for those who have not got it. Errors: Refused: not all have."""
    letter, left = _letter(to, message, sender), list(to)

    def once(most: float) -> None:
        refused = _once(letter, left, server, min(most, _TIMEOUT))
        left[:] = refused
        if refused:
            raise _of_some(refused, whose=len(refused) < len(to))

    Tries(seconds).until_done(once)


def _letter(to: tuple[str, ...], message: Message, sender: str) -> EmailMessage:
    """Those of one incident are one conversation."""
    letter = EmailMessage()
    letter["Subject"] = f"[triage] {message.headline}"
    letter["From"] = sender or f"triage@{socket.gethostname()}"
    letter["To"] = ", ".join(to)
    letter["Date"] = formatdate()
    letter["Auto-Submitted"] = "auto-generated"
    first = f"<{hashlib.sha256(message.key.encode()).hexdigest()[:24]}@triage.invalid>"
    letter["Message-ID"] = make_msgid(domain="triage.invalid") if message.is_update else first
    if message.is_update:
        letter["In-Reply-To"] = letter["References"] = first
    letter.set_content(as_text(message))
    return letter


def _once(letter: EmailMessage, to: Sequence[str], server: Server, timeout: float) -> Mapping[str, tuple[int, bytes]]:
    """Those for whom it was not taken, with code and words."""
    try:
        connection = _connected(server, timeout)
        try:
            return connection.send_message(letter, to_addrs=to)
        finally:
            with contextlib.suppress(OSError, smtplib.SMTPException):  # what was taken stays so
                connection.quit()
            connection.close()
    except smtplib.SMTPRecipientsRefused as error:
        return error.recipients
    except smtplib.SMTPResponseException as error:
        raise _told(error.smtp_code, error.smtp_error) from None
    except ssl.SSLError as error:
        raise Refused(f"TLS: {error.reason or error}") from None
    except (OSError, smtplib.SMTPException) as error:
        raise TryAgain(getattr(error, "strerror", None) or str(error) or type(error).__name__) from None


def _of_some(refused: Mapping[str, tuple[int, bytes]], whose: bool) -> Exception:
    """Of what may go well later, where there is such. whose: others have got it."""
    address, (code, said) = min(refused.items(), key=lambda item: item[1][0])
    return _told(code, said, f"{address}: " if whose else "")


def _connected(server: Server, timeout: float) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if server.is_tls:
        connection: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=timeout, context=context)
    else:
        connection = smtplib.SMTP(server.host, server.port, timeout=timeout)
    try:
        connection.ehlo_or_helo_if_needed()
        if not server.is_tls and connection.has_extn("starttls"):
            connection.starttls(context=context)
            connection.ehlo()
        elif not server.is_tls and server.user and server.host not in _LOCAL:
            raise Refused(f"{server.host} offers no encryption, and the password is not sent without")
        if server.user:
            _login(connection, server)
    except BaseException:
        connection.close()
        raise
    return connection


def _login(connection: smtplib.SMTP, server: Server) -> None:
    try:
        connection.login(server.user, server.password)
    except UnicodeEncodeError:
        raise Refused("SMTP's login takes no characters but those of ASCII in the name and the password") from None


def _told(code: int, said: bytes | str, whose: str = "") -> Exception:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    problem = f"{whose}SMTP {code}: {' '.join(text.split())[:300]}"
    return TryAgain(problem) if 400 <= code < 500 else Refused(problem)
