"""One look at a node. Run as a program: python3 - triage-look REQUEST, with the text of `source()` on stdin. It prints a line of JSON with what
/proc tells, and then, where more is asked for, one with all of it: a driver or a file system that hangs may never let it come."""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import Any

from triage.probing.devices import read_devices
from triage.probing.processes import Reader
from triage.probing.sockets import read_sockets


def look(request: dict[str, Any], reader: Reader | None = None) -> dict[str, Any]:
    """request: pids, job, everything: whose processes; devices: whether to read GPUs; url, host: where, if not by programs;
    sockets: whether to read those of the processes; paths: files or folders whose growth is asked for."""
    answer: dict[str, Any] = {
        "node": platform.node(),
        "processes": [],
        "devices": None,
        "absent": [],
        "sizes": {},
        "sockets": None,
    }
    if request.get("pids") or request.get("job") or request.get("everything"):
        answer["processes"] = (reader or Reader()).read(
            request.get("pids") or (), request.get("job") or "", bool(request.get("everything"))
        )
    if request.get("sockets"):
        answer["sockets"] = read_sockets([process["pid"] for process in answer["processes"]])
    if request.get("devices"):
        answer["devices"], answer["absent"] = read_devices(request.get("url") or "", request.get("host") or "")
    answer["sizes"] = {path: size for path in request.get("paths") or () if (size := _size(path)) is not None}
    return answer


def _size(path: str, most: int = 2000) -> int | None:
    """Bytes of a file, or of up to `most` files in a folder; None where there is nothing."""
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - Python of other nodes may be old
            return os.stat(path).st_size  # noqa: PTH116
        total = seen = 0
        for folder, _, names in os.walk(path):
            for name in names:
                seen += 1
                if seen > most:
                    return total
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
    except OSError:
        return None
    return total


def main() -> None:
    request = json.loads(sys.argv[2])
    slow = {name: request.pop(name, None) for name in ("devices", "url", "host", "paths")}
    answer = look(request)
    if slow["devices"]:
        answer.update(devices=[], absent=["the GPUs did not answer"])
    _tell(answer)
    if slow["devices"] or slow["paths"]:
        more = look(slow)
        answer.update({name: more[name] for name in ("devices", "absent", "sizes")})
        _tell(answer)


def _tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
