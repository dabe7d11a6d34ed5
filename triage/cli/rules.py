"""`triage rules`: the filter rules and signatures that were learned, and what becomes of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args

import typer

from triage.cli import output
from triage.cli.who import user
from triage.domain import SIGNATURE_PREFIX, LearnedRule, LearnedSignature, RuleSource, RuleState
from triage.errors import UsageError

if TYPE_CHECKING:
    from triage.store.rules import RuleStore

HELP = "Filter rules and signatures that were learned: which there are, and what becomes of them."
KINDS = ("filter", "signature")

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True, help=HELP)

_FORMAT = typer.Option(None, "--format", help="text or json.", show_default="text")
_RULE = typer.Argument(metavar="RULE", help="As `triage rules list` shows it: learned.7, learned-signature.2.")
_REASON = typer.Option("", "--reason", metavar="WHY", help="Kept in the history of the rule.")


@app.command("list")
def list_rules(
    kind: str = typer.Option(None, help="Only filter rules (filter) or signatures (signature)."),
    state: str = typer.Option(None, help=f"Only in this state: {', '.join(get_args(RuleState))}."),
    source: str = typer.Option(None, help=f"Only from this source: {', '.join(get_args(RuleSource))}."),
    job: str = typer.Option(None, metavar="KEY", help="Only filter rules of this kind of job, as `show` names it."),
    text: str = typer.Option(None, help="Only with this in the pattern, the title or the reason."),
    format: str = _FORMAT,  # noqa: A002
) -> None:
    """List learned filter rules, then learned signatures, the oldest first."""
    chosen = output.check_format(format, ("text", "json"))
    _check("kind", kind, KINDS)
    _check("state", state, get_args(RuleState))
    _check("source", source, get_args(RuleSource))
    from triage.cli import rules_signatures, rules_view, signatures_view

    with _open() as store, rules_signatures.opened() as known:
        found = store.list(job=job, state=state, source=source, text=text) if kind != "signature" else ()
        jobs = {key: store.job(key) for key in {rule.job for rule in found}}
        wanted = kind != "filter" and job is None
        signatures = known.list(state=state, source=source, text=text) if wanted else ()
        empty = not found and not signatures and not store.list(limit=1) and not known.list(limit=1)
    if chosen == "json":
        listed = [rules_view.summary(rule, jobs[rule.job]) for rule in found]
        output.write(rules_view.dump({"rules": listed, "signatures": [signatures_view.summary(s) for s in signatures]}))
    else:
        tables = [rules_view.as_list(found, jobs, output.width())] if found else []
        tables += [signatures_view.as_list(signatures, output.width())] if signatures else []
        output.write("\n".join(tables)) if tables else None
    if empty:
        output.note("no rule was learned yet")
    elif not found and not signatures:
        output.note("no rule fits these filters; leave one out")


@app.command()
def show(rule: str = _RULE, format: str = _FORMAT) -> None:  # noqa: A002
    """Show a rule: what it takes, where it comes from, what it took, and all that became of it."""
    chosen = output.check_format(format, ("text", "json"))
    from triage.cli import rules_view

    if rule.startswith(SIGNATURE_PREFIX):
        from triage.cli import rules_signatures

        rules_signatures.show(rule, chosen)
        return
    with _open() as store:
        found = store.get(rule)
        job, history = store.job(found.job), store.history(rule)
    if chosen == "json":
        output.write(rules_view.dump(rules_view.document(found, job, history)))
    else:
        output.write(rules_view.as_text(found, job, history, output.width()))


@app.command()
def approve(
    rule: str = _RULE,
    reason: str = _REASON,
    anyway: bool = typer.Option(
        False, "--anyway", help="Although verification refuses it; never for one that hides lines of trouble."
    ),
) -> None:
    """Put a rule or signature in force. It is verified again first, against the incidents recorded since."""
    from triage.cli import rules_check

    if rule.startswith(SIGNATURE_PREFIX):
        from triage.cli import signatures

        _say(signatures.approve(rule, reason, anyway, user()))
        return
    with _open() as store:
        found = store.get(rule)
        if found.state == "active":
            output.write(f"{rule} is active already")
            return
        if found.state in ("candidate", "retired") and found.reason and not reason:
            raise UsageError(f"{rule} is {found.state}: {found.reason}", "say why it is to be used: --reason WHY")
        result = rules_check.again(store, found)
        rules_check.demand(rule, result, anyway, reason)
        why = "; ".join(part for part in (reason, "" if result.accepted else f"against: {result.reason}") if part)
        _say(store.move(rule, "active", why or "verified again", user(), "approve"))


@app.command()
def retire(rule: str = _RULE, reason: str = _REASON) -> None:
    """Put a rule or signature out of force. It stays known, so that it is not learned again."""
    from triage.cli import rules_signatures

    with rules_signatures.opened() if rule.startswith(SIGNATURE_PREFIX) else _open() as store:
        if store.get(rule).state == "retired":
            output.write(f"{rule} is retired already")
            return
        _say(store.move(rule, "retired", reason, user(), "retire"))


@app.command()
def rollback(
    to: str = typer.Option(
        None, "--to", metavar="TIME", help="To the rules of this time: 2d, 2026-01-31 or a full time."
    ),
) -> None:
    """Take back the last change of rules and signatures; repeated, the one before it too. With --to, all since that time.

    A rule that would have hidden evidence of an incident, and a signature that an outcome contradicts, stay retired.
    """
    from triage.clock import parse_time

    when = parse_time(to, datetime.now(UTC), "--to") if to else None
    with _open() as store:
        done = store.rollback(user(), when)
    for rule in done.moved:
        _say(rule)
    for held in done.held:
        contradicted = held.startswith(SIGNATURE_PREFIX)
        why = "an outcome contradicts it" if contradicted else "it would have hidden evidence of an incident"
        output.note(f"{held} stays as it is: {why}")
    if not done.moved and not done.held:
        output.note("there is nothing to take back")


@app.command()
def test(
    words: list[str] = typer.Argument(metavar="RULE PATH", help="A rule, unless --pattern is given, and logs."),
    pattern: str | None = typer.Option(
        None, "--pattern", metavar="REGEX", help="Try this pattern (RE2) instead of a rule."
    ),
    limit: int = typer.Option(20, min=0, help="Show at most so many lines of those that it takes."),
    format: str = _FORMAT,  # noqa: A002
) -> int:
    """Show which lines of a log a rule takes, beyond those that rules in force take, and whether it may be adopted.

    Of a learned signature: which lines it matches.

    Exit codes: 0 it may, 1 it may not, 2 the rule or the log cannot be read.
    """
    chosen = output.check_format(format, ("text", "json"))
    rule, paths = (None, words) if pattern is not None else (words[0], words[1:])
    if not paths:
        raise UsageError("no log to test on", "triage rules test RULE PATH..., or --pattern REGEX PATH...")
    from triage.cli import rules_check, rules_view

    if rule is not None and rule.startswith(SIGNATURE_PREFIX):
        from triage.cli import signatures

        tried = signatures.tried(rule, paths, limit)
    else:
        tried = rules_check.tried(rule, pattern, paths, limit)
    output.write(rules_view.dump(rules_view.tried_json(tried)) if chosen == "json" else rules_view.tried_text(tried))
    return 0 if tried.result.accepted else 1


@app.command()
def learn(
    paths: list[str] | None = typer.Argument(None, metavar="PATH...", help="Logs of one job: files or folders."),
    incident: int | None = typer.Option(
        None, "--incident", metavar="ID", help="Learn a signature from this incident and its outcome instead."
    ),
    pattern: str | None = typer.Option(
        None, "--pattern", metavar="REGEX", help="With --incident: this pattern (RE2), of your own."
    ),
    line: str | None = typer.Option(
        None,
        "--line",
        metavar="E1",
        help="With --incident: the cited line that shows the cause, where it is another one.",
    ),
    llm: str = typer.Option(None, metavar="MODEL|off", help="Ask this model; off: mine templates."),
    way: str = typer.Option(
        "auto", help="write: the model writes rules; judge: it judges templates; mine: no model; auto: what it can."
    ),
    answers: int = typer.Option(3, min=1, max=9, help="Independent answers to one sample, which vote."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Keep nothing."),
    format: str = _FORMAT,  # noqa: A002
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and notes."),
) -> int:
    """Learn filter rules from what the rules in force leave over of a log, or a signature from a resolved incident.

    Each is verified before it is adopted.

    Exit codes: 0 done, 1 the model gave no answer that can be read, or no signature came of the incident, 2 the log or
    the incident cannot be read.
    """
    chosen = output.check_format(format, ("text", "json"))
    if incident is not None:
        from triage.cli import rules_signatures, signatures

        asked = signatures.Asked(paths or [], pattern or "", line or "", not dry_run)
        return rules_signatures.learn(incident, asked, llm, user(), chosen, quiet)
    if not paths:
        raise UsageError("nothing to learn from", "give logs, or --incident ID")
    if pattern or line:
        raise UsageError(
            "--pattern and --line go with --incident", "triage rules test --pattern REGEX PATH tries a rule"
        )
    from triage.agents.log_agent import WAYS, Options
    from triage.cli import rules_view, school, wiring

    _check("way", way, WAYS)
    settings = wiring.settings(llm=llm)
    if settings.llm == "off" and way in ("write", "judge"):
        raise UsageError(
            f"--way {way} needs a model", "set TRIAGE_LLM or give --llm provider:model; --way mine does without"
        )
    tell = output.teller(quiet)
    options = Options(way=way, answers=answers)  # type: ignore[arg-type]  # checked above
    learnt = school.learn(paths, settings, tell, options, user(), keep=not dry_run)
    output.clear_progress(quiet)
    for note in learnt.notes:
        output.note(note)
    if chosen == "json":
        usage = learnt.lesson.usage
        spent = {"calls": usage.calls, "tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out}
        found = [rules_view.summary(rule, learnt.job) for rule in learnt.rules]
        output.write(
            rules_view.dump({"way": learnt.lesson.way, "kinds": learnt.lesson.kinds, "usage": spent, "rules": found})
        )
        return 1 if learnt.lesson.failed else 0
    adopted = [rule for rule in learnt.rules if rule.state in ("active", "shadow")]
    if adopted:
        output.write(rules_view.as_list(adopted, {rule.job: learnt.job for rule in adopted}, output.width()))
    output.note(school.told(learnt, kept=not dry_run))
    return 1 if learnt.lesson.failed else 0


def _open() -> RuleStore:
    """Not by way of wiring, which would load the whole pipeline to read one table."""
    from triage import config
    from triage.store.rules import RuleStore

    return RuleStore.open(config.load().database_url)


def _check(name: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise UsageError(f"--{name} {value!r} is not known", f"use {', '.join(known)}")


def _say(rule: LearnedRule | LearnedSignature) -> None:
    from triage.text import printable

    output.write(f"{rule.id} is {rule.state}{': ' + printable(rule.reason) if rule.reason else ''}")
