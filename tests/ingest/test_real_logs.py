"""The whole way into the program on real labelled logs. They are no part of the project: without them this is skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from triage.compress.engine import Scanner
from triage.domain import LogFile
from triage.ingest import assemble, boundaries, kinds, sources, streams

SHARED = Path(os.environ.get("TRIAGE_SHARED") or Path(__file__).parents[2].parent / "shared")
LOGS = SHARED / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="the real logs are not here (TRIAGE_SHARED)")


@pytest.fixture(scope="module")
def files() -> dict[str, LogFile]:
    return dict(_read())


def _read() -> Iterator[tuple[str, LogFile]]:
    inputs, _ = sources.discover([str(LOGS)])
    scanner = Scanner((), (), boundaries.Boundaries)
    for item in inputs:
        problems: list[str] = []
        kind, chunks = kinds.detect(item, streams.chunks(item, problems))
        file = assemble.assemble(scanner.scan(item.name, chunks), kind, problems, item.modified)
        yield str(Path(item.name).relative_to(LOGS)), file


def test_all_are_read_whole(files: dict[str, LogFile]) -> None:
    assert len(files) > 80
    for name, file in files.items():
        assert file.problems == (), name
        assert file.lines_in > 0, name
        assert file.kind == "flight-recorder" or file.bytes_in == (LOGS / name).stat().st_size, name
        numbers = [line.number for line in file.lines]
        assert numbers == sorted(set(numbers)), name
        assert sum(line.repeats for line in file.lines) == file.last_line - file.first_line + 1, name


def test_runs_are_split_where_jobs_were_appended_and_nowhere_else(files: dict[str, LogFile]) -> None:
    split = {name.split("/")[0]: [run.first_line for run in file.runs] for name, file in files.items() if file.runs}
    assert set(split) == {"r055", "r056", "r067", "r068", "r069"}
    assert split["r067"] == [1, 161, 321, 5338, 5386, 5868, 6430, 6906]
    assert split["r068"] == [1, 25, 681]
    assert split["r056"][-1] == 3227
    assert files["r067/job.out"].runs[-1].outcome == "interrupted"


@pytest.mark.parametrize(
    ("name", "field", "share"),
    [
        ("r025/job.log", "time", 0.99),
        ("r025/job.log", "level", 0.99),
        ("r041/job.log", "time", 0.99),
        ("r065/job.err", "level", 0.6),
        ("r053/job.txt", "time", 0.99),
        ("r048/job.txt", "level", 0.95),
        ("r042/job.log", "time", 0.98),
        ("r042/job.log", "node", 0.98),
        ("r035/job.log", "gpu", 0.9),
        ("r033/job.txt", "rank", 0.6),
    ],
)
def test_most_lines_of_a_format_say_what_it_holds(
    files: dict[str, LogFile], name: str, field: str, share: float
) -> None:
    lines = files[name].lines
    assert sum(getattr(line, field) is not None for line in lines) >= share * len(lines)


def test_no_times_far_from_the_rest_of_their_file(files: dict[str, LogFile]) -> None:
    for name, file in files.items():
        times = sorted(line.time for line in file.lines if line.time)
        if times:
            assert (times[-1] - times[0]).days < 20, name


def test_kinds(files: dict[str, LogFile]) -> None:
    kinds_of = {name: file.kind for name, file in files.items() if file.kind not in ("job", "flight-recorder")}
    assert kinds_of == {
        **dict.fromkeys(
            ("r023/job.log", "r042/job.log", "r045/job.log", "r048/job.txt", "r052/dmesg.txt", "r053/job.txt"), "kernel"
        ),
        **dict.fromkeys(
            ("r052/gpu.query.0.txt", "r052/gpu.query.1.txt", "r052/gpu.query.all.txt", "r062/job.log"), "fabric"
        ),
    }


def test_keys_in_real_logs_are_hidden(files: dict[str, LogFile]) -> None:
    for name in ("r071/job.log", "r072/job.log"):
        text = "\n".join(line.text for line in files[name].lines)
        assert "WANDB_API_KEY=[redacted:" in text and "sk-" not in text
