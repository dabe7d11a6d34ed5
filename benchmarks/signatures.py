"""What learned signatures would do to jobs that went well: `python -m benchmarks.signatures CASES`.

Each line that decided a labelled case is taken as the root of a failure that a person corrected to another type, and a
signature made from it by code. Those that verification accepts are tried on every line of the healthy cases.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from triage import kb
from triage.evaluation.cases import load_cases
from triage.regex import PatternSet
from triage.signing import shipped
from triage.signing.pattern import proposals
from triage.signing.verify import Case, Verifier
from triage.store.signature_rows import spared

TYPE = "network-error"


def accepted(checks: Counter[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """By pattern the line it was made from, and what it is not asked of."""
    verifier = Verifier(shipped.banks())
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for line in kb.protected_lines():
        for pattern in proposals(line) or ("",):
            result = verifier.check(pattern, Case(TYPE, (line,)))
            if result.accepted:
                found[pattern] = line, spared((line,))
                break
        checks[result.check or "accepted"] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", type=Path, help="folders of labelled cases")
    parser.add_argument("--show", action="store_true", help="the lines of healthy cases that are matched")
    options = parser.parse_args()
    checks: Counter[str] = Counter()
    made = accepted(checks)
    patterns = list(made)
    anywhere = PatternSet(patterns, "learned")
    healthy = [case for folder in options.cases for case in load_cases(folder) if case.expect.outcome == "healthy"]
    hits: dict[int, str] = {}
    touched = set()
    for case in healthy:
        for _, path in case.files():
            for line in dict.fromkeys(path.read_text(errors="replace").splitlines()):
                for at in anywhere.match(line):
                    if not any(PatternSet([part], "spared").match(line) for part in made[patterns[at]][1]):
                        hits.setdefault(at, f"{case.id}: {line[:200]}")
                        touched.add(case.id)
    print(f"{checks.total()} lines: {', '.join(f'{count} {check}' for check, count in checks.most_common())}")
    print(f"{len(hits)} of {len(made)} signatures match a line of {len(touched)} of {len(healthy)} healthy cases")
    for at, line in hits.items() if options.show else ():
        print(f"  {patterns[at]}\n    {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
