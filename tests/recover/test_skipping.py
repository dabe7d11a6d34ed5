"""What to leave out after a spike, and how frameworks are told."""

from __future__ import annotations

import pytest

from tests.evidence.test_spikes import FORMATS, Row, curve, found, with_losses
from tests.helpers import lines
from triage.recover.skipping import framework_of, saved_steps, skip

ROWS = with_losses(curve(700, start=9000), 500, [min(9.8, 2.4 * 1.2**i) for i in range(200)])


def test_the_checkpoint_well_before_the_spike_and_the_batches_around_it() -> None:
    (spike,) = [s for s in found(ROWS) if s.kind == "spike"]
    left = skip(spike, [9100, 9300, 9490, 9600], "Megatron")
    assert left is not None
    assert left.rewind_to == 9300  # that of 9490 may hold the beginning
    assert left.first <= 9500 <= left.last
    assert left.last - left.first == 199
    assert left.samples == 200 * 2048
    assert f"--skip-train-iteration-range {left.first}-{left.last}" in left.settings
    assert f"--ckpt-step 9300 --iterations-to-skip $(seq -s ' ' {left.first} {left.last})" in left.settings


def test_nothing_is_left_out_that_was_trained_before_the_checkpoint() -> None:
    (spike,) = [s for s in found(ROWS) if s.kind == "spike"]
    left = skip(spike, [9470], "Megatron")
    assert left is not None
    assert left.first == 9471


def test_a_loss_that_came_back_and_one_without_a_checkpoint_before_it_need_nothing() -> None:
    back = with_losses(curve(400, start=9000), 200, [5.0] * 8)
    (spike,) = [s for s in found(back) if s.kind == "spike"]
    assert skip(spike, [9100], "Megatron") is None
    (spike,) = [s for s in found(ROWS) if s.kind == "spike"]
    assert skip(spike, [9600], "Megatron") is None


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("  successfully saved checkpoint at iteration    9100 to /ckpt/run", 9100),
        ("saving checkpoint at iteration    9100 to /ckpt", 9100),
        ("Saving model checkpoint to out/checkpoint-9100", 9100),
        ("[Torch] Saved /ckpt/global_step9100/mp_rank_00_model_states.pt.", 9100),
        ("Saved checkpoint checkpoint_9100.pt (epoch 2 @ 9100 updates) (writing took 41.2 seconds)", 9100),
        ("[titan] Finished saving the checkpoint in 3.20 seconds at step 9100.", 9100),
    ],
)
def test_the_steps_that_were_saved_are_read(text: str, step: int) -> None:
    assert saved_steps(lines(text)) == [step]


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("megatron", "Megatron"),
        ("huggingface", "Hugging Face"),
        ("metaseq", "metaseq"),
        ("lightning", "Lightning"),
        ("titan", "torchtitan"),
        ("nanogpt", ""),
    ],
)
def test_the_framework_is_known_by_its_records(name: str, framework: str) -> None:
    assert framework_of(lines(FORMATS[name](Row(10, 2.0)))) == framework
