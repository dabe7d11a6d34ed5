"""Wires the server: what it reads and writes, who may ask, and the process itself."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from triage import __version__, kb, outcomes, pipeline
from triage.chat.conversation import Conversation
from triage.chat.values import OpenedLog
from triage.cli import (
    incident_filters,
    incident_list,
    incident_stats,
    incident_view,
    listening,
    resolving,
    rules_signatures,
    serve_roots,
    served_log,
    wiring,
)
from triage.cli.alone import alone
from triage.cli.chat_open import Opened
from triage.config import Settings
from triage.domain import Folded
from triage.errors import UsageError
from triage.store.values import Filters, Verdict
from triage.web import access, app, token_file
from triage.web.access import Access, Token
from triage.web.parts import Options, Parts

OWN = "local"  # the name of the token that is made for this run


def settings(llm: str | None) -> Settings:
    """Errors: UsageError."""
    if llm is not None:
        os.environ["TRIAGE_LLM"] = llm  # for the processes that diagnose too
    return wiring.settings()


def new_token(name: str, role: str) -> str:
    """Errors: UsageError, InputError."""
    return token_file.add(_folder(settings(None)), name, role)


def tokens(chosen: Settings) -> tuple[Token, ...]:
    """Those of the settings and of the file. Errors: UsageError, InputError."""
    found = (*access.parse(chosen.serve_tokens), *token_file.load(_folder(chosen)))
    for name in {t.name for t in found}:
        if sum(t.name == name for t in found) > 1:
            raise UsageError(
                f"there are two tokens named {name}", "give each a name of its own: it stands in the record"
            )
    return found


def run(chosen: Settings, known: Sequence[Token], host: str, port: int, names: tuple[str, ...], workers: int) -> int:
    """Until a signal; returns the exit code. Errors: UsageError when the port cannot be had, StoreError."""
    own = "" if known else access.fresh()
    if own:
        known = (access.token(OWN, "write", own),)
    opened_at = listening.listen(host, port)
    place = f"http://{f'[{host}]' if ':' in host else host}:{opened_at.getsockname()[1]}"
    with alone(_folder(chosen), "triage serve"), wiring.store(chosen), Opened(chosen, quiet=True) as opened:
        parts = _parts(chosen, opened, Access(known, token_file.session_key(_folder(chosen))))
        options = Options(
            folder=_folder(chosen),
            roots=serve_roots.roots(chosen),
            namespaces=tuple(filter(None, (n.strip() for n in chosen.serve_namespaces.split(",")))),
            slurm=shutil.which("sacct") is not None or shutil.which("scontrol") is not None,
            most_bytes=chosen.serve_upload_mb << 20,
            rate=chosen.serve_rate,
            hosts=(*names, host.lower(), "localhost", "127.0.0.1", "[::1]")
            if names or host in ("127.0.0.1", "::1", "localhost")
            else (),
            workers=workers,
            keep_days=chosen.serve_keep_days,
            command=(sys.executable, "-m", "triage.cli.serve_worker"),
        )
        served_log.to_stderr({"triage.web": logging.INFO, "uvicorn.error": logging.WARNING})
        told = f"serving {place}" + (f"/login?token={own}" if own else "") + "; Ctrl-C ends it"
        server = listening.Server(app.create(parts, options), told)
        server.run(sockets=[opened_at])
    return server.code


def _parts(chosen: Settings, opened: Opened, access_: Access) -> Parts:
    assert opened.store is not None
    store = opened.store

    def resolve(incident: int, verdict: Verdict) -> tuple[str, ...]:
        def learn(kept: Verdict, _said: str) -> object:
            return rules_signatures.after_outcome(incident, chosen.llm, kept.who, say=False)

        kept = outcomes.resolve(store, incident, verdict, kb.taxonomy(), learn)
        return (resolving.told(incident, kept.verdict, kept.said),)

    desk = opened.desk(keep=True)

    def converse(incident: int | None, who: str, writes: bool) -> Conversation:
        own = replace(desk, who=who, via="web", save=None, resolve=resolve if writes else None)
        if incident is None:
            return Conversation(own)
        assert desk.chats is not None
        last = desk.chats.list(who, incident, limit=1, asked=True)
        turns = desk.chats.get(last[0].id).turns if last else ()
        return Conversation(own, opened.incident(incident), last[0].id if last else None, turns)

    def filters(given: Mapping[str, str]) -> Filters:
        return incident_filters.chosen(given, dashes="")

    def fold(log: OpenedLog) -> Folded:
        return pipeline.fold(log.log, log.rules, chosen.token_budget)

    return Parts(
        store=store,
        labels=kb.taxonomy(),
        access=access_,
        filters=filters,
        list_json=incident_list.as_json,
        show_json=incident_view.as_json,
        stats_json=incident_stats.as_json,
        resolve=resolve,
        converse=converse,
        open_log=lambda incident: opened.incident(incident).open_log(),
        fold=fold,
        version=__version__,
    )


def _folder(chosen: Settings) -> Path:
    return chosen.home / "serve"
