"""What each read-only tool finds, over files on disk."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.jobs import case, tools
from triage.agents.case import Case
from triage.agents.tools.kit import MOST_CHARS, Toolbox
from triage.domain import LogLine, Similar
from triage.llm.values import ToolCall

Use = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Box:
    """A toolbox and what it showed. use("read_lines", file=..., line=...) -> what the model is told, without the fence."""

    def __init__(self, found: Case, **more: Any) -> None:
        self.lines: list[LogLine] = []
        self.box = Toolbox(tools(found, **more), lambda lines, _names: self.lines.extend(lines))

    def use(self, name: str, **arguments: Any) -> str:
        self.lines.clear()
        text = self.box.use(ToolCall("c", name, json.dumps(arguments)))
        return text.partition("<result>\n")[2].rpartition("\n</result>")[0]


def of_text(folder: Path, text: str, name: str = "job.log") -> Box:
    (folder / name).write_text(text)
    return Box(case([name]))


# ------------------------------------------------------------------------------------------------ the log
def test_lines_around_a_place_are_those_of_the_file(folder: Path) -> None:
    texts = [f"step {n} loss 1.{n}" for n in range(1, 5001)]
    box = of_text(folder, "\n".join(texts) + "\n")
    assert box.use("read_lines", file="job.log", line=2500, around=2).splitlines() == [
        f"job.log:{n} {texts[n - 1]}" for n in range(2498, 2503)
    ]
    assert [line.number for line in box.lines] == [2498, 2499, 2500, 2501, 2502]
    assert len(box.use("read_lines", file="job.log", line=2500, around=10_000).splitlines()) == 61
    assert box.use("read_lines", file="job.log", line="4999").splitlines()[-1] == f"job.log:5000 {texts[-1]}"


@pytest.mark.parametrize("packed", [False, True])
def test_a_search_goes_over_all_lines_of_all_files(folder: Path, packed: bool) -> None:
    for rank in range(3):
        lines = [f"step {n} loss 1.{n}{' spike' if n == 1000 + rank else ''}" for n in range(1, 3000)]
        data = "\n".join(lines).encode()
        (folder / f"rank_{rank}.log{'.gz' if packed else ''}").write_bytes(gzip.compress(data) if packed else data)
    names = sorted(p.name for p in folder.iterdir())
    box = Box(case(names))
    assert len(box.use("search_log", pattern="SPIKE$").splitlines()) == 3
    assert [(line.file, line.number) for line in box.lines] == [(name, 1000 + n) for n, name in enumerate(names)]
    assert box.use("search_log", pattern="spike", file=names[1]).splitlines() == [
        f"{names[1]}:1001 step 1001 loss 1.1001 spike"
    ]
    found = box.use("search_log", pattern="step")
    assert "the first 40 lines that match; there are more" in found
    assert len(box.lines) == 40
    assert box.use("search_log", pattern="nothing like it") == "no line matches"


def test_what_was_read_from_a_pipe_is_searched_as_far_as_it_was_kept(folder: Path) -> None:
    found = of_text(folder, "start\nKeyError: 'text'\n", "pipe.log")
    (folder / "pipe.log").unlink()
    said = found.use("search_log", pattern="keyerror")
    assert "pipe.log cannot be read a second time" in said
    assert "pipe.log:2 KeyError: 'text'" in said
    assert "pipe.log:2 KeyError" in found.use("read_lines", file="pipe.log", line=2)


def test_a_search_that_no_engine_should_be_asked_takes_no_time(folder: Path) -> None:
    box = of_text(folder, "a" * 20_000 + "\n" + "x\n" * 50)
    assert box.use("search_log", pattern="(a|a)*b") == "no line matches"
    assert "longer than 300" in box.use("search_log", pattern="a" * 400)


def test_a_private_key_is_hidden_wherever_one_looks_into_it(folder: Path) -> None:
    body = ["MIIEow" + "Ab3dEf7hIjKlMn0pQrSt" * 2 + f"{n:04d}" for n in range(20)]
    lines = ["start", "-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----", "done"]
    box = of_text(folder, "\n".join(lines) + "\n")
    told = [box.use("read_lines", file="job.log", line=15, around=2), box.use("search_log", pattern="0012|Ab3d")]
    assert not any("Ab3dEf7h" in text for text in told)


def test_an_answer_is_bounded(folder: Path) -> None:
    box = of_text(folder, "\n".join(f"error {n} {'long ' * 100}" for n in range(100)))
    said = box.use("read_lines", file="job.log", line=50, around=30)
    assert MOST_CHARS * 0.9 < len(said) < MOST_CHARS + 100
    assert "more lines than there is room for" in said
    assert len(box.lines) == said.count("job.log:")
    assert max(map(len, said.splitlines())) < 450


def test_ranks_are_set_beside_each_other(folder: Path) -> None:
    for rank in range(4):
        last = 40 if rank == 2 else 90
        (folder / f"rank_{rank}.log").write_text(
            "".join(f"2024-05-01 10:{n // 60:02d}:{n % 60:02d} step {n} loss 1.{n}\n" for n in range(last))
            + ("" if rank == 2 else "2024-05-01 10:09:00 entering barrier\n")
        )
    box = Box(case([f"rank_{n}.log" for n in range(4)]))
    said = box.use("compare_ranks").splitlines()
    assert said[0].startswith("ranks that speak: 0-3; that do not: none")
    assert said[1].startswith("rank_2.log:40 ")
    said = box.use("compare_ranks", pattern="entering barrier").splitlines()
    assert said[0].startswith("ranks that say the like: 0-1,3; that do not: 2")
    assert "no line of the log says" in of_text(folder, "start\n", "x.log").use("compare_ranks")


def test_a_window_of_time_over_all_files(folder: Path) -> None:
    (folder / "a.log").write_text("".join(f"2024-05-01 10:00:{n:02d} a at {n}\n" for n in range(60)))
    (folder / "b.log").write_text("2024-05-01 10:00:30 ERROR link of b went down\n2024-05-01 11:00:00 b is back\n")
    box = Box(case(["a.log", "b.log"]))
    said = box.use("timeline", file="b.log", line=1, seconds=2).splitlines()
    assert said[0].startswith("from 2024-05-01 10:00:28 to 10:00:32")
    numbers = [line.split(" ")[0] for line in said[1:]]
    assert "b.log:1" in numbers
    assert "b.log:2" not in numbers
    assert all(abs(int(n.partition(":")[2]) - 31) <= 2 for n in numbers if n.startswith("a.log"))
    assert (
        "no line of c.log carries a time"
        in (
            (folder / "c.log").write_text("x\n"),
            Box(case(["c.log"])).use("timeline", file="c.log", line=1),
        )[1]
    )
    assert box.use("timeline")


# ------------------------------------------------------------------------------------------------ what is known
def test_codes_and_signatures_are_looked_up(folder: Path) -> None:
    box = of_text(folder, "start\n")
    assert "gpu-lost" in box.use("look_up", kind="xid", what="79")
    assert "nothing on Xid 4711" in box.use("look_up", kind="xid", what="4711")
    assert "SIGKILL" in box.use("look_up", kind="exit-code", what="137")
    assert "out-of-memory" in box.use(
        "look_up", kind="line", what="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB"
    )
    assert box.use("look_up", kind="signature", what="slurm.task-exited").startswith("slurm.task-exited: ")
    assert "perhaps " in box.use("look_up", kind="signature", what="slurm")
    assert box.lines == []  # of the knowledge base, not of the log


def test_the_facts_of_the_job_and_of_one_node(folder: Path) -> None:
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|NodeList|Start|End\n42|FAILED|1:0|gpu-[1-2]|2024-05-01T10:00:00|2024-05-01T11:00:00\n"
    )
    (folder / "dmesg-gpu-1.log").write_text("May  1 10:30:00 gpu-1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n" * 2)
    (folder / "dmesg-gpu-2.log").write_text("May  1 10:30:00 gpu-2 kernel: usb 1-1: new device\n" * 2)
    box = Box(case(["dmesg-gpu-1.log", "dmesg-gpu-2.log", "sacct.txt"]))
    said = box.use("job_facts")
    assert (
        "42: FAILED, exit code 1:0, from 2024-05-01 10:00:00 to 2024-05-01 11:00:00, gpu-[1-2]".replace(" to", ", to")
        in said
    )
    assert "dmesg-gpu-1.log: kernel, 2 lines, node gpu-1" in said
    assert {line.file for line in box.lines} >= {"dmesg-gpu-1.log", "dmesg-gpu-2.log"}
    box.use("job_facts", node="gpu-1")
    assert {line.file for line in box.lines} == {"dmesg-gpu-1.log"}


def test_runbooks_are_found_by_type_and_by_words(folder: Path) -> None:
    box = of_text(folder, "start\n")
    assert box.use("search_runbooks", words="gpu-lost").startswith("gpu-lost: ")
    assert "disk-full: " in box.use("search_runbooks", words="no space left, the disk is full")
    assert box.use("search_runbooks", words="zzz") == "no runbook has such words"


def test_past_incidents_are_those_of_other_jobs(folder: Path) -> None:
    asked: list[str] = []

    def search(words: str) -> list[Similar]:
        asked.append(words)
        return [Similar("kb-7", "Ring stopped", 0.5, "same words", "confirmed", ("reseat the cable",))]

    (folder / "job.log").write_text("start\n")
    box = Box(case(["job.log"]), incidents=search)
    said = box.use("search_incidents", words="ring lost its token")
    assert asked == ["ring lost its token"]
    assert "not this job's" in said
    assert "kb-7 (confirmed): Ring stopped; why alike: same words; what helped: reseat the cable" in said
    assert box.lines == []
