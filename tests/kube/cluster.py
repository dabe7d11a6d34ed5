"""A real API server with its etcd on this machine, where kube-apiserver and etcd are installed. It has no kubelet: no container runs."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

_ADMIN, ME = "of-the-administrator", "of-somebody"
_START = 120.0  # seconds, on a busy machine


def lacking() -> str:
    """What is not installed, in words; "" where all is there."""
    absent = [name for name in ("kube-apiserver", "etcd", "openssl") if shutil.which(name) is None]
    return f"{', '.join(absent)} not installed" if absent else ""


class Cluster:
    """Two users: an administrator, and `me`, who may read what roles of the namespace say."""

    def __init__(self, folder: Path) -> None:
        self._dir = folder
        self._port, self._etcd, self._peer = _ports(3)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._certs = folder / "certs"

    def __enter__(self) -> Cluster:
        self._certs.mkdir()
        key, public, tokens = self._certs / "sa.key", self._certs / "sa.pub", self._dir / "tokens.csv"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
        tokens.write_text(f"{_ADMIN},admin,admin,system:masters\n{ME},me,me\n")
        etcd, peer = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._peer}"
        store = ["etcd", "--data-dir", str(self._dir / "etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]  # fmt: skip
        server = ["kube-apiserver", f"--etcd-servers={etcd}", f"--secure-port={self._port}", "--bind-address=127.0.0.1",
                  f"--cert-dir={self._certs}", f"--token-auth-file={tokens}", "--authorization-mode=RBAC",
                  f"--service-account-key-file={public}", f"--service-account-signing-key-file={key}",
                  "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16",
                  "--disable-admission-plugins=ServiceAccount"]  # fmt: skip
        for command in (store, server):
            with (self._dir / f"{command[0]}.log").open("wb") as log:
                self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        ends = time.monotonic() + _START
        while time.monotonic() < ends:
            if self.ask("GET", "/readyz")[0] == 200:
                return self
            time.sleep(0.5)
        self.__exit__()
        raise AssertionError((self._dir / "kube-apiserver.log").read_text()[-2000:])

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def ask(self, method: str, path: str, body: Any = None, form: str = "application/json") -> tuple[int, str]:
        """As the administrator: the status and the body of the answer; 0 where there is none."""
        request = urllib.request.Request(
            f"https://127.0.0.1:{self._port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {_ADMIN}", "content-type": form},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def add(self, plural: str, one: dict[str, Any]) -> dict[str, Any]:
        """As the server has it then, with its own uid; the status goes where statuses are written."""
        api, space = one["apiVersion"], one["metadata"].get("namespace")
        base = f"/{'api' if api == 'v1' else 'apis'}/{api}{f'/namespaces/{space}' if space else ''}/{plural}"
        status, body = self.ask(
            "POST", base, {**one, "metadata": {k: v for k, v in one["metadata"].items() if k != "uid"}}
        )
        assert status == 201, body
        made: dict[str, Any] = json.loads(body)
        if "status" in one:
            path = f"{base}/{one['metadata']['name']}/status"
            status, body = self.ask("PATCH", path, {"status": one["status"]}, "application/merge-patch+json")
            assert status == 200, body
        return made

    def kubeconfig(self, path: Path, token: str = _ADMIN) -> Path:
        cluster = {
            "server": f"https://127.0.0.1:{self._port}",
            "certificate-authority": str(self._certs / "apiserver.crt"),
        }
        named = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
        }
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}))
        return path


def _ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return found
