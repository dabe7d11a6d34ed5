"""`triage diagnose --good`, and the last good run of the database, as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

GOOD = "\n".join(
    [
        "2026-11-20 10:00:00 srun python pretrain_llm.py --lr 1e-4 --batch-size 8",
        "2026-11-20 10:00:01 torch version: 2.3.0",
        "gpu-001:123:456 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.",
        "gpu-001:123:456 [0] NCCL INFO NCCL version 2.20.5+cuda12.4",
        "gpu-001:123:456 [0] NCCL INFO Using network IB",
        "gpu-001:123:456 [0] NCCL INFO comm 0x55aa rank 0 nranks 16 cudaDev 0 - Init COMPLETE",
        "2026-11-20 10:00:04 [rank0] loaded 1000 shards",
        *(f"2026-11-20 10:{i // 60:02d}:{i % 60:02d} step {i} loss: {3 - i / 100:.3f}" for i in range(5, 90)),
        "2026-11-20 10:05:00 saving checkpoint to /ckpt/step_90",
        "2026-11-20 10:05:01 training finished",
        "",
    ]
)
BAD = "\n".join(
    [
        "2026-11-22 11:00:00 srun python pretrain_llm.py --lr 1e-4 --batch-size 8",
        "2026-11-22 11:00:01 torch version: 2.4.1",
        "gpu-007:223:956 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 14.",
        "gpu-007:223:956 [0] NCCL INFO NCCL version 2.20.5+cuda12.4",
        "gpu-007:223:956 [0] NCCL INFO Using network Socket",
        "2026-11-22 11:00:04 [rank0] loaded 1000 shards",
        "2026-11-22 11:00:05 WARNING uplink of the switch flapped",
        "[rank3]:[E1122 11:31:07.225 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800029 milliseconds"
        " before timing out.",
        "",
    ]
)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "good.log").write_text(GOOD)
    (tmp_path / "bad.log").write_text(BAD)
    return tmp_path


def answer(triage: Run, *args: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(triage("diagnose", *args, "--format", "json").stdout)
    return document


def test_what_changed_and_what_is_new_is_shown_cited_and_said_beside_the_cause(triage: Run, logs: Path) -> None:
    alone = answer(triage, "bad.log", "--no-record")
    d = answer(triage, "bad.log", "--no-record", "--good", "good")
    assert alone["compared"] is None
    verdict = ("outcome", "failure_type", "status", "action", "suspects", "chain", "fingerprint")
    assert [d[name] for name in verdict] == [alone[name] for name in verdict]
    compared = d["compared"]
    assert (compared["words"], compared["good"]) == ("compared with good", ["good/good.log"])
    assert [e["text"] for e in compared["changed"][:2]] == ["NCCL_IB_TIMEOUT: 22 -> 14", "torch: 2.3.0 -> 2.4.1"]
    timeout = compared["changed"][0]
    assert (timeout["file"], timeout["line"], timeout["good_file"], timeout["good_line"]) == (
        "bad.log", 3, "good/good.log", 3,
    )  # fmt: skip
    assert any("Init COMPLETE" in e["text"] for e in compared["missing"])

    added = d["evidence"][len(alone["evidence"]) :]
    assert [(e["role"], e["line"]) for e in added] == [("context", 3), ("context", 5), ("context", 7)]
    lines = BAD.split("\n")
    assert all(e["text"] == lines[e["line"] - 1] for e in added)
    assert timeout["evidence"] == added[0]["id"]
    assert f"NCCL_IB_TIMEOUT: 22 -> 14 ({added[0]['id']})" in d["root_cause"]
    assert "torch" not in d["root_cause"].partition("Changed since")[2]
    assert added[0]["id"] in d["hypotheses"][0]["for"]


@pytest.mark.parametrize("shape", ["text", "markdown"])
def test_the_comparison_is_a_section(triage: Run, logs: Path, shape: str) -> None:
    out = triage("diagnose", "bad.log", "--no-record", "--good", "good", "--format", shape).stdout
    assert "Against the good run" in out
    section = out.partition("Against the good run")[2]
    assert "NCCL_IB_TIMEOUT: 22 -> 14" in section
    assert "bad.log:3, good run good/good.log:3" in section


def test_a_run_against_itself_shows_nothing(triage: Run, logs: Path) -> None:
    compared = answer(triage, "bad.log", "--no-record", "--good", "bad.log")["compared"]
    assert (compared["new"], compared["missing"], compared["changed"]) == ([], [], [])


def test_a_good_run_that_is_none_is_told(triage: Run, logs: Path) -> None:
    d = answer(triage, "bad.log", "--no-record", "--good", "bad.log")
    assert any(note.startswith("the run given as good is no healthy one: ") for note in d["missing"])


@pytest.mark.parametrize("args", [["nope.log"], ["good", "nope.log"]])
def test_a_good_run_that_cannot_be_read_is_one_line(triage: Run, logs: Path, args: list[str]) -> None:
    done = triage("diagnose", "bad.log", "--no-record", *(part for a in args for part in ("--good", a)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("triage: the good run cannot be read: ")
    assert done.stderr.count("\n") == 1
    assert "nope.log" in done.stderr


def test_the_last_healthy_run_of_the_same_kind_is_used_by_itself(triage: Run, logs: Path) -> None:
    env = {"TRIAGE_HOME": str(logs / "home")}
    assert json.loads(triage("diagnose", "good/good.log", "--format", "json", **env).stdout)["incident"] == 1
    found = json.loads(triage("diagnose", "bad.log", "--format", "json", **env).stdout)
    compared = found["compared"]
    assert compared["words"].startswith("compared with incident 1, healthy, 20")
    assert [e["text"] for e in compared["changed"][:2]] == ["NCCL_IB_TIMEOUT: 22 -> 14", "torch: 2.3.0 -> 2.4.1"]
    assert json.loads(triage("incidents", "show", "2", "--format", "json", **env).stdout)["compared"] == compared

    off = json.loads(triage("diagnose", "bad.log", "--good", "none", "--format", "json", **env).stdout)
    assert off["compared"] is None
    (logs / "other.log").write_text(BAD.replace("pretrain_llm.py", "convert_shards.py"))
    other = json.loads(triage("diagnose", "other.log", "--no-record", "--format", "json", **env).stdout)
    assert other["compared"] is None


def test_none_beside_a_path_is_wrong_usage(triage: Run, logs: Path) -> None:
    done = triage("diagnose", "bad.log", "--good", "none", "--good", "good")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_run_of_another_job_is_told(triage: Run, tmp_path: Path) -> None:
    steps = "".join(f"iteration {n}/ 900 | lm loss: 2.5\n" for n in range(1, 9))
    bad = str(tmp_path / "bad.out")
    Path(bad).write_text(f"{steps}KeyError: 'x'\n")
    (tmp_path / "other.out").write_text(
        "".join(f"epoch {n} acc 0.9\n" for n in range(9)) + "All done. Exit status: 0\n"
    )
    d = answer(triage, bad, "--good", str(tmp_path / "other.out"), "--no-record")
    assert any("is it the same kind of job?" in note for note in d["missing"])
    (tmp_path / "same.out").write_text(steps)
    d = answer(triage, bad, "--good", str(tmp_path / "same.out"), "--no-record")
    assert not any("is it the same kind of job?" in note for note in d["missing"])


def test_of_what_changed_that_which_the_error_speaks_of_is_said_first(triage: Run, tmp_path: Path) -> None:
    def text(torch: str, data: str, end: str) -> str:
        steps = "".join(f" iteration {n}/ 900 | lm loss: 2.5\n" for n in range(1, 6))
        return f"torch {torch}\nNCCL version 2.2{torch[2]}.5+cuda12.4\n+ python -u train.py --data-path /lustre/data/{data} --save /ckpt\n{steps}{end}"

    raised = (
        'Traceback (most recent call last):\n  File "/home/m/gpt/data/indexed.py", line 91, in __getitem__\n'
        "    return np.frombuffer(self.buf)\nValueError: buffer is smaller than requested size\n"
    )
    bad = str(tmp_path / "bad.out")
    Path(bad).write_text(text("2.4.1", "v2", raised))
    (tmp_path / "good.out").write_text(text("2.3.0", "v1", "[after training is done]\n"))
    d = answer(triage, bad, "--good", str(tmp_path / "good.out"), "--no-record")
    assert "fitting: data-path: /lustre/data/v1 -> /lustre/data/v2 (E" in d["root_cause"]
