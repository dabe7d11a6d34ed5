"""What the bot does with what Slack sends: it answers at once, and works beside. It never dies of a message."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.webhook import WebhookClient

from triage.chat import outcome
from triage.chat.conversation import Conversation
from triage.chat.desk import Desk
from triage.chat.outcome import Form
from triage.chat.values import Subject
from triage.errors import TriageError, UsageError
from triage.notify.slack import escaped
from triage.redact import redact
from triage.slack import asked, blocks
from triage.slack.access import Access
from triage.slack.asked import Asked
from triage.slack.blocks import Shown
from triage.slack.threads import Seen, Thread, Threads, fresh
from triage.store import verdicts
from triage.store.values import Verdict

MOST_WAITING = 20  # diagnoses and questions
ANSWERS = 4  # at once
BETWEEN = 4.0  # seconds between two tellings of progress
_NOT_HERE = ("not_in_channel", "channel_not_found", "is_archived", "restricted_action")
_REFUSED = "You may not ask triage here; whoever runs it names who may (TRIAGE_SLACK_CHANNELS, TRIAGE_SLACK_USERS)."
_BUSY = "Too much is waiting already; ask again in a minute."
_INVITE = "I cannot write into this channel; invite me (/invite), and ask again."
_GONE = "This diagnosis was not recorded, and I was started anew since: ask for it again with /triage."
_LOG = logging.getLogger("triage.slack")

Tell = Callable[[str], None]
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the bot rests on, given by who wires it.

    open: what was asked for, diagnosed where it must be, from below the roots alone; Errors TriageError. desk: for a person,
    by the name that stands in the record. folder: for what is kept over restarts; me: the bot's user id.
    """

    access: Access
    open: Callable[[Asked, Tell], Subject]
    desk: Callable[[str], Desk]
    folder: Path
    me: str


class Bot:
    """Each method is given what Slack sent, and returns at once."""

    def __init__(self, parts: Parts, web: WebClient) -> None:
        self._parts, self._web = parts, web
        self._threads, self._seen = Threads(parts.folder), Seen()
        self._diagnosing = ThreadPoolExecutor(1, "triage-diagnosing")
        self._answering = ThreadPoolExecutor(ANSWERS, "triage-answering")
        self._running: set[Future[None]] = set()
        self._lock = threading.Lock()

    def close(self, seconds: float) -> bool:
        """Whether all that was under way has ended in so many seconds; what waits is dropped."""
        self._diagnosing.shutdown(wait=False, cancel_futures=True)
        self._answering.shutdown(wait=False, cancel_futures=True)
        return not wait(set(self._running), seconds).not_done

    # ------------------------------------------------------------------------------------------ what Slack sends
    def command(self, body: Body) -> str:
        """A slash command; what is said to who typed it alone, "" for nothing."""
        if not self._parts.access.may(body["channel_id"], body["user_id"]):
            return _REFUSED
        try:
            wanted = asked.command(body.get("text") or "")
        except UsageError as error:
            return escaped(redact(f"That cannot be done: {error}."))
        if wanted is None:
            return asked.HELP
        if len(self._running) >= MOST_WAITING:
            return _BUSY
        if self._seen.first(f"command {body['trigger_id']}"):
            self._beside(self._diagnosing, self._open, wanted, body)
        return ""

    def message(self, event: Body) -> None:
        """A message of a channel; answered where it is a question in a thread of ours."""
        channel, thread, user = event.get("channel", ""), event.get("thread_ts", ""), event.get("user", "")
        if event.get("bot_id") or event.get("subtype") not in (None, "thread_broadcast") or not user:
            return
        if not thread or not self._threads.knows(channel, thread) or not self._parts.access.may(channel, user):
            return
        said = asked.question(event.get("text") or "", self._parts.me)
        if not said or not self._seen.first(f"message {channel} {event['ts']}"):
            return
        if len(self._running) >= MOST_WAITING:
            self._say(channel, thread, blocks.notice(_BUSY))
            return
        self._beside(self._answering, self._answer, channel, thread, user, said)

    def pressed(self, body: Body) -> None:
        """A button."""
        action, user = body["actions"][0], body["user"]
        place = body["channel"]["id"], body["message"].get("thread_ts") or body["message"]["ts"]
        if not self._parts.access.may(place[0], user["id"]):
            return
        if action["action_id"] == blocks.OUTCOME:
            value = json.loads(action["value"])
            view = blocks.form(int(value["incident"]), value["given"], *place)
            self._web.views_open(trigger_id=body["trigger_id"], view=view)
            return
        key = f"button {place[0]} {body['message']['ts']}"
        if self._seen.first(key):
            self._beside(self._answering, self._confirmed, body, key)

    def submitted(self, body: Body) -> dict[str, str]:
        """A form that was filled in; field to what is wrong with it, {} where it is taken."""
        view, user = body["view"], body["user"]
        of = json.loads(view["private_metadata"])
        if not self._parts.access.may(of["channel"], user["id"]):
            return {"verdict": _REFUSED}
        desk = self._parts.desk(_name(user))
        try:
            verdict = _verdict(desk, int(of["incident"]), blocks.given_of(view))
        except TriageError as error:
            return {"verdict": str(error)[:150]}
        if self._seen.first(f"form {view['id']}"):
            self._beside(self._answering, self._record, desk, of, verdict)
        return {}

    # ------------------------------------------------------------------------------------------ the work
    def _open(self, wanted: Asked, body: Body) -> None:
        channel = body["channel_id"]
        try:
            thread = self._say(channel, None, blocks.notice(f"Looking at {wanted.shown} ..."))
        except SlackApiError as error:
            if error.response["error"] not in _NOT_HERE:
                raise
            WebhookClient(body["response_url"]).send(text=_INVITE, response_type="ephemeral")
            return
        shown = blocks.notice(f"{wanted.shown}: that went wrong inside; please report it.")
        try:
            subject = self._parts.open(
                wanted, _Progress(lambda text: self._change(channel, thread, blocks.notice(text)))
            )
            shown = blocks.root(subject)
            self._threads.begin(channel, thread, subject)
        except TriageError as error:
            shown = blocks.notice(f"{wanted.shown} cannot be shown: {error}.")
        finally:
            self._change(channel, thread, shown)

    def _answer(self, channel: str, thread: str, user: str, said: str) -> None:
        with self._threads.using(channel, thread) as known:
            desk = self._parts.desk(f"slack {user}")
            try:
                subject = fresh(known, desk.open_incident)
            except TriageError as error:
                self._say(channel, thread, blocks.notice(f"That cannot be done: {error}."))
                return
            if subject is None:
                self._say(channel, thread, blocks.notice(_GONE))
                return
            waiting = self._say(channel, thread, blocks.notice("Looking ...")) if desk.talker else ""
            shown = _turn(desk, subject, known, said)
            if waiting:
                self._change(channel, waiting, shown)
            else:
                self._say(channel, thread, shown)

    def _confirmed(self, body: Body, key: str) -> None:
        """Record or cancel, under the question; where it cannot be recorded the buttons stay."""
        action, message, channel = body["actions"][0], body["message"], body["channel"]["id"]
        told = "Nothing is recorded."
        if action["action_id"] == blocks.RECORD:
            value = json.loads(action["value"])
            desk = self._parts.desk(_name(body["user"]))
            try:
                told = _recorded(desk, _verdict(desk, int(value["incident"]), value["given"]), int(value["incident"]))
            except TriageError as error:
                self._seen.forget(key)
                thread = message.get("thread_ts") or message["ts"]
                self._say(channel, thread, blocks.notice(f"Not recorded: {error}."))
                return
        kept = [block for block in message.get("blocks", ()) if block["type"] != "actions"]
        shown = blocks.notice(told)
        self._change(channel, message["ts"], {"text": shown["text"], "blocks": [*kept, *shown["blocks"]]})

    def _record(self, desk: Desk, of: Body, verdict: Verdict) -> None:
        try:
            told = _recorded(desk, verdict, int(of["incident"]))
        except TriageError as error:
            told = f"Not recorded: {error}."
        self._say(of["channel"], of["thread"], blocks.notice(told))

    # ------------------------------------------------------------------------------------------ to Slack
    def _say(self, channel: str, thread: str | None, shown: Shown) -> str:
        """The time of the new message, which is its name. Errors: SlackApiError, OSError."""
        said = self._web.chat_postMessage(
            channel=channel, thread_ts=thread, text=shown["text"], blocks=shown["blocks"], unfurl_links=False
        )
        return str(said["ts"])

    def _change(self, channel: str, ts: str, shown: Shown) -> None:
        self._web.chat_update(channel=channel, ts=ts, text=shown["text"], blocks=shown["blocks"])

    # ------------------------------------------------------------------------------------------ beside
    def _beside(self, pool: ThreadPoolExecutor, work: Callable[..., None], *given: Any) -> None:
        def guarded() -> None:
            try:
                work(*given)
            except (SlackClientError, OSError) as error:
                _LOG.warning("Slack did not take it: %s", redact(str(error)))
            except Exception:  # noqa: BLE001 - the next message can still be answered
                _LOG.exception("a message could not be answered")

        with self._lock:
            future = pool.submit(guarded)
            self._running.add(future)
        future.add_done_callback(self._running.discard)


