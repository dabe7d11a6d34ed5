"""The picture of a failure and the sentences of a diagnosis, as markup."""

from __future__ import annotations

import re
from typing import Any

from triage.web import views
from triage.web.timeline import picture


def evidence(id_: str, time: str | None, role: str, rank: int, **more: Any) -> dict[str, Any]:
    found = {
        "id": id_,
        "role": role,
        "rank": rank,
        "file": "job.out",
        "line": 7,
        "failure_type": "hang",
        "title": "it failed",
    }
    return found | ({"time": time} if time else {}) | more


def shown(*cited: dict[str, Any]) -> tuple[str, str]:
    found = picture({"evidence": cited, "timeline": {"moments": []}})
    assert found.svg is not None
    return found.svg, found.note


def test_lanes_follow_the_cause_and_times_count_from_it() -> None:
    svg, note = shown(
        evidence("E2", "2026-01-01T10:10:00", "cascade", 3),
        evidence("E1", "2026-01-01T10:00:00", "root", 5, node="n5"),
        evidence("E3", "2026-01-01T09:59:30+00:00", "context", 0),
    )
    assert re.findall(r'class="lane">([^<]+)', svg) == ["rank 5 · n5", "rank 0", "rank 3"]
    assert re.findall(r'class="tick[^>]*>([^<]+)', svg) == ["−30 s", "10:00:00", "+10 min"]
    assert note == "First failure: it failed on rank 5 · n5 at 10:00:00. Then 1 consequence, the last at 10:10:00."


def test_a_line_that_tells_no_time_stands_apart() -> None:
    svg, note = shown(evidence("E1", None, "root", 5), evidence("E2", "2026-01-01T10:10:00", "cascade", 3))
    assert "no time" in svg and 'class="border"' in svg
    assert 'class="first"' not in svg, "nobody knows when the cause was"
    assert note.startswith("The first that tells its time: ")


def test_many_moments_share_places_and_the_cause_keeps_its_label() -> None:
    cited = [evidence(f"E{n}", f"2026-01-01T10:{n:02}:00", "root" if n == 7 else "context", n) for n in range(40)]
    svg, _ = shown(*cited)
    labels = re.findall(r'class="(tick[^"]*)">([^<]+)', svg)
    assert len(labels) <= 10
    assert ("tick", "10:07:00") in labels
    assert svg.count('class="lane"') == 24


def test_a_lane_is_text() -> None:
    svg, _ = shown(
        evidence("E1", "2026-01-01T10:00:00", "root", 1, node="<b>", title="<script>"),
        evidence("E2", "2026-01-01T10:00:01", "cascade", 2),
    )
    assert "<b>" not in svg and "<script>" not in svg


def test_what_a_sentence_cites_is_a_link() -> None:
    cited = {"evidence": [{"id": "E1", "file": "n1/job.out", "line": 12}]}
    told = views.quoted("It fell: `<b>lost</b>` (n1/job.out:12), see E1, not E2 (other:3).", cited)
    assert told == (
        'It fell: <code>&lt;b&gt;lost&lt;/b&gt;</code> (<a href="#E1">n1/job.out:12</a>), see <a href="#E1">E1</a>, not E2 (other:3).'
    )
