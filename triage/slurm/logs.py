"""The log files of a job: where its output was sent, which of them are there, and which may hold another run."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from triage.domain import SlurmJob
from triage.slurm import options
from triage.slurm.options import Asked
from triage.slurm.patterns import BATCH, to_glob

MOST_FILES = 4096
_CLOCKS = timedelta(minutes=2)  # a file server's may be off
_LAST_WORDS = timedelta(minutes=5)  # that steps write after the job has ended
_MOST_SCRIPT = 1 << 20
Script = Callable[[], str]


@dataclass(slots=True)
class Logs:
    """files: those that are there, the job's own output first; notes: what is not there, or not of this run, in words."""

    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find(job: SlurmJob, script: Script) -> Logs:
    """script: gives the batch script where the accounting has it; asked only where nothing else tells."""
    found = Logs()
    kept = _Script(job, script)
    own = [job.stdout, job.stderr]
    if not job.stdout:
        said = _asked_for(job, kept)
        own = [said.stdout or ("slurm-%A_%a.out" if job.array_job else "slurm-%j.out"), said.stderr]
    for pattern in dict.fromkeys(filter(None, own)):
        _add(found, job, pattern, BATCH, said=True)
    for step, asked in _steps(job, kept):
        for pattern in dict.fromkeys(filter(None, (asked.stdout, asked.stderr))):
            _add(found, job, pattern, step, said=False)
    return found


def named_after(job: str, folder: Path) -> tuple[Path, ...]:
    """Files in the folder that Slurm itself names after the job; for one that Slurm has forgotten."""
    found = sorted(folder.glob(f"slurm-{job}.*")) + sorted(folder.glob(f"slurm-{job}_*"))
    return tuple(path for path in found if path.is_file())


class _Script:
    """The batch script, read once at most: as the accounting keeps it, else as it lies on disk now."""

    def __init__(self, job: SlurmJob, kept: Script) -> None:
        self._job, self._kept = job, kept
        self._text: str | None = None

    def text(self) -> str:
        if self._text is None:
            self._text = self._kept() or self._on_disk()
        return self._text

    def _on_disk(self) -> str:
        words = self._job.command.split()
        if not words:
            return ""
        program = options.of_line(self._job.command).program if words[0].endswith("sbatch") else words[0]
        path = Path(self._job.work_dir, program)
        try:
            with path.open("rb") as file:
                text = file.read(_MOST_SCRIPT).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""
        return text if text.startswith("#!") else ""


def _asked_for(job: SlurmJob, script: _Script) -> Asked:
    """Options of the command line count before those of the script."""
    line = options.of_line(job.command) if job.command.split(" ")[0].endswith("sbatch") else Asked()
    if line.stdout:
        return line
    own = options.of_script(script.text())
    return Asked(line.stdout or own.stdout, line.stderr or own.stderr)


def _steps(job: SlurmJob, script: _Script) -> Iterator[tuple[str, Asked]]:
    """The number of each step that sends its output elsewhere; of a step that nobody accounted for, any."""
    told = [(step.id.rpartition(".")[2], options.of_line(step.submitted)) for step in job.steps if step.submitted]
    if told:
        yield from told
    elif job.command:
        yield from (("", asked) for asked in options.steps_of(script.text()))


def _add(found: Logs, job: SlurmJob, pattern: str, step: str, said: bool) -> None:
    """said: Slurm says that the file is there, so that its absence is worth a word."""
    if pattern in ("/dev/null", "none") and said:
        found.notes.append("the job's output was sent to /dev/null")
    if pattern in ("/dev/null", "none", "all") or (not said and pattern.isdecimal()):
        return
    wanted = to_glob(pattern, job, step)
    if not PurePosixPath(wanted).is_absolute():
        found.notes.append(f"{pattern}: Slurm does not say in which folder it lies; give it as a path")
        return
    paths = [Path(name) for name in itertools.islice(_matching(wanted), MOST_FILES)]
    if not paths and said:
        found.notes.append(
            f"{_plain(wanted)} is not there; is its file system mounted on this machine, or was it moved?"
        )
    if len(paths) == MOST_FILES:
        found.notes.append(f"{pattern}: only {MOST_FILES} files of that name are read")
    for path in paths:
        if path not in found.files and _is_of_run(path, job, found):
            found.files.append(path)


def _matching(wanted: str) -> Iterator[str]:
    if glob.has_magic(wanted):
        found = (path for path in Path("/").glob(wanted.lstrip("/")) if path.is_file())
        yield from (str(path) for path in sorted(found))
    elif Path(wanted).exists():
        yield wanted


def _plain(wanted: str) -> str:
    """The name without what escapes brackets for glob."""
    return wanted.replace("[[]", "[").replace("[*]", "*").replace("[?]", "?")


def _is_of_run(path: Path, job: SlurmJob, found: Logs) -> bool:
    """A file last written before the job began holds another run; one written long after its end may do so."""
    try:
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return True  # who reads it says why it cannot be read
    if job.start and written < job.start - _CLOCKS:
        found.notes.append(f"{path} was last written before this job began, so it holds another run and was not read")
        return False
    if job.end and written > job.end + _LAST_WORDS:
        later = written - job.end
        found.notes.append(f"{path} was written to {_span(later)} after this job had ended: it may hold a later run")
    return True


def _span(later: timedelta) -> str:
    minutes = int(later.total_seconds() // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"
