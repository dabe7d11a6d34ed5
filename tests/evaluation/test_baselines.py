from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.openai_server import Answer, OpenAIServer, status
from triage import kb
from triage.evaluation import baseline_llm, baseline_tables, baselines
from triage.llm.limits import Prices


def answer(tmp_path: Path, text: str, name: str = "job.log") -> dict[str, dict[str, Any]]:
    (tmp_path / name).write_text(text)
    return baselines.answer_all({name: tmp_path / name})


def short(found: dict[str, Any]) -> tuple[str, int]:
    return found["failure_type"], found["evidence"][0]["line"] if found["evidence"] else 0


def test_every_type_and_action_is_one_of_the_taxonomy() -> None:
    labels = kb.taxonomy()
    kinds = {
        *baseline_tables.EXCEPTIONS.values(),
        *(kind for _, kind in baseline_tables.KEYWORDS),
        "healthy",
        "unknown",
    }
    assert kinds <= set(labels.types)
    assert {baseline_tables.action(k) for k in labels.types} <= set(labels.actions)
    assert {baseline_tables.outcome(k) for k in labels.types} <= labels.outcomes


TRACEBACKS = """epoch 1
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    a["x"]
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 9, in <module>
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
srun: error: gpu-1: task 0: Exited with exit code 1
"""


def test_the_last_exception_is_named_by_its_class(tmp_path: Path) -> None:
    assert short(answer(tmp_path, TRACEBACKS)["last-exception"]) == ("out-of-memory", 11)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[rank3]: ValueError: bad shape", "value-error"),
        ("3: KeyError: 'a'", "key-error"),
        ("(RayTrainWorker pid=12, ip=10.0.0.1) TypeError: f() takes no arguments", "type-error"),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool", "connection-error"),
        ("KeyboardInterrupt", "cancelled"),
        ("RuntimeError: Ninja is required", "runtime-error"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "cuda-error"),
        ("OSError: [Errno 28] No space left on device", "disk-full"),
        ("my.module.OddError: x", "runtime-error"),
        ("socket.gaierror: [Errno -2] Name or service not known", "connection-error"),
    ],
)
def test_exceptions_behind_prefixes_and_with_vague_classes(tmp_path: Path, line: str, kind: str) -> None:
    assert short(answer(tmp_path, f"start\n{line}\nend\n")["last-exception"]) == (kind, 2)


def test_a_launchers_report_is_not_the_exception_if_there_is_another(tmp_path: Path) -> None:
    wrapper = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    assert short(answer(tmp_path, f"AssertionError: shape\n{wrapper}")["last-exception"]) == ("assertion-error", 1)
    assert short(answer(tmp_path, wrapper)["last-exception"]) == ("runtime-error", 1)


def test_an_exception_named_in_a_sentence_is_none(tmp_path: Path) -> None:
    found = answer(tmp_path, "retrying after ConnectionError: peer gone\n")
    assert short(found["last-exception"]) == ("healthy", 0)
    assert found["last-exception"]["outcome"] == "healthy" and found["last-exception"]["action"] == "none"


def test_the_first_error_is_the_first_whatever_it_is(tmp_path: Path) -> None:
    text = "ok\nWARNING failed to import apex\nRuntimeError: x\n"
    assert short(answer(tmp_path, text)["first-error"]) == ("runtime-error", 2)
    assert short(answer(tmp_path, "ok\nKeyError: 'x'\n")["first-error"]) == ("key-error", 2)
    assert short(answer(tmp_path, "ok\nNCCL error in socket.cc: unhandled system error\n")["first-error"]) == ("nccl-remote-error", 2)  # fmt: skip
    assert short(answer(tmp_path, "all is well\n")["first-error"]) == ("healthy", 0)


def test_the_keyword_table_takes_the_most_particular_row_not_the_first_line(tmp_path: Path) -> None:
    text = "KeyboardInterrupt\nslurmstepd: error: *** JOB 12 ON gpu-1 CANCELLED AT 2024-05-01T00:00:00 DUE TO TIME LIMIT ***\n"
    found = answer(tmp_path, text)["keyword-table"]
    assert short(found) == ("time-limit", 2)
    assert (found["outcome"], found["action"]) == ("interrupted", "restart")


def test_the_keyword_table_falls_back_on_a_named_exception(tmp_path: Path) -> None:
    assert short(answer(tmp_path, "x\nTypeError: f() got an unexpected keyword\n")["keyword-table"]) == (
        "type-error",
        2,
    )


def test_the_keyword_table_sees_the_last_200_lines_of_each_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("No space left on device\n" + "step\n" * 200)
    (tmp_path / "b").write_text("step\n" * 300 + "No space left on device\n" + "step\n" * 199)
    assert short(baselines.answer_all({"a": tmp_path / "a"})["keyword-table"]) == ("healthy", 0)
    found = baselines.answer_all({"a": tmp_path / "a", "b": tmp_path / "b"})["keyword-table"]
    assert found["evidence"] == [{"file": "b", "line": 301, "role": "root"}]


def test_line_numbers_count_newlines_in_what_is_decompressed(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "job.log.gz", "wb") as stream:
        stream.write(b"10%\r20%\r30%\n\r\nMemoryError\r\n")
    found = baselines.answer_all({"job.log.gz": tmp_path / "job.log.gz"})
    assert short(found["last-exception"]) == ("host-out-of-memory", 3)


def test_a_line_of_megabytes_over_many_pieces_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a" * 3_000_000 + b"\nKeyError: 1\n" + b"b" * 10)
    numbered = list(baselines.numbered(tmp_path / "x"))
    assert [n for n, _ in numbered] == [1, 2, 3]
    assert [t[:12] for _, t in numbered] == ["a" * 12, "KeyError: 1", "b" * 10]


