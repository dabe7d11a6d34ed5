"""Holds each sentence of a model's answer to what was shown and told of the job. Pure.

A sentence that names, quotes, cites or blames what is not there is dropped and counted; so is one that holds a command that
is not ours. See triage/agents/grounding.py for the diagnosis itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from triage.agents.grounding import wrong_of
from triage.agents.injected import speaks_to_model
from triage.agents.naming import Told, unknown_names
from triage.chat.values import Cited, Event, Subject, Text
from triage.domain import LogLine
from triage.report import course

_ID = re.compile(r"\[?\bE(\d{1,4})\b\]?")
_PLACE = re.compile(r"([^\s:()\[\],;'\"`*]{1,300}):(\d{1,9})\b")
_FILE_LIKE = re.compile(r"incident|.*(?:/|\.[A-Za-z]{2,8}$|\.\d+$)")
_QUOTE = re.compile(r"[\"“]([^\"“”]{8,400})[\"”]|`([^`]{8,400})`")
_DENIES = re.compile(
    r"(?i)\b(?:no|not|none|nothing|never|nowhere|unknown|without|neither|n't|cannot|does not|isn't|is absent)\b|n't\b"
)
_PAST = re.compile(r"(?i)\b(?:past|earlier|previous\w*|before|last time|similar|incidents?|other jobs?|back then)\b")
_BLAMES = re.compile(
    r"(?i)\b(?:drain|cordon|exclud|quarantin|blacklist|avoid|replac|suspect|fault|bad|broken|culprit|blame|defect|isolat|leav(?:e|ing) out|remov)\w*"
)
_WELL = re.compile(
    r"(?i)\b(?:job|run|training|it|everything)\b[^.]{0,30}\b(?:is|was|are|ran|looks?|finished|completed|succeeded)\b[^.]{0,20}"
    r"\b(?:healthy|fine|ok|okay|success\w*|normal\w*|well|without (?:an? )?(?:error|failure|problem)s?)\b"
)
_NOTHING = re.compile(
    r"(?i)\bno (?:failure|error|problem|issue|action)s?\b.{0,20}\b(?:occurred|happened|found|needed|required)\b"
    r"|\bnothing (?:failed|is wrong|went wrong|to do|happened)\b"
)
_MARKER = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*#]+)\s+")  # of a list or a heading
_QUOTED = re.compile(r"`([^`]*)` \(([^()\s]+):(\d{1,9})\)")  # as code quotes a line within a sentence
_SPACE = re.compile(r"\s+")
Place = tuple[str, int]


@dataclass(slots=True)
class Ground:
    """What an answer may name and cite. lines: those shown, with their text; ids: of the evidence."""

    lines: dict[Place, str] = field(default_factory=dict)
    ids: dict[str, Place] = field(default_factory=dict)
    told: Told = field(default_factory=Told)
    past: Told = field(default_factory=Told)  # of other jobs: may be named as such
    asked: Told = field(default_factory=Told)  # by the user: may be denied
    ours: tuple[str, ...] = ()  # commands, steps and checks of the diagnosis, which may be repeated as they stand
    nodes: frozenset[str] = frozenset()
    suspects: frozenset[str] = frozenset()
    well: bool = False  # the job went well, or may have

    def show(self, lines: Iterable[LogLine], names: Iterable[str] = ()) -> None:
        """What a tool showed of the job."""
        self._add({(line.file, line.number): line.text for line in lines})
        self._tell(map(self.told.without_places, names))

    def _add(self, lines: Mapping[Place, str]) -> None:
        fresh = {place: text for place, text in lines.items() if place not in self.lines}
        self.lines |= fresh
        self.told.places = frozenset(self.lines)
        self._tell(fresh.values())

    def _tell(self, texts: Iterable[str]) -> None:
        plain = (line for text in texts for line in text.split("\n"))
        self.told.add("\n".join(line for line in plain if not speaks_to_model(line)))


def ground_of(
    subject: Subject, asked: str, known: Sequence[Event], nodes: Iterable[str] = (), ranks: Iterable[int] = ()
) -> Ground:
    """known: what code answers to the same question; nodes, ranks: of the log, where it could be read."""
    r = subject.result
    found = Ground(
        ids={e["id"]: (e["file"], e["line"]) for e in subject.evidence},
        ours=tuple(sorted(_ours(subject), key=len, reverse=True)),
        nodes=frozenset({*nodes, *r["suspects"]["nodes"], *(e["node"] for e in subject.evidence if e.get("node"))}),
        suspects=frozenset(r["suspects"]["nodes"]),
        well="healthy" in (r["outcome"], r["failure_type"]) or "none" in (r["action"], r["root_cause_class"]),
    )
    found.told.counted["rank"] = {*ranks, *r["suspects"]["ranks"]}
    found._add({(e["file"], e["line"]): e["text"] for e in subject.evidence})
    found._add({(c.file, c.line): c.text for c in known if isinstance(c, Cited)})
    said = "\n".join([r["root_cause"], *(h["root_cause"] for h in r.get("hypotheses", ()))])
    found._add({(m[2], int(m[3])): m[1] for m in _QUOTED.finditer(said)})
    by_code = [found.told.without_places(e.text) for e in known if isinstance(e, Text)]
    found._tell([*_told(subject), *found.nodes, *(text for text in by_code if not _DENIES.search(text))])
    found.asked.add("\n".join([asked, *by_code]))  # what code denies is no more there than what was asked for
    past = (
        f"{s['incident']} {s['title']} {s['why']} {s.get('fix', '')} {' '.join(s['remediation'])}"
        for s in r.get("similar", ())
    )
    found.past.add(
        "\n".join(
            [*past, *(f"{v.cause} {v.fix} {v.note}" for v in (subject.stored.verdicts if subject.stored else ()))]
        )
    )
    return found


def _ours(subject: Subject) -> Iterator[str]:
    """What code proposes, word for word."""
    for step in subject.result.get("remediation", ()):
        yield from filter(None, (step.get("command"), step["step"]))
    yield from (h["check"] for h in subject.result.get("hypotheses", ()) if h.get("check"))


def _counts(subject: Subject) -> Iterator[str]:
    """What one could count oneself."""
    r = subject.result
    c, p = r["compression"], r["progress"]
    left = [d["lines"] for d in c["dropped"]]
    yield f"{', '.join(map(str, (sum(left), *left)))} lines left out"
    yield f"{c['lines_in']} lines, {c['lines_kept']} kept, {len(r.get('files', ()))} files, {p.get('world_size') or 0} ranks"
    for e in subject.evidence:
        yield f"{e.get('repeats', 1)} times, {len(e.get('ranks', ()))} ranks"
    for role in ("root", "cascade"):
        yield f"{sum(e['role'] == role for e in subject.evidence)} lines"
    yield f"{len(subject.evidence)} lines, {len(r.get('hypotheses', ()))} causes, {len(r.get('remediation', ()))} steps"


def _told(subject: Subject) -> Iterator[str]:
    """What code says of the job beside its lines."""
    r = dict(subject.result)
    yield from (r["root_cause"], r["failure_type"], r["action"], r.get("job", ""), subject.name)
    yield from (h["root_cause"] + " " + h["failure_type"] for h in r.get("hypotheses", ()))
    yield from (f"{s['step']} {s['why']} {s.get('command', '')}" for s in r.get("remediation", ()))
    yield from (e.get("title", "") for e in subject.evidence)
    yield from (str(e["time"])[:19].replace("T", " ") for e in subject.evidence if e.get("time"))
    yield from (*course.progress_parts(r), *course.cost_parts(r), *course.timeline_rows(r), course.recurrence_text(r))
    yield from map(str, (*r.get("missing", ()), *r.get("files", ())))
    yield from _counts(subject)


@dataclass(frozen=True, slots=True)
class Checked:
    """problem: why a sentence cannot stand, "" for nothing; places: the lines that it cites."""

    problem: str = ""
    places: tuple[Place, ...] = ()


def check(sentence: str, known: Ground) -> Checked:
    plain = _MARKER.sub("", sentence)
    for text in known.ours:
        plain = plain.replace(f"`{text}`", "").replace(text, "")
    places, problem = _cited(plain, known)
    problem = problem or _quotes(plain, places, known) or _blame(plain, places, known) or _names(plain, known)
    if not problem and not known.well and _says_well(plain):
        problem = "it says that nothing failed"
    return Checked(problem, () if problem else places)


def _says_well(text: str) -> bool:
    """Against the diagnosis of a job that failed, which an order in its log might want to be said."""
    return bool(_NOTHING.search(text)) or (bool(_WELL.search(text)) and not _DENIES.search(text))


def _cited(text: str, known: Ground) -> tuple[tuple[Place, ...], str]:
    found: list[Place] = []
    for number in _ID.findall(text):
        place = known.ids.get(f"E{number}")
        if place is None:
            return (), f"there is no E{number}"
        found.append(place)
    for file, number in _PLACE.findall(text):
        places = [p for p in known.lines if p[1] == int(number) and (p[0] == file or p[0].endswith(f"/{file}"))]
        if places:
            found.append(places[0])
        elif _FILE_LIKE.fullmatch(file) and not re.fullmatch(r"[\d.]+|\w+://.*", file):
            return (), f"{file}:{number} was not shown"
    if any(speaks_to_model(known.lines[place]) for place in found):
        return (), "the line cited speaks to who reads it"
    return tuple(dict.fromkeys(found)), ""


def _quotes(text: str, places: Sequence[Place], known: Ground) -> str:
    """What is quoted stands in a line that is cited, or, where none is, anywhere in what was told."""
    for found in _QUOTE.finditer(text):
        words = _plain(found[1] or found[2]).strip(" .…")
        within = [_plain(known.lines[place]) for place in places]
        if found[2] and known.told.holds(found[2]):
            continue
        if not any(words in line for line in within or [_plain(known.told.text)]):
            return f"{(found[1] or found[2])[:60]!r} does not stand there"
    return ""


def _blame(text: str, places: Sequence[Place], known: Ground) -> str:
    if not _BLAMES.search(text) or _DENIES.search(text):
        return ""
    for node in known.nodes:
        name = re.compile(rf"(?<![A-Za-z0-9]){re.escape(node)}(?![A-Za-z0-9])")
        if name.search(text) and node not in known.suspects and not any(name.search(known.lines[p]) for p in places):
            return f"{node} is blamed by no line"
    return ""


def _names(text: str, known: Ground) -> str:
    plain = _ID.sub(" ", text)
    plain = _PLACE.sub(
        lambda m: " " if any(p[1] == int(m[2]) and p[0].endswith(m[1]) for p in known.lines) else m[0], plain
    )
    plain = _QUOTE.sub(" ", plain)
    for problem in wrong_of(plain, "it", known.told):
        strange = [name for name in unknown_names(plain, known.told) if f"{name!r} of" in problem]
        if strange and _may_be_named(strange[0], text, known):
            continue
        return problem
    return ""


def _may_be_named(name: str, text: str, known: Ground) -> bool:
    """What only the user named may be denied; what only other jobs had may be told of them."""
    if _DENIES.search(text) and not unknown_names(name, known.asked):
        return True
    return bool(_PAST.search(text)) and not unknown_names(name, known.past)


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text).strip().casefold()
