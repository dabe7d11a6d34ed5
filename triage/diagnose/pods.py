"""What kubectl prints of pods, read by pod, container and time: of a list of all, the job's own and what is not past. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import PurePosixPath

from triage.domain import JobLog, LogFile, LogLine
from triage.evidence.match import Best

_POD = r"[a-z0-9][a-z0-9.-]{1,250}"
_NAME = re.compile(rf"^Name:\s{{1,20}}({_POD})\s*$")
_NODE = re.compile(r"^Node:\s{1,20}([\w.-]{1,100})(?:/|\s*$)")
_RANK = re.compile(r"^Rank:\s{1,20}(\d{1,7})\s*$")
_BEGINS = ("Name:", "Job:", "Nodes:")  # where the description of another object begins
_SECTION = re.compile(r"^(Init Containers|Containers|Ephemeral Containers|Conditions|Volumes|Events|Status):")
_CONTAINER = re.compile(r"^  ([a-z0-9][a-z0-9-]{0,62}):\s*$")
_STATE = re.compile(r"^    (State|Last State):\s{1,20}(\w+)")
_EXIT = re.compile(r"^ {6}Exit Code:\s{1,20}(\d{1,3})\s*$")
_ROW = re.compile(
    rf"^(?:[a-z0-9][a-z0-9-]{{0,62}}\s{{1,60}})?({_POD})\s{{1,100}}\d{{1,3}}/\d{{1,3}}\s{{1,20}}[A-Z]\S*\s"
)
_OBJECT = re.compile(rf"\s(?i:pod)/({_POD})(?=\s|$)")
_AGE = re.compile(r"(?:^|\s)((?:\d{1,5}[dhms]){1,4})(?:\s\(x\d+ over (?:\d{1,5}[dhms]){1,4}\))?(?=\s|$)")
_PART = re.compile(r"(\d{1,5})([dhms])")
_STARTED = re.compile(r"\bStarted\s.*\bStarted container\b|\bStarted container \S")
_ASSIGNED = re.compile(rf"Successfully assigned \S{{1,100}}/({_POD}) to ([\w.-]{{2,100}})")
_REPLICA = re.compile(r"-(?:\d{1,5}|[a-z0-9]{5}|[a-z0-9]{8,10}-[a-z0-9]{5})$")
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Of what a line of a description tells. last: of the container's run before the one that is there now."""

    pod: str = ""
    container: str = ""
    last: bool = False
    events: bool = False


def weigh(best: Best, log: JobLog) -> None:
    """Findings of other pods, of containers that live on, and of events before the job's containers started become context."""
    found = [key for key, f in best.items() if f.signature.role in ("root", "cascade")]
    for file in log.files:
        keys = [key for key in found if key[0] == file.name]
        if file.kind != "kubernetes" or not keys:
            continue
        lines = {line.number: line for line in file.lines}
        places = _places(file.lines)
        ended = _ended(file.lines, places)
        mine = _own_pods(file, log)
        started = _last_start(file.lines, mine)
        for key in keys:
            text, place = lines[key[1]].text, places.get(key[1], _Place())
            why = (
                "of another pod" if _of_other(text, place, mine)
                else "of a container that lives on" if _lives_on(place, ended)
                else "before the containers started" if _is_past(text, started)
                else ""
            )  # fmt: skip
            if why:
                signature = best[key].signature
                best[key] = replace(
                    best[key],
                    signature=replace(signature, role="context", weight=10, title=f"{signature.title}, {why}"),
                )


def _places(lines: Sequence[LogLine]) -> Mapping[int, _Place]:
    found: dict[int, _Place] = {}
    pod = container = section = ""
    last = False
    for line in lines:
        if said := _NAME.match(line.text):
            pod, container, section, last = said[1], "", "", False
        elif said := _SECTION.match(line.text):
            section, container, last = said[1], "", False
        elif section.endswith("ontainers") and (said := _CONTAINER.match(line.text)):
            container, last = said[1], False
        elif container and (said := _STATE.match(line.text)):
            last = said[1] == "Last State"
        elif container and line.text.startswith("    ") and line.text[4:5].strip():
            last = False
        found[line.number] = _Place(pod, container, last, section == "Events")
    return found


