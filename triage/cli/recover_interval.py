"""`triage recover interval`: how often to save, from what the log and the record measure."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from triage.cli import output, wiring
from triage.errors import UsageError
from triage.evidence.metrics import points
from triage.evidence.saves import Measured, measured
from triage.recover.interval import OF_ONE_GPU, Advice, advise
from triage.text import how_many

if TYPE_CHECKING:
    from triage.domain import LogFile
    from triage.store.values import StoredIncident
HOUR = 3600.0


@dataclass(frozen=True)
class Given:
    """What the command line says; times in seconds, mtbf in hours."""

    save: float | None = None
    every: float | None = None
    mtbf: float | None = None
    detect: float = 600.0
    restart: float = 600.0
    gpus: int | None = None


def show(paths: Sequence[str], incident: int | None, given: Given, chosen: str) -> int:
    """Errors: UsageError where neither log nor options tell how long a save takes or how often the job fails."""
    known = _of_logs(paths) if paths else Measured()
    found = _incident(incident) if incident is not None else None
    save = given.save or known.save
    if not save:
        raise UsageError(
            "how long a save takes is not known", "give --save SECONDS, or a log that tells when saves begin and end"
        )
    gpus = given.gpus or (found.result.get("progress", {}).get("world_size") if found else None)
    between, source = _between(given, known, found, gpus)
    advice = advise(save, between, given.every or known.every, given.detect, given.restart)
    if chosen == "json":
        output.write_last(
            json.dumps(
                {
                    **asdict(advice),
                    "helps": advice.helps,
                    "failure_rate_from": source,
                    "step": known.step,
                    "saves_seen": known.saves,
                    "gpus": gpus,
                }
            )
        )
    else:
        output.write_last("\n".join(_lines(advice, known, source, gpus)))
    return 0


def note(files: Sequence[LogFile], found: StoredIncident) -> str:
    """The same in a sentence for a plan; "" where the log and the record do not tell enough."""
    known = _of_files(files)
    gpus = found.result.get("progress", {}).get("world_size")
    if not known.save or not (gpus or len(found.attempts) > 1):
        return ""
    between, source = _between(Given(), known, found, gpus)
    advice = advise(known.save, between, known.every, Given.detect, Given.restart)
    return ". ".join(line.strip() for line in _lines(advice, known, source, gpus)) + "."


def _of_logs(paths: Sequence[str]) -> Measured:
    from triage.recovering import records

    known = _of_files(records.read(paths, output.teller(quiet=False)))
    output.clear_progress(quiet=False)
    return known


def _of_files(files: Sequence[LogFile]) -> Measured:
    """Of the file that tells most."""
    every = [measured(file.lines, points(file)) for file in files]
    return max(every, key=lambda m: (m.saves, m.step is not None), default=Measured())


def _incident(number: int) -> StoredIncident:
    with wiring.store(wiring.settings()) as store:
        return store.get(number)


def _between(given: Given, known: Measured, found: StoredIncident | None, gpus: int | None) -> tuple[float, str]:
    """Seconds between failures and where they are known from, the surest first."""
    if given.mtbf:
        return given.mtbf * HOUR, "as given"
    times = sorted(a.recorded_at for a in found.attempts) if found else []
    if len(times) > 1 and times[-1] > times[0]:
        span = (times[-1] - times[0]).total_seconds()
        return span / (len(times) - 1), f"{how_many(len(times), 'attempt')} of this job in {_span(span)}"
    if gpus:
        return (
            OF_ONE_GPU / gpus,
            f"{gpus} GPUs at the rate of a published cluster (7.9 h at 1,024 GPUs): a guess until this job has failed twice",
        )
    if known.span and known.span > HOUR:
        return known.span, "one failure at the end of this log: a guess"
    raise UsageError("how often the job fails is not known", "give --mtbf HOURS, or --gpus N for a guess")


def _lines(a: Advice, known: Measured, source: str, gpus: int | None) -> list[str]:
    if not a.helps:
        return [
            f"No interval helps: a save takes {_span(a.save)}, and the job fails every {_span(a.between)} ({source})",
            "  first make saves shorter (each rank its own part, in the background) or failures rarer",
        ]
    steps = f", about {max(1, round(a.daly / known.step)):,} steps" if known.step else ""
    lines = [
        f"Save every {_span(a.daly)}{steps} (Daly; Young says {_span(a.young)})",
        f"  a save takes {_span(a.save)}; the job fails every {_span(a.between)} ({source})",
    ]
    if a.now is not None and a.every:
        lines.append(
            f"  now every {_span(a.every)}: {a.now:.1%} of the time is lost; then {a.then:.1%}{_hours(a, gpus)}"
        )
    else:
        lines.append(
            f"  {a.then:.1%} of the time is lost then: saves, work since the last one, {_span(a.restart)} to start and {_span(a.detect)} to notice"
        )
    if a.detect > a.daly:
        lines.append(
            f"  caution: a failure is noticed only after {_span(a.detect)}, so saving more often than that gains little: first notice sooner"
            " (watchdog time, `triage watch`)"
        )
    if a.detect + a.restart >= a.between:
        lines.append(
            f"  noticing and starting take {_span(a.detect + a.restart)}, in which it fails again: first make these shorter"
        )
    elif (a.detect + a.restart) / a.between > a.then / 2:
        lines.append(
            f"  noticing and starting cost more ({(a.detect + a.restart) / a.between:.1%}) than saves and lost work do"
        )
    return lines


def _hours(a: Advice, gpus: int | None) -> str:
    if not gpus or a.now is None:
        return ""
    saved = (a.now - a.then) * 24 * gpus
    return (
        f", which is {abs(saved):,.0f} GPU-hours a day {'saved' if saved >= 0 else 'more'}" if abs(saved) >= 1 else ""
    )


def _span(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "never"
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 2 * HOUR:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / HOUR:.1f} h" if seconds < 96 * HOUR else f"{seconds / HOUR / 24:.1f} days"
