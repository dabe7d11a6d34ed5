"""Slash commands: what there is, and what code answers to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from triage import report
from triage.chat import answers, on_cause, on_course, on_history, on_log, on_past, on_remedy
from triage.chat.desk import Desk
from triage.chat.said import say
from triage.chat.values import Event, Subject

# name -> (arguments, what it does)
OF_INCIDENT = {
    "/evidence": ("[En]", "the lines that are cited, or one of them with what stands around it"),
    "/log": ("RANK|FILE|NODE [LINE]", "lines of the log around the failure, or around a line"),
    "/timeline": ("", "events in order of time"),
    "/hypotheses": ("", "the causes that were considered, and what speaks for and against each"),
    "/suspects": ("", "nodes, ranks and GPUs under suspicion"),
    "/remedy": ("", "what to do, with the risk of each step"),
    "/next": ("", "the next step, one at a time"),
    "/similar": ("", "past incidents that are like this one"),
    "/runs": ("", "runs and attempts in the input"),
    "/resolve": (
        "[VERDICT fix=... worked=...]",
        "record how it turned out: confirmed, corrected, rejected; cause=, type=, note=",
    ),
    "/report": ("[FILE]", "the whole diagnosis as markdown, here or into a file"),
    "/handover": ("", "a text for who takes over"),
}
OF_HISTORY = {
    "/incidents": (
        "[since=7d ...] [WORDS]",
        "recorded incidents, the newest first; type=, node=, job=, user=, verdict=none",
    ),
    "/open": ("ID", "talk about this incident"),
    "/stats": ("[filters]", "counts over the incidents"),
}
ALWAYS = {"/help": ("", "this list"), "/quit": ("", "end; Ctrl-D does too")}
ALL = {**OF_INCIDENT, **OF_HISTORY, **ALWAYS}
_ALIASES = {
    "/exit": "/quit",
    "/q": "/quit",
    "/?": "/help",
    "/list": "/incidents",
    "/show": "/open",
    "/why": "/hypotheses",
}


def split(said: str) -> tuple[str, str]:
    """(command, its arguments); the beginning of a command is enough where no other begins so. "" for a text that is none."""
    name, _, rest = said.strip().partition(" ")
    if not name.startswith("/") or len(name) < 2 or "/" in name[1:]:
        return "", said
    name = _ALIASES.get(name.lower(), name.lower())
    near = [known for known in ALL if known.startswith(name)]
    return (near[0] if len(near) == 1 else name), rest.strip()


def run(name: str, rest: str, subject: Subject | None, desk: Desk) -> Iterator[Event]:
    """What code answers; not /open, /next, /resolve and /quit, which change the conversation. Errors: TriageError."""
    if name == "/help":
        yield from _help(subject)
    elif name == "/incidents":
        yield from on_history.incidents(desk.incidents, on_history.filters(rest, desk.labels))
    elif name == "/stats":
        yield from on_history.stats(desk.incidents, on_history.filters(rest, desk.labels))
    elif name not in ALL and (near := [known for known in ALL if known.startswith(name)]):
        yield say(f"{name} may be {', '.join(near)}; give more of it.")
    elif name not in ALL:
        yield say(f"There is no {name}; there are {', '.join(ALL)}.")
    elif subject is None:
        yield say(f"{name} is about an incident; /incidents lists them, /open ID talks about one.")
    elif name in _PLAIN:
        yield from _PLAIN[name](subject)
    else:
        yield from _with_words(name, rest, subject, desk)


_PLAIN: dict[str, Callable[[Subject], Iterator[Event]]] = {
    "/timeline": on_course.timeline,
    "/hypotheses": on_cause.hypotheses,
    "/runs": on_past.runs,
    "/handover": on_past.handover,
}


def _with_words(name: str, rest: str, subject: Subject, desk: Desk) -> Iterator[Event]:
    match name:
        case "/evidence":
            word = rest.split(maxsplit=1)[0] if rest else ""
            yield from on_log.evidence(subject, f"E{word}" if word.isdigit() else word)
        case "/log":
            words = [word for word in rest.split() if word.lower() not in ("rank", "node", "file", "line")]
            yield from on_log.log(subject, *words[:2] or [""])
        case "/similar":
            yield from on_past.similar(answers.recalled(subject, desk))
        case "/suspects":
            yield from on_remedy.which_nodes(subject)
            yield from on_course.first_ranks(subject)
        case "/remedy":
            yield from on_remedy.what_to_do(subject, desk.labels)
        case "/report":
            yield from _report(rest, subject, desk)


def _report(file: str, subject: Subject, desk: Desk) -> Iterator[Event]:
    text = report.render_markdown(dict(subject.result))
    if not file:
        yield say(text.rstrip())
    elif desk.save is None:
        yield say("Here no file can be written; /report alone shows it.")
    else:
        yield say(f"Written to {desk.save(file, text)}.")


def _help(subject: Subject | None) -> Iterator[Event]:
    known = ALL if subject else {**OF_HISTORY, **ALWAYS}
    for name, (arguments, about) in known.items():
        yield say(f"{f'{name} {arguments}'.strip():<32}  {about}")
    yield say("E3 or FILE:LINE by itself shows that place of the log." if subject else "After /open there are more.")
