"""What counts as work that was done, where a checkpoint is, and what only says what was asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.helpers import log_file
from triage.evidence.progress import progress, steps

COMMAND = (
    "    --lr 0.00015     --lr-decay-style cosine     --train-iters 1000     --lr-decay-iters 800     --clip-grad 1.0"
)
MEGATRON = " iteration       60/    1000 | consumed samples:          240 | lm loss: 1.6E+01 |"


def numbers(text: str) -> list[int | None]:
    return [step.number for step in steps(log_file(text))]


@pytest.mark.parametrize(
    "asked",
    [
        COMMAND,
        "Namespace(steps=1000, lr=0.1, batch=32)",
        "config: {'steps': 1000, 'lr': 0.1, 'loss': 'mse'}",
        "Step 3: pip install torch==2.1",
        "step 0 forward ok (random weights), calling first gradient all-reduce of 1.61 GB",
        "Step 1/5 : FROM nvcr.io/nvidia/pytorch:24.01",
    ],
)
def test_what_was_asked_for_is_no_step(asked: str) -> None:
    assert numbers(f"{asked}\n{MEGATRON}") == [60]


def test_a_bar_counts_though_an_error_is_printed_behind_it() -> None:
    bar = " 61%|######    | 2306/3750 [4:00:06<2:23:22,  5.96s/it]slurmstepd-gpu020: error: *** JOB 23126803 ON gpu020 CANCELLED AT 2024-06-02T18:42:45 ***"
    file = log_file(bar)
    file = replace(file, lines=tuple(replace(x, level="error") for x in file.lines))
    assert [s.number for s in steps(file)] == [2306]


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (" Time step 48  dt=0.001  residual=1.2e-06\n Time step 49  dt=0.001  residual=1.2e-07", 49),
        ("Time = 0.1\nTime = 0.2", None),
        ("Time = 12\nTime = 13", 13),
        ("   0  300.1  -6.77  0 -5.67\n   1000  300.1  -6.77  0 -5.67\n   2000  300.1  -6.77  0 -5.67", 2000),
        ("ENERGY:    1000   20.0  45.1  0.0\nENERGY:    2000   20.0  45.1  0.0", 2000),
        ("Timing for main: time 2019-01-01_00:01:00 on domain   1:    0.51 elapsed seconds", None),
        ("step 7: residual=0.31, dt=0.01", 7),
    ],
)
def test_steps_of_simulations(text: str, last: int | None) -> None:
    assert numbers(text)
    assert numbers(text)[-1] == last


def test_a_counter_in_brackets_before_a_loss_is_a_step() -> None:
    assert numbers("[60/1000] t=24.0s train/loss=2.5 lr=1e-4\n[61/1000] t=24.4s train/loss=nan lr=1e-4")[-1] == 61
    assert numbers("[3/7] c++ -o cuda.o already there\n[4/7] nvcc -DUSE_ACC=1 fused_loss.cu") == []


def test_rows_that_do_not_count_up_are_no_steps() -> None:
    assert numbers("1 2.0 3.0 4.0\n1 2.0 3.0 4.0\n1 2.0 3.0 4.0") == []
    assert numbers("    64 by MPI\n 12 24 36 48") == []


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("Training checkpoint for epoch 6/iteration 55381 is saved at: /m/training_checkpoint_epoch_6_iter_55381.pt", "/m/training_checkpoint_epoch_6_iter_55381.pt"),
        ("successfully saved checkpoint from iteration 800 to /ckpt", "step 800"),
        ("checkpoint of epoch 6 saved", "epoch 6"),
        ("model checkpoint saved to /scratch/run/last", "/scratch/run/last"),
        ("zero checkpoint saved /s/checkpoint-1250/global_step1250/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", "step 1250"),
    ],
)  # fmt: skip
def test_where_the_checkpoint_is(line: str, where: str) -> None:
    file = log_file(line)
    assert progress([file], {file.name: steps(file)}, None).last_checkpoint == where


def test_a_loss_of_seconds_is_told_in_seconds() -> None:
    log = log_file("iteration 10/ 90 | lm loss: 2.5\nsaved checkpoint /c/10\nKeyError: 'x'")
    start = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for seconds, told in ((40, "40 s"), (150, "2 min"), (3900, "1 h 5 min")):
        times = (start, start, start + timedelta(seconds=seconds))
        timed = replace(log, lines=tuple(replace(x, time=at) for x, at in zip(log.lines, times, strict=True)))
        found = progress([timed], {timed.name: tuple(steps(timed))}, timed.lines[-1])
        assert found.lost_time == f"{told} since the last checkpoint"
