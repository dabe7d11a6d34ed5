"""How much of logs the compressed log leaves out, and what it keeps: python -m benchmarks.compression CASES... [--llm]

CASES: folders of labelled cases. Each log is compressed twice: with the shipped rules alone, and after a lesson of the
log agent on the same log; with no model templates are mined, with --llm the model of the settings is asked. Nothing is
kept. `decisive` counts the cases of which the compressed log shows every labelled line, or the line it was folded into.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from triage import kb, learning, pipeline
from triage.agents.log_agent import WAYS, Options
from triage.cli import wiring
from triage.compress.verify import ProtectedBank, Verifier
from triage.domain import Folded, JobPrint, LearnedRule
from triage.evaluation.cases import Case, load_cases
from triage.evaluation.kept import kept
from triage.llm.limits import Limits

LARGE = 200_000


@dataclass
class Memory:
    """Learned rules of this process alone."""

    rules: tuple[LearnedRule, ...] = ()
    writes: bool = False

    def in_force(self, _job: JobPrint) -> tuple[LearnedRule, ...]:
        return tuple(rule for rule in self.rules if rule.state in ("active", "shadow"))

    def find(self, rule: str) -> LearnedRule | None:
        return next((learned for learned in self.rules if learned.rule.id == rule), None)

    def settle(self, _hits: object, _retired: object) -> None: ...


@dataclass(frozen=True)
class Row:
    case: str
    size: int
    healthy: bool
    before: float  # share of bytes left out with the shipped rules alone
    after: float  # with what was learned
    whole: tuple[bool, bool]  # whether every decisive line is there
    adopted: int
    calls: int


def measure(case: Case, llm: bool, options: Options) -> Row:
    memory = Memory()
    settings = wiring.settings()
    parts = wiring.parts(settings, lambda _text: None, record=False, similar=False, rules=memory)
    before = pipeline.compress(case.inputs, parts)

    def verifier(cited: Sequence[str]) -> Verifier:
        return Verifier(ProtectedBank((*kb.protected_lines(), *cited), kb.signatures()), kb.unrelated_lines())

    model = wiring.model(settings) if llm else None
    school = learning.School(verifier, lambda _job: (), None, model, options)
    learnt = learning.learn(case.inputs, parts, school)
    memory.rules = learnt.rules
    after = pipeline.compress(case.inputs, replace(parts, rules=memory))
    adopted = sum(rule.state == "active" for rule in learnt.rules)
    size = before.account.bytes_in
    return Row(
        case.id, size, case.expect.outcome == "healthy", _left_out(before), _left_out(after),
        (_whole(case, before), _whole(case, after)), adopted, learnt.lesson.usage.calls,
    )  # fmt: skip


def _left_out(folded: Folded) -> float:
    return 1 - folded.account.bytes_kept / max(1, folded.account.bytes_in)


def _whole(case: Case, folded: Folded) -> bool:
    shown = [(line.file, line.number, line.text, line.repeats) for line in folded.lines]
    files = dict(case.files())
    return all(kept(decisive, shown, files) for decisive in case.expect.evidence or ())


def table(rows: Sequence[Row]) -> None:
    for name, chosen in (
        (f"over {LARGE // 1000} KB", [row for row in rows if row.size > LARGE]),
        ("healthy", [row for row in rows if row.healthy]),
        ("all", rows),
    ):
        if not chosen:
            continue
        before, after = (statistics.median(getattr(row, field) for row in chosen) for field in ("before", "after"))
        whole = [sum(row.whole[at] for row in chosen) for at in (0, 1)]
        print(
            f"{name:12} {len(chosen):3} logs: left out (median) {before:.2%}, after learning {after:.2%}; "
            f"every decisive line kept in {whole[0]}, after learning {whole[1]}; "
            f"a rule adopted for {sum(row.adopted > 0 for row in chosen)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--llm", action="store_true")
    parser.add_argument("--way", default="auto", choices=WAYS)
    parser.add_argument("--calls", type=int, default=60, help="most calls of the model for one log")
    parser.add_argument("--only", nargs="*", help="ids of cases")
    args = parser.parse_args()
    options = Options(way=args.way, limits=Limits(calls=args.calls))
    rows = []
    for folder in args.cases:
        for case in load_cases(folder.resolve()):
            if args.only and case.id not in args.only:
                continue
            os.chdir(case.folder)
            row = measure(case, args.llm, options)
            print(
                f"{row.case:8} {row.size / 1e3:9.0f} KB  {row.before:7.2%} {row.after:7.2%}  {row.adopted:3} rules  "
                f"{row.calls:3} calls  {'' if all(row.whole) else 'a decisive line is missing'}",
                flush=True,
            )
            rows.append(row)
    table(rows)


if __name__ == "__main__":
    main()
