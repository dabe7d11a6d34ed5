"""A run as one HTML page that needs nothing else: no network, no font, no other file; and the script only to filter and sort."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from triage.evaluation import record, view
from triage.evaluation.page import browse, comparison, facts, kinds, mistakes, overview
from triage.markup import Safe, el

NAME = "report.html"
SECTIONS = {
    "figures": "Figures", "mistakes": "What went wrong", "baselines": "Baselines", "status": "Status", "confusion": "Confusion",
    "types": "Types", "tags": "Splits and tags", "repeats": "Repeats", "costs": "Costs", "cases": "Cases", "run": "Run",
}  # fmt: skip


def write(run: Path) -> Path:
    """report.html in a run folder, from its run.json, records.jsonl and metrics.json. Errors: InputError, UsageError."""
    page = _page(view.load(run))
    target = run / NAME
    record.write_text(target, [page])
    return target


def render(run: Mapping[str, Any], records: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any]) -> str:
    """The page of a run's documents."""
    return _page(view.report(run, records, metrics))


def _page(report: view.Report) -> str:
    sections = [
        overview.headlines(report), mistakes.mistakes(report), comparison.baselines(report), comparison.statuses(report),
        kinds.confusions(report), kinds.by_types(report), kinds.groups(report), facts.repeats(report), facts.costs(report),
        browse.cases(report), facts.run(report),
    ]  # fmt: skip
    style, script = _asset("report.css"), _asset("report.js")
    body = el(
        "body",
        el("a", "Skip to the figures", href="#figures", class_="skip"),
        el("header", _theme(), overview.top(report)),
        _contents([name for name, part in zip(SECTIONS, sections, strict=True) if part]),
        el("main", sections),
        el("footer", el("p", "Made by triage eval report from run.json, records.jsonl and metrics.json of the run.")),
        el("script", Safe(script)),
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", overview.title(report)),
        el("style", Safe(style)),
    )
    return f"<!DOCTYPE html>\n{el('html', head, body, lang='en')}\n"


def _policy(script: str) -> str:
    """Nothing is fetched, and no script runs but ours, whatever a log line holds."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _theme() -> Safe:
    return el("button", "Theme: auto", type="button", id="theme", class_="script")


def _contents(names: Sequence[str]) -> Safe:
    return el("nav", el("ul", [el("li", el("a", SECTIONS[n], href=f"#{n}")) for n in names]), aria_label="Sections")


def _asset(name: str) -> str:
    return resources.files("triage.evaluation.page").joinpath("assets", name).read_text("utf-8").strip()
