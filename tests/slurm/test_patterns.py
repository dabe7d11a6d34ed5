from dataclasses import replace

import pytest

from triage.domain import SlurmJob
from triage.slurm.patterns import to_glob

JOB = SlurmJob(
    "70_3",
    raw_id="73",
    name="train",
    user="ada",
    nodes=("n1.x.org", "n2"),
    work_dir="/w",
    array_job="70",
    array_task="3",
)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("slurm-%A_%a.out", "/w/slurm-70_3.out"),
        ("%x-%u-%j.log", "/w/train-ada-73.log"),
        ("%5j|%3a|%b", "/w/00073|003|3"),
        ("%N.%n.%t.%s", "/w/n1.0.0.batch"),
        ("%J", "/w/73"),
        ("100%%.out", "/w/100%.out"),
        ("/abs/%j", "/abs/73"),
        ("\\%j.out", "/w/%j.out"),
        ("a\\b-%j", "/w/ab-%j"),
        ("what[1]?.out", "/w/what[[]1][?].out"),
        ("%z-%j", "/w/%z-73"),
        ("", "/w"),
    ],
)
def test_symbols_are_filled_for_the_batch_script(pattern: str, name: str) -> None:
    assert to_glob(pattern, JOB) == name


@pytest.mark.parametrize(
    ("pattern", "step", "name"),
    [
        ("rank-%t.log", "0", "/w/rank-[0-9]*.log"),
        ("%N/%j.%s", "0", "/w/*/73.0"),
        ("%J", "2", "/w/73.2"),
        ("s%s-%n", "", "/w/s[0-9]*-[0-9]*"),
    ],
)
def test_what_differs_between_the_tasks_of_a_step_stays_open(pattern: str, step: str, name: str) -> None:
    assert to_glob(pattern, JOB, step) == name


def test_a_job_outside_an_array_has_the_index_that_slurm_writes() -> None:
    alone = replace(JOB, id="73", array_job="", array_task="", nodes=())
    assert to_glob("%A_%a.%N", alone) == "/w/73_4294967294.*"
