"""A process that diagnoses, one job after the other, so that a large log neither stops the server from answering nor takes
it along when memory ends. Spoken with by lines of JSON: {"folder", "paths", "scheduler", "asked", "who"}
in; {"told"}, then {"incident", ...} or {"error"} out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from triage.errors import InputError, TriageError

MOST_SECONDS = 1800.0  # of one diagnosis
_LINE = 1 << 20


class Asked(Protocol):
    """What is to be diagnosed: as in jobs.Job."""

    @property
    def paths(self) -> Sequence[str]: ...
    @property
    def scheduler(self) -> str: ...
    @property
    def asked(self) -> str: ...
    @property
    def who(self) -> str: ...


class Worker:
    """command: starts the process, which is started when it is first needed, and anew after it died."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._process: asyncio.subprocess.Process | None = None

    async def diagnose(self, folder: str, job: Asked, tell: Callable[[str], None]) -> Mapping[str, Any]:
        """What became of it: incident, failure_type, outcome, status. Errors: TriageError in the words of the diagnosis."""
        wanted = {
            "folder": folder,
            "paths": list(job.paths),
            "scheduler": job.scheduler,
            "asked": job.asked,
            "who": job.who,
        }
        try:
            process = await self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(wanted).encode() + b"\n")
            async with asyncio.timeout(MOST_SECONDS):
                await process.stdin.drain()
                while line := await process.stdout.readline():
                    said = json.loads(line)
                    if "told" in said:
                        tell(said["told"])
                    elif "error" in said:
                        raise InputError(said["error"])
                    else:
                        return dict(said)
        except TimeoutError:
            await self.kill()
            raise TriageError(f"it was not done after {MOST_SECONDS / 60:.0f} minutes and was stopped") from None
        except (OSError, ValueError):
            pass
        await self.kill()
        raise TriageError(
            "the process that diagnoses died or did not start, perhaps for want of memory",
            "give it less at once, or more memory",
        )

    async def kill(self) -> None:
        """It and what it started."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=pipe, stdout=pipe, start_new_session=True, limit=_LINE
            )
        return self._process
