"""`triage diagnose` and `compress` as a user runs them: whole output, exit codes, streams, and the row that is recorded."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.conftest import REPO

EXAMPLE = "examples/lost-gpu"
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
CONTRACT = {
    "schema", "incident", "outcome", "failure_type", "category", "root_cause_class", "status", "root_cause", "evidence", "chain",
    "hypotheses", "suspects", "action", "remediation", "similar", "runs", "progress", "compression", "produced_by", "missing",
    "timing", "usage",
}  # fmt: skip


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_shipped_example_is_diagnosed_with_cited_lines_and_recorded(triage: Run) -> None:
    done = triage("diagnose", EXAMPLE, "--format", "json", cwd=REPO)
    d = answer(done)
    assert (done.returncode, done.stderr) == (0, "")
    assert d.keys() >= CONTRACT
    assert (d["schema"], d["outcome"], d["failure_type"], d["status"]) == (
        "triage.diagnosis/1",
        "failed",
        "gpu-lost",
        "established",
    )
    assert d["suspects"]["nodes"] == ["gpu-042"]
    assert d["incident"] == 1
    assert d["similar"], "the shipped incidents hold lost GPUs"
    for e in d["evidence"]:
        line = (REPO / e["file"]).read_text("utf-8").split("\n")[e["line"] - 1]
        assert e["text"] in line or line in e["text"]
    shown = answer(triage("incidents", "show", "1", "--format", "json"))
    assert shown.pop("record")["outcomes"] == []
    assert shown == d


def test_text_fits_eighty_columns_and_names_the_cause_first(triage: Run) -> None:
    done = triage("diagnose", EXAMPLE, "--no-record", cwd=REPO)
    lines = done.stdout.splitlines()
    assert lines[0] == "FAILED  gpu-lost  (established)"
    assert "fallen off the" in " ".join(" ".join(lines[1:4]).split())
    commands = [line for line in lines if line.lstrip().startswith("$ ")]
    assert [line for line in lines if len(line) > 80 and line not in commands] == []
    assert any("sbatch --exclude=gpu-042" in c for c in commands)
    assert "Recorded" not in done.stdout


def test_markdown_keeps_log_text_inside_code(triage: Run) -> None:
    log = "iteration 1/ 9 | lm loss: 2.1\n# not a heading\nKeyError: '<b>`x`</b> **bold**'\n"
    done = triage("diagnose", "-", "--no-record", "--format", "markdown", stdin=log)
    assert done.stdout.startswith("## failed: key-error")
    body = [line for line in done.stdout.splitlines() if "bold" in line]
    assert body
    assert all("**bold**" not in line.split("`")[0::2] for line in body)


def test_stdin_and_compressed_files_give_the_same_answer(triage: Run, tmp_path: Path) -> None:
    text = "loading\nTraceback (most recent call last):\n  File \"t.py\", line 3, in f\n    g()\nKeyError: 'text'\n"
    (tmp_path / "job.log.gz").write_bytes(gzip.compress(text.encode()))
    piped = answer(triage("diagnose", "-", "--format", "json", "--no-record", stdin=text))
    packed = answer(triage("diagnose", "job.log.gz", "--format", "json", "--no-record"))
    for d in (piped, packed):
        cited = [(e["line"], e["role"]) for e in d["evidence"]]
        assert (d["failure_type"], cited) == ("key-error", [(5, "root"), (3, "context")])
        assert "t.py, line 3 in f: `g()`" in d["root_cause"]
    assert (piped["evidence"][0]["file"], packed["evidence"][0]["file"]) == ("-", "job.log.gz")
    assert piped["incident"] is None


def test_an_unknown_cause_is_exit_code_1_and_says_what_to_fetch(triage: Run) -> None:
    done = triage("diagnose", "-", "--no-record", stdin="starting\nthe frobnicator failed with code 7\n")
    assert done.returncode == 1
    assert done.stdout.startswith("FAILED  unknown  (unknown)")
    assert "1. Fetch the logs of every rank" in done.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "no input"),
        (("nope.log",), "nope.log: no such file or folder"),
        (("--format", "xml", "-"), "--format 'xml' is not known"),
        (("--frobnicate",), "No such option"),
    ],
)
def test_bad_use_is_one_clear_line_and_exit_code_2(triage: Run, args: tuple[str, ...], says: str) -> None:
    done = triage("diagnose", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_secrets_reach_neither_the_output_nor_the_database(triage: Run, tmp_path: Path) -> None:
    log = f"export OPENAI_API_KEY={SECRET}\nValueError: bad key {SECRET}\n"
    home = tmp_path / "home"
    done = triage("diagnose", "-", "--format", "json", stdin=log, TRIAGE_HOME=str(home))
    assert answer(done)["failure_type"] == "value-error"
    assert SECRET[:20] not in done.stdout + done.stderr
    stored = [p for p in home.rglob("*") if p.is_file() and SECRET.encode()[:20] in p.read_bytes()]
    assert stored == []


def test_a_database_that_cannot_be_written_does_not_hide_the_diagnosis(triage: Run) -> None:
    done = triage(
        "diagnose", "-", "--format", "json", stdin="KeyError: 'a'\n", TRIAGE_DATABASE_URL="sqlite:////proc/nope/x.db"
    )
    d = answer(done)
    assert (done.returncode, d["failure_type"], d["incident"]) == (0, "key-error", None)
    assert any("was not recorded" in note for note in d["missing"])


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m triage compress {EXAMPLE} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=REPO, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_compress_keeps_the_decisive_lines_and_accounts_for_all_others(triage: Run) -> None:
    d = answer(triage("compress", f"{EXAMPLE}/slurm-771204.out", "--format", "json", cwd=REPO))
    c = d["compression"]
    kept = {line["line"]: line for line in d["lines"]}
    total = len((REPO / EXAMPLE / "slurm-771204.out").read_text("utf-8").splitlines())
    assert c["lines_in"] == total
    assert c["lines_kept"] + c["folded"] + c["cut"] + sum(x["lines"] for x in c["dropped"]) == total
    assert 188 in kept
    assert c["bytes_kept"] < c["bytes_in"] / 4


def test_help_needs_no_heavy_import() -> None:
    code = (
        "import sys; sys.argv = ['triage', '--help']\n"
        "from triage.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'sqlalchemy', 'chromadb', 'onnxruntime', 'rich', 'numpy', 're2', 'yaml'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_lines_that_a_rule_took_are_shown_again_with_context(triage: Run) -> None:
    log = f"{EXAMPLE}/slurm-771204.out"
    done = triage("compress", log, "--dropped", "megatron.iteration", "--context", "1", cwd=REPO)
    lines = done.stdout.splitlines()
    taken = [line for line in lines if line.startswith(f"{log}:")]
    assert len(taken) == 142
    assert any(line.startswith(f"{log}-181-") and "Traceback" in line for line in lines)
    wrong = triage("compress", log, "--dropped", "megatron.iterations", cwd=REPO)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "perhaps megatron.iteration" in wrong.stderr


def test_the_same_log_again_is_the_same_incident_and_a_task_of_its_array_an_attempt(
    triage: Run, tmp_path: Path
) -> None:
    error = "2026-01-01 12:20:00 torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0\n"
    for task in (1, 2):
        (tmp_path / f"slurm-4711_{task}.out").write_text(f"task {task}\n{error}")
    first = triage("diagnose", "slurm-4711_1.out", "--llm", "off")
    again = triage("diagnose", "slurm-4711_1.out", "--llm", "off", "--format", "json")
    task = triage("diagnose", "slurm-4711_2.out", "--llm", "off")
    new = triage("diagnose", "slurm-4711_2.out", "--llm", "off", "--new")

    assert first.stdout.endswith("Recorded as incident 1.\n")
    assert (answer(again)["incident"], answer(again)["recurrence"]["kind"]) == (1, "first")
    assert task.stdout.endswith("Recorded as attempt 2 of incident 1.\n")
    assert new.stdout.endswith("Recorded as incident 2.\n")
    record = answer(triage("incidents", "show", "1", "--format", "json"))["record"]
    assert [a["external_id"] for a in record["attempts"]] == ["4711_1", "4711_2"]
    assert [v["attempt"] for v in record["versions"]] == [1, 1, 2]
    assert len(record["kb_version"]) == 16
