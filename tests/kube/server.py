"""A real HTTP server on this machine that speaks the paths of the Kubernetes API that are read, as a cluster does.

    with ApiServer() as server:
        server.add(objects.pod("train-0", ...), objects.event(...))
        server.logs["ml", "train-0", "main", False] = b"..."
        server.kubeconfig(path)

Lists come in pages (`limit`, `continue`), selectors of labels and fields are heeded; what is not there is 404, what
`forbidden` names 403, another token 401. Logs are sent in chunks, with a stamp on each line where that is asked for.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "of-this-test-alone"
STAMP = "2026-11-30T08:{minute:02d}:{second:02d}.{number:09d}Z "
_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[\w.-]+)/(?P<version>\w+))(?:/namespaces/(?P<ns>[\w-]+))?/(?P<plural>\w+)(?:/(?P<name>[\w.-]+))?(?P<log>/log)?"
)
_PLURALS = {"Pod": "pods", "Event": "events", "Node": "nodes", "Job": "jobs", "PyTorchJob": "pytorchjobs", "MPIJob": "mpijobs", "JobSet": "jobsets"}  # fmt: skip
Key = tuple[str, str, str, str]  # group, plural, namespace, name


class ApiServer:
    """forbidden: plurals that this account may not read; absent: groups of the API that the cluster lacks.

    forgets: the number of the page from which on a list cannot be continued; log_errors: (status, message) of a log.
    asked: the path of each request; broken: logs whose connection breaks after their first chunk.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, dict[str, Any]] = {}
        self.logs: dict[tuple[str, str, str, bool], bytes] = {}
        self.log_errors: dict[tuple[str, str, str, bool], tuple[int, str]] = {}
        self.broken: set[tuple[str, str, str, bool]] = set()
        self.forbidden: set[str] = set()
        self.forgets = 10**6
        self.asked: list[str] = []
        self.methods: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ApiServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, *objects: Mapping[str, Any]) -> None:
        for one in objects:
            meta = one["metadata"]
            group = one["apiVersion"].rpartition("/")[0]
            self.objects[group, _PLURALS[one["kind"]], meta.get("namespace", ""), meta["name"]] = dict(one)

    def kubeconfig(self, path: Path, token: str = TOKEN, namespace: str = "ml") -> Path:
        """Two contexts: `here`, the current one, and `elsewhere`, whose server is not there."""
        users = [{"name": "me", "user": {"token": token}}]
        clusters = [
            {"name": "here", "cluster": {"server": self.url}},
            {"name": "elsewhere", "cluster": {"server": "http://127.0.0.1:9"}},
        ]
        contexts = [
            {"name": "here", "context": {"cluster": "here", "user": "me", "namespace": namespace}},
            {"name": "elsewhere", "context": {"cluster": "elsewhere", "user": "me"}},
        ]
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "here", "users": users, "clusters": clusters, "contexts": contexts}  # fmt: skip
        path.write_text(json.dumps(config))
        return path

    # ------------------------------------------------------------------------------------------ answers
    def answer(
        self, path: str, query: Mapping[str, str], group: str, plural: str, ns: str, name: str
    ) -> tuple[int, Any]:
        if plural in self.forbidden:
            where = f'in the namespace "{ns}"' if ns else "at the cluster scope"
            resource = f'resource "{plural}" in API group "{group}" {where}'
            who = 'User "me" cannot get' if name else 'User "me" cannot list'
            which = f'{plural} "{name}"' if name else plural
            return _status(403, "Forbidden", f"{which} is forbidden: {who} {resource}")
        if name:
            found = self.objects.get((group, plural, ns, name))
            if found is None and not any(key[:2] == (group, plural) for key in self.objects) and group:
                return 404, None  # the kind itself is not known: the server answers with plain text
            return (200, found) if found else _status(404, "NotFound", f'{plural} "{name}" not found')
        items = [one for key, one in sorted(self.objects.items()) if key[:3] == (group, plural, ns)]
        items = [one for one in items if _selected(one, query)]
        start, limit = int(query.get("continue", 0)), int(query.get("limit", 10**6))
        if start and start // limit >= self.forgets:
            return _status(
                410, "Expired", "The provided continue parameter is too old to display a consistent list result."
            )
        meta = {"resourceVersion": "1"} | ({"continue": str(start + limit)} if start + limit < len(items) else {})
        bare = [
            {k: v for k, v in one.items() if k not in ("apiVersion", "kind")} for one in items[start : start + limit]
        ]
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": bare}


def _selected(one: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    labels = one["metadata"].get("labels", {})
    wanted = [pair.partition("=") for pair in query.get("labelSelector", "").split(",") if pair]
    about = [pair.partition("=") for pair in query.get("fieldSelector", "").split(",") if pair]
    return all(labels.get(k) == v for k, _, v in wanted) and all(_field(one, k) == v for k, _, v in about)


def _field(one: Mapping[str, Any], path: str) -> Any:
    found: Any = one
    for part in path.split("."):
        found = found.get(part, {})
    return found


def _status(code: int, reason: str, message: str) -> tuple[int, Any]:
    return code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}  # fmt: skip


def _stamped(text: bytes) -> bytes:
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    stamps = (STAMP.format(minute=i // 60 % 60, second=i % 60, number=i).encode() for i in range(len(lines)))
    return b"".join(stamp + line + b"\n" for stamp, line in zip(stamps, lines, strict=True))


def _handler(server: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            server.asked.append(self.path)
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if self.headers.get("authorization") != f"Bearer {TOKEN}":
                self._json(*_status(401, "Unauthorized", "Unauthorized"))
                return
            found = _PATH.fullmatch(parts.path)
            if not found:
                self._json(*_status(404, "NotFound", "the server could not find the requested resource"))
            elif found["log"]:
                self._log(
                    (found["ns"], found["name"], query["container"], query.get("previous", "").lower() == "true"), query
                )
            else:
                code, body = server.answer(
                    parts.path, query, found["group"] or "", found["plural"], found["ns"] or "", found["name"] or ""
                )
                self._json(code, body)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                server.methods.add(name)
            raise AttributeError(name)

        def _json(self, code: int, body: Any) -> None:
            data = b"404 page not found\n" if body is None else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("content-type", "text/plain" if body is None else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _log(self, key: tuple[str, str, str, bool], query: Mapping[str, str]) -> None:
            if "pods/log" in server.forbidden:
                return self._json(
                    *_status(403, "Forbidden", 'pods "x" is forbidden: User "me" cannot get resource "pods/log"')
                )
            if key in server.log_errors:
                code, words = server.log_errors[key]
                return self._json(*_status(code, "BadRequest" if code == 400 else "InternalError", words))
            if ("", "pods", key[0], key[1]) not in server.objects:
                return self._json(*_status(404, "NotFound", f'pods "{key[1]}" not found'))
            if key not in server.logs:
                words = (
                    f'previous terminated container "{key[2]}" in pod "{key[1]}" not found'
                    if key[3]
                    else f'container "{key[2]}" in pod "{key[1]}" is waiting to start: ContainerCreating'
                )
                return self._json(*_status(400, "BadRequest", words))
            text = server.logs[key]
            text = _stamped(text) if query.get("timestamps", "").lower() == "true" else text
            self.send_response(200)
            self.send_header("content-type", "text/plain")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for at in range(0, len(text), 1000):
                piece = text[at : at + 1000]
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                if key in server.broken:
                    self.close_connection = True
                    return None
            self.wfile.write(b"0\r\n\r\n")
            return None

        def log_message(self, *_: object) -> None:
            pass

    return Handler
