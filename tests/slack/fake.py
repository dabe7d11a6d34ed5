"""Slack on this machine: its API over real HTTP, its socket mode over a real WebSocket."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

BOT, APP, ME, CHANNEL, USER = "xoxb-1-good", "xapp-1-good", "U0BOT", "C0ONCALL", "U0ADA"
PATIENCE = 60.0  # seconds: the machine may be busy


@dataclass
class Message:
    channel: str
    thread: str
    text: str
    blocks: list[dict[str, Any]]
    changes: int = 0
    changed_at: float = 0.0

    @property
    def shown(self) -> str:
        """All that people read of it."""
        return "\n".join(_texts(self.blocks))

    @property
    def buttons(self) -> dict[str, dict[str, Any]]:
        return {b["action_id"]: b for block in self.blocks if block["type"] == "actions" for b in block["elements"]}


@dataclass
class FakeSlack:
    """messages: by their time; views: forms that were opened; whispers: what was said to one person; acks: of envelopes,
    by their id; refuses: method to the error that it answers with."""

    messages: dict[str, Message] = field(default_factory=dict)
    views: list[dict[str, Any]] = field(default_factory=list)
    whispers: list[str] = field(default_factory=list)
    acks: dict[str, dict[str, Any]] = field(default_factory=dict)
    acked_at: dict[str, float] = field(default_factory=dict)
    refuses: dict[str, str] = field(default_factory=dict)
    limited: int = 0  # so many calls are told to come back after a second
    connections: int = 0

    def __enter__(self) -> FakeSlack:
        self._count = itertools.count(1)
        self._links: list[ServerConnection] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._socket = serve(self._link, "127.0.0.1", 0)
        for server in (self._http, self._socket):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown()
        self._http.shutdown()
        self._http.server_close()

    # ------------------------------------------------------------------------------------------ what people do
    def command(self, text: str, channel: str = CHANNEL, user: str = USER, trigger: str = "") -> str:
        return self.send(
            "slash_commands",
            {
                "command": "/triage",
                "text": text,
                "channel_id": channel,
                "user_id": user,
                "user_name": "ada",
                "team_id": "T1",
                "trigger_id": trigger or f"t{next(self._count)}",
                "response_url": f"{self.url}/respond",
            },
        )

    def say(self, text: str, thread: str, ts: str = "", channel: str = CHANNEL, user: str = USER, **more: Any) -> str:
        event = {"type": "message", "channel": channel, "user": user, "text": text, "ts": ts or self._time(), **more}
        return self.send("events_api", self._event(event | ({"thread_ts": thread} if thread else {})))

    def event(self, kind: str) -> str:
        return self.send("events_api", self._event({"type": kind, "user": USER}))

    def press(self, ts: str, action: str, user: str = USER) -> str:
        message = self.messages[ts]
        return self.send(
            "interactive",
            {
                "type": "block_actions",
                "trigger_id": f"t{next(self._count)}",
                "team": {"id": "T1"},
                "user": {"id": user, "username": "ada"},
                "channel": {"id": message.channel},
                "message": {
                    "ts": ts,
                    "thread_ts": message.thread or ts,
                    "text": message.text,
                    "blocks": message.blocks,
                },
                "actions": [{"type": "button", "block_id": "b", **message.buttons[action]}],
            },
        )

    def submit(self, view: dict[str, Any], user: str = USER, **given: str) -> str:
        """given: as the fields of the form are called."""
        kinds = {block["block_id"]: block["element"]["type"] for block in view["blocks"]}
        values = {
            name: {
                "value": {"selected_option": {"value": value}} if kinds[name] == "radio_buttons" else {"value": value}
            }
            for name, value in given.items()
        }
        filled = {**view, "id": f"V{next(self._count)}", "state": {"values": values}}
        body = {"type": "view_submission", "team": {"id": "T1"}, "user": {"id": user, "name": "ada"}, "view": filled}
        return self.send("interactive", body)

    def _event(self, event: dict[str, Any]) -> dict[str, Any]:
        return {"type": "event_callback", "team_id": "T1", "event_id": f"E{next(self._count)}", "event": event}

    # ------------------------------------------------------------------------------------------ the socket
    def send(self, kind: str, payload: dict[str, Any]) -> str:
        """An envelope; its id."""
        name = f"envelope-{next(self._count)}"
        self._links[-1].send(
            json.dumps({"envelope_id": name, "type": kind, "payload": payload, "accepts_response_payload": True})
        )
        return name

    def hang_up(self) -> None:
        """As Slack does every few hours: the bot is told, and connects anew."""
        self._links[-1].send(json.dumps({"type": "disconnect", "reason": "refresh_requested"}))

    def _link(self, link: ServerConnection) -> None:
        link.send(json.dumps({"type": "hello", "num_connections": 1}))
        self._links.append(link)
        self.connections += 1
        try:
            for text in link:
                answer = json.loads(text)
                name = answer["envelope_id"]
                self.acks[name] = answer.get("payload") or {}
                self.acked_at[name] = time.monotonic()
        except ConnectionClosed:
            pass

    # ------------------------------------------------------------------------------------------ the API
    def _call(self, method: str, given: dict[str, Any], token: str) -> dict[str, Any]:
        if token != (APP if method == "apps.connections.open" else BOT):
            return {"ok": False, "error": "invalid_auth"}
        if method in self.refuses:
            return {"ok": False, "error": self.refuses[method]}
        match method:
            case "auth.test":
                return {"ok": True, "user_id": ME, "bot_id": "B0BOT", "team_id": "T1", "user": "triage", "team": "lab"}
            case "apps.connections.open":
                return {"ok": True, "url": f"ws://127.0.0.1:{self._socket.socket.getsockname()[1]}/link"}
            case "chat.postMessage":
                ts = self._time()
                thread = given.get("thread_ts") or ""
                self.messages[ts] = Message(given["channel"], thread, given["text"], _checked(given["blocks"]))
                return {"ok": True, "channel": given["channel"], "ts": ts}
            case "chat.update":
                changed = self.messages[given["ts"]]
                changed.text, changed.blocks = given["text"], _checked(given["blocks"])
                changed.changes += 1
                changed.changed_at = time.monotonic()
                return {"ok": True, "channel": given["channel"], "ts": given["ts"]}
            case "views.open":
                self.views.append(json.loads(given["view"]) if isinstance(given["view"], str) else given["view"])
                return {"ok": True, "view": {"id": "V0"}}
        return {"ok": False, "error": "unknown_method"}

    def _time(self) -> str:
        return f"1800000000.{next(self._count):06}"

    def _handler(fake) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                is_json = "json" in self.headers.get("Content-Type", "")
                given = json.loads(body) if is_json else {k: v[0] for k, v in parse_qs(body).items()}
                status, headers, answer = 200, {}, {"ok": True}
                if self.path == "/respond":
                    fake.whispers.append(given["text"])
                elif fake.limited:
                    fake.limited -= 1
                    status, headers, answer = 429, {"Retry-After": "1"}, {"ok": False, "error": "ratelimited"}
                else:
                    token = self.headers.get("Authorization", "").removeprefix("Bearer ")
                    answer = fake._call(self.path.removeprefix("/api/"), given, token)
                data = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in (
                    {"Content-Type": "application/json", "Content-Length": str(len(data))} | headers
                ).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    # ------------------------------------------------------------------------------------------ waiting
    def replies(self, thread: str) -> list[Message]:
        return [message for message in list(self.messages.values()) if message.thread == thread]


def until(found: Callable[[], Any]) -> Any:
    """What it finds, once it finds something."""
    ends = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.02)
    return value


def _checked(blocks: Any) -> list[dict[str, Any]]:
    """Slack takes no more, and no longer ones."""
    found: list[dict[str, Any]] = json.loads(blocks) if isinstance(blocks, str) else blocks
    assert 0 < len(found) <= 50
    for block in found:
        texts = [block.get("text"), *block.get("fields", ()), *(e for e in block.get("elements", ()) if "text" in e)]
        for text in filter(None, texts):
            inner = text["text"] if isinstance(text["text"], dict) else text
            assert 0 < len(inner["text"]) <= 3000
    return found


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["text"]] if isinstance(value.get("text"), str) else []
        return own + [text for item in value.values() for text in _texts(item)]
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []
