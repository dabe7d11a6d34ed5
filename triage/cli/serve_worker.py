"""The process that diagnoses for `triage serve`; triage/web/worker.py says how it is spoken with."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import IO, Any

from triage import pipeline
from triage.cli import wiring
from triage.errors import TriageError
from triage.redact import redact


def main() -> None:
    """Until stdin ends. Only what is said to the server goes to stdout."""
    server = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        for line in sys.stdin:
            asked = json.loads(line)
            _say(server, _diagnosed(server, asked["folder"], asked["paths"]))


def _diagnosed(server: IO[str], folder: str, paths: list[str]) -> dict[str, Any]:
    try:
        os.chdir(folder)  # so that files go by the names under which they were sent
        chosen = wiring.settings()
        rules = wiring.learned_rules(chosen, writes=True)
        parts = wiring.parts(chosen, lambda text: _say(server, {"told": text}), rules=rules)
        result, document = pipeline.diagnose(paths, wiring.with_good_runs(parts, chosen, writes=True))
    except TriageError as error:
        return {"error": redact(str(error))}
    except Exception as error:  # noqa: BLE001 - the next job can still be diagnosed
        return {"error": f"this went wrong inside ({type(error).__name__}); please report it"}
    if document["incident"] is None:
        return {
            "error": next((m for m in reversed(result.missing) if "recorded" in m), "the incident was not recorded")
        }
    return {name: document[name] for name in ("incident", "failure_type", "outcome", "status")}


def _say(server: IO[str], said: dict[str, Any]) -> None:
    server.write(json.dumps(said) + "\n")
    server.flush()


if __name__ == "__main__":
    main()
