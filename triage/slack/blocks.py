"""What is shown in Slack: diagnoses, answers, the question before an outcome is recorded and the form for it. Pure.

Log text stands only where Slack reads no markup (triage/notify/slack.py), secrets are taken out of every text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from triage.chat.outcome import KINDS, WORKED, Form
from triage.chat.values import Asks, Cited, Event, Note, Subject, Text
from triage.notify.slack import MOST_BLOCKS, MOST_TEXT, escaped, payload, plain, preformatted, within
from triage.redact import redact
from triage.slack.message import of_subject
from triage.text import seen

OUTCOME, RECORD, CANCEL = "triage-outcome", "triage-record", "triage-cancel"
MOST_VALUE = 1900  # characters of a button's value
_MOST_TYPED = 2900  # characters that a form is filled with
_MOST_ANSWER = MOST_BLOCKS - 3
_MOST_CHARS = 11_000  # characters of all blocks of a message: Slack takes little more
_ASK = "Ask in this thread: why? is it the node or my code? what fixed it last time? !help lists more."

Block = dict[str, Any]
Shown = dict[str, Any]  # text and blocks, as chat.postMessage takes them


def notice(text: str) -> Shown:
    told = _clean(text)
    return _shown(told, [_section(told[:MOST_TEXT])])


def root(subject: Subject) -> Shown:
    """The message under which the thread begins."""
    made = payload(of_subject(subject))
    more: list[Block] = [{"type": "context", "elements": [plain(_ASK, MOST_TEXT)]}]
    if subject.incident is not None:
        more.append(_actions(_button("Record how it turned out", OUTCOME, {"incident": subject.incident, "given": {}})))
    return {"text": made["text"], "blocks": [*made["blocks"][: MOST_BLOCKS - 2], *more]}


def answer(events: Iterable[Event], form: Form | None) -> Shown:
    """form: the outcome that the answer asks about, where it does; then buttons stand under it."""
    blocks: list[Block] = []
    said: list[str] = []
    left = _MOST_CHARS
    for kind, text in _joined(events, form is not None):
        said.append(text)
        for part in _parts(f"({text})" if kind is Note else text):
            left -= len(part)
            if left >= 0 and len(blocks) < _MOST_ANSWER:
                blocks.append(_block(kind, part))
    if left < 0 or len(blocks) == _MOST_ANSWER:
        blocks.append(_section("... there is more than Slack shows; ask for less."))
    if form is not None:
        blocks += _asking(form)
    return _shown("\n".join(said)[:MOST_TEXT] or "?", blocks or [_section("Nothing is known of that.")])


def _block(kind: type[Event], text: str) -> Block:
    if kind is Cited:
        return preformatted(text)
    return {"type": "context", "elements": [plain(text, MOST_TEXT)]} if kind is Note else _section(text)


def _joined(events: Iterable[Event], asks: bool) -> Iterable[tuple[type[Event], str]]:
    """Pieces of text as one, lines that are cited one after another as one. asks: the question is put by buttons."""
    found: list[tuple[type[Event], str]] = []
    for event in events:
        match event:
            case Text() | Note():
                piece = event.text
            case Cited():
                means = f"   = {event.note}" if event.note else ""
                piece = f"{event.id} {event.file}:{event.line}  {event.text}{means}\n".lstrip()
            case Asks() if not asks:
                piece = event.text
            case _:
                continue
        kind = type(event)
        if found and found[-1][0] is kind and kind is not Note:
            found[-1] = (kind, found[-1][1] + piece)
        else:
            found.append((kind, piece))
    return [(kind, _clean(text).rstrip()) for kind, text in found if text.strip()]


def _asking(form: Form) -> list[Block]:
    """Recorded at once where all is known; else by a form."""
    value = {"incident": form.incident, "given": form.given}
    if form.asked == "confirm" and len(json.dumps(value)) < MOST_VALUE:
        asked = f"Record for incident {form.incident}: {form.told()}?"
        buttons = (_button("Record", RECORD, value, style="primary"), _button("Cancel", CANCEL, {}))
    else:
        asked = f"Record how incident {form.incident} turned out?"
        buttons = (
            _button("Fill in and record", OUTCOME, _fitting(value), style="primary"),
            _button("Cancel", CANCEL, {}),
        )
    return [_section(_clean(asked)[:MOST_TEXT]), _actions(*buttons)]


def _fitting(value: dict[str, Any]) -> dict[str, Any]:
    return value if len(json.dumps(value)) < MOST_VALUE else {**value, "given": {}}


def form(incident: int, given: Mapping[str, str], channel: str, thread: str) -> dict[str, Any]:
    """The view in which an outcome is told; its submission records it."""
    return {
        "type": "modal",
        "callback_id": OUTCOME,
        "private_metadata": json.dumps({"incident": incident, "channel": channel, "thread": thread}),
        "title": plain(f"Incident {incident}", 24),
        "submit": plain("Record", 24),
        "close": plain("Cancel", 24),
        "blocks": [
            _choice("verdict", "Was the diagnosis right?", KINDS, given, optional=False),
            _input("cause", "What was the cause?", given),
            _input("fix", "What fixed it?", given),
            _choice("worked", "Did it work?", WORKED, given, optional=True),
            _input("note", "Anything else", given),
        ],
    }


def given_of(view: Mapping[str, Any]) -> dict[str, str]:
    """What was filled in."""
    found = {}
    for name, of_block in view["state"]["values"].items():
        state = of_block["value"]
        chosen = state.get("selected_option") or {}
        if value := (state.get("value") or chosen.get("value") or "").strip():
            found[name] = value
    return found


def _choice(name: str, label: str, known: Iterable[str], given: Mapping[str, str], optional: bool) -> Block:
    options = [{"text": plain(word, 75), "value": word} for word in known]
    chosen = [option for option in options if option["value"] == given.get(name)]
    element = {"type": "radio_buttons", "action_id": "value", "options": options}
    return _labelled(name, label, element | ({"initial_option": chosen[0]} if chosen else {}), optional)


def _input(name: str, label: str, given: Mapping[str, str]) -> Block:
    element: Block = {"type": "plain_text_input", "action_id": "value", "multiline": True, "max_length": 3000}
    if given.get(name):
        element["initial_value"] = given[name][:_MOST_TYPED]
    return _labelled(name, label, element, optional=True)


def _labelled(name: str, label: str, element: Block, optional: bool) -> Block:
    return {"type": "input", "block_id": name, "label": plain(label, 150), "element": element, "optional": optional}


def _actions(*buttons: Block) -> Block:
    return {"type": "actions", "elements": list(buttons)}


def _button(text: str, action: str, value: Mapping[str, Any], **more: str) -> Block:
    return {"type": "button", "text": plain(text, 75), "action_id": action, "value": json.dumps(value), **more}


def _section(text: str) -> Block:
    return {"type": "section", "text": plain(text, MOST_TEXT)}


def _shown(text: str, blocks: list[Block]) -> Shown:
    return {"text": within(escaped(text), MOST_TEXT), "blocks": blocks}


def _clean(text: str) -> str:
    return redact(seen(text))


def _parts(text: str) -> list[str]:
    """Of a length that a block takes, whatever is escaped in it, cut between lines where there are some."""
    most, parts, left = MOST_TEXT // 2, [], text
    while len(left) > most:
        at = left.rfind("\n", most // 2, most) + 1 or most
        parts.append(left[:at].rstrip("\n"))
        left = left[at:]
    return [part for part in (*parts, left) if part.strip()]
