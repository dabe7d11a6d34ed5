"""Flight-recorder dumps as lines; what a pickle may not do."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from triage.ingest import flight
from triage.ingest.sources import discover
from triage.ingest.streams import chunks


def entry(seq: int, state: str = "scheduled", **more: Any) -> dict[str, Any]:
    return {
        "process_group": ("3", "TP"), "collective_seq_id": seq, "p2p_seq_id": 0, "is_p2p": False, "profiling_name": "nccl:all_reduce",
        "time_created_ns": 1758610505947280827, "input_sizes": [[16]], "input_dtypes": ["Long"], "output_sizes": [[16]],
        "state": state, **more,
    }  # fmt: skip


DUMP: dict[str, Any] = {
    "version": "2.9",
    "pg_config": {"3": {"name": "3", "desc": "TENSOR GROUP", "ranks": "[0, 1]"}, "9": {"name": "9", "desc": "undefined", "ranks": "[0]"}},
    "entries": [
        entry(7, "completed", frames=[{"name": "all_reduce", "filename": "/lib/torch/d.py", "line": 9}, {"name": "step", "filename": "/app/t.py", "line": 4}]),
        entry(8),
        entry(5, is_p2p=True, p2p_seq_id=12, profiling_name="nccl:send 0->1"),
    ],
}  # fmt: skip
LINES = [
    "2025-09-23T06:55:05.947280Z flight recorder: done group=3 seq=7 op=nccl:all_reduce in=[[16]] out=[[16]] dtype=['Long'] state=completed at /app/t.py:4 step",
    "2025-09-23T06:55:05.947280Z flight recorder: unfinished group=3 seq=8 op=nccl:all_reduce in=[[16]] out=[[16]] dtype=['Long'] state=scheduled",
    "2025-09-23T06:55:05.947280Z flight recorder: unfinished group=3 seq=12 op=nccl:send0->1 in=[[16]] out=[[16]] dtype=['Long'] state=scheduled",
    "flight recorder: group=3 desc=TENSOR_GROUP ranks=[0,1] last_enqueued=8",
    "flight recorder: group=9 desc=undefined ranks=[0] last_enqueued=-1",
]


@pytest.mark.parametrize("raw", [pickle.dumps(DUMP, 2), pickle.dumps(DUMP), json.dumps(DUMP).encode()])
def test_the_nth_entry_is_line_n_and_groups_follow(raw: bytes) -> None:
    assert list(flight.lines(raw)) == LINES


def test_dumps_of_early_versions_name_a_group_by_its_number() -> None:
    old = {"entries": [{"pg_id": 2, "seq_id": 4, "profiling_name": "nccl:broadcast", "state": "started"}]}
    found = list(flight.lines(pickle.dumps(old)))
    assert found[0].startswith(
        "- flight recorder: unfinished group=2 seq=4 op=nccl:broadcast in=- out=- dtype=- state=started"
    )
    assert found[1] == "flight recorder: group=2 desc=- ranks=- last_enqueued=4"


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "made"
    (tmp_path / "_dump_0").write_bytes(pickle.dumps({"pg_config": {}, "version": "2.9", "entries": [Evil(out)]}, 2))
    (item,), _ = discover([str(tmp_path / "_dump_0")])
    problems: list[str] = []
    assert list(chunks(item, problems)) == []
    assert not out.exists()
    assert "nothing of it was run" in problems[0] and "mkdir" in problems[0]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (pickle.dumps(DUMP)[:300], "cut or damaged"),
        (b'{"entries": [', "cut or damaged"),
        (pickle.dumps([1, 2]), "no dictionary"),
        (pickle.dumps({"entries": 3}), "no list of entries"),
        (b"\x80\x02PX\n.", "refers to objects outside"),
    ],
)
def test_a_damaged_dump_says_what_is_wrong(raw: bytes, words: str) -> None:
    with pytest.raises(flight.DumpError, match=words):
        list(flight.lines(raw))


def test_lists_that_would_fill_all_memory_when_written_out_are_cut_off() -> None:
    """Each of 40 levels holds the one below ten times, by reference: as a pickle 4 kB."""
    value: Any = [0]
    for _ in range(40):
        value = [value] * 10
    hostile = {"entries": [entry(7, input_sizes=value, process_group=value, frames=[value], output_sizes=[10**5000])]}
    found = list(flight.lines(pickle.dumps(hostile)))
    assert len(found[0]) < 2000
    assert "out=[-1]" in found[0]


@pytest.mark.parametrize("name", ["nccl_trace_rank_3", "comm_lib_trace_rank_12"])
def test_what_is_cut_off_is_a_dump_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(DUMP)[:30])
    (item,), _ = discover([str(tmp_path)])
    problems: list[str] = []
    assert (item.kind, list(chunks(item, problems)), len(problems)) == ("flight-recorder", [], 1)
