"""Write kb/protected/labelled.txt from the labelled cases: `python tools/protected_bank.py [--check]`.

It holds the lines that people marked as evidence, secrets replaced, each once. Records that the scan takes as routine
are left out: a loss is evidence by its number, and no rule can be asked to spare the one and take the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from triage import kb, redact
from triage.compress import clean
from triage.compress.classify import Classifier
from triage.evaluation.cases import Case, load_cases
from triage.evidence.match import Matcher
from triage.regex import skeleton

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "eval" / "cases"
TARGET = ROOT / "kb" / "protected" / "labelled.txt"
MAX_LENGTH = 600  # characters; a longer line is cut at its end
HEAD = """\
# Lines that decided labelled cases: no learned rule may take one of them.
# Made by `python tools/protected_bank.py` from eval/cases.
"""


def page() -> str:
    matcher = Matcher(kb.signatures())
    scan = Classifier(kb.filter_rules(), matcher.hot_patterns(), matcher.patterns)
    lines = dict.fromkeys(line for case in load_cases(CASES) for line in _decisive(case, scan))
    return HEAD + "".join(f"{line}\n" for line in lines)


def _decisive(case: Case, scan: Classifier) -> Iterator[str]:
    for marked in case.expect.evidence or ():
        for name, path in case.files():
            if marked.file not in ("", name):
                continue
            raw = path.read_bytes().split(b"\n")[marked.first - 1 : marked.last]
            for line in raw:
                text = redact.redact(clean.text(line.rstrip(b"\r")))[:MAX_LENGTH].rstrip()
                if any(map(str.isalpha, text)) and not text.startswith("# ") and not _routine(scan, line):
                    yield text


def _routine(scan: Classifier, line: bytes) -> bool:
    return scan.kind(scan.shape(line, skeleton(line)), line).name == "routine"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where the file is another")
    made = page()
    if parser.parse_args().check:
        return 0 if TARGET.is_file() and TARGET.read_text("utf-8") == made else 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
