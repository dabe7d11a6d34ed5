"""What a model gets to see of people, from the command to the wire; the report has them back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.openai_server import Asked, OpenAIServer

PEOPLE = ("alice", "bob.smith", "10.1.2.3", "store.corp.example")
LOG = "\n".join(
    [
        "+ srun python -u /home/alice/fuse.py --mail bob.smith@uni.example.org",
        *[f"step {n} loss 2.{n}" for n in range(1, 40)],
        "ring 7 lost its token: /home/alice/tokens on 10.1.2.3 failed, see https://store.corp.example/r/7",
        "srun: error: gpu-17: task 3: Exited with exit code 1",
        "",
    ]
)


def said(asked: Asked) -> str:
    """Quotes the line as it was shown."""
    line = next(line for line in asked.text.split("\n") if line.startswith("job.out:41 "))
    place = next(word for word in line.split() if word.startswith("/home/"))
    return json.dumps({
        "outcome": "failed", "failure_type": "storage-error", "root_cause_class": "dependency-failure",
        "root_cause": f"The tokens of ring 7 in {place} could not be read on gpu-17.",
        "cited": [{"file": "job.out", "line": 41, "quote": line.removeprefix("job.out:41 "), "role": "root"},
                  {"file": "job.out", "line": 42, "quote": "gpu-17: task 3: Exited", "role": "cascade"}],
        "nodes": ["gpu-17"], "ranks": [], "action": "fix-and-resubmit", "steps": [],
    })  # fmt: skip


def test_people_are_in_the_report_and_nowhere_on_the_way(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "job.out").write_text(LOG)
    with OpenAIServer(said) as server:
        done = triage("diagnose", "job.out", "--format", "json", "--no-record", "--trace", "t.jsonl", **server.env())
        sent = json.dumps([asked.body for asked in server.requests])
    printed = triage("diagnose", "job.out", "--print-prompt").stdout
    again = triage("diagnose", "job.out", "--format", "json", "--no-record", "--replay", "t.jsonl")
    for way in (sent, printed, (tmp_path / "t.jsonl").read_text()):
        assert [who for who in PEOPLE if who in way] == []
        assert "/home/<user-1>/tokens on <ip-1> failed, see https://<host-1>/<path-1>" in way
        assert "gpu-17" in way
    for report in map(json.loads, (done.stdout, again.stdout)):
        assert report["failure_type"] == "storage-error", report["missing"]
        assert "/home/alice/tokens" in report["root_cause"]
        assert report["suspects"]["nodes"] == ["gpu-17"]
        assert any(e["text"].endswith("https://store.corp.example/r/7") for e in report["evidence"])
