"""What `triage watch` does with each look: the heartbeat, what is printed, what a hang sets off."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triage.cli import output
from triage.cli.watch_hung import Findings, Investigation
from triage.watching import report
from triage.watching.heartbeat import Heartbeat
from triage.watching.loop import Target, Told
from triage.watching.values import Status
from triage.watching.words import span

if TYPE_CHECKING:
    from triage.cli.watch_messages import Messages

_PATIENCE = 60.0  # seconds that a message waits for the cause of the hang


@dataclass(frozen=True, slots=True)
class Collecting:
    """under: where what is collected goes; found: options of `triage hang collect` for the target; again: seconds until its second look."""

    under: Path
    found: Sequence[str]
    again: float


@dataclass(slots=True)
class Teller:
    """collecting: None: not to collect. patience: seconds that a message waits for the cause."""

    target: Target
    chosen: str
    beat: Heartbeat | None
    collecting: Collecting | None
    messages: Messages | None = None
    quiet: bool = False
    patience: float = _PATIENCE
    _under_way: Investigation | None = None
    _findings: Findings = field(default_factory=Findings)
    _hang: Told | None = None  # as it was told last
    _unsent: bool = False  # a message of it waits for the cause
    _since: float = 0.0

    @property
    def busy(self) -> bool:
        return self._under_way is not None

    def tell(self, told: Told) -> None:
        self._alive(told.status)
        if told.status.state == "hung":
            self._hang = told if told.news or self._hang is None else self._hang
        elif told.status.state != "unseen":
            told = self._over(told)
        if told.news == "hung":
            self._begin()
        if told.changed or told.news:
            self._say(told)

    def tick(self) -> None:
        """Tells the cause as soon as it is known, and the hang without it where that takes long."""
        if self.messages:
            self.messages.say()
        if self._under_way and (findings := self._under_way.findings) is not None:
            self._under_way, self._findings = None, findings
            if self._hang:
                known = self._hang.later()
                self._print(self._document(known, "cause"))
                self._send(self._document(known, "hung" if self._unsent else "cause"))
            self._unsent = False
        elif self._unsent and self._hang and time.monotonic() - self._since >= self.patience:
            self._unsent = False
            self._send(self._document(self._hang.later(), "hung"))

    def close(self, seconds: float) -> None:
        """Nothing that was begun outlives us, and what was not found is not told. seconds: for messages that are being sent."""
        folder = self._under_way.folder if self._under_way else None
        self._break_off()
        if folder:
            kept = f"what was collected is in {folder}" if folder.is_dir() else "nothing of it was kept"
            output.note(f"ended while the hang was looked into: {kept}", self.quiet)
        if self.messages:
            self.messages.wait(seconds)

    def _break_off(self) -> None:
        if self._under_way:
            self._under_way.stop()
            self._under_way = None

    # ------------------------------------------------------------------------------------------ the course of a hang
    def _begin(self) -> None:
        self._findings = Findings()
        if self.collecting and not self._under_way:
            logs = self.target.logs.names
            self._under_way = Investigation(self.collecting.found, self.collecting.under, logs, self.collecting.again)
            self._unsent, self._since = True, time.monotonic()

    def _over(self, told: Told) -> Told:
        """A hang that is over before anybody was told of it is no news, unless it ended badly."""
        self._break_off()
        if self._hang and told.news == "moving again":
            stood = (told.at - self._hang.at).total_seconds() + self._hang.status.quiet
            words = (f"moving again after {span(stood)}", *told.status.words)
            told = replace(told, status=replace(told.status, words=words))
        self._hang, self._findings = None, Findings()
        was_unsent, self._unsent = self._unsent, False
        return replace(told, news=None, changed=True) if was_unsent and told.news in ("moving again", "ended") else told

    # ------------------------------------------------------------------------------------------ what is told
    def _say(self, told: Told) -> None:
        document = self._document(told, told.news)
        self._print(document)
        if told.news and not self._unsent:
            self._send(document)

    def _document(self, told: Told, news: str | None) -> dict[str, Any]:
        findings = self._findings if told.status.state == "hung" else Findings()
        told = replace(told, status=report.with_diagnosis(told.status, findings.diagnosis))
        folder = str(findings.folder) if findings.folder else ""
        document = report.as_json(self.target.name, told, folder, findings.diagnosis, findings.problems)
        return {**document, "news": news, "next": self._next(told.status, folder)}

    def _next(self, status: Status, folder: str) -> str | None:
        """The command that tells more; of a suspended job, what lets it go on."""
        import shlex

        if folder:
            return f"triage hang {shlex.quote(folder)}"
        if status.state == "suspended" and self.target.job and not status.resume:
            return f"see who suspended it (a preemption, an administrator); scontrol resume {self.target.job} goes on"
        if status.resume:
            return status.resume
        logs = [shlex.quote(name) for name in self.target.logs.names if Path(name).is_file()][:4]
        if status.state == "failed" and (self.target.job or logs):
            return f"triage diagnose {f'--job {self.target.job}' if self.target.job else ' '.join(logs)}"
        return None

    def _print(self, document: dict[str, Any]) -> None:
        text = (
            json.dumps(document, ensure_ascii=False) if self.chosen == "json" else report.as_text(document, self._to())
        )
        output.write(text)

    def _to(self) -> str:
        """Where what is being collected goes."""
        return str(self._under_way.folder) if self._under_way else ""

    def _send(self, document: dict[str, Any]) -> None:
        if self.messages:
            self.messages.post(document)

    def _alive(self, status: Status) -> None:
        if self.beat and (problem := self.beat.beat(status)):
            output.note(problem, self.quiet)
