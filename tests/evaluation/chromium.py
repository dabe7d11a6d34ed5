"""Chromium through its debugging pipe: no port, no driver to install, no network but this machine itself.

Debian: apt-get install chromium. Environment CHROMIUM names another binary.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 30.0  # seconds that an answer may take
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip


def binary() -> str | None:
    names = [os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    return next((found for n in names if n and (found := shutil.which(n))), None)


class Chromium:
    """One tab. Use as a context manager."""

    def __init__(self, profile: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def give() -> None:  # Chromium reads commands from 3 and writes to 4
            high = os.dup(to_read), os.dup(to_write)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [binary() or "chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=give, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,  # noqa: PLW1509 - no threads here
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._number = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        self._session = ""
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command and waits for its result; events that come before it are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._number:
                assert "error" not in found, f"{method}: {found['error']}"
                return dict(found["result"])
            self.events.append(found)

    def open(
        self,
        url: str,
        width: int = 1440,
        height: int = 900,
        scheme: str = "light",
        script: bool = True,
        media: str = "",
    ) -> None:
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._receive())

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON gives it."""
        result = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def picture(self, target: Path, whole: bool = True) -> None:
        data = self("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        target.write_bytes(base64.b64decode(data))

    def problems(self) -> list[str]:
        """What the page complained of: exceptions, console errors, blocked or failed loads; and what it fetched besides itself."""
        found = []
        for e in self.events:
            params = e.get("params", {})
            match e.get("method"):
                case "Runtime.exceptionThrown":
                    found.append(str(params["exceptionDetails"]))
                case "Log.entryAdded":
                    found.append(str(params["entry"].get("text")))
                case "Network.requestWillBeSent" if params["type"] != "Document":
                    found.append(f"fetched {params['request']['url']}")
        return found

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"chromium did not answer within {PATIENCE:.0f} s"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "chromium ended"
            self._rest += chunk
        message, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(message))

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)  # the end of the pipe is the end of the browser
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
