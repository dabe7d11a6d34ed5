"""Lines of the log: of a rank, a node or a file around the failure, at a place, behind an evidence id."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from triage.agents.tools.kit import ToolError
from triage.agents.tools.on_log import LogTools
from triage.chat import places
from triage.chat.said import cite, cited, of_role, ranks_of, said_instead, say, whose
from triage.chat.values import Cited, Event, Note, OpenedLog, Subject
from triage.domain import LogFile, LogLine
from triage.errors import TriageError
from triage.evidence.known import known_ranks
from triage.evidence.timeline import same_host
from triage.text import rank_ranges

AROUND = 8  # lines before and after a place
OF_RANK = 24  # lines of a rank


def evidence(subject: Subject, name: str = "") -> Iterator[Event]:
    """All that is cited, or one line with what stands around it."""
    if not name:
        if not subject.evidence:
            yield say("No line is cited.")
        for e in subject.evidence:
            who = f", {whose(e)}" if whose(e) else ""
            times = f", x{e['repeats']}" if e.get("repeats", 1) > 1 else ""
            yield say(f"{e['id']} [{e['role']}{times}{who}]")
            yield cited(e)
        return
    found = next((e for e in subject.evidence if e["id"].lower() == name.lower()), None)
    if found is None:
        ids = [e["id"] for e in subject.evidence]
        yield say(f"There is no {name}; there {'are' if ids else 'is no evidence'} {', '.join(ids)}".rstrip())
        return
    who = f", {whose(found)}" if whose(found) else ""
    yield say(f"{found['id']} [{found['role']}, {found['failure_type']}{who}]")
    yield cited(found)
    for event in place(subject, str(found["file"]), int(found["line"])):
        if not (isinstance(event, Cited) and (event.file, event.line) == (found["file"], found["line"])):
            yield event


def place(subject: Subject, file: str, line: int, around: int = AROUND) -> Iterator[Event]:
    """Lines of a file around one, as they stand on disk."""
    opened = yield from _opened(subject)
    if opened is None:
        near = [e for e in subject.evidence if e["file"].endswith(file) and abs(e["line"] - line) <= around]
        yield from cite(near, 8) if near else iter((say(f"Of {file} around line {line} nothing is kept."),))
        return
    tools = LogTools(opened.log, opened.rules, opened.read)
    try:
        found = tools.read_lines({"file": file, "line": line, "around": around})
    except (ToolError, TriageError) as error:
        yield say(f"That cannot be shown: {error}")
        return
    if found.text:
        yield Note(found.text)
    yield from _lines(found.lines)


def around_failure(subject: Subject, said: str) -> Iterator[Event]:
    """What a rank, a node or a file says around the failure; said: names one, or nothing: then around the first line of the cause."""
    if found := places.EVIDENCE.search(said):
        yield from evidence(subject, f"E{found[1]}")
        return
    if (found := places.PLACE.search(said)) and not re.fullmatch(r"[\d.]+", found[1]):
        yield from place(subject, found[1], int(found[2]))
        return
    if places.TRACEBACK.search(said):
        yield from _traceback(subject)
        return
    if clock := places.CLOCK.search(said):
        yield from _at(subject, clock[1])
        return
    rank = places.RANK.search(said)
    if rank:
        yield from of_rank(subject, int(rank[1]))
        return
    if odd := places.NO_RANK.search(said):
        yield say(f"{odd[1]} is no rank.")
        return
    name = places.named(subject, said)
    if name and name in subject.result.get("files", ()):
        yield from of_file(subject, name)
    elif name:
        yield from of_node(subject, name)
    elif anchor := _anchor(subject):
        yield from place(subject, str(anchor["file"]), int(anchor["line"]))
    else:
        yield say("Unknown where the failure is: no line is cited. /log FILE LINE shows any place.")


def about_node(subject: Subject, said: str) -> Iterator[Event]:
    """Whether a node that a question names is blamed, and by which lines."""
    node = places.named(subject, said)
    if not node:
        asked = next((word for word in said.strip(" ?!.").split() if re.search(r"\d", word)), said)
        yield say(f"{asked} is nowhere in this log{places.there(subject)}.")
        return
    mine = [e for e in subject.evidence if e.get("node") == node or node in e["text"]]
    yield from said_instead(subject)
    if node in subject.result["suspects"]["nodes"]:
        yield say(f"{node} is suspected:")
        yield from cite(mine)
        return
    yield say(f"No line blames {node}." + (" It speaks of it:" if mine else ""))
    if mine:
        yield from cite(mine, 3)
    else:
        yield from of_node(subject, node)


def about_rank(subject: Subject, said: str) -> Iterator[Event]:
    """The same of a rank."""
    found = places.RANK.search(said)
    rank = int(found[1]) if found else -1
    mine = [e for e in subject.evidence if rank in ranks_of(e)]
    suspected = rank in subject.result["suspects"]["ranks"]
    yield from said_instead(subject)
    if suspected or mine:
        yield say(f"Rank {rank} is suspected:" if suspected else f"No line blames rank {rank}. These are of it:")
        yield from cite(mine, 4)
    if not mine:
        if not suspected:
            yield say(f"No line blames rank {rank}.")
        yield from of_rank(subject, rank)


def log(subject: Subject, what: str, line: str = "") -> Iterator[Event]:
    """/log RANK|FILE|NODE [LINE]."""
    if what.lower().removeprefix("rank").isdecimal():
        yield from of_rank(subject, int(what.lower().removeprefix("rank")))
        return
    if line and not line.isdecimal():
        yield say(f"{line} is no number of a line; /log RANK|FILE|NODE [LINE].")
        return
    if line:
        yield from place(subject, what, int(line))
        return
    files = [name for name in subject.result.get("files", ()) if name == what or name.endswith(what)]
    if what and len(files) == 1:
        yield from of_file(subject, files[0])
    elif what and not places.is_place(subject, what):
        yield say(f"{what} is no rank, node or file of this log{places.there(subject)}.")
    else:
        yield from around_failure(subject, what)


def of_file(subject: Subject, name: str) -> Iterator[Event]:
    """Around its first line that is cited, else its end."""
    mine = [e for e in subject.evidence if e["file"] == name]
    root = next((e for e in mine if e["role"] == "root"), mine[0] if mine else None)
    if root is not None:
        yield from place(subject, name, int(root["line"]))
        return
    opened = yield from _opened(subject)
    if opened is None:
        yield say(f"No line of {name} is cited.")
        return
    file = next((f for f in opened.log.files if f.name == name), None)
    yield say(f"No line of {name} is cited; it ends so:")
    yield from _lines(file.lines[-OF_RANK // 2 :] if file else ())


def of_rank(subject: Subject, rank: int) -> Iterator[Event]:
    opened = yield from _opened(subject)
    if opened is None:
        mine = [e for e in subject.evidence if rank in ranks_of(e)]
        yield from cite(mine, 8) if mine else iter((say(f"No line that is cited is of rank {rank}."),))
        return
    known = known_ranks(opened.log)
    if rank not in known:
        there = f"ranks that speak: {rank_ranges(known)}" if known else "no line says of which rank it is"
        yield say(f"Rank {rank} is nowhere in this log; {there}.")
        return
    found = [line for file in opened.log.files for line in file.lines if _is_of(line, file, rank)]
    yield from _near(subject, found, f"rank {rank}")


def of_node(subject: Subject, node: str) -> Iterator[Event]:
    opened = yield from _opened(subject)
    if opened is None:
        mine = [e for e in subject.evidence if e.get("node") == node or node in e["text"]]
        yield from cite(mine, 8) if mine else iter((say(f"No line that is cited is of {node}."),))
        return
    found = [x for f in opened.log.files for x in f.lines if same_host(x.node or f.node, node) or node in x.text]
    yield from _near(subject, found, node)


def _traceback(subject: Subject) -> Iterator[Event]:
    """The first one, whole as far as its rank or file goes on."""
    opened = yield from _opened(subject)
    lines = [line for file in opened.log.files for line in file.lines] if opened else []
    begins = next((n for n, line in enumerate(lines) if "Traceback (most recent call last)" in line.text), None)
    if begins is None:
        yield say("No traceback is in this log." if opened else "No traceback is among the lines that are cited.")
        return
    first = lines[begins]
    mine = [x for x in lines[begins:] if x.file == first.file and x.rank == first.rank]
    yield from _lines(mine[:OF_RANK])


def _at(subject: Subject, clock: str) -> Iterator[Event]:
    """Lines of a time of day, as the log says it."""
    opened = yield from _opened(subject)
    wanted = clock.zfill(5) if clock.count(":") == 1 else clock.zfill(8)
    found = (
        [x for f in opened.log.files for x in f.lines if x.time and f"{x.time:%H:%M:%S}".startswith(wanted)]
        if opened
        else []
    )
    found.sort(key=lambda line: (line.time, line.file, line.number))
    if not found:
        yield say(f"No line that was kept is of {clock}.")
        return
    more = f"; {len(found) - OF_RANK} more are kept" if len(found) > OF_RANK else ""
    yield say(f"Lines of {clock}{more}:")
    yield from _lines(found[:OF_RANK])


def _near(subject: Subject, found: Sequence[LogLine], who: str) -> Iterator[Event]:
    """Those nearest to the first line of the cause, by time, else by place; else the last ones."""
    if not found:
        yield say(f"No line that was kept is of {who}.")
        return
    anchor = _anchor(subject)
    chosen, how = _nearest(found, anchor)
    left = len(found) - len(chosen)
    more = f", of the lines that were kept ({left} more); FILE:LINE shows all" if left else ""
    yield say(f"{who[:1].upper()}{who[1:]}, {how}{more}:")
    yield from _lines(chosen)
    if anchor is not None and not any((line.file, line.number) == (anchor["file"], anchor["line"]) for line in chosen):
        yield say("The first line of the cause, to compare:")
        yield cited(anchor)


def _nearest(found: Sequence[LogLine], anchor: Mapping[str, Any] | None) -> tuple[list[LogLine], str]:
    if len(found) <= OF_RANK:
        return list(found), "all that is kept"
    at = datetime.fromisoformat(anchor["time"]) if anchor and anchor.get("time") else None
    dated = [line for line in found if line.time is not None]
    if at is not None and len(dated) >= OF_RANK // 2:
        near = sorted(dated, key=lambda line: abs(line.time - at))[:OF_RANK]  # type: ignore[operator]
        return sorted(near, key=lambda line: (line.time, line.file, line.number)), f"around {at:%Y-%m-%d %H:%M:%S}"
    same = [line for line in found if anchor and line.file == anchor["file"]]
    if anchor and len(same) >= OF_RANK // 2:
        near = sorted(same, key=lambda line: abs(line.number - anchor["line"]))[:OF_RANK]
        return sorted(near, key=lambda line: line.number), f"around line {anchor['line']}"
    return list(found[-OF_RANK:]), "its last lines"


def _anchor(subject: Subject) -> Mapping[str, Any] | None:
    roots = of_role(subject, "root") or list(subject.evidence)
    return roots[0] if roots else None


def _is_of(line: LogLine, file: LogFile, rank: int) -> bool:
    if line.ranks:
        return rank in line.ranks
    return rank == (line.rank if line.rank is not None else file.rank)


def _lines(lines: Iterable[LogLine]) -> Iterator[Event]:
    for line in lines:
        yield Cited(line.file, line.number, line.text)


def _opened(subject: Subject) -> Generator[Event, None, OpenedLog | None]:
    """Returns the log, or None when it cannot be read again, which is said."""
    try:
        return subject.open_log()
    except TriageError as error:
        yield Note(f"the log cannot be read again: {error}; what is cited of it is still here")
        return None
