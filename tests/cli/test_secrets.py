"""No secret of any format reaches the wire, the database, the index, a report or a trace: real processes, real bytes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run
from tests.openai_server import Asked, OpenAIServer
from tests.redact.formats import SECRETS

EVERY = sorted({secret for _, secrets in SECRETS.values() for secret in secrets})
BUDGET = {"TRIAGE_TOKEN_BUDGET": "100000"}


def log() -> str:
    lines = ["+ srun python -u /home/ada/fuse.py --config a.yaml", *[f"step {n} loss 2.{n}" for n in range(1, 40)]]
    for text, _ in SECRETS.values():
        lines += text.split("\n")
    lines += [
        "RuntimeError: cannot log in with password " + SECRETS["curl"][1][0],
        "ring 7 lost its token, peer 3 did not hand it on",
        "srun: error: gpu-17: task 3: Exited with exit code 1",
    ]
    return "\n".join(lines) + "\n"


def leaked(data: bytes) -> list[str]:
    return [secret for secret in EVERY if secret.encode() in data]


def sent(server: OpenAIServer) -> bytes:
    """All that arrived: paths, headers and bodies."""
    found = [[a.path, dict(a.headers), a.body] for a in server.requests]
    return json.dumps(found, ensure_ascii=False).replace("\\\\", "\\").replace('\\"', '"').encode()


def written(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def answer(asked: Asked) -> str:
    """Quotes all that it was shown, as a model may."""
    return json.dumps({"outcome": "failed", "failure_type": "collective-mismatch", "root_cause_class": "software-bug",
                       "root_cause": asked.text[-4000:], "action": "fix-and-resubmit", "rules": [], "routine": []})  # fmt: skip


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.out"
    path.write_text(log())
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_a_diagnosis_sends_records_and_prints_none(triage: Run, job: Path, home: Path, tmp_path: Path) -> None:
    with OpenAIServer(answer) as server:
        env = {**server.env(), **BUDGET, "TRIAGE_HOME": str(home)}
        done = [
            triage("diagnose", "job.out", "--trace", "calls.jsonl", "--verbose", "--format", how, **env)
            for how in ("json", "markdown", "text")
        ]
        done.append(triage("diagnose", "job.out", "--print-prompt", **env))
        on_wire = sent(server)
    assert all(one.returncode in (0, 1) for one in done), [one.stderr for one in done]
    assert on_wire.count(b"[redacted:") > len(SECRETS) / 2
    assert leaked(on_wire) == []
    assert leaked((tmp_path / "calls.jsonl").read_bytes()) == []
    assert leaked("".join(one.stdout + one.stderr for one in done).encode()) == []
    assert (home / "triage.db").stat().st_size > 0
    assert leaked(written(home)) == []


def test_compression_and_learning_send_keep_and_print_none(triage: Run, job: Path, home: Path, tmp_path: Path) -> None:
    with OpenAIServer(answer) as server:
        env = {**server.env(), **BUDGET, "TRIAGE_HOME": str(home)}
        done = [
            triage("compress", "job.out", "--format", "json", **env),
            triage("rules", "learn", "job.out", "--answers", "1", **env),
            triage("rules", "list", "--format", "json", **env),
            triage(
                "compress", "--follow", "job.out", "--until-idle", "0.5", "--out", "small.out", "--llm", "off", **env
            ),
        ]
        assert server.requests
        on_wire = sent(server)
    assert [one.stderr for one in done if one.returncode] == []
    assert done[0].stdout.count("[redacted:") > len(SECRETS) / 2
    assert leaked("".join(one.stdout + one.stderr for one in done).encode()) == []
    assert b"[redacted:" in (tmp_path / "small.out").read_bytes()
    assert leaked((tmp_path / "small.out").read_bytes()) == []
    assert leaked(on_wire) == []
    assert leaked(written(home)) == []


def test_an_evaluation_sends_and_keeps_none(triage: Run, job: Path, home: Path, tmp_path: Path) -> None:
    case = tmp_path / "cases" / "a1"
    case.mkdir(parents=True)
    shutil.copy(job, case / "job.out")
    label = {"schema": "triage.case/1", "id": "a1", "source": SECRETS["curl"][0], "synthetic": True, "split": "dev",
             "tags": [], "inputs": ["job.out"], "expect": {"outcome": "failed", "failure_type": "connection-error",
                                                           "evidence": [["job.out", 41, 60]]}}  # fmt: skip
    (case / "case.yaml").write_text(yaml.safe_dump(label))
    with OpenAIServer(answer) as server:
        done = triage("eval", "run", "cases", "--out", "run", "--no-similar", **server.env(), **BUDGET,
                      TRIAGE_HOME=str(home))  # fmt: skip
        shown = triage("eval", "report", "run", TRIAGE_HOME=str(home))
        asked = server.requests
        on_wire = sent(server)
    assert (done.returncode, shown.returncode) == (0, 0), done.stderr + shown.stderr
    assert sum("each line as FILE:NUMBER" in one.text for one in asked) == 2  # both baselines were asked too
    assert leaked(on_wire) == []
    assert leaked(written(tmp_path / "run")) == []
    assert leaked(written(home)) == []
    assert leaked((done.stdout + done.stderr + shown.stdout).encode()) == []


def test_an_incident_of_the_user_is_kept_and_indexed_without_any(triage: Run, home: Path, tmp_path: Path) -> None:
    text = "\n".join(text for text, _ in SECRETS.values())
    incident = {"id": "MINE-1", "title": "it failed " + SECRETS["curl"][0], "failure_type": "cuda-error",
                "symptoms": text, "root_cause": text, "remediation": [text], "components": ["gpu"], "date": "2026-01-01",
                "error_strings": [text], "org": "mine", "root_cause_class": "hardware-failure"}  # fmt: skip
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(incident))
    env = {"TRIAGE_HOME": str(home)}
    added = triage("kb", "add", "mine.yaml", **env)
    found = triage("kb", "search", "it failed with curl", **env)
    assert (added.returncode, found.returncode) == (0, 0), added.stderr + found.stderr
    assert "MINE-1" in found.stdout
    assert any(path.suffix == ".sqlite3" for path in home.rglob("*"))  # the index of Chroma
    assert leaked(written(home)) == []
    assert leaked((added.stdout + found.stdout).encode()) == []


def test_no_secret_of_the_settings_is_kept_with_an_incident(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "job.out").write_text("step 1\nRuntimeError: CUDA error: out of memory\n")
    given = {
        "TRIAGE_SERVE_TOKENS": "ada:write:serveword1serveword1;bob:read:serveword2serveword2",
        "TRIAGE_NOTIFY": "https://hooks.example/services/hookword1",
        "TRIAGE_SMTP_URL": "smtp://ada:smtpword1@mail.example",
        "TRIAGE_MCP_TOKEN": "mcpword1mcpword1mcpword1",
        "TRIAGE_SLACK_BOT_TOKEN": "xoxb-slackword1",
        "TRIAGE_SLACK_APP_TOKEN": "xapp-slackword2",
        "TRIAGE_LLM_API_KEY": "keyword1",
    }
    home = tmp_path / "home"
    done = triage("diagnose", "job.out", **given, TRIAGE_HOME=str(home))
    assert "Recorded as incident 1" in done.stdout, done.stderr
    found = written(home)
    assert b"half_life" in found  # the settings in force are kept
    for word in ("serveword", "hookword", "smtpword", "mcpword", "slackword", "keyword1"):
        assert word.encode() not in found, word