def _ended(lines: Sequence[LogLine], places: Mapping[int, _Place]) -> Mapping[str, Mapping[str, bool]]:
    """Of each pod its containers, and whether each has ended with an error as it is now."""
    found: dict[str, dict[str, bool]] = {}
    for line in lines:
        place = places[line.number]
        if not place.container:
            continue
        of_pod = found.setdefault(place.pod, {})
        of_pod.setdefault(place.container, False)
        code = _EXIT.match(line.text)
        if code and not place.last and code[1] != "0":
            of_pod[place.container] = True
    return found


def _lives_on(place: _Place, ended: Mapping[str, Mapping[str, bool]]) -> bool:
    """Another container of the pod ended with an error, and this one did not, or only in an earlier run."""
    of_pod = ended.get(place.pod, {})
    return bool(place.container) and any(of_pod.values()) and not of_pod.get(place.container, False)


def _own_pods(file: LogFile, log: JobLog) -> frozenset[str]:
    """Stems of the pods that files of the job are named after, of those that this file lists; none where it lists no others."""
    if log.job_ids:
        return frozenset()
    listed = {
        found[1]
        for line in file.lines
        if (found := _ROW.match(line.text) or _OBJECT.search(line.text) or _NAME.match(line.text))
    }
    names = [PurePosixPath(f.name).name for f in log.files if f.kind == "job"]
    return frozenset(
        stem(pod)
        for pod in listed
        if any(re.search(rf"(?<![a-z0-9-]){re.escape(pod)}(?![a-z0-9-])", name) for name in names)
    )


def stem(pod: str) -> str:
    """What the pods of one job have in common: train-worker-3 -> train-worker."""
    return _REPLICA.sub("", pod)


def _of_other(text: str, place: _Place, mine: frozenset[str]) -> bool:
    said = _ROW.match(text) or _OBJECT.search(text)
    pod = said[1] if said else place.pod
    return bool(mine and pod) and stem(pod) not in mine


def _last_start(lines: Sequence[LogLine], mine: frozenset[str]) -> timedelta | None:
    """How long ago the last container of the job started, by its events."""
    ages = [
        age
        for line in lines
        if _STARTED.search(line.text)
        and not _of_other(line.text, _Place(), mine)
        and (age := _age(line.text)) is not None
    ]
    return min(ages, default=None)


def _is_past(text: str, started: timedelta | None) -> bool:
    age = _age(text) if started is not None and re.match(r"\s{0,4}(?:Normal|Warning|\d)", text) else None
    return age is not None and started is not None and age > started


def _age(text: str) -> timedelta | None:
    """`58m (x3 over 60m)` is 58 minutes; None where no column tells an age."""
    found = _AGE.search(text[:200])
    if found is None:
        return None
    return sum((timedelta(**{_UNITS[unit]: int(n)}) for n, unit in _PART.findall(found[1])), timedelta())


def nodes(log: JobLog) -> dict[tuple[str, int], str]:
    """The node of each line that kubectl prints of a pod: of its description, or of an event after its assignment."""
    found: dict[tuple[str, int], str] = {}
    for file in log.files:
        if file.kind == "kubernetes":
            found.update(((file.name, number), node) for number, node in _nodes(file.lines))
    return found


def ranks(log: JobLog) -> dict[tuple[str, int], int]:
    """The rank of each line that describes a pod of one process, of jobs that a cluster was asked for."""
    found: dict[tuple[str, int], int] = {}
    for file in log.files if log.job_ids else ():
        rank = None
        for line in file.lines if file.kind == "kubernetes" else ():
            if line.text.startswith(_BEGINS):
                rank = None
            elif said := _RANK.match(line.text):
                rank = int(said[1])
            if rank is not None:
                found[file.name, line.number] = rank
    return found


def _nodes(lines: Sequence[LogLine]) -> Iterator[tuple[int, str]]:
    assigned = {pair[1]: pair[2] for line in lines if (pair := _ASSIGNED.search(line.text))}
    node = next(iter(assigned.values())) if len(set(assigned.values())) == 1 else None
    alone = node if not any(_OBJECT.search(line.text) for line in lines) else None
    described = None
    for line in lines:
        if line.text.startswith(_BEGINS):
            described = alone = None
        elif said := _NODE.match(line.text):
            described = said[1]
        of = _OBJECT.search(line.text)
        if at := (assigned.get(of[1]) if of else described or alone):
            yield line.number, at
