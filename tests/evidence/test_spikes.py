"""Spikes of the loss: the right step in every format, and none where a healthy run only looks uneven."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.helpers import log_file
from triage.evidence.metrics import points
from triage.evidence.spikes import Spike, spikes


@dataclass(frozen=True)
class Row:
    step: int
    loss: float
    norm: float = 0.2
    rate: float = 3e-4
    epoch: float = 0.0


def megatron(r: Row) -> str:
    return (
        f" iteration {r.step:8d}/  115311 | consumed samples: {r.step * 2048:12d} | elapsed time per iteration (ms): 10612.2 | learning rate:"
        f" {r.rate:.3E} | global batch size:  2048 | lm loss: {r.loss:.6E} | loss scale: 8192.0 | grad norm: {r.norm:.3f} | number of skipped"
        " iterations:   0 | number of nan iterations:   0 |"
    )


def huggingface(r: Row) -> str:
    return str(
        {"loss": round(r.loss, 4), "grad_norm": round(r.norm, 4), "learning_rate": r.rate, "epoch": round(r.epoch, 2)}
    ).replace("nan", "nan")


def metaseq(r: Row) -> str:
    told = {
        "epoch": int(r.epoch),
        "loss": f"{r.loss:.3f}",
        "ppl": "21.1",
        "wps": "98011.2",
        "num_updates": str(r.step),
        "lr": str(r.rate),
        "gnorm": f"{r.norm:.3f}",
        "loss_scale": "4",
    }
    return f"2021-11-20 10:00:00 | INFO | train_inner | {json.dumps(told)}"


def tqdm(r: Row) -> str:
    return f"train:  12%|█▏        | {r.step}/90000 [1:12:01<9:10:11,  2.31it/s, loss={r.loss:.4f}, grad_norm={r.norm:.3f}]"


def lightning(r: Row) -> str:
    return f"Epoch {int(r.epoch)}:  12%|█▏        | {r.step}/90000 [01:12<10:11,  2.31it/s, v_num=3, train_loss_step={r.loss:.4f}, lr={r.rate:.2e}]"


def titan(r: Row) -> str:
    return f"[rank0]:2025-02-01 10:00:00,088 - root - INFO - step: {r.step:5d}  loss: {r.loss:8.4f}  grad_norm: {r.norm:8.4f}  memory: 61.30GiB(77.50%)  tps: 2,294"


def nanogpt(r: Row) -> str:
    return f"iter {r.step}: loss {r.loss:.4f}, time 1021.11ms, mfu 31.21%"


def deepspeed(r: Row) -> str:
    return f"steps: {r.step} loss: {r.loss:.4f} iter time (s): 1.204 samples/sec: 106.2"


FORMATS: dict[str, Callable[[Row], str]] = {
    f.__name__: f for f in (megatron, huggingface, metaseq, tqdm, lightning, titan, nanogpt, deepspeed)
}


def found(rows: Sequence[Row], form: Callable[[Row], str] = megatron, more: str = "") -> list[Spike]:
    return spikes(points(log_file("\n".join(map(form, rows)) + more)))


def alarms(rows: Sequence[Row], form: Callable[[Row], str] = megatron) -> list[Spike]:
    return [s for s in found(rows, form) if s.kind != "gradient"]


def curve(
    count: int,
    seed: int = 0,
    noise: float = 0.012,
    start: int = 0,
    first: float = 10.5,
    last: float = 2.1,
    pace: float = 400.0,
) -> list[Row]:
    """A loss that falls as language models' do, warm-up included."""
    chance = random.Random(seed)
    return [
        Row(
            start + i,
            (last + (first - last) / (1 + (start + i) / pace) ** 1.2) * math.exp(chance.gauss(0, noise)),
            0.2 * math.exp(chance.gauss(0, 0.25)),
            3e-4 * min(1.0, (start + i + 1) / 500),
            (start + i) / 4000,
        )
        for i in range(count)
    ]


def with_losses(rows: list[Row], at: int, values: Sequence[float], norms: Sequence[float] = ()) -> list[Row]:
    for i, value in enumerate(values):
        old = rows[at + i]
        rows[at + i] = Row(old.step, value, norms[i] if i < len(norms) else old.norm, old.rate, old.epoch)
    return rows


