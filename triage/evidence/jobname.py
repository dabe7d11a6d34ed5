"""What the job is called and whose it is, where a line says so. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from triage.domain import LogFile
from triage.evidence.account import job_row

_LOOKED_AT = 3000  # lines of each file: where a job starts it tells what it is
_MOST_FILES = 16
_VALUE = r"['\"]?([\w.@+:/-]{1,120})"
_NAME = re.compile(
    rf"\b(?:SLURM_JOB_NAME|PBS_JOBNAME|LSB_JOBNAME|FLUX_JOB_NAME)(?:=|: ?|\s+){_VALUE}|\bJobName={_VALUE}"
    r"|^Subject: Job \d{1,12}(?:\[\d{1,7}\])?: <([^>]{1,120})>"
    rf"|^(?:export )?JOB_NAME={_VALUE}"
    rf"|\b(?:batch\.kubernetes\.io|training\.kubeflow\.org|volcano\.sh|ray\.io)/(?:job-name|cluster)(?:=|: ?){_VALUE}"
    rf"|^\s{{0,20}}(?:Labels:\s{{1,20}})?job-name(?:=|: ?){_VALUE}"
)
# What its script asks for, which the command line may outdo.
_ASKED = re.compile(rf"^#(?:SBATCH|PBS|BSUB|\$)\s{{1,8}}(?:--job-name(?:=|\s+)|-[JN]\s{{1,4}}){_VALUE}")
_USER = re.compile(
    r"\b(?:SLURM_JOB_USER|PBS_O_LOGNAME|SGE_O_LOGNAME)(?:=|: ?|\s+)['\"]?([\w.@+-]{1,64})"
    r"|\bUserId=([\w.@+-]{1,64})\(|was submitted from host <[^>]{1,100}> by user <([^>]{1,64})>"
    r"|\b(?:Job_Owner|User_Name|euser)\s{0,3}=\s{0,3}([\w.+-]{1,64})"
)
_NAME_WORDS = ("JOB_NAME", "JOBNAME", "JobName", "Subject: Job", "job-name", "/cluster")
_ASKED_WORDS = ("#SBATCH", "#PBS", "#BSUB", "#$ ")
_USER_WORDS = ("JOB_USER", "_O_LOGNAME", "UserId=", "by user <", "Job_Owner", "User_Name", "euser")
_NONE = frozenset(
    {"(null)", "null", "None", "N/A", "bash", "sh", "interactive", "wrap", "STDIN"}
)  # what nobody called so


def job_name(files: Iterable[LogFile]) -> str:
    """What the job is called, "" where no line or more than one name says it."""
    files = tuple(files)
    accounted = (
        name for name in _accounted(files, "name") if not name.endswith("+")
    )  # of which a column shows the beginning
    told = _only(accounted) or _only(_found(files, _NAME, _NAME_WORDS))
    return told or _only(_found(files, _ASKED, _ASKED_WORDS))


def job_user(files: Iterable[LogFile]) -> str:
    """The account that the job ran under, "" where no line or more than one says it."""
    files = tuple(files)
    return _only(_accounted(files, "user")) or _only(_found(files, _USER, _USER_WORDS))


def _accounted(files: Iterable[LogFile], what: str) -> Iterator[str]:
    rows = (job_row(file) for file in files)
    return (str(getattr(row, what)) for row in rows if row)


def _found(files: Iterable[LogFile], pattern: re.Pattern[str], words: tuple[str, ...]) -> Iterator[str]:
    """The scheduler's own logs are left: they name all jobs."""
    own = (file for file in files if file.kind not in ("kernel", "slurm", "fabric", "sacct"))
    for file in itertools.islice(own, _MOST_FILES):
        for line in file.lines[:_LOOKED_AT]:
            if any(word in line.text for word in words) and (match := pattern.search(line.text[:2000])):
                yield next(group for group in match.groups() if group)


def _only(found: Iterable[str]) -> str:
    names = {name.strip("'\"") for name in found} - _NONE - {""}
    return names.pop() if len(names) == 1 else ""
