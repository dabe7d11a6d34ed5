"""Real servers on this machine that keep what they were told: HTTP and SMTP."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

TOKEN = "T0000000-B0000000-xoxoSecretToken"


@dataclass
class Hook:
    """answers: status, headers and body of each request in turn, the last one for all further ones."""

    url: str = ""
    answers: list[tuple[int, dict[str, str], str]] = field(default_factory=lambda: [(200, {}, "ok")])
    came: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    wait: float = 0.0


@contextmanager
def hook(wrap: Callable[[Any], Any] | None = None) -> Iterator[Hook]:
    found = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.came.append(json.loads(body))
            found.paths.append(self.path)
            time.sleep(found.wait)
            status, headers, text = found.answers[min(len(found.came), len(found.answers)) - 1]
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:  # a client that did not wait
            pass

    server = Server(("127.0.0.1", 0), Handler)
    if wrap:
        server.socket = wrap(server.socket)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    found.url = f"http{'s' if wrap else ''}://127.0.0.1:{server.server_address[1]}/services/{TOKEN}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@dataclass
class Post:
    """answers: what is said to DATA in turn, the last for all further ones; refused: what is said to a RCPT of an address in turn,
    then it is taken; got: whom each letter was for; end: what is said to QUIT."""

    port: int = 0
    answers: list[str] = field(default_factory=lambda: ["250 taken"])
    letters: list[EmailMessage] = field(default_factory=list)
    logins: list[tuple[str, str, bool]] = field(default_factory=list)
    came: int = 0
    refused: dict[str, list[str]] = field(default_factory=dict)
    got: list[list[str]] = field(default_factory=list)
    end: str = "221 Bye"


class _AnyPort(Controller):
    def _trigger_server(self) -> None:
        """Its own connects to the port that was asked for, which is none yet."""
        assert self.server
        with socket.create_connection(self.server.sockets[0].getsockname()) as connection:
            connection.recv(100)


@contextmanager
def post(tls: ssl.SSLContext | None = None, login: tuple[str, str] | None = None) -> Iterator[Post]:
    found = Post()

    class Handler:
        async def handle_RCPT(  # noqa: N802
            self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: Any
        ) -> str:
            if found.refused.get(address):
                return found.refused[address].pop(0)
            envelope.rcpt_tos.append(address)
            return "250 OK"

        async def handle_QUIT(self, _server: Any, _session: Any, _envelope: Envelope) -> str:  # noqa: N802
            return found.end

        async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:  # noqa: N802
            import email.policy

            found.came += 1
            answer = found.answers[min(found.came, len(found.answers)) - 1]
            if answer.startswith("250"):
                found.got.append(envelope.rcpt_tos)
                found.letters.append(
                    email.message_from_bytes(envelope.content or b"", policy=email.policy.default)  # type: ignore[arg-type]
                )
            return answer

    def check(_server: Any, session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        pair = (data.login.decode(), data.password.decode())
        found.logins.append((*pair, session.ssl is not None))
        return AuthResult(success=pair == login, handled=pair == login)

    more = {"authenticator": check, "auth_required": True, "auth_require_tls": tls is not None} if login else {}
    controller = _AnyPort(Handler(), hostname="127.0.0.1", port=0, tls_context=tls, **more)
    controller.start()
    assert controller.server
    found.port = controller.server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        controller.stop()


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext] | None:
    """One of 127.0.0.1 and the context of a server that has it; None where there is no openssl."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    try:
        subprocess.run(
            [*command, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", cert],
            check=True,
            capture_output=True,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context
