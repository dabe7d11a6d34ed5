"""Recorded incidents beside the knowledge base: which are shown, in what order, and why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.retrieve.recorded import ListArchive, recorded
from triage.domain import KnownIncident, Misled, Recorded, Similar
from triage.errors import StoreError
from triage.retrieve.archive import ArchiveIndex
from triage.retrieve.chroma import ChromaIndex
from triage.retrieve.embedding import MiniLM
from triage.retrieve.index import MemoryIndex
from triage.retrieve.rank import MIN_SCORE_ASKED, Query
from triage.retrieve.recall import Past, Recall
from triage.retrieve.retriever import Retriever

NOW = datetime(2026, 7, 1, tzinfo=UTC)
LINE = "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution"
QUERY = Query("An NVLink fault ended the backward pass", "nvlink-error", error_strings=(LINE,), fingerprint="f1")
KB = KnownIncident(
    "kb-nvlink", "Org", "2024", "NVLink faults on one machine", "nvlink-error", "hardware-failure", (),
    "The backward pass dies.", (LINE,), "A loose tray.", ("Reseated the tray.",),
)  # fmt: skip


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def past(number: int, **fields: object) -> Recorded:
    common = {"at": NOW, "title": "NVLink fault", "failure_type": "nvlink-error", "line": LINE, "fingerprint": "f1"}
    return recorded(number, **{**common, **fields})  # type: ignore[arg-type]


def recall(model: MiniLM, archive: ListArchive, *kb: KnownIncident, half_life: float = 20) -> Recall:
    index = ArchiveIndex(MemoryIndex(), model, archive)
    known = Retriever(MemoryIndex(), model, kb, {"nvlink-error": "infrastructure"})
    return Recall(known, Past(archive, index), half_life, lambda: NOW)


def names(found: Collection[Similar]) -> list[str]:
    return [similar.incident for similar in found]


def test_a_word_that_most_own_incidents_hold_and_no_other_text_does_is_found(model: MiniLM) -> None:
    told = [past(n, line=f"ring {n}: the zorblax lost its phase", fingerprint=f"f{n}") for n in range(1, 5)]
    known = tuple(replace(KB, id=f"kb-{n}") for n in range(40))
    asked = recall(model, ListArchive(*told, past(9, fingerprint="f9")), *known)
    found = asked.similar(Query("zorblax"), min_score=MIN_SCORE_ASKED)
    assert set(names(found.similar)) == {"1", "2", "3", "4"}


def test_recorded_ones_stand_beside_the_knowledge_base_and_say_why(model: MiniLM) -> None:
    told = past(4, verdict="confirmed", worked="yes", fix="reseated the tray", told_at=NOW)
    answer = recall(model, ListArchive(told), KB).similar(QUERY)
    assert (names(answer.similar), answer.notes) == (["4", "kb-nvlink"], ())
    first = answer.similar[0]
    assert first.why.startswith("same fingerprint; same failure type nvlink-error")
    assert "the fix worked on 2026-07-01: reseated the tray" in first.why
    assert (first.same_fingerprint, first.outcome, first.worked, first.fix) == (
        True, "confirmed", "yes", "reseated the tray",
    )  # fmt: skip


def test_an_incident_is_never_its_own_similar_one(model: MiniLM) -> None:
    found = recall(model, ListArchive(past(4), past(5, fingerprint="f2")))
    assert names(found.similar(replace(QUERY, incident=4)).similar) == ["5"]
    same = found.similar(QUERY, same_event=lambda p: p.incident == 4).similar
    assert names(same) == ["5"], "nor is the same log that was read before"


def test_several_of_one_fingerprint_are_one_with_a_count(model: MiniLM) -> None:
    archive = ListArchive(
        *(past(n, at=NOW - timedelta(days=n)) for n in range(1, 6)), past(9, fingerprint="f2"), past(10, fingerprint="")
    )
    answer = recall(model, archive).similar(QUERY)
    assert names(answer.similar)[0] == "1" and set(names(answer.similar)) == {"1", "9", "10"}
    assert (answer.similar[0].times, answer.similar[1].times) == (5, 1)
    assert "seen 5 times, last on 2026-06-30" in answer.similar[0].why
    hidden = recall(model, archive).similar(QUERY, same_event=lambda p: p.incident == 1)
    assert hidden.similar[0].times == 4, "the log read again is no other time"


def test_what_was_said_of_a_failure_is_not_hidden_by_one_of_it_that_nobody_judged(model: MiniLM) -> None:
    last_week = NOW - timedelta(days=7)
    rejected = past(1, at=last_week, verdict="rejected", note="a riser", told_at=last_week)
    in_vain = past(2, at=last_week, verdict="confirmed", worked="no", fix="restarted", told_at=last_week)
    unjudged = past(3)
    (found,) = recall(model, ListArchive(rejected, unjudged)).similar(QUERY).similar
    assert found.incident == "3"
    assert found.why.startswith(
        "incident 1: looked the same but was not: that diagnosis was rejected (a riser); same f"
    )

    (found,) = recall(model, ListArchive(rejected, in_vain, unjudged)).similar(QUERY).similar
    (alone,) = recall(model, ListArchive(in_vain)).similar(QUERY).similar
    assert (found.incident, found.times) == ("2", 3)
    assert found.score > alone.score, "it stands where the best of them would"
    assert found.why.startswith("the fix tried then did not work: restarted; incident 1: looked the same but was not")

    fixed = past(4, at=last_week, verdict="confirmed", worked="yes", fix="swapped", told_at=last_week)
    (found,) = recall(model, ListArchive(rejected, in_vain, unjudged, fixed)).similar(QUERY).similar
    assert (found.incident, found.fix, found.worked) == ("4", "swapped", "yes")
    assert "incident 2: the fix tried then did not work: restarted" in found.why


def test_outcomes_order_what_is_alike(model: MiniLM) -> None:
    archive = ListArchive(
        past(1, fingerprint="a", verdict="rejected", note="a riser"),
        past(2, fingerprint="b"),
        past(3, fingerprint="c", verdict="confirmed", worked="yes", fix="reseated", told_at=NOW),
    )
    answer = recall(model, archive).similar(replace(QUERY, fingerprint=""))
    assert names(answer.similar) == ["3", "2", "1"]
    assert answer.similar[2].why.startswith("looked the same but was not: that diagnosis was rejected (a riser); ")


def test_the_same_failure_goes_before_one_that_is_only_like_it(model: MiniLM) -> None:
    archive = ListArchive(
        past(1, at=NOW - timedelta(days=90)),
        past(2, fingerprint="b", verdict="confirmed", worked="yes", fix="x", told_at=NOW),
    )
    assert names(recall(model, archive).similar(QUERY).similar) == ["1", "2"]


def test_of_two_alike_the_younger_is_first_and_the_setting_says_how_much(model: MiniLM) -> None:
    archive = ListArchive(past(1, fingerprint="a", at=NOW - timedelta(days=40)), past(2, fingerprint="b"))

    def score(half_life: float) -> dict[str, float]:
        found = recall(model, archive, half_life=half_life).similar(replace(QUERY, fingerprint="")).similar
        return {s.incident: s.score for s in found}

    assert score(5)["2"] == score(500)["2"] > score(500)["1"] > score(5)["1"]


def test_what_was_shown_beside_a_wrong_diagnosis_is_lowered_with_a_warning(model: MiniLM) -> None:
    archive = ListArchive(past(1, fingerprint="a"), past(2, fingerprint="b"))
    before = {s.incident: s.score for s in recall(model, archive, KB).similar(QUERY).similar}
    archive.shown = {"1": Misled(77), "kb-nvlink": Misled(77), "2": Misled(78, "nvlink-error")}
    after = {s.incident: s for s in recall(model, archive, KB).similar(QUERY).similar}
    for name in ("1", "kb-nvlink"):
        assert after[name].score < before[name]
        assert after[name].why.startswith("looked the same but was not: it was shown beside incident 77")
    assert after["2"].score == before["2"], "it was of the type that the other turned out to be"


def test_one_that_turned_out_another_is_found_under_its_true_type(model: MiniLM) -> None:
    corrected = past(1, fingerprint="a", verdict="corrected", said_type="ecc-error", cause="a loose riser")
    (found,) = recall(model, ListArchive(corrected)).similar(QUERY).similar
    assert found.why.startswith("was first taken for ecc-error but turned out to be a loose riser; same failure type")


def test_what_is_not_alike_is_not_shown_whatever_became_of_it(model: MiniLM) -> None:
    other = recorded(
        1, at=NOW, title="Disk full", failure_type="disk-full", verdict="confirmed", worked="yes", fix="rm"
    )
    assert recall(model, ListArchive(other)).similar(QUERY).similar == ()


def test_without_an_index_the_database_still_answers(model: MiniLM, tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file stands where the folder should be")
    index = ChromaIndex(model.name, model.dimension, folder=tmp_path / "index")
    archive = ListArchive(past(1))
    found = Recall(Retriever(index, model, [KB]), Past(archive, ArchiveIndex(index, model, archive)), now=lambda: NOW)
    answer = found.similar(QUERY)
    assert names(answer.similar) == ["1", "kb-nvlink"]
    assert len(answer.notes) == 1 and "by words and labels only" in answer.notes[0]


def test_without_the_database_the_knowledge_base_still_answers(model: MiniLM) -> None:
    class Broken(ListArchive):
        def like(self, *_: object) -> tuple[int, ...]:  # type: ignore[override]
            raise StoreError("the incident database is locked", "try again")

    answer = recall(model, Broken(past(1)), KB).similar(QUERY)
    assert names(answer.similar) == ["kb-nvlink"]
    assert answer.notes == ("recorded incidents were not searched: the incident database is locked; try again",)


def test_what_a_question_cannot_mend_is_said(model: MiniLM) -> None:
    archive = ListArchive(*(past(n) for n in range(1, 411)))
    found = recall(model, archive)
    assert "110 recorded incidents are not in the index yet; run `triage kb reindex`" in found.similar(QUERY).notes
    assert found.similar(QUERY).notes == (), "the next question mends the rest"
