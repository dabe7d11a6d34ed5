"""A run against a good run of the same kind of job: what is new, missing or changed, most telling first. Pure.

Versions and settings come first. Of the kinds of line, those count that are new before the failure, and those that the
good run had printed by the point that this one reached.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from triage.domain import Compared, Difference, DifferenceKind, Place
from triage.evidence.profile import WORDS, GoodRun, Profile, Seen, Value, kind_of
from triage.evidence.settings import How, comparable

MAX_SET = 5  # of settings of one run only
MAX_NEW = 6
MAX_MISSING = 4
_NEAR = 10  # lines before the failure in which any new line is told
_LEAST = 1.0
_NEXT = 3  # kinds of line that the good run goes on with

# A new line of no level that says that something is not as it should be.
_ODD = re.compile(
    r"(?i)\b(?:disabl\w+|fall(?:ing)?[ -]?back|without|cannot|could not|unable|missing|not found|retry\w*|retries|slow\w*|instead|ignor\w+"
    r"|mismatch\w*|unexpected|degraded|throttl\w+|skipp\w+|downgrad\w+|unsupported|not (?:available|supported|enabled)|overrid\w+)\b"
)
_MILESTONE = re.compile(
    r"(?i)\b(?:complete[d]?|initiali[sz]ed|done|ready|connected|loaded|established|succe\w+|started|saved|passed|finished|built|joined)\b"
)
_KINDS: dict[How, DifferenceKind] = {
    "version": "version", "environment": "setting", "flag": "setting", "config": "setting", "size": "size", "path": "path",
}  # fmt: skip
_RANK = {"version": 0, "size": 1, "setting": 1, "path": 2, "node": 3, "line": 4}
_ONLY = ("environment", "flag")  # what is set in one run alone counts; of other things a run may say nothing


@dataclass(frozen=True, slots=True)
class Onset:
    """Where the failure shows first; None: nowhere, the whole run is looked at. cited: texts of lines cited already.

    well: this run ended well too, so only what warns of trouble counts. suspects: nodes under suspicion.
    started: it made steps, so it got through its start.
    """

    at: Place | None = None
    time: datetime | None = None
    cited: tuple[str, ...] = ()
    well: bool = False
    suspects: tuple[str, ...] = ()
    started: bool = False


def compare(run: Profile, good: GoodRun, onset: Onset) -> Compared:
    """What is new, missing and changed in `run`; all that changed, for what fits the failure is chosen from it."""
    other = good.profile
    nodes = frozenset((*run.nodes, *other.nodes))
    changed, fresh, gone = _said(run, other, nodes)
    new_nodes, gone_nodes = _hosts(run, other, onset)
    lines_new = sorted(_new(run, other, onset, nodes), key=lambda scored: -scored[0])
    lines_gone = (
        [] if onset.well or other.partial or run.partial else [s for k, s in other.kinds.items() if k not in run.kinds]
    )
    pairs = _pairs([seen for _, seen in lines_new], lines_gone)
    paired = {seen.kind for pair in pairs for seen in pair}
    changed += [_turned(was, now) for was, now in pairs]
    shown_new = [seen for score, seen in lines_new if score >= _LEAST and seen.kind not in paired][:MAX_NEW]
    shown_gone = [seen for seen in _expected(lines_gone, run, other, onset) if seen.kind not in paired][:MAX_MISSING]
    return Compared(
        good.words,
        other.files,
        (*fresh[:MAX_SET], *new_nodes, *(_line(seen) for seen in shown_new)),
        (*gone[:MAX_SET], *gone_nodes, *(_absent(seen) for seen in shown_gone)),
        tuple(sorted(changed, key=lambda d: _RANK[d.kind])),
    )


# -------------------------------------------------------------------------------------- versions and settings
def _said(
    run: Profile, good: Profile, nodes: frozenset[str]
) -> tuple[list[Difference], list[Difference], list[Difference]]:
    """Changed, set in this run only, set in the good run only."""
    changed: list[Difference] = []
    fresh: list[Difference] = []
    gone: list[Difference] = []
    unsure = run.many | good.many
    for name in dict.fromkeys((*run.said, *good.said)):
        mine, other = run.said.get(name, ()), good.said.get(name, ())
        if name in unsure:
            continue
        if mine and other:
            changed += _changed(mine, other, nodes)
        elif mine and _would_tell(mine[0], good):
            fresh.append(_set_in_one(mine[0], "set in this run only", new=True))
        elif other and _would_tell(other[0], run):
            gone.append(_set_in_one(other[0], "set in the good run only", new=False))
    for found in (changed, fresh, gone):
        found.sort(key=lambda d: _RANK[d.kind])
    return changed, fresh, gone


def _changed(mine: tuple[Value, ...], other: tuple[Value, ...], nodes: frozenset[str]) -> Iterator[Difference]:
    a = {comparable(v.value, v.how, nodes): v for v in mine}
    b = {comparable(v.value, v.how, nodes): v for v in other}
    how = mine[0].how
    if how == "size":
        a, b = _largest(mine), _largest(other)
    if how in ("config", "path", "flag") and (len(a) > 1 or len(b) > 1) and a.keys() & b.keys():
        return  # several programs or data sets, some the same
    fresh, gone = [v for k, v in a.items() if k not in b], [v for k, v in b.items() if k not in a]
    if not fresh or (how == "version" and _same_version(fresh, other)):
        return
    now, was = fresh[0], (gone or list(b.values()))[0]
    name = now.shown or was.shown
    yield Difference(
        _KINDS[how],
        f"{name}: {was.value} -> {now.value}",
        "another version" if how == "version" else "another value",
        name,
        was.value,
        now.value,
        now.at,
        was.at,
    )


def _largest(values: tuple[Value, ...]) -> dict[str, Value]:
    """A communicator of some ranks is smaller than the job."""
    top = max(values, key=lambda v: int(v.value))
    return {top.value: top}


def _same_version(fresh: list[Value], other: tuple[Value, ...]) -> bool:
    """One says it in more detail than the other: 2.20.5 and 2.20.5+cuda12.4."""
    return all(any(_begins(f.value, o.value) for o in other) for f in fresh)


def _begins(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    return long.startswith(short) and not long[len(short) :][:1].isdecimal()


def _would_tell(value: Value, other: Profile) -> bool:
    """Whether the other run would have told it, had it been so there too."""
    if value.how not in _ONLY:
        return False
    told = value.how == "environment" and value.shown.startswith("NCCL_") and "version of nccl" in other.said
    return told or any(v.how == value.how for values in other.said.values() for v in values)


def _set_in_one(value: Value, why: str, new: bool) -> Difference:
    return Difference(
        "setting",
        f"{value.shown}={value.value}",
        why,
        value.shown,
        bad=value.value if new else "",
        good="" if new else value.value,
        at=value.at if new else None,
        good_at=None if new else value.at,
    )


# ------------------------------------------------------------------------------------------------------- nodes
def _hosts(run: Profile, good: Profile, onset: Onset) -> tuple[list[Difference], list[Difference]]:
    """Nodes of one run only; nothing when the runs share none, as a job is placed anew each time."""
    mine, other = set(run.nodes), set(good.nodes)
    new, gone = sorted(mine - other), sorted(other - mine)
    if not mine & other:
        return [], []
    suspected = [node for node in new if node in onset.suspects]
    told = []
    if suspected:
        told.append(
            Difference(
                "node", ", ".join(suspected), "under suspicion, and not in the good run", bad=", ".join(suspected)
            )
        )
    rest = [node for node in new if node not in suspected]
    if rest:
        told.append(Difference("node", _some(rest), "not in the good run", bad=_some(rest)))
    return told, [Difference("node", _some(gone), "only in the good run", good=_some(gone))] if gone else []


def _some(names: Iterable[str], most: int = 8) -> str:
    found = list(names)
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


# ------------------------------------------------------------------------------------------------------- lines
def _new(run: Profile, good: Profile, onset: Onset, nodes: Collection[str]) -> Iterator[tuple[float, Seen]]:
    """Kinds of line that the good run has not, up to the failure, with how telling each is."""
    known = {kind_of(text, nodes) for text in onset.cited}
    for kind, seen in run.kinds.items():
        if kind in good.kinds or kind in known or (good.partial and not seen.serious):
            continue
        if (onset.well and seen.serious < 2) or not _before(seen, onset):
            continue
        yield _score(seen, onset), seen


def _before(seen: Seen, onset: Onset) -> bool:
    if onset.at is None:
        return True
    if seen.at.file == onset.at.file:
        return seen.at.line < onset.at.line
    if onset.time is not None and seen.time is not None:
        return seen.time <= onset.time
    return seen.serious == 2


def _score(seen: Seen, onset: Onset) -> float:
    score = {2: 3.0, 1: 2.0}.get(seen.serious, 1.0 if _odd(seen) else 0.0) - (2.0 if seen.routine else 0.0)
    if onset.at is not None and seen.at.file == onset.at.file:
        score += 2 / (1 + math.log(1 + (onset.at.line - seen.at.line) / _NEAR, 2))
    return score


def _prose(seen: Seen) -> bool:
    """Long sentences: what a model is trained on, or writes."""
    return len(seen.kind.split()) >= WORDS


def _odd(seen: Seen) -> bool:
    return bool(_ODD.search(seen.text)) and not _prose(seen)


def _expected(gone: Iterable[Seen], run: Profile, good: Profile, onset: Onset) -> list[Seen]:
    """Of the lines that never came, those that this run should have printed by the point that it reached."""
    reached = max((seen.order for kind, seen in good.kinds.items() if kind in run.kinds), default=-1)
    calm = [s for s in gone if not s.serious and not _odd(s) and not _prose(s)]
    skipped = [s for s in calm if s.order < reached and _MILESTONE.search(s.text)]
    following = [s for s in calm if reached < s.order <= reached + _NEXT and not onset.started and not s.routine]
    return [*following, *sorted(skipped, key=lambda s: reached - s.order)]


def _pairs(new: Iterable[Seen], gone: Iterable[Seen]) -> list[tuple[Seen, Seen]]:
    """(was, is): lines that differ in one word, such as the network in use."""
    by_mask: defaultdict[tuple[str, ...], list[Seen]] = defaultdict(list)
    for seen in gone:
        for mask in _masks(seen.kind):
            by_mask[mask].append(seen)
    found: list[tuple[Seen, Seen]] = []
    used: set[str] = set()
    for now in new:
        if now.serious:
            continue
        twins = {was.kind: was for mask in _masks(now.kind) for was in by_mask.get(mask, ()) if was.kind not in used}
        if len(twins) == 1:
            was = next(iter(twins.values()))
            used.add(was.kind)
            found.append((was, now))
    return found


def _masks(kind: str) -> Iterator[tuple[str, ...]]:
    words = kind.split()
    if 3 <= len(words) <= 12:
        yield from ((*words[:at], "", *words[at + 1 :]) for at in range(len(words)))


def _turned(was: Seen, now: Seen) -> Difference:
    return Difference(
        "line", now.text, f"the good run says: {was.text}", good=was.text, bad=now.text, at=now.at, good_at=was.at
    )


def _line(seen: Seen) -> Difference:
    what = ("a line", "a warning", "an error")[seen.serious]
    return Difference("line", seen.text, f"{what} of a kind that the good run has not", bad=seen.text, at=seen.at)


def _absent(seen: Seen) -> Difference:
    often = "" if seen.count == 1 else f", {seen.count} times"
    return Difference(
        "line", seen.text, f"the good run prints it{often}; it never comes here", good=seen.text, good_at=seen.at
    )
