"""What a followed log teaches: rules for the kind of job that its files begin with, kept like those of `rules learn`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from triage import learned
from triage.cli import wiring
from triage.config import Settings
from triage.domain import FilterRule, JobPrint, LogLine
from triage.evidence import jobprint
from triage.following.learner import Learn


def job_of(paths: Sequence[str]) -> JobPrint:
    """The kind of job, as far as the files are there."""
    heads = []
    for path in map(Path, paths[: jobprint.MAX_HEADS]):
        try:
            if path.is_file():
                with path.open("rb") as stream:
                    heads.append(stream.read(jobprint.HEAD_BYTES))
        except OSError:
            continue
    return jobprint.job_print(heads)


def teacher(
    paths: Sequence[str], settings: Settings, filters: Sequence[FilterRule], tell: Callable[[str], None]
) -> Learn:
    """filters: the rules that triage ships."""

    def learn(lines: Sequence[LogLine]) -> Sequence[FilterRule]:
        from triage.agents import log_agent

        job = job_of(paths)
        if not job.features:
            return ()
        with wiring.rule_store(settings) as store:
            known = store.list(job=job.key)
            in_force = (*filters, *learned.applied(known))
            lesson = log_agent.learn(lines, wiring.verifier(store), in_force, known, wiring.model(settings))
            for note in lesson.notes:
                tell(note)
            kept = store.add(job, lesson.rules, "triage compress --follow") if lesson.rules else ()
            if trial := sum(rule.state == "shadow" for rule in kept):
                many = "1 rule" if trial == 1 else f"{trial} rules"
                tell(f"{many} learned, on trial and not applied yet; see them with: triage rules list")
            return learned.applied(kept)

    return learn
