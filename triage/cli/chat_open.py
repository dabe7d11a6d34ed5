"""Wires a conversation: what it is about, what it may read and write, and the model of the settings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triage import kb, learned, pipeline
from triage.chat.desk import Desk
from triage.chat.said import unquoted
from triage.chat.values import OpenedLog, Subject
from triage.cli import kube_job, output, slurm_job, wiring
from triage.cli.who import user
from triage.config import Settings
from triage.diagnose.judge import judge
from triage.domain import Diagnosis, Folded, JobLog, RawLine
from triage.errors import InputError, NotFoundError, StoreError, UsageError
from triage.ingest import identity
from triage.ingest.again import raw_lines
from triage.parts import Parts
from triage.store.values import Filters, StoredIncident, Verdict

if TYPE_CHECKING:
    from triage.agents.tools.kit import Tool
    from triage.chat.talker import Talker
    from triage.store.incidents import IncidentStore


class Opened:
    """What the settings give, opened once. store: None where there is no database yet, or it cannot be opened: then a log
    can be talked about all the same. tell: of progress.

    make: a database that is not there is made; allowed: of paths those that may be read, as they are to be read, Errors
    InputError for the first that may not.
    """

    def __init__(
        self,
        chosen: Settings,
        quiet: bool,
        make: bool = False,
        allowed: Callable[[Sequence[str]], Sequence[str]] = lambda paths: paths,
    ) -> None:
        self.chosen, self._quiet, self.allowed = chosen, quiet, allowed
        self.tell = output.teller(quiet)
        self.matcher = functools.cache(lambda: wiring.site_knowledge(chosen)[0].matcher)
        self.store: IncidentStore | None = None
        self._broken: StoreError | None = None
        try:
            self.store = wiring.store(chosen) if make or wiring.made(chosen) else None
        except StoreError as error:
            self._broken = error

    def close(self) -> None:
        if self.store is not None:
            self.store.close()

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------ subjects
    def incident(self, number: int) -> Subject:
        """Errors: NotFoundError, StoreError."""
        if self._broken is not None:
            raise self._broken
        if self.store is None:
            raise NotFoundError(f"no incident {number}", "nothing is recorded yet")
        found = self.store.get(number)
        read = functools.cache(lambda: self._read_again(found))
        return Subject(found.result, read, found.id, found)

    def job(self, name: str, record: bool) -> Subject:
        """The newest incident of a job, else what its id finds. Errors: NotFoundError, UsageError, InputError."""
        from triage.cli import tasks

        found = self.store.list(Filters(job=name), limit=1) if self.store else ()
        if found:
            return self.incident(found[0].id)
        try:
            with tasks.cases(name, (), self.chosen.home if record else None) as cases:
                first, *others = cases
                if others:
                    said = f"of {len(cases)} failed tasks the first is talked about"
                    output.note(said, self._quiet)
                    first = replace(first, notes=(*first.notes, said))
                keep = record and not first.live
                paths = self.allowed(first.paths) if first.paths else ()
                return self._diagnosed(paths, wiring.for_job(self.parts(keep), self.chosen, first, new=False), keep)
        except InputError as error:
            raise NotFoundError(f"no incident of job {name} is recorded, and {error.message}", error.hint) from None

    def paths(self, paths: Sequence[str], record: bool) -> Subject:
        """Diagnosed by the rules, and recorded where that is wanted. Errors: InputError."""
        if "-" in paths:
            raise UsageError("- is no log here: stdin is for what is said", "give the log as a file")
        return self._diagnosed(self.allowed(paths), self.parts(record), record)

    def _diagnosed(self, paths: Sequence[str], parts: Parts, record: bool) -> Subject:
        kept: list[tuple[JobLog, Diagnosis]] = []

        def keep(log: JobLog, _folded: Folded, rules: Diagnosis) -> Diagnosis:
            kept.append((log, rules))
            return rules

        _, document = pipeline.diagnose(paths, replace(parts, explain=keep))
        output.clear_progress(self._quiet)
        if self._broken is not None:
            output.note(f"nothing is recorded: {self._broken}")
        elif record and self.store is None and wiring.made(self.chosen):
            self.store = wiring.store(self.chosen)
        number = document["incident"]
        stored = self.store.get(number) if number is not None and self.store else None
        return Subject(document, lambda: OpenedLog(*kept[0], raw_lines), number, stored)

    def parts(self, record: bool) -> Parts:
        """Those of a diagnosis by the rules."""
        without = replace(self.chosen, llm="off")  # the model answers in the conversation
        rules = wiring.learned_rules(without, writes=record)
        parts = wiring.parts(without, self.tell, record=record, rules=rules)
        return wiring.with_good_runs(parts, without, writes=record)

    def _read_again(self, found: StoredIncident) -> OpenedLog:
        """The files that were read, if they are the same still, under the names that the diagnosis knows them by.

        Errors: InputError.
        """
        number = next((v.attempt for v in found.versions if v.version == found.version), 1)
        files = next((a.files for a in found.attempts if a.number == number), ())
        if not files or not all(f.path and f.digest for f in files):
            raise InputError("where it came from is not known", "give it anew: triage chat PATH")
        own = [self.chosen.home / name for name in (slurm_job.FOLDER, kube_job.FOLDER)]
        self.allowed([f.path for f in files if not any(_is_below(f.path, folder) for folder in own)])
        for file in files:
            try:
                same = identity.digest(Path(file.path))[1] == file.digest
            except OSError:
                raise InputError(f"{file.path} is not there any more") from None
            if not same:
                raise InputError(f"{file.path} has changed since", "diagnose it again: triage chat PATH")
        parts = self.parts(record=False)
        log = pipeline.read([f.path for f in files], replace(parts, good=None))
        output.clear_progress(self._quiet)
        log = _renamed(log, {f.path: f.name for f in files})
        paths = {f.name: f.path for f in files}

        def read(name: str, first: int) -> Iterator[RawLine]:
            return raw_lines(paths.get(name, name), first)

        return OpenedLog(log, judge(learned.unmarked(log), parts.knowledge), read)

    # ------------------------------------------------------------------------------------------ the desk
    def desk(self, keep: bool) -> Desk:
        """keep: the conversation is kept in the database."""
        from triage.store.chats import ChatStore

        kept = keep and self.store is not None
        return Desk(
            matcher=self.matcher,
            labels=kb.taxonomy(),
            open_incident=self.incident,
            who=user(),
            incidents=self.store,
            chats=ChatStore.open(self.chosen.database_url) if kept else None,
            resolve=self._resolve if self.store is not None else None,
            save=_save,
            similar=self._similar,
            embed=_embedder(),
            talker=self._talker(),
        )

    def _similar(self, subject: Subject) -> Sequence[Mapping[str, Any]]:
        from triage.cli import recalling
        from triage.report import as_json
        from triage.retrieve.rank import Query

        r = subject.result
        roots = [e for e in r["evidence"] if e["role"] == "root"] or list(r["evidence"])
        query = Query(
            text="\n".join((unquoted(subject, r["root_cause"]), *dict.fromkeys(e.get("title", "") for e in roots))),
            failure_type=r["failure_type"],
            root_cause_class=r["root_cause_class"],
            error_strings=tuple(dict.fromkeys(e["text"] for e in roots)),
            fingerprint=r.get("fingerprint", ""),
            signatures=tuple(dict.fromkeys(e["signature"] for e in roots if e.get("signature"))),
            incident=subject.incident,
        )
        return [as_json.similar(found) for found in recalling.similar(self.chosen, query, recalling.MAX_SIMILAR)[0]]

    def _resolve(self, incident: int, verdict: Verdict) -> Sequence[str]:
        from triage import outcomes
        from triage.cli import resolving, rules_signatures

        assert self.store is not None

        def learn(kept: Verdict, _said: str) -> object:
            return rules_signatures.after_outcome(incident, self.chosen.llm, kept.who, say=True)

        kept = outcomes.resolve(self.store, incident, verdict, kb.taxonomy(), learn)
        return (resolving.told(incident, kept.verdict, kept.said),)

    def _talker(self) -> Talker | None:
        model = wiring.model(self.chosen)
        if model is None:
            return None
        from triage.agents import failure_agent
        from triage.chat.talker import Options, Talker
        from triage.llm.limits import Prices

        chosen = self.chosen
        limits = failure_agent.limits(chosen.llm_timeout, chosen.llm_most_cost)
        prices = Prices(chosen.llm_price_in, chosen.llm_price_out)
        options = Options(chosen.llm_steps, chosen.llm_timeout, chosen.llm_context, limits, prices)
        return Talker(model, self.tools, options)

    def tools(self, log: OpenedLog | None) -> Sequence[Tool]:
        from triage.agents.tools.on_facts import FactTools
        from triage.agents.tools.on_log import LogTools
        from triage.cli import asking
        from triage.runbooks import runbooks

        if log is None:
            return ()
        past = asking.incidents_of(self.chosen)
        facts = FactTools(log.log, log.rules, kb.taxonomy(), self.matcher(), runbooks().of, past)
        return (*LogTools(log.log, log.rules, log.read).all(), *facts.all())


def _renamed(log: JobLog, names: dict[str, str]) -> JobLog:
    """With each file and line under another name."""

    def line(found: Any) -> Any:
        return replace(found, file=names.get(found.file, found.file))

    files = tuple(
        replace(
            file,
            name=names.get(file.name, file.name),
            lines=tuple(map(line, file.lines)),
            earlier=tuple(map(line, file.earlier)),
            runs=tuple(map(line, file.runs)),
        )
        for file in log.files
    )
    return replace(log, files=files)


def _is_below(path: str, folder: Path) -> bool:
    """Where triage keeps what Slurm told it."""
    return Path(path).resolve().is_relative_to(folder.resolve())


def _save(name: str, text: str) -> str:
    """Writes a report where the user says; never over a file. Errors: InputError."""
    path = Path(name).expanduser()
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} is there already", "give it another name") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    return str(path)


def _embedder() -> Callable[[Sequence[str]], Sequence[Any]] | None:
    """The embedding that ships, whatever the index uses: its examples are few, and it is loaded on first use."""
    from triage.retrieve.embedding import MiniLM

    model = MiniLM()

    def embed(texts: Sequence[str]) -> Sequence[Any]:
        return model.embed(texts)

    return embed
