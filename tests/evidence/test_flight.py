"""Who held the others up, by the flight-recorder dumps of several ranks."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import log_file
from triage.domain import LogFile
from triage.evidence.flight import Flight, analyse
from triage.ingest.sources import discover
from triage.ingest.streams import chunks

EIGHT = "[0,1,2,3]"


def dump(
    rank: int, waits: list[tuple[str, int, str, str]], enqueued: dict[str, int], ranks: dict[str, str] | None = None
) -> LogFile:
    """waits: group, sequence number, operation, sizes."""
    entries = [
        f"2026-01-01T00:00:0{i}.000000Z flight recorder: unfinished group={g} seq={seq} op=nccl:{op} in={size} out={size} dtype=['Float'] state=scheduled"
        for i, (g, seq, op, size) in enumerate(waits)
    ]
    groups = [
        f"flight recorder: group={g} desc=G{g} ranks={(ranks or {}).get(g, EIGHT)} last_enqueued={n}"
        for g, n in enqueued.items()
    ]
    return log_file("\n".join((*entries, *groups)), f"_dump_{rank}", "flight-recorder", rank=rank)


def waiting(rank: int, seq: int = 8, op: str = "all_reduce", size: str = "[[16]]") -> LogFile:
    return dump(rank, [("0", seq, op, size)], {"0": seq})


def test_the_rank_that_never_entered_is_the_one() -> None:
    found = analyse([waiting(0), waiting(1), dump(2, [], {"0": 7}), waiting(3)])
    assert (found.missing, found.stalled, found.culprits) == ((2,), (), (2,))
    assert [(rank, w.rank, w.seq) for rank, w in found.shown] == [(2, 0, 8)]


def test_a_rank_without_a_dump_is_missed_where_most_have_one() -> None:
    found = analyse([waiting(0), waiting(1), waiting(3)])
    assert (found.missing, found.absent) == ((2,), (2,))
    assert analyse([waiting(0), waiting(1)]).missing == ()


def test_a_dump_that_is_cut_off_tells_nothing_of_its_rank() -> None:
    cut = replace(log_file("", "_dump_2", "flight-recorder", rank=2), lines=(), problems=("cut or damaged",))
    found = analyse([waiting(0), waiting(1), cut, waiting(3)])
    assert (found.culprits, found.absent, found.unread) == ((), (), (2,))


def test_who_waits_itself_for_another_is_only_held_up() -> None:
    """0 and 1 wait for 2 in one group, and 2 waits for 3 in another."""
    pair = {"1": "[2,3]", "0": "[0,1,2]"}
    found = analyse([
        dump(0, [("0", 8, "all_reduce", "[[16]]")], {"0": 8}, pair),
        dump(1, [("0", 8, "all_reduce", "[[16]]")], {"0": 8}, pair),
        dump(2, [("1", 4, "all_reduce", "[[16]]")], {"0": 7, "1": 4}, pair),
        dump(3, [], {"1": 3}, pair),
    ])  # fmt: skip
    assert found.culprits == (3,)


def test_a_gpu_that_did_not_finish_what_the_others_finished_stands_still() -> None:
    through = [dump(r, [], {"0": 8}) for r in (0, 1, 3)]
    found = analyse([*through, waiting(2)])
    assert (found.missing, found.stalled) == ((), (2,))


@pytest.mark.parametrize(("op", "size"), [("all_gather", "[[16]]"), ("all_reduce", "[[17]]")])
def test_another_operation_or_size_at_the_same_place_is_a_mismatch(op: str, size: str) -> None:
    found = analyse([waiting(0), waiting(1), waiting(2, op=op, size=size), waiting(3)])
    assert ([w.rank for w in found.apart], found.culprits, found.missing) == ([2], (2,), ())


def test_sizes_that_differ_by_design_are_no_mismatch() -> None:
    assert not analyse([waiting(r, op="all_to_all", size=f"[[{r}]]") for r in range(4)]).culprits


def test_ranks_that_all_wait_in_the_same_name_nobody() -> None:
    assert analyse([waiting(r) for r in range(4)]).culprits == ()


def test_one_dump_or_none_says_nothing() -> None:
    assert analyse([waiting(0)]) == analyse([log_file("step 1")]) == Flight()


@pytest.mark.parametrize(("case", "ranks"), [("r015", {12}), ("r016", {9, 14})])
def test_dumps_of_real_jobs_name_the_ranks_that_were_disturbed(case: str, ranks: set[int]) -> None:
    shared = Path(os.environ.get("TRIAGE_SHARED") or Path(__file__).parents[2].parent / "shared") / "logs" / case
    if not shared.is_dir():
        pytest.skip("the labelled logs are not here")
    inputs, _ = discover([str(p) for p in sorted(shared.glob("_dump_*"))])
    files = [
        log_file(
            b"".join(chunks(item, [])).decode(), item.name, "flight-recorder", rank=int(item.name.rpartition("_")[2])
        )
        for item in inputs
    ]
    assert ranks <= set(analyse(files).culprits) <= ranks | {14}