def _turn(desk: Desk, subject: Subject, known: Thread, said: str) -> Shown:
    """One turn of the thread's conversation, as of who asks now."""
    if known.turns is None:
        known.turns = desk.chats.get(known.chat).turns if desk.chats is not None and known.chat is not None else ()
    conversation = Conversation(desk, subject, known.chat, known.turns)
    events = list(conversation.ask(said))
    known.subject, known.chat, known.turns = conversation.subject, conversation.chat, conversation.turns
    known.incident = conversation.subject.incident if conversation.subject else None
    return blocks.answer(events, conversation.form)


def _verdict(desk: Desk, incident: int, given: Mapping[str, str]) -> Verdict:
    """Errors: UsageError for what does not hold together."""
    if problem := outcome.problem(given) or ("" if given.get("verdict") else "no verdict is given"):
        raise UsageError(problem)
    verdict = Form(incident, dict(given)).as_verdict(desk.who, desk.via)
    verdicts.check(verdict, desk.labels.types, desk.labels.root_cause_classes)
    return verdict


def _recorded(desk: Desk, verdict: Verdict, incident: int) -> str:
    """Errors: UsageError, NotFoundError, StoreError."""
    if desk.resolve is None:
        raise UsageError("there is no database to record it in")
    return "\n".join(desk.resolve(incident, verdict))


def _name(user: Body) -> str:
    """As it stands in the record: names change, ids do not."""
    name = user.get("username") or user.get("name") or ""
    return f"{name} ({user['id']})" if name else f"slack {user['id']}"


class _Progress:
    """Says now and then how far a diagnosis is; where Slack does not take it, the diagnosis goes on."""

    def __init__(self, say: Tell) -> None:
        self._say, self._last = say, time.monotonic()

    def __call__(self, text: str) -> None:
        if time.monotonic() - self._last >= BETWEEN:
            self._last = time.monotonic()
            with suppress(SlackClientError, OSError):
                self._say(f"{text} ...")
