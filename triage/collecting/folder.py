"""The folder of what was collected: what nodes told is text of strangers, so names are checked and secrets taken out."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from triage.errors import InputError, UsageError
from triage.reach import Answer
from triage.redact import redact

SCHEMA = "triage.collected/1"
MOST_FILE = 16 << 20  # bytes of one file
MOST_FILES = 4096  # of a node
_NAME = re.compile(r"(?:logs/|flight/)?[A-Za-z0-9_][\w.+-]{0,150}", re.ASCII)
_THREAD = re.compile(rb"\n(?:Thread|TID) \d")
_RAS = "ncclras.txt"
_ABSENT = "there is no "


class Folder:
    """Written as nodes answer; the manifest when it is closed."""

    def __init__(self, path: Path, job: str, by: str) -> None:
        self._path, self._job, self._by = path, job, by
        self._when = datetime.now(UTC)
        self._nodes: list[dict[str, Any]] = []
        self._commands: list[dict[str, Any]] = []
        self._ras = 0  # bytes of the longest answer so far
        self._taken: Counter[Path] = Counter()
        self.processes: list[dict[str, Any]] = []
        self.silent: dict[str, str] = {}
        self.stacks = 0

    @classmethod
    def make(cls, path: Path, job: str, by: str) -> Folder:
        """For its owner alone. Errors: UsageError where it holds something; InputError where it cannot be made."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise UsageError(f"{path} is not empty", "name a folder that is not there yet")
        except OSError as error:
            raise InputError(f"{path} cannot be made: {error.strerror}") from None
        return cls(path, job, by)

    def add(self, answer: Answer) -> None:
        """What one node told, as far as it came."""
        node = re.sub(r"[^\w.-]", "_", answer.node.rpartition("@")[2])
        ended, files = False, 0
        for finding in _findings(answer.out):
            ended = ended or finding.get("end") is True
            for process in _dicts(finding.get("processes")):
                self.processes.append({"node": node, **process})
            if files < MOST_FILES:
                files += self._keep(node, finding)
        problem = answer.problem or ("" if ended else _why(answer))
        if problem:
            self.silent[answer.node] = problem
        self._nodes.append({"node": node, "problem": problem, "seconds": round(answer.seconds, 1)})

    def _keep(self, node: str, finding: dict[str, Any]) -> int:
        """Writes the files of one finding; how many."""
        pid, written = finding.get("pid"), []
        files = finding.get("files")
        for name, packed in files.items() if isinstance(files, dict) else ():
            data = _unpacked(packed)
            if data is not None and _NAME.fullmatch(name):
                written.append(self._write(node, name, data, pid))
                self.stacks += bool(re.fullmatch(r"(?:pyspy|gdb)-\d+\.txt", name)) and bool(_THREAD.search(data))
        for attempt in _dicts(finding.get("attempts")):
            told = {name: attempt.get(name) for name in ("tool", "code", "seconds", "problem")}
            told["problem"], told["tool"] = redact(str(told["problem"])), redact(str(told["tool"]))
            self._commands.append({"node": node, "pid": pid, **told, "file": written[0] if written else ""})
        return len(written)

    def _write(self, node: str, name: str, data: bytes, pid: object) -> str:
        """The path below the folder."""
        if name == _RAS:  # each node tells of the whole job: the longest says most
            if len(data) <= self._ras:
                return _RAS
            self._ras = len(data)
            path = self._path / name
        elif name.startswith("flight/"):
            path = self._path / name
        else:
            path = self._of_its_own(self._path / node / name, pid)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not name.startswith("flight/"):
                data = redact(data.decode("utf-8", "replace")).encode()
            path.touch(0o600)
            path.write_bytes(data)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None
        return path.relative_to(self._path).as_posix()

    def _of_its_own(self, path: Path, pid: object) -> Path:
        """Logs of two ranks may have the same name, and those that one rank writes in several folders."""
        self._taken[path] += 1
        if self._taken[path] == 1:
            return path
        other = path.with_name(f"{pid}-{path.name}")
        self._taken[other] += 1
        number = self._taken[other]
        return other if number == 1 else other.with_name(f"{pid}.{number}-{path.name}")

    def problems(self) -> Iterator[str]:
        """What failed, in words; tools that are not there are none."""
        for told in self._commands:
            if told["problem"] and not told["problem"].startswith(_ABSENT):
                yield f"{told['node']}: {told['tool']}: {told['problem']}"

    def close(self) -> None:
        """Writes the manifest; interrupted before a node answered, there is nothing to tell, and no folder."""
        if not self._nodes:
            with contextlib.suppress(OSError):
                self._path.rmdir()
            return
        document = {
            "schema": SCHEMA,
            "job": self._job,
            "when": self._when.isoformat(timespec="seconds"),
            "by": self._by,
            "nodes": sorted(self._nodes, key=lambda told: str(told["node"])),
            "processes": self.processes,
            "commands": self._commands,
        }
        path = self._path / "manifest.json"
        try:
            path.touch(0o600)
            path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8", "replace")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None


def _findings(out: bytes) -> Iterator[dict[str, Any]]:
    """A shell may print something of its own before, and a node may have been cut off in the middle of a line."""
    for line in out.split(b"\n"):
        if line.startswith(b"{"):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _unpacked(packed: object) -> bytes | None:
    try:
        return zlib.decompressobj().decompress(base64.b64decode(str(packed)), MOST_FILE)
    except (ValueError, zlib.error):
        return None


def _why(answer: Answer) -> str:
    lines = answer.err.decode("utf-8", "replace").strip().splitlines()
    return redact(lines[-1].strip()[:300]) if lines else f"ended early with exit code {answer.code}"
