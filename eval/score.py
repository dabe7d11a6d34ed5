"""Score the rules on a folder of labelled cases: `python eval/score.py CASES [--only r001,r002] [--json FILE]`.

Each case runs through the production pipeline in a folder that holds its inputs only, with no database and no index.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from triage import pipeline
from triage.cli import wiring
from triage.errors import TriageError


def run_case(folder: Path) -> dict[str, Any]:
    case = yaml.safe_load((folder / "case.yaml").read_text("utf-8"))
    parts = wiring.parts(wiring.settings("off"), lambda _text: None, record=False, similar=False)
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as tmp:
        for name in case["inputs"]:  # a name, or "." for the whole folder
            source = folder / name
            if source.is_dir():
                shutil.copytree(source, Path(tmp) / name, dirs_exist_ok=True)
            else:
                (Path(tmp) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, Path(tmp) / name)
        os.chdir(tmp)
        try:
            _, result = pipeline.diagnose(case["inputs"], parts)
        except TriageError as error:
            result = {"error": str(error), "evidence": []}
        finally:
            os.chdir(here)
    return {"case": folder.name, **grade(case["expect"], result)}


def grade(expect: dict[str, Any], got: dict[str, Any]) -> dict[str, Any]:
    """One row of scores; None where the label does not say."""
    healthy = expect["outcome"] == "healthy"
    kind = got.get("failure_type", "")
    decisive = expect.get("evidence") or []
    cited = [(e["role"], e["file"], e["line"]) for e in got["evidence"]]

    def hit(role: str | None) -> bool | None:
        if not decisive:
            return None
        return any(
            (f in ("", file)) and a <= line <= z for r, file, line in cited for f, a, z in decisive if role in (None, r)
        )

    return {
        "want": expect["failure_type"],
        "got": kind,
        "want_outcome": expect["outcome"],
        "outcome": got.get("outcome", ""),
        "status": got.get("status", ""),
        "exact": kind == expect["failure_type"],
        "accepted": kind in [expect["failure_type"], *expect.get("also_accept", [])],
        "outcome_ok": got.get("outcome") in [expect["outcome"], *expect.get("also_outcome", [])],
        "class_ok": _same(expect.get("root_cause_class"), got.get("root_cause_class")) if not healthy else None,
        "action_ok": got.get("action") in expect["action"] if expect.get("action") else None,
        "root_hit": hit("root"),
        "any_hit": hit(None),
        "false_alarm": got.get("outcome") not in ["healthy", *expect.get("also_outcome", [])] if healthy else None,
        "false_healthy": got.get("outcome") == "healthy" and "healthy" not in expect.get("also_outcome", [])
        if not healthy
        else None,
        "root_cause": got.get("root_cause", got.get("error", "")),
    }


def _same(want: str | None, got: str | None) -> bool | None:
    return want == got if want else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    only = set(filter(None, args.only.split(",")))
    folders = sorted(p.parent.resolve() for p in args.cases.glob("*/case.yaml") if not only or p.parent.name in only)
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(run_case, folders))
    for row in rows:
        bad = [k for k in ("accepted", "outcome_ok", "root_hit", "class_ok", "action_ok") if row[k] is False]
        if bad or only:
            want, got = f"{row['want']}/{row['want_outcome']}", f"{row['got']}/{row['outcome']} ({row['status']})"
            print(f"{row['case']} want {want} got {got} {' '.join(bad)}\n     {row['root_cause'][:230]}")
    for key in ("exact", "accepted", "outcome_ok", "class_ok", "action_ok", "root_hit", "any_hit"):
        values = [r[key] for r in rows if r[key] is not None]
        print(f"{key:<14} {sum(values) / len(values):.3f} of {len(values)}" if values else f"{key:<14} not labelled")
    for key in ("false_alarm", "false_healthy"):
        print(f"{key:<14} {sum(1 for r in rows if r[key])}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    sys.exit(main())
