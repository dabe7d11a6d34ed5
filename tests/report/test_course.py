"""Progress, cost, timeline and recurrence as they are printed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from triage.domain import ClockNote, Diagnosis, Moment, Progress, Recurrence, Timeline
from triage.report import render_markdown, render_text, to_json

AT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
BARE = Diagnosis("failed", "key-error", "code", "software-bug", "supported", "A key is missing.", "fix-and-resubmit")
FULL = replace(
    BARE,
    chain=("E1", "E2"),
    progress=Progress(
        stage="train",
        last_step=150,
        last_checkpoint="/ckpt/last.pt",
        last_checkpoint_step=100,
        world_size=16,
        lost_time="30 min since the last checkpoint",
        lost_gpu_hours=8.0,
        restart_cost="4 min from the start of the log to the first step",
    ),
    timeline=Timeline(
        (
            Moment(AT, "job 77 started", "scheduler", "sacct.txt", 3),
            Moment(AT, "the GPU fell off *the* bus", "kernel", "dmesg", 9, "gpu-07", "E1"),
        ),
        (ClockNote(("dmesg",), "the clock of dmesg is 3.2 s ahead of that of job.log", 3.2),),
        ("E1 of dmesg supports it.",),
    ),
    recurrence=Recurrence("same-step", "The same failure came at the same step before.", (3, 7)),
)


def unwrapped(document: dict[str, Any]) -> str:
    return " ".join(render_text(document, 100, details=True).split())


def test_text_tells_cost_chain_recurrence_and_timeline() -> None:
    text = unwrapped(to_json(FULL))
    for said in (
        "stage train, last step 150, last checkpoint /ckpt/last.pt (step 100), 30 min since the last checkpoint",
        "8 GPU-hours lost on 16 GPUs, restart cost 4 min",
        "again The same failure came at the same step before.",
        "chain E1 > E2",
        "Timeline 2026-01-01 12:00:00 scheduler: job 77 started (sacct.txt:3)",
        "2026-01-01 12:00:00 kernel gpu-07: the GPU fell off *the* bus (E1)",
        "the clock of dmesg is 3.2 s ahead of that of job.log",
        "E1 of dmesg supports it.",
    ):
        assert said in text


def test_markdown_tells_the_same_without_markup_of_the_log() -> None:
    text = render_markdown(to_json(FULL))
    assert "- **cost**: 8 GPU-hours lost on 16 GPUs" in text
    assert "### Timeline" in text
    assert "fell off \\*the\\* bus (E1)" in text
    assert "- **again**: The same failure came at the same step before." in text


def test_json_has_the_figures_and_leaves_out_what_is_not_known() -> None:
    document = to_json(FULL)
    assert document["progress"]["lost_gpu_hours"] == 8.0
    assert document["recurrence"] == {"kind": "same-step", "said": FULL.recurrence.said, "incidents": [3, 7]}
    assert document["timeline"]["clocks"] == [
        {"files": ["dmesg"], "said": FULL.timeline.clocks[0].said, "seconds_ahead": 3.2, "zone_seconds": 0.0}
    ]
    assert document["timeline"]["moments"][1]["evidence"] == "E1"
    assert to_json(BARE)["progress"] == {"stage": "unknown"}
    assert to_json(BARE)["recurrence"]["kind"] == "first"


def test_one_source_on_one_clock_needs_no_timeline() -> None:
    alone = replace(FULL, timeline=Timeline((FULL.timeline.moments[0],)))
    assert "Timeline" not in render_text(to_json(alone))


def test_a_result_stored_before_there_was_a_timeline_prints() -> None:
    old = to_json(FULL)
    for name in ("timeline", "recurrence"):
        del old[name]
    assert "Timeline" not in render_text(old)
    assert "### Timeline" not in render_markdown(old)
