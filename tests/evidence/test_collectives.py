"""Watchdog lines of all ranks read together."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.helpers import lines
from triage.domain import LogLine
from triage.evidence.collectives import analyse


def watchdog(rank: int, seq: int = 7, op: str = "ALLREDUCE", numel: int = 64, group: str = "") -> str:
    head = f"[PG ID 0 PG GUID {group} Rank {rank}]" if group else f"[Rank {rank}]"
    return (
        f"[rank{rank}]:[E1118 10:00:00.1 ProcessGroupNCCL.cpp:632] {head} Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) "
        "ran for 600000 milliseconds before timing out."
    )


def test_the_wait_began_when_the_report_was_made_less_its_time() -> None:
    at = datetime(2026, 1, 1, 10, 10, tzinfo=UTC)
    found = analyse([LogLine("a", 1, watchdog(3), time=at)])
    assert found.began == datetime(2026, 1, 1, 10, 0, tzinfo=UTC)
    assert (found.waits[0].rank, found.waits[0].seq, found.waits[0].op) == (3, 7, "ALLREDUCE")


def test_one_rank_in_another_collective_at_the_same_place_is_odd() -> None:
    text = "\n".join([watchdog(0), watchdog(1), watchdog(2, op="BROADCAST"), watchdog(3)])
    assert [(w.rank, w.resized) for w in analyse(lines(text)).odd] == [(2, False)]
    text = "\n".join([watchdog(0), watchdog(1), watchdog(2, numel=8), watchdog(3)])
    assert [(w.rank, w.resized) for w in analyse(lines(text)).odd] == [(2, True)]


def test_other_sizes_at_other_numbers_or_in_other_groups_are_no_mismatch() -> None:
    other_place = [watchdog(0), watchdog(1, seq=8, numel=1)]
    other_group = [watchdog(0, group="3"), watchdog(1, group="4", numel=1), watchdog(2, group="3")]
    uneven = [
        watchdog(0, op="ALLTOALL_BASE"),
        watchdog(1, op="ALLTOALL_BASE"),
        watchdog(2, op="ALLTOALL_BASE", numel=9),
    ]
    for texts in (other_place, other_group, uneven):
        assert analyse(lines("\n".join(texts))).odd == ()


def test_the_rank_that_enqueued_less_lags() -> None:
    text = "\n".join(
        f"[rank{r}]: failure detected by watchdog at work sequence id: 9 PG status: last enqueued work: {e}, last completed work: 8"
        for r, e in ((0, 12), (1, 12), (2, 8), (3, 12))
    )
    assert analyse(lines(text)).lagging == (2,)


def test_a_rank_that_waits_in_an_earlier_collective_lags() -> None:
    text = "\n".join([watchdog(0, seq=5), watchdog(1), watchdog(2), watchdog(3)])
    assert analyse(lines(text)).lagging == (0,)
    assert analyse(lines("\n".join([watchdog(0, seq=5), watchdog(1)]))).lagging == ()


def test_numbers_two_apart_show_calls_that_not_all_ranks_made() -> None:
    def uneven(*texts: str) -> list[int | None]:
        return [w.rank for w in analyse(lines("\n".join(texts))).uneven]

    assert uneven(watchdog(0, seq=5), watchdog(1), watchdog(2), watchdog(3)) == [0]
    assert uneven(watchdog(0, seq=900, group="3"), *(watchdog(r, seq=7, group="3") for r in (1, 2, 3))) == [0]
    one_behind = (watchdog(0, seq=6), watchdog(1), watchdog(2))  # the others may have finished what it began
    sent_by_one = tuple(watchdog(r, seq=5 if r == 0 else 7, op="BROADCAST") for r in range(4))
    other_groups = (watchdog(0, seq=90_000), watchdog(1), watchdog(2))
    two_halves = (watchdog(0, seq=5), watchdog(1, seq=5), watchdog(2), watchdog(3))
    for texts in (one_behind, sent_by_one, other_groups, two_halves):
        assert uneven(*texts) == []


def fingerprint(mine: int, op: str, other: int, theirs: str, seq: str = "SequenceNumber=7, ") -> str:
    return (
        f"[rank{mine}]: RuntimeError: Detected mismatch between collectives on ranks. Rank {mine} is running collective: "
        f"CollectiveFingerPrint({seq}OpType={op}), but Rank {other} is running collective: CollectiveFingerPrint({seq}OpType={theirs})."
    )


def test_of_a_mismatch_the_minority_stands_apart() -> None:
    said = [
        fingerprint(0, "ALLREDUCE", 1, "BARRIER"),
        fingerprint(2, "BARRIER", 0, "ALLREDUCE"),
        fingerprint(3, "BARRIER", 0, "GATHER", "SequenceNumber=0"),  # of a rank that has gone
    ]
    assert analyse(lines("\n".join(said))).apart == (0,)
    assert analyse(lines(said[0])).apart == ()
