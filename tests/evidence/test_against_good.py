"""A run against a good one: what is told, what is not, and how it is ranked."""

from __future__ import annotations

import json
import random
import re

import pytest

from tests.helpers import job, log_file
from triage.domain import Compared, JobLog
from triage.evidence.against_good import Onset, compare
from triage.evidence.profile import GoodRun, Profile, from_json, kind_of, profile, to_json

GOOD = """
2026-11-20 10:00:00 srun --nodes 2 python pretrain.py --lr 1e-4 --batch-size 8
2026-11-20 10:00:01 torch version: 2.3.0
gpu-001:123:456 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.
gpu-001:123:456 [0] NCCL INFO NCCL version 2.20.5+cuda12.4
gpu-001:123:456 [0] NCCL INFO Using network IB
gpu-001:123:456 [0] NCCL INFO comm 0x55aa rank 0 nranks 16 cudaDev 0 - Init COMPLETE
2026-11-20 10:00:04 [rank0] loaded 1000 shards of job 4711234
2026-11-20 10:00:09 step 1 loss 2.5
2026-11-20 10:00:12 step 2 loss 2.4
"""


def against(bad: str | JobLog, good: str | JobLog = GOOD, onset: Onset = Onset()) -> Compared:  # noqa: B008 - frozen
    a, b = (job(log_file(x)) if isinstance(x, str) else x for x in (bad, good))
    return compare(profile(a), GoodRun(profile(b), "compared with it"), onset)


def texts(found: Compared, name: str) -> list[str]:
    return [d.text for d in getattr(found, name)]


def test_versions_come_before_settings_and_both_before_lines_and_places_are_cited() -> None:
    bad = GOOD.replace("to 22.", "to 14.").replace("2.3.0", "2.4.1").replace("network IB", "network Socket")
    found = against(bad)
    assert texts(found, "changed") == [
        "torch: 2.3.0 -> 2.4.1",
        "NCCL_IB_TIMEOUT: 22 -> 14",
        "gpu-001:123:456 [0] NCCL INFO Using network Socket",
    ]
    assert [(d.at.line, d.good_at.line) for d in found.changed if d.at and d.good_at] == [(2, 2), (3, 3), (5, 5)]
    assert (found.new, found.missing) == ((), ())


def test_a_setting_of_one_run_only_counts_where_the_other_would_have_told_it() -> None:
    bad = GOOD.replace("--batch-size 8", "--batch-size 8 --fp8").replace(
        "gpu-001:123:456 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.\n", ""
    )
    found = against(bad)
    assert [(d.kind, d.text) for d in found.new] == [("setting", "fp8=set")]
    assert texts(found, "missing") == ["NCCL_IB_TIMEOUT=22"]
    silent = "\n".join(line for line in GOOD.split("\n") if "NCCL" not in line and "srun" not in line)
    assert [d for d in against(silent).missing if d.kind == "setting"] == []


def test_a_value_that_varies_in_a_run_is_measured_not_set() -> None:
    good = "throttle: 1\nthrottle: 2\nwidth: 8\n"
    assert texts(against("throttle: 7\nwidth: 9\n", good), "changed") == ["width: 8 -> 9"]


def test_a_version_said_in_more_detail_is_the_same_version() -> None:
    assert against("NCCL version 2.20.5+cuda12.4", "NCCL version 2.20.5").changed == ()
    assert len(against("NCCL version 2.20.51", "NCCL version 2.20.5").changed) == 1


def test_a_new_warning_before_the_failure_is_told_and_not_what_follows_it() -> None:
    bad = (
        GOOD
        + "WARNING uplink of the switch flapped\nstep 3 loss 2.4\nRuntimeError: boom went off\nlater words of teardown\n"
    )
    log = job(log_file(bad))
    bad_lines = [line.number for line in log.files[0].lines if "boom" in line.text]
    onset = Onset(_place(bad_lines[0]), None, ("RuntimeError: boom went off",))
    found = against(log, onset=onset)
    assert texts(found, "new") == ["WARNING uplink of the switch flapped"]


