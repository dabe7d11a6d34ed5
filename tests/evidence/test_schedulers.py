"""Which scheduler and which job a log is of."""

from __future__ import annotations

import pytest

from tests.helpers import job, log_file
from triage.evidence.job import job_id
from triage.evidence.schedulers import scheduler_of


@pytest.mark.parametrize(
    ("text", "scheduler", "job_number"),
    [
        ("PBS_JOBID=4411.pbs01\nPBS_NODEFILE=/var/spool/pbs/aux/4411.pbs01\nstep 1", "pbs", "4411.pbs01"),
        ("PBS Job Id: 4411.pbs01\n=>> PBS: job killed: walltime 3629 exceeded limit 3600", "pbs", "4411.pbs01"),
        ("step 1\n=>> PBS: job killed: walltime 3629 exceeded limit 3600", "pbs", ""),
        ("LSB_JOBID=1122\nLSB_HOSTS=batch1 h41n01\n+ jsrun -n 2 -a 4 python t.py", "lsf", "1122"),
        ("Sender: LSF System <lsfadmin@batch1>\nSubject: Job 1122: <train> in cluster <c1> Exited", "lsf", "1122"),
        ("SGE_TASK_ID=3\nPE_HOSTFILE=/var/spool/sge/n1/pe_hostfile", "sge", ""),
        ("failed       37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", "sge", ""),
        ("FLUX_JOB_ID=f24YW13Tx4Rm\nflux-job: task(s) exited with exit code 1", "flux", "f24YW13Tx4Rm"),
        ("Job id: 4411.pbs01 on n1\nPBS_O_HOST=login1", "pbs", "4411.pbs01"),
        ("JobId: 4411.batch\nsrun: error: n1: task 0: Killed", "slurm", "4411"),
        ("SLURM_JOB_ID=771\nsrun: error: n1: task 0: Killed", "slurm", "771"),
        ("export KUBERNETES_SERVICE_HOST=10.0.0.1", "kubernetes", ""),
        ("step 1 loss 2.3\nTERM=xterm\ninflux of samples: 3", "", ""),
    ],
)
def test_lines_tell_the_scheduler_and_the_job(text: str, scheduler: str, job_number: str) -> None:
    log = job(text)
    assert scheduler_of(log.files) == scheduler
    assert job_id(log.files) == job_number


def test_a_file_that_only_slurm_writes_decides() -> None:
    log = job("PBS_JOBID=4411.pbs01", log_file("JobID|State\n12|FAILED", "sacct.txt", "sacct"))
    assert scheduler_of(log.files) == "slurm"
