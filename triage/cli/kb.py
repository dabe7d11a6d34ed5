"""`triage kb`: what triage knows, and what the user adds to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from triage.cli import output
from triage.errors import NotFoundError, TriageError, UsageError

HELP = "The knowledge base: past incidents, signatures of failures, filter rules of routine lines, runbooks."
KINDS = ("incidents", "signatures", "filters", "runbooks")
SCHEMA = "triage.kb/1"

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True, help=HELP)

_FORMAT = typer.Option(None, "--format", help="text or json.", show_default="text")
_TYPE = typer.Option(None, "--type", metavar="TYPE", help="Only this failure type, such as ecc-error.")


@app.command("list")
def list_entries(
    kind: str = typer.Option("incidents", "--kind", help=f"What to list: {', '.join(KINDS)}."),
    failure_type: str = _TYPE,
    format: str = _FORMAT,  # noqa: A002
) -> None:
    """List what is known: shipped entries and your own."""
    chosen = output.check_format(format, ("text", "json"))
    if kind not in KINDS:
        raise UsageError(f"--kind {kind!r} is not known", f"use {', '.join(KINDS)}")
    if failure_type is not None and kind == "filters":
        raise UsageError("--type does not go with --kind filters", "filter rules take routine lines of any job")
    from triage.cli import kb_entries, kb_view, wiring

    kb_entries.check_type(failure_type)
    entries, problems = kb_entries.entries(wiring.settings().home, kind)
    shown = [entry for entry in entries if failure_type in (None, entry.summary.get("failure_type"))]
    if chosen == "json":
        _write_json({"kind": kind, "entries": [entry.summary for entry in shown]})
    elif shown:
        output.write(kb_view.as_list(shown))
    _tell(problems)
    if not shown:
        output.note(f"no {kind[:-1]} of this type is known")


@app.command()
def show(
    entry_id: str = typer.Argument(metavar="ID", help="As `triage kb list` shows it."),
    format: str = _FORMAT,  # noqa: A002
) -> None:
    """Show one incident, signature, filter rule, or the runbook of a failure type."""
    chosen = output.check_format(format, ("text", "json"))
    from triage.cli import kb_entries, kb_view, wiring

    home = wiring.settings().home
    ids: list[str] = []
    problems: list[str] = []
    for kind in KINDS:
        entries, wrong = kb_entries.entries(home, kind)
        problems += wrong
        for entry in entries:
            if entry.id == entry_id:
                if chosen == "json":
                    _write_json(entry.document())
                else:
                    output.write(kb_view.as_text(entry, output.width()))
                return
        ids += [entry.id for entry in entries]
    _tell(problems)
    raise NotFoundError(f"the knowledge base has no {entry_id!r}", kb_entries.did_you_mean(entry_id, ids))


@app.command()
def search(
    text: list[str] = typer.Argument(metavar="TEXT...", help="What happened, in words, or lines of the log."),
    failure_type: str = _TYPE,
    limit: int = typer.Option(5, "--limit", "-k", min=1, max=1000, help="At most so many."),
    format: str = _FORMAT,  # noqa: A002
) -> None:
    """Find what is known of this: signatures, runbooks, and past incidents with the reason why they are alike."""
    chosen = output.check_format(format, ("text", "json"))
    if not any(word.strip() for word in text):
        raise UsageError("nothing to search for", 'give words or lines of a log: triage kb search "NCCL timeout"')
    from triage.cli import kb_entries, kb_search, kb_view, recalling, wiring
    from triage.retrieve.rank import MIN_SCORE_ASKED, Query

    kb_entries.check_type(failure_type)
    query = Query(" ".join(text), failure_type or "")
    found, problems = recalling.similar(wiring.settings(), query, limit, MIN_SCORE_ASKED)
    known = kb_search.known("\n".join(text), failure_type or "")
    if chosen == "json":
        rules = [entry.document() for entry in known]
        _write_json({"known": rules, "similar": kb_view.similar_json(found), "missing": list(problems)})
    elif found or known:
        output.write(kb_view.as_known(known, output.width()) + kb_view.as_hits(found, output.width()))
    _tell(problems)
    if not found and not known:
        output.note("nothing like it is known; use other words, or `triage kb list`")


@app.command("import")
def import_files(
    paths: list[Path] = typer.Argument(metavar="PATH...", help="Files, or folders of files, of incidents."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Only problems."),
) -> int:
    """Take incidents from IncidentLib records (JSON, JSON lines, copied pages) or triage's own YAML.

    Secrets are removed. What is known already stays as it is, so that importing twice changes nothing.
    """
    from triage.cli import kb_entries, kb_store, wiring

    home, failed, counts = wiring.settings().home, False, dict.fromkeys(kb_store.RESULTS, 0)
    for path in kb_store.files(paths):
        try:
            for incident in kb_store.read(path):
                counts[kb_store.save(home, incident)] += 1
        except TriageError as error:
            failed = True
            output.note(str(error))
    if not quiet:
        total = ", ".join(f"{count} {result}" for result, count in counts.items() if count) or "nothing"
        output.write_last(f"{total}: {kb_entries.user_folder(home)}")
    return 2 if failed else 0


@app.command()
def add(
    file: Path = typer.Argument(
        metavar="FILE", help="One incident as YAML; `triage kb show ID --format json` shows the fields."
    ),
) -> None:
    """Add one incident of your own, or a newer version of it."""
    from triage.cli import kb_store, wiring

    home = wiring.settings().home
    incident = kb_store.read_own(file)
    result = kb_store.save(home, incident, replace_own=True)
    output.write(f"{result}: {incident.id} in {kb_store.path_of(home, incident.id)}")


@app.command()
def reindex(quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress.")) -> None:
    """Build the vector index anew from the knowledge base and the database, which are the truth.

    Needed after a database was restored, moved or filled from elsewhere; small differences are mended with each question.
    """
    from triage.cli import recalling, wiring

    entries, recorded = recalling.reindex(wiring.settings(), output.teller(quiet))
    output.clear_progress(quiet)
    output.write_last(f"{entries} entries of the knowledge base, {recorded} recorded incidents")


@app.command()
def check(format: str = _FORMAT) -> int:  # noqa: A002
    """Check every file of the knowledge base, shipped and your own: form, labels, and the proof of each rule.

    Exit codes: 0 all is well, 2 something is not; each problem is one line.
    """
    chosen = output.check_format(format, ("text", "json"))
    from triage.cli import kb_check, wiring

    counts, problems = kb_check.check(wiring.settings().home)
    if chosen == "json":
        _write_json({"checked": counts, "problems": problems})
    else:
        checked = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        output.write_last("\n".join(problems) or f"ok: {checked}")
    return 2 if problems else 0


def _write_json(document: dict[str, Any]) -> None:
    output.write_last(json.dumps({"schema": SCHEMA, **document}, ensure_ascii=False))


def _tell(problems: Any) -> None:
    for problem in problems:
        output.note(problem)
