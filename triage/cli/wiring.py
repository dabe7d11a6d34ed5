"""The composition root: the only place that knows which parts a pipeline is made of."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from triage import config, kb, learned, scanning
from triage.cli.who import user
from triage.config import Settings
from triage.diagnose.judge import Knowledge
from triage.domain import Diagnosis, Filed, History, LearnedSignature, Similar
from triage.errors import IndexUnavailableError, TriageError
from triage.evidence.match import Matcher
from triage.learned import ROUTINE_SIGNATURES, Rules
from triage.parts import Parts, Recall, Record, Remember, Tell
from triage.runbooks import runbooks

if TYPE_CHECKING:
    from pathlib import Path

    from triage.cli.case import Case
    from triage.compress.verify import Verifier
    from triage.llm.private import Private
    from triage.llm.values import ChatModel
    from triage.store.incidents import IncidentStore
    from triage.store.rules import RuleStore
    from triage.store.values import JobRef


def settings(llm: str | None = None, **flags: str | None) -> Settings:
    _tell_unknown()
    return config.load({"llm": llm, **flags})


@functools.cache
def _tell_unknown() -> None:
    """Once a process."""
    from triage.cli import output

    for words in config.unknown_variables():
        output.note(words)


@functools.cache
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def site_knowledge(chosen: Settings) -> tuple[Knowledge, tuple[str, ...]]:
    """With the signatures that were learned here and are in force; and in words why some are not used."""
    known = knowledge()
    try:
        found, notes = learned.sound(_active_signatures(chosen))
    except (TriageError, OSError) as error:
        return known, (f"learned signatures were not used: {error}",)
    return (replace(known, matcher=Matcher((*kb.signatures(), *found))) if found else known), notes


def _active_signatures(chosen: Settings) -> tuple[LearnedSignature, ...]:
    if not made(chosen):
        return ()
    from triage.store.signatures import SignatureStore

    with SignatureStore.open(chosen.database_url) as store:
        return store.list(state="active")


def parts(
    chosen: Settings,
    tell: Tell,
    record: bool = True,
    similar: bool = True,
    rules: Rules | None = None,
    site: bool = True,
    new: bool = False,
) -> Parts:
    """Everything a diagnosis needs; the index is opened only when it is used. rules: those learned; site: with the
    signatures that were learned here; new: it is recorded as a new incident, even where it belongs to one that there is."""
    from triage.cli import asking

    known, notes = site_knowledge(chosen) if site else (knowledge(), ())
    return Parts(
        knowledge=known,
        notes=notes,
        filters=kb.filter_rules(),
        recall=_recall(chosen) if similar else None,
        explain=asking.explain(model(chosen), chosen, known.matcher, tell),
        record=_record(chosen, new) if record else None,
        remember=_remember(chosen) if similar else None,
        tell=tell,
        token_budget=chosen.token_budget,
        rules=rules,
        jobs=chosen.jobs or scanning.usable_cpus(),
    )


def with_good_runs(parts: Parts, chosen: Settings, writes: bool) -> Parts:
    """The same, comparing with the last run of the same kind of job that went well. writes: one that does is kept."""
    from triage.cli.good_runs import GoodRuns

    known = GoodRuns(chosen.database_url)
    return replace(parts, good=known.last, keep=known.keep if writes else None)


def for_job(parts: Parts, chosen: Settings, job: Case, new: bool) -> Parts:
    """The same for a job that was asked for by its id, and which is recorded under it."""
    record = _record(chosen, new, job) if parts.record else None
    if job.asked is None:
        return replace(parts, record=record) if job.by else parts
    return replace(parts, job=job.asked, notes=(*job.notes, *parts.notes), record=record)


def learned_rules(chosen: Settings, writes: bool) -> Rules:
    """writes: what they take is counted, and one that would have hidden evidence is retired."""
    from triage.cli.learned_rules import LearnedRules

    return LearnedRules(chosen.database_url, writes)


def rule_store(chosen: Settings) -> RuleStore:
    from triage.store.rules import RuleStore

    return RuleStore.open(chosen.database_url)


def verifier(store: RuleStore, more: Sequence[str] = ()) -> Verifier:
    """What may be adopted: nothing that would hide a line of the banks, one of `more`, or one that a recorded incident
    cites."""
    from triage.compress.verify import ProtectedBank, Verifier

    cited = store.protected_lines(but=ROUTINE_SIGNATURES)
    return Verifier(ProtectedBank((*kb.protected_lines(), *cited, *more), kb.signatures()), kb.unrelated_lines())


def evaluation_parts(chosen: Settings, similar: bool) -> Parts:
    """The same for a worker of an evaluation: nothing is recorded or told, and what one site learned has no part in it."""
    found = parts(chosen, lambda _text: None, record=False, similar=similar, site=False)
    recall = _recall(chosen, recorded=False) if similar else None
    return replace(found, recall=recall, remember=None, jobs=1)


def fill_index(chosen: Settings) -> None:
    """Embeds the incidents that triage ships; where the index cannot be used, each diagnosis says so itself."""
    from triage.cli import recalling

    with contextlib.suppress(IndexUnavailableError):
        recalling.retriever(chosen).sync()


def _record(chosen: Settings, new: bool, asked: Case | None = None) -> Record:
    def record(result: Diagnosis, document: dict[str, Any]) -> Filed:
        told = [
            s.name for s in config.SETTINGS if not s.secret or s.name == "database_url"
        ]  # whose password the store takes out
        in_force = {name: getattr(chosen, name) for name in told}
        job = job_of(result)
        if asked is not None and asked.asked is not None:  # lost is what the log tells, else all that the job used
            job = replace(
                job, scheduler=asked.scheduler, gpu_hours=asked.gpu_hours if job.gpu_hours is None else job.gpu_hours
            )
        if asked is not None and asked.by:
            job = replace(job, recorded_by=asked.by)
        window = timedelta(hours=chosen.merge_hours)
        with store(chosen) as opened:
            filed = opened.file(result, document, job, in_force, kb_version=kb.version(), window=window, new=new)
        if result.outcome != "healthy":
            from triage.cli import recalling

            recalling.keep(chosen)
        return filed

    return record


def job_of(result: Diagnosis) -> JobRef:
    from triage.store.values import JobRef

    return JobRef(
        external_id=result.job,
        name=result.job_name,
        nodes=result.nodes,
        gpu_hours=result.progress.lost_gpu_hours,
        owner=result.job_user,
        recorded_by=user(),
    )


def _remember(chosen: Settings) -> Remember:
    def remember(result: Diagnosis) -> History:
        if not made(chosen):
            return History()
        from triage.store.attempts import run_of
        from triage.store.history import HistoryReader

        with HistoryReader.open(chosen.database_url) as opened:
            digest = run_of(result).digest
            return opened.history(result.fingerprint, result.suspects.nodes, job_of(result), digest)

    return remember


def made(chosen: Settings) -> bool:
    """Whether the database may be there; asking must not make it."""
    from triage.store import engine

    file = engine.path(engine.parse(chosen.database_url))
    return file is None or file.exists()


def store(chosen: Settings) -> IncidentStore:
    from triage.store.incidents import IncidentStore

    return IncidentStore.open(chosen.database_url)


def _recall(chosen: Settings, recorded: bool = True) -> Recall:
    def recall(result: Diagnosis) -> tuple[tuple[Similar, ...], tuple[str, ...]]:
        from triage.cli import recalling

        return recalling.of_diagnosis(chosen, result, recorded)

    return recall


def model(chosen: Settings, trace: Path | None = None) -> Private | None:
    """The chat model of the settings, not asked yet, which reads no personal data; None when it is off.

    trace: a file to which each exchange is appended, as it was sent. Errors: UsageError, InputError.
    """
    if chosen.llm == "off":
        return None
    from triage.llm.open import open_model
    from triage.llm.openai_chat import OPENAI_URL
    from triage.llm.private import Private
    from triage.llm.trace import Recorder

    found: ChatModel = open_model(
        chosen.llm,
        chosen.llm_base_url,
        chosen.llm_api_key,
        most_tokens=chosen.llm_max_tokens,
        most_seconds=chosen.llm_timeout,
        offline=chosen.offline,
    )
    unsaid = "" if chosen.llm_base_url or chosen.offline or not chosen.llm_api_key else OPENAI_URL
    return Private(Recorder(found, trace, chosen.llm_api_key) if trace else found, unsaid=unsaid)


def asked(chosen: Settings) -> str:
    """Whether the model answers, in words: `off`, or `ok` with its name and seconds. Errors: ModelError, UsageError."""
    found = model(chosen)
    if found is None:
        return "off"
    from triage.llm.errors import ModelCutError
    from triage.llm.values import question

    try:
        reply = found.ask(question("Answer with the word ok.", max_tokens=16))
    except ModelCutError as error:  # it likes to talk, but it is there
        reply = error.reply
    return f"ok ({found.name}, {reply.seconds:.1f} s)"
