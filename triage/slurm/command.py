"""Runs one of Slurm's read-only commands, with a time limit and without a shell."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triage.slurm.fields import TIME_FORMAT

SECONDS = 30.0  # a busy controller answers late; a dead one never
# What of a user's own settings would change the form of the answers.
_BENDING = ("SACCT_FORMAT", "SINFO_FORMAT", "SINFO_SORT", "SQUEUE_FORMAT", "SQUEUE_FORMAT2", "SLURM_JSON", "SLURM_YAML")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed. problem: in words why it cannot be used, "" when it can; refused: the command itself said so."""

    text: str = ""
    problem: str = ""
    refused: bool = False


Run = Callable[[Sequence[str]], Answer]


def run(argv: Sequence[str], seconds: float = SECONDS) -> Answer:
    """The answer of a command, which never waits for input and is ended with all it started after `seconds`."""
    program = shutil.which(argv[0])
    if program is None:
        return Answer(problem=f"{argv[0]} is not installed on this machine")
    try:
        process = subprocess.Popen(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
        )
    except OSError as error:
        return Answer(problem=f"{argv[0]} cannot be run: {error.strerror or error}")
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        return Answer(problem=f"{argv[0]} did not answer within {seconds:.0f} s")
    except BaseException:
        _end(process)
        raise
    if process.returncode:
        return Answer(_text(out), _refusal(argv[0], process.returncode, _text(err) or _text(out)), refused=True)
    return Answer(_text(out))


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=2)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _BENDING}
    return kept | {"LC_ALL": "C", "SLURM_TIME_FORMAT": TIME_FORMAT, "SLURM_BITSTR_LEN": "0"}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _refusal(program: str, code: int, said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    words = lines[-1].removeprefix(f"{program}: ").removeprefix("error: ") if lines else f"exit code {code}"
    return f"{program} answers: {words[:200]}"