def test_what_cannot_be_read_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    assert baselines.answer_all({"gone": tmp_path / "gone"})["first-error"]["failure_type"] == "healthy"


# ------------------------------------------------------------------------------------------------ with a model
REPLY = '{"outcome": "failed", "failure_type": "disk-full", "file": "job.log", "line": 3, "action": "fix-and-resubmit"}'


PRICES = Prices(2.0, 10.0)


class Scripted:
    """A model that says the same always, and remembers what it was asked."""

    def __init__(self, reply: str = REPLY) -> None:
        self.reply, self.prompts = reply, []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.reply


def asked(tmp_path: Path, *script: Any, prices: Prices = PRICES) -> tuple[dict[str, Any], list[str], OpenAIServer]:
    (tmp_path / "job.log").write_text("a\nb\nNo space left on device\n")
    with OpenAIServer(script) as server:
        model = server.model(most_seconds=20)
        return *baseline_llm.answer_all({"job.log": tmp_path / "job.log"}, model, prices), server


def test_two_baselines_ask_a_model(tmp_path: Path) -> None:
    found, notes, server = asked(tmp_path, *[Answer(REPLY, usage=(1000, 100))] * 2)
    assert set(found) == {"tail-200-llm", "whole-log-llm"}
    assert notes == []
    for answer in found.values():
        usage = answer.pop("usage")
        assert 0 < usage.pop("seconds") < 60
        assert usage == {"llm_calls": 1, "tokens_in": 1000, "tokens_out": 100, "cost": pytest.approx(0.003)}
        assert answer == {
            "outcome": "failed", "failure_type": "disk-full", "action": "fix-and-resubmit",
            "evidence": [{"file": "job.log", "line": 3, "role": "root"}],
        }  # fmt: skip
    assert len(server.requests) == 2
    for request in server.requests:
        assert "job.log:3: No space left on device" in request.text
        assert "disk-full: no space left" in request.text
        assert "disk-full" in str(request.body["response_format"])


def test_without_prices_there_is_no_cost(tmp_path: Path) -> None:
    found, _, _ = asked(tmp_path, REPLY, REPLY, prices=Prices())
    assert found["tail-200-llm"]["usage"]["cost"] is None


def test_a_model_that_is_down_is_a_note_and_no_answer(tmp_path: Path) -> None:
    found, notes, _ = asked(tmp_path, status(401, "wrong key"), REPLY)
    assert list(found) == ["whole-log-llm"]
    assert len(notes) == 1
    assert notes[0].startswith("tail-200-llm: http://127.0.0.1:")
    assert "refused the key (HTTP 401): wrong key" in notes[0]


def test_a_log_that_is_too_long_for_a_model_is_a_wrong_answer_of_it(tmp_path: Path) -> None:
    found, notes, _ = asked(tmp_path, REPLY, status(400, "maximum context length is 9 tokens"))
    assert [short(a)[0] for a in found.values()] == ["disk-full", "unknown"]
    assert "does not fit" in notes[0]


def test_of_an_answer_that_was_cut_what_was_said_counts(tmp_path: Path) -> None:
    found, notes, _ = asked(tmp_path, Answer('{"outcome": "failed", "failure_type": "disk-full", "li', "length"), REPLY)
    assert short(found["tail-200-llm"]) == ("disk-full", 0)
    assert found["tail-200-llm"]["usage"]["tokens_out"] == 10
    assert notes == []


def test_the_tail_shows_200_lines_a_file_and_no_secret() -> None:
    model = Scripted()
    lines = [(n, f"line {n} password=hunter2secret") for n in range(101, 301)]
    baseline_llm.tail([("a.log", lines), ("b.log", lines)], model)
    assert model.prompts[0].count("a.log:") == 200 and model.prompts[0].count("b.log:") == 200
    assert "hunter2secret" not in model.prompts[0]


@pytest.mark.parametrize("total", [10, 100, 5000])
def test_the_whole_log_is_cut_in_its_middle_and_says_so(total: int) -> None:
    model = Scripted()
    budget = 2000
    baseline_llm.whole([("j", ((n, f"text of line {n:06}") for n in range(1, total + 1)))], model, budget)
    shown = [line for line in model.prompts[0].split("\n") if line.startswith("j:")]
    left_out = total - len(shown)
    assert sum(map(len, shown)) <= budget
    assert shown[0].startswith("j:1:") and shown[-1].startswith(f"j:{total}:")
    assert (f"... {left_out} lines left out ..." in model.prompts[0]) == (left_out > 0) == (total > 10)
    if left_out:  # nothing that would have fitted is gone
        assert sum(map(len, shown)) > budget - 2 * len(shown[-1])


@pytest.mark.parametrize(
    ("reply", "kind", "line"),
    [
        (f"Sure! The cause:\n```json\n{REPLY}\n```", "disk-full", 3),
        ('{"failure_type": "disk-full", "line": "12"}', "disk-full", 12),
        ("The disk is full {as it seems}.", "unknown", 0),
        ("", "unknown", 0),
        ("[1, 2]", "unknown", 0),
        ('{"failure_type": "disk-full", "line": "near the end"}', "disk-full", 0),
        ('{"failure_type": ["disk-full"], "line": -1}', "['disk-full']", 0),
    ],
)
def test_whatever_a_model_replies_is_an_answer(reply: str, kind: str, line: int) -> None:
    assert short(baseline_llm.understood(reply)) == (kind, line)