# Rises in a few steps, falls over thirty: as that of BLOOM at its step 31,216.
BLOOM = [2.60, 2.24, 2.35, 5.10, 3.49, 3.21, 2.80, *(2.2 + 0.6 * 0.85**i for i in range(25))]
BLOOM_NORMS = [2.4, 15.9, 145.1, 960.4, 353.2, 379.3, 650.2, *(300 * 0.7**i + 0.2 for i in range(25))]


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_spike_that_recovers_is_found_at_its_step_in_every_format(form: Callable[[Row], str]) -> None:
    rows = with_losses(curve(900, start=20_000), 600, BLOOM, BLOOM_NORMS)
    (spike,) = alarms(rows, form)
    line = 601 if "grad" in form(rows[0]) or "gnorm" in form(rows[0]) else 604
    assert spike.kind == "spike"
    assert 0 <= line - spike.first.line.number <= 3
    if form is not huggingface:
        assert spike.first.step == 20_000 + spike.first.line.number - 1
    assert spike.peak == pytest.approx(5.1, abs=0.01)
    assert spike.back is not None
    assert 605 < spike.back.line.number < 640


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_divergence_that_stays_is_found_at_its_step(form: Callable[[Row], str]) -> None:
    """As OPT-175B's: the loss leaves within some steps and stays near that of the beginning."""
    chance = random.Random(3)
    rows = with_losses(
        curve(700, start=9000), 500, [min(9.8, 2.4 * 1.12**i) + chance.gauss(0, 0.05) for i in range(200)]
    )
    (spike,) = alarms(rows, form)
    assert abs(spike.first.line.number - 501) <= 4
    assert spike.back is None


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_loss_that_becomes_nan_is_found_at_its_first(form: Callable[[Row], str]) -> None:
    rows = with_losses(curve(300), 200, [math.nan] * 100)
    (spike,) = alarms(rows, form)
    assert (spike.kind, spike.first.line.number, spike.back) == ("nan", 201, None)


def test_a_nan_that_passes_is_said_to_have_passed() -> None:
    (spike,) = alarms(with_losses(curve(300), 200, [math.nan, math.nan]))
    assert spike.back is not None
    assert spike.back.step == 202


def test_hugging_face_writes_zero_for_a_loss_that_is_none() -> None:
    rows = with_losses(curve(200), 150, [0.0] * 50, [math.nan] * 50)
    (spike,) = alarms(rows, huggingface)
    assert (spike.kind, spike.first.line.number) == ("nan", 151)


def test_every_tenth_step_logged_a_jump_is_still_a_spike() -> None:
    """As that of a 13B run: from 2.77 to 7.3 between two records, 8.7, then slowly down."""
    rows = with_losses(
        curve(200, start=29_000, noise=0.003),
        120,
        [7.34, 8.72, 7.65, 7.19, 6.85, *(2.8 + 4 * 0.9**i for i in range(60))],
    )
    (spike,) = alarms(rows)
    assert spike.first.step == 29_120


def test_a_loss_that_creeps_away_is_found() -> None:
    rows = [
        Row(r.step, r.loss + max(0, r.step - 20_500) * 0.004, r.norm, r.rate, r.epoch)
        for r in curve(1000, start=20_000)
    ]
    (spike,) = alarms(rows)
    assert spike.back is None
    assert 20_480 <= spike.first.step <= 20_620


def test_a_rise_of_gradient_norms_alone_is_no_alarm_and_is_told() -> None:
    rows = with_losses(
        curve(300, start=5000), 200, [r.loss for r in curve(300, start=5000)][200:203], [40.0, 960.0, 12.0]
    )
    assert not alarms(rows)
    (gradient,) = found(rows)
    assert (gradient.kind, gradient.first.step, gradient.peak) == ("gradient", 5200, 960.0)
    assert gradient.back is not None


@pytest.mark.parametrize("reward", ["", ", 'reward': 0.51"])
def test_a_loss_of_rewards_that_grows_from_zero_has_not_drifted(reward: str) -> None:
    """Without a reward in the record it is told by its values, which lie about zero at first."""
    chance = random.Random(4)
    start = 0.01 if reward else 0.0
    text = "\n".join(
        f"{{'loss': {start + 0.0001 * i + chance.gauss(0, 0.003):.4f}, 'grad_norm': 0.3{reward}, 'epoch': {i / 2000:.4f}}}"
        for i in range(2000)
    )
    assert spikes(points(log_file(text))) == []


def test_a_spike_that_its_gradient_norm_announces_is_shown_where_the_loss_rises() -> None:
    rows = curve(300, start=5000)
    losses = [r.loss for r in rows[200:220]] + [6.0] * 5
    (spike,) = found(with_losses(rows, 200, losses, [20.0] * 25))
    assert spike.shown is not None
    assert (spike.first.step, spike.shown.step) == (5200, 5220)


def test_a_restart_from_before_the_spike_ends_it() -> None:
    bad = with_losses(curve(400, start=1000), 350, [5.0 + 0.01 * i for i in range(50)])
    again = curve(300, seed=1, start=1300)
    (spike,) = alarms([*bad, *again])
    assert spike.first.step == 1350
    assert spike.last.step == 1399


