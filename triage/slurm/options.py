"""What sbatch and srun were asked for, read from their command lines and from a batch script. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Options of one letter that stand alone; all others take a value. So do the long ones that are not here.
_ALONE = frozenset("EHIKklOQsuvVXZh")
_LONG_ALONE = frozenset(
    """parsable wait requeue no-requeue overcommit oversubscribe share exclusive hold immediate contiguous verbose quiet label unbuffered overlap
    exact no-kill kill-on-bad-exit multi-prog disable-status pty spread-job use-min-nodes interactive reboot ignore-pbs preserve-env
    no-bell bell no-shell wait-all-nodes get-user-env test-only usage help version container-remap-root no-container-remap-root
    container-mount-home no-container-mount-home container-writable container-readonly container-entrypoint""".split()  # noqa: SIM905 - a list of words
)
_OUTPUT = frozenset({"o", "output"})
_ERROR = frozenset({"e", "error"})
_FOLDER = frozenset({"D", "chdir", "workdir"})
_DIRECTIVE = re.compile(r"#SBATCH\s+(\S.*)")
_SRUN = re.compile(r"(?:^|[\s;&|(`!])srun\s+(-[^\n;|&]*)")
_KNOWN = {"SLURM_JOB_ID": "%j", "SLURM_JOBID": "%j", "SLURM_ARRAY_JOB_ID": "%A", "SLURM_ARRAY_TASK_ID": "%a", "SLURM_JOB_NAME": "%x",
          "USER": "%u", "SLURM_JOB_USER": "%u"}  # fmt: skip
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_MOST_SCRIPT = 1 << 20


@dataclass(frozen=True, slots=True)
class Asked:
    """Where output was asked to go, as patterns; "" where nothing was said."""

    stdout: str = ""
    stderr: str = ""
    folder: str = ""
    program: str = ""  # the first word that is no option: the batch script


def of_line(line: str) -> Asked:
    """Of `sbatch ... script` or `srun ... program`, written with blanks between the words, as Slurm keeps it."""
    words = line.split()
    return _of_words(words[1:] if words and not words[0].startswith("-") else words)


def of_script(text: str) -> Asked:
    """Of the #SBATCH lines before the script's first command."""
    words: list[str] = []
    for line in text[:_MOST_SCRIPT].splitlines():
        if found := _DIRECTIVE.match(line):
            words += [word.replace('"', "").replace("'", "") for word in found[1].partition(" #")[0].split()]
        elif line.strip() and not line.startswith("#"):
            break
    return _of_words(words)


def steps_of(text: str) -> tuple[Asked, ...]:
    """Of each srun in a script, where only the job's own variables stand in the names."""
    joined = text[:_MOST_SCRIPT].replace("\\\n", " ")
    found = [
        of_line(f"srun {call}")
        for line in joined.splitlines()
        if not line.lstrip().startswith("#")
        for call in _SRUN.findall(line)
    ]
    return tuple(Asked(_filled(asked.stdout), _filled(asked.stderr)) for asked in found)


def _filled(pattern: str) -> str:
    """Variables of Slurm as the symbols that mean the same; "" where others stand in it."""
    filled = _VARIABLE.sub(lambda m: _KNOWN.get(m[1], m[0]), pattern.strip("'\""))
    return "" if "$" in filled or "`" in filled else filled


def _of_words(words: Sequence[str]) -> Asked:
    told: dict[str, str] = {}
    program = ""
    for name, value in _options(words):
        if not name:
            program = value
        for field, names in (("stdout", _OUTPUT), ("stderr", _ERROR), ("folder", _FOLDER)):
            if name in names:
                told[field] = value
    return Asked(**told, program=program)


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, value) of each option, last ("", the first word that is none)."""
    left = iter(words)
    for word in left:
        if word == ":":  # the next component of a heterogeneous job
            continue
        if not word.startswith("-") or word == "-":
            yield "", word
            return
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            yield name, value if equals or name in _LONG_ALONE else next(left, "")
        elif word[1] in _ALONE:
            continue
        else:
            yield word[1], word[2:].removeprefix("=") or next(left, "")
