"""All records of a log are read, and real logs give the right spikes."""

from __future__ import annotations

import gzip
from pathlib import Path

import yaml

from tests.evidence.test_spikes import curve, huggingface, megatron, tqdm, with_losses
from triage.evidence.metrics import points
from triage.evidence.spikes import spikes
from triage.recovering.records import read


def test_every_record_is_read_whatever_stands_between_them(tmp_path: Path) -> None:
    text = "\n".join(f"{megatron(row)}\nsome other line" for row in curve(5000))
    (tmp_path / "job.log.gz").write_bytes(gzip.compress(text.encode()))
    (file,) = read([str(tmp_path)])
    found = points(file)
    assert len(found) == 5000
    assert (found[-1].step, found[-1].line.number) == (4999, 9999)


def test_long_reading_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("step 1 loss: 2.0\n" * 20_001)
    told: list[str] = []
    read([str(tmp_path / "job.log")], told.append)
    (said,) = told
    assert said.endswith("job.log: 20,000 records read")


def test_a_bar_gives_the_step_of_the_record_behind_it(tmp_path: Path) -> None:
    bars = "".join(
        f"\r{i}%|##  | {row.step}/900 [00:01<10:00,  1.5it/s]\n{huggingface(row)}\n"
        for i, row in enumerate(curve(50), 1)
    )
    (tmp_path / "job.log").write_text(bars)
    assert [point.step for point in points(read([str(tmp_path / "job.log")])[0])] == list(range(50))


def test_a_bar_that_never_ends_its_line_gives_every_record_of_it(tmp_path: Path) -> None:
    bars = "\r".join(map(tqdm, with_losses(curve(900, start=1000), 700, [9.0] * 200))).encode()
    (tmp_path / "job.log").write_bytes(b"begun\r\n" + bars + b"\r" + b"x" * (3 << 20) + b" loss\rstep 7 loss: 1.5")
    (file,) = read([str(tmp_path / "job.log")])
    found = points(file)
    assert len(found) == 901
    assert {point.line.number for point in found} == {2}
    (spike,) = spikes(found[:-1])
    assert (spike.first.step, spike.back) == (1700, None)


def test_real_logs_give_the_right_step_and_healthy_ones_nothing(shared: Path) -> None:
    for folder in sorted((shared / "logs").iterdir()):
        if not (folder / "case.yaml").is_file():
            continue
        case = yaml.safe_load((folder / "case.yaml").read_text("utf-8"))
        wanted = case["expect"]
        if wanted["outcome"] != "healthy" and wanted["failure_type"] != "loss-spike":
            continue
        files = read([str(folder / name) for name in case["inputs"]])
        told = [s for file in files for s in spikes(points(file)) if s.kind != "gradient"]
        if wanted["outcome"] == "healthy":
            assert told == [], folder.name
        else:
            lines = [range(first, last + 1) for _, first, last in wanted["evidence"]]
            assert any(told[0].first.line.number in span for span in lines), folder.name