# --------------------------------------------------------------------------------------------------- nothing to see
def warm_restarts(seed: int) -> list[Row]:
    """A cosine with restarts: the rate goes up tenfold, the loss up by an eighth and down again."""
    rows = []
    for r in curve(1200, seed, start=2000):
        part = (r.step % 400) / 400
        rows.append(
            Row(
                r.step,
                r.loss * (1 + 0.22 * math.exp(-part * 8)),
                r.norm,
                3e-5 + 2.7e-4 * (1 + math.cos(math.pi * part)) / 2,
            )
        )
    return rows


def epochs(seed: int) -> list[Row]:
    """What was seen before is known: the loss steps down where an epoch begins, and its first batches are uneven."""
    chance = random.Random(seed)
    return [
        Row(i, (2.0 - 0.4 * (i // 200)) * math.exp(chance.gauss(0, 0.02 if i % 200 > 6 else 0.12)), 1.0, 2e-5, i / 200)
        for i in range(800)
    ]


def small_batches(seed: int) -> list[Row]:
    """Fine-tuning with a batch of one: single losses scatter over an order of magnitude."""
    chance = random.Random(seed)
    return [
        Row(i, 0.9 * math.exp(chance.gauss(0, 0.6)), math.exp(chance.gauss(0.5, 0.7)), 1e-5, i / 900)
        for i in range(900)
    ]


def tiny_losses(seed: int) -> list[Row]:
    chance = random.Random(seed)
    return [
        Row(i, 0.02 * math.exp(chance.gauss(0, 1.0)), math.exp(chance.gauss(-2, 1.0)), 1e-3, i / 160)
        for i in range(600)
    ]


def outliers(seed: int) -> list[Row]:
    """One bad document now and then: a single record half as high again."""
    chance = random.Random(seed)
    return [
        Row(r.step, r.loss * (1.5 if chance.random() < 0.01 else 1.0), r.norm) for r in curve(900, seed, start=3000)
    ]


def warm_up(seed: int) -> list[Row]:
    return curve(500, seed, noise=0.03)


def steep(seed: int) -> list[Row]:
    return curve(400, seed, first=12.0, last=0.3, pace=20.0, noise=0.05)


def negative(seed: int) -> list[Row]:
    """A log likelihood goes through zero."""
    chance = random.Random(seed)
    return [Row(i, 3 - 0.01 * i + chance.gauss(0, 0.2)) for i in range(600)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "make", [warm_restarts, epochs, small_batches, tiny_losses, outliers, warm_up, steep, negative]
)
def test_a_healthy_run_gives_no_alarm(make: Callable[[int], list[Row]], seed: int) -> None:
    assert alarms(make(seed), titan) == []
    assert alarms(make(seed)[::10], nanogpt) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_rise_after_the_learning_rate_was_raised_must_be_larger(seed: int) -> None:
    rows = [Row(r.step, r.loss * (1.2 if r.rate > 2.9e-4 else 1.0), r.norm, r.rate) for r in warm_restarts(seed)]
    assert alarms(rows) == []
    assert alarms(rows, nanogpt) != []


def test_losses_of_evaluations_and_other_terms_are_no_losses_of_the_run() -> None:
    lines = []
    for i, r in enumerate(curve(200, start=4000)):
        lines.append(megatron(r))
        if i % 20 == 19:
            lines += [
                f" validation loss at iteration {r.step} | lm loss value: 9.412345E+00 | lm loss PPL: 1.2E+04 |",
                f"{{'eval_loss': 9.3, 'eval_runtime': 3.1, 'epoch': 0.{i}}}",
                f"step {r.step}: val loss 9.1234",
                f"step {r.step} aux loss: 44.01 z loss: 90.2 lr: 1.0e-4",
            ]
    assert spikes(points(log_file("\n".join(lines)))) == []


def test_odd_values_in_a_log_do_no_harm() -> None:
    odd = [f"step {i} loss: 2.{i % 7} epoch: nan lr: inf grad_norm: -inf" for i in range(60)]
    odd += [
        "step 61 loss: 1e999 epoch: 1e999",
        "step 999999999999 loss: -inf",
        "{'loss': 'nan', 'epoch': nan}",
        "step 62 loss: .",
    ]
    assert {s.kind for s in spikes(points(log_file("\n".join(odd))))} <= {"nan"}


def test_ranks_that_each_print_a_step_count_once() -> None:
    rows = with_losses(curve(200, start=4000), 150, [9.0] * 10)
    text = "\n".join(
        f"[rank{rank}] step: {r.step} loss: {r.loss + 0.01 * rank:.4f} lr: 1e-4" for r in rows for rank in range(4)
    )
    seen = points(log_file(text))
    assert len(seen) == 200
    (spike,) = [s for s in spikes(seen) if s.kind == "spike"]
    assert spike.first.step == 4150
