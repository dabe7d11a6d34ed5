"""What `triage watch` does with each look: the heartbeat, what is printed, what a hang sets off."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triage.cli import output
from triage.cli.watch_hung import Findings, Investigation
from triage.watching import report
from triage.watching.heartbeat import Heartbeat
from triage.watching.loop import Target, Told
from triage.watching.values import Status

if TYPE_CHECKING:
    from triage.notify import Notifier


@dataclass(slots=True)
class Teller:
    """under: where what is collected goes, None not to collect; found: options of `triage hang collect` for the target."""

    target: Target
    chosen: str
    beat: Heartbeat | None
    stopped: Callable[[], bool]
    under: Path | None
    found: Sequence[str]
    notifier: Notifier | None = None
    quiet: bool = False
    _findings: Findings = field(default_factory=Findings)

    def tell(self, told: Told) -> None:
        self._alive(told.status)
        if not told.changed and not told.news:
            return
        if told.news == "hung":
            self._findings = self._investigate(told.status) if self.under else Findings()
        elif told.status.state != "hung":
            self._findings = Findings()
        self._say(told)

    def _say(self, told: Told) -> None:
        findings = self._findings
        told = replace(told, status=report.with_diagnosis(told.status, findings.diagnosis))
        folder = str(findings.folder) if findings.folder else ""
        document = report.as_json(self.target.name, told, folder, findings.diagnosis, findings.problems)
        json_chosen = self.chosen == "json"
        output.write(json.dumps(document, ensure_ascii=False) if json_chosen else report.as_text(document))
        if self.notifier and told.news:
            self._notify(self.notifier, document)

    def _notify(self, notifier: Notifier, document: dict[str, Any]) -> None:
        from triage.cli import notifying
        from triage.cli.watch_news import message

        notifying.say(notifier.send(message(document)), self.quiet)
        if notifier.problem:
            output.note(notifier.problem, self.quiet)

    def _investigate(self, status: Status) -> Findings:
        assert self.under is not None
        logs = self.target.logs
        return Investigation(
            self.found, self.under, lambda: logs.names, self.stopped, lambda: self._alive(status)
        ).run()

    def _alive(self, status: Status) -> None:
        if self.beat and (problem := self.beat.beat(status)):
            output.note(problem, self.quiet)
