"""Which scheduler and which job a log is of."""

from __future__ import annotations

import pytest

from tests.helpers import job, log_file
from triage.evidence.job import job_id, node_numbers
from triage.evidence.jobname import job_name, job_user
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


@pytest.mark.parametrize(
    ("text", "job_number"),
    [
        ("SLURM_JOB_ID=4711_1\nstep 1", "4711_1"),
        ("SLURM_JOB_ID=4714\nSLURM_ARRAY_JOB_ID=4711\nSLURM_ARRAY_TASK_ID=3\nsrun: error: StepId=4714.0", "4711_3"),
        ("SLURM_ARRAY_JOB_ID=4711\nSLURM_ARRAY_TASK_ID=3\nSLURM_ARRAY_TASK_ID=4\nSLURM_ARRAY_TASK_COUNT=9", "4711"),
        ("JobId=4714 ArrayJobId=4711 ArrayTaskId=3 JobName=gpt", "4711_3"),
        ("JobId=4711_3(4714) done", "4711_3"),
        ("slurmstepd: error: *** STEP 4711_1.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", "4711_1"),
        ("slurmstepd: error: *** JOB 4711+1 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", "4711+1"),
        ("error: StepId=4711_2.batch: oom_kill", "4711_2"),
        ("LSB_JOBID=1122\nLSB_JOBINDEX=3", "1122[3]"),
        ("LSB_JOBID=1122\nLSB_JOBINDEX=0", "1122"),
        ("Subject: Job 1122[3]: <train> in cluster <c1> Exited", "1122[3]"),
        ("JOB_ID=981\nSGE_TASK_ID=2", "981[2]"),
        ("JOB_ID=981\nSGE_TASK_ID=undefined", "981"),
    ],
)
def test_a_part_of_an_array_goes_by_its_own_number(text: str, job_number: str) -> None:
    assert job_id(job(text).files) == job_number


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("SLURM_JOB_ID=4714\nSLURM_ARRAY_JOB_ID=4711\nSLURM_ARRAY_TASK_ID=3", {"4714"}),
        ("*** STEP 4711_3.0 ON n1 CANCELLED", set()),
        ("SLURM_JOB_ID=4714", {"4714"}),
        ("PBS_JOBID=4411.pbs01", {"4411.pbs01"}),
        ("step 1", set()),
    ],
)
def test_a_node_knows_the_task_of_an_array_by_another_number(text: str, numbers: set[str]) -> None:
    assert node_numbers(job(text).files) == numbers


SACCT = "JobID|JobName|User|State\n4711|gpt|ada|FAILED\n4711.batch|batch||FAILED"


@pytest.mark.parametrize(
    ("files", "name", "user"),
    [
        (["SLURM_JOB_NAME=gpt-7b\nSLURM_JOB_USER=ada"], "gpt-7b", "ada"),
        (["JobId=1 JobName=gpt\n   UserId=ada(1000) GroupId=ml(100)"], "gpt", "ada"),
        ([log_file(SACCT, "sacct.txt", "sacct")], "gpt", "ada"),
        (["PBS_JOBNAME=gpt\nPBS_O_LOGNAME=ada"], "gpt", "ada"),
        (["Subject: Job 1122: <gpt> in cluster <c1> Exited\nJob <gpt> was submitted from host <l1> by user <ada> in"], "gpt", "ada"),
        (["Labels:           batch.kubernetes.io/job-name=gpt"], "gpt", ""),
        (["    training.kubeflow.org/job-name: gpt"], "gpt", ""),
        (["#SBATCH --job-name=asked\nSLURM_JOB_NAME=given"], "given", ""),
        (["#SBATCH -J asked"], "asked", ""),
        (["SLURM_JOB_NAME=a", log_file("SLURM_JOB_NAME=b", "b.log")], "", ""),
        (["SLURM_JOB_NAME=bash\nexport SLURM_JOB_USER='ada'"], "", "ada"),
        (["the job name is gpt, says user ada"], "", ""),
        ([log_file("slurmctld: JobId=1 JobName=gpt UserId=ada(1000)", "slurmctld.log", "slurm")], "", ""),
    ],
)  # fmt: skip
def test_lines_tell_what_the_job_is_called_and_whose_it_is(files: list, name: str, user: str) -> None:
    log = job(*files)
    assert (job_name(log.files), job_user(log.files)) == (name, user)