def test_a_line_that_never_comes_is_missing_and_a_run_that_went_well_misses_nothing() -> None:
    bad = "\n".join(line for line in GOOD.split("\n") if "Init COMPLETE" not in line)
    found = against(bad)
    assert [d for d in texts(found, "missing") if "Init COMPLETE" in d]
    assert found.missing[-1].good_at is not None
    assert found.missing[-1].good_at.line == 6
    assert against(bad, onset=Onset(well=True)).missing == ()


def test_nodes_are_told_when_the_runs_share_some() -> None:
    def on(*nodes: str) -> JobLog:
        return job(*(log_file("all is well here\n", f"{n}.log", node=n) for n in nodes))

    found = against(on("gpu-1", "gpu-9"), on("gpu-1", "gpu-2"), Onset(suspects=("gpu-9",)))
    assert [(d.text, d.why) for d in found.new] == [("gpu-9", "under suspicion, and not in the good run")]
    assert texts(found, "missing") == ["gpu-2"]
    assert against(on("gpu-7"), on("gpu-1")) == Compared("compared with it", ("gpu-1.log",))


def moved(text: str, rng: random.Random) -> str:
    """The same run at another time, elsewhere, under another number."""
    text = text.replace("2026-11-20 10:", f"2026-12-{rng.randint(10, 28)} {rng.randint(10, 23)}:")
    text = re.sub(
        r"gpu-\d+:\d+:\d+", f"gpu-{rng.randint(100, 999)}:{rng.randint(1, 9999)}:{rng.randint(1, 9999)}", text
    )
    text = text.replace("4711234", str(rng.randint(10**6, 10**7 - 1)))
    text = re.sub(r"0x[0-9a-f]+", hex(rng.randint(10**6, 10**9)), text)
    text = text.replace("[rank0]", f"[rank{rng.randint(0, 15)}]").replace(" rank 0 ", f" rank {rng.randint(0, 15)} ")
    return re.sub(r"loss 2\.\d+", lambda _: f"loss {rng.uniform(1, 9):.3f}", text)


@pytest.mark.parametrize("seed", range(20))
def test_the_same_run_elsewhere_shows_nothing(seed: int) -> None:
    found = against(moved(GOOD, random.Random(seed)))
    assert (found.new, found.missing, found.changed) == ((), (), ())


def test_a_kind_of_line_is_its_plain_words() -> None:
    a = kind_of("Nov worker 3 on gpu-017 read '/data/x' at 0xffee: done.", {"gpu-017"})
    assert a == kind_of("Dec worker 12 on node9 read '/data/y' at 0xaabb: done.") == "worker on read at done"
    assert kind_of("Killed") == ""


def test_frames_of_a_traceback_are_no_kinds_of_line() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    call the other thing\nKeyError: no such key\n'
    assert list(profile(job(log_file(text))).kinds) == ["keyerror no such key"]


def test_a_profile_comes_back_from_json_and_is_bounded() -> None:
    run = profile(job(log_file(GOOD)))
    back = from_json(json.loads(json.dumps(to_json(run))))
    assert back == run
    words = ["zy", "xw", "vu", "gh", "ij", "kl", "mn", "op", "qr", "st", "un", "wy"]
    many = "\n".join(f"line {a} {b} {c} end" for a in words for b in words for c in words)
    big = profile(job(log_file(many)))
    stored = to_json(big)
    assert len(big.kinds) == 12**3
    assert len(stored["kinds"]) == 1000
    assert from_json(stored).partial
    found = compare(profile(job(log_file(many + "\nsome further words\n"))), GoodRun(from_json(stored), ""), Onset())
    assert (found.new, found.missing) == ((), ())


def test_another_version_of_the_summary_is_refused() -> None:
    with pytest.raises(ValueError, match="does not know"):
        from_json({**to_json(Profile()), "schema": 99})


def _place(line: int):
    from triage.domain import Place

    return Place("job.log", line)
