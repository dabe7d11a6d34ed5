"""How often to save: the published formulas, and what a log measures."""

from __future__ import annotations

import math

import pytest

from tests.helpers import log_file
from triage.domain import LogFile
from triage.evidence.metrics import points
from triage.evidence.saves import Measured, measured
from triage.recover.interval import advise, daly, lost, young
from triage.recovering.records import read

HOUR = 3600.0


@pytest.mark.parametrize(
    ("between", "save", "minutes", "waste"),
    [
        (3.5 * 24 * HOUR, 40, 82, 0.016),
        (7 * 24 * HOUR, 40, 116, 0.012),
        (7.9 * HOUR, 60, 31, 0.065),
        (3.1 * HOUR, 60, 19, 0.104),
        (3.1 * HOUR, 1, 2.5, 0.013),
    ],
)
def test_young_as_worked_out_for_known_clusters(between: float, save: float, minutes: float, waste: float) -> None:
    assert young(save, between) / 60 == pytest.approx(minutes, rel=0.02)
    assert math.sqrt(2 * save / between) == pytest.approx(waste, abs=0.0006)


@pytest.mark.parametrize("save", [1.0, 40.0, 600.0, 3000.0])
@pytest.mark.parametrize("between", [4 * HOUR, 24 * HOUR])
def test_no_other_interval_loses_less(save: float, between: float) -> None:
    best = daly(save, between)
    for factor in (0.25, 0.5, 2.0, 4.0):
        assert lost(best * factor, save, between) >= lost(best, save, between) - 1e-4
    assert daly(save, between) == pytest.approx(young(save, between), rel=0.02 + math.sqrt(save / between))


def test_a_save_longer_than_the_job_lives() -> None:
    assert daly(10 * HOUR, HOUR) == HOUR
    assert lost(HOUR, 10 * HOUR, HOUR, 600, 600) == 1.0


def test_what_is_lost_now_and_then() -> None:
    advice = advise(40, 3.5 * 24 * HOUR, 3 * HOUR, 0, 0)
    assert advice.now == pytest.approx(0.0216, abs=0.0005)
    assert advice.then == pytest.approx(0.016, abs=0.0005)


def of(text: str, tmp_path) -> Measured:
    (tmp_path / "job.log").write_text(text)
    (file,) = read([str(tmp_path / "job.log")])
    return measured(file.lines, points(file))


def test_saves_that_say_when_they_begin_and_end(tmp_path) -> None:
    text = "".join(
        f"[2026-01-01 {hour:02d}:00:00] saving checkpoint at iteration {hour * 100} to /ckpt\n"
        f"[2026-01-01 {hour:02d}:00:{40 + hour}] successfully saved checkpoint at iteration {hour * 100} to /ckpt\n"
        f"[2026-01-01 {hour:02d}:10:00] iteration {hour * 100 + 10}/ 9000 | elapsed time per iteration (ms): 10612.5 | lm loss: 2.1E+00 |\n"
        for hour in range(1, 6)
    )
    found = of(text, tmp_path)
    assert found.save == 43
    assert found.every == pytest.approx(HOUR + 1)
    assert found.step == 10.6125
    assert found.saves == 5


@pytest.mark.parametrize(
    ("line", "save"),
    [
        ("save-checkpoint ................................: (40123.12, 40125.30)  checkpoint", 40.1253),
        ("[titan] 2025-02-01 10:00:00,088 - root - INFO - Finished saving the checkpoint in 3.20 seconds.", 3.2),
        ("2021-11-20 10:00:00 | INFO | trainer | Saved checkpoint ckpt_100.pt (writing took 41.25 seconds)", 41.25),
    ],
)
def test_saves_that_say_how_long_they_took(line: str, save: float, tmp_path) -> None:
    assert of(f"{line}\n", tmp_path).save == pytest.approx(save)


def test_a_log_that_tells_nothing() -> None:
    file: LogFile = log_file("hello\nworld")
    assert measured(file.lines, points(file)) == Measured()
