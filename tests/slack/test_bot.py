"""The bot against Slack on this machine: what people do there, and what they see."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.slack.fake import APP, BOT, CHANNEL, ME, PATIENCE, USER, FakeSlack, Message, until
from triage import config
from triage.chat.values import Subject
from triage.cli import slack_parts
from triage.config import Settings
from triage.errors import InputError
from triage.slack import bot
from triage.slack.access import Access
from triage.slack.app import web
from triage.slack.asked import Asked
from triage.slack.blocks import CANCEL, OUTCOME, RECORD
from triage.store.incidents import IncidentStore

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
LOG = f"""using token {TOKEN} for the hub
Traceback (most recent call last):
  File "train.py", line 3, in <module>
ModuleNotFoundError: No module named 'flash_attn<!channel>'
"""


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("home")
    return replace(
        config.load({"home": str(home)}),
        slack_bot_token=BOT,
        slack_app_token=APP,
        slack_channels=CHANNEL,
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    shutil.copytree(REPO / "examples" / "lost-gpu", folder / "lost-gpu")
    (folder / "own.out").write_text(LOG)
    return folder


@pytest.fixture(scope="module")
def slack(chosen: Settings, root: Path) -> Iterator[FakeSlack]:
    with FakeSlack() as fake, slack_parts.connected(chosen, [str(root)], f"{fake.url}/api/"):
        until(lambda: fake.connections)
        assert "incident: 1" in fake.messages[opened(fake, "lost-gpu")].shown
        yield fake


@pytest.fixture
def thread(slack: FakeSlack) -> str:
    """About incident 1, the example."""
    return opened(slack, "1")


def opened(slack: FakeSlack, text: str) -> str:
    """The thread that a command begins, once it is answered."""
    before = set(slack.messages)
    slack.command(text)
    return str(
        until(
            lambda: next(
                (ts for ts, m in list(slack.messages.items()) if ts not in before and not m.text.endswith(" ...")), ""
            )
        )
    )


def reply(slack: FakeSlack, thread: str, said: str, **more: str) -> Message:
    count = len(slack.replies(thread))
    slack.say(said, thread, **more)
    found: list[Message] = until(lambda: slack.replies(thread)[count:])
    return found[0]


def test_a_log_is_diagnosed_under_the_command(slack: FakeSlack) -> None:
    ts = opened(slack, "lost-gpu")
    shown = slack.messages[ts].shown
    assert shown.startswith("failed: gpu-lost\nGPU fell off the bus (Xid 79) on rank 11 (gpu-042)")
    assert "incident: 1" in shown
    assert "action: restart-excluding" in shown
    assert "gpu-042.dmesg:6  [Wed Nov 18 01:53:50 2026] NVRM: Xid" in shown
    assert "scontrol update NodeName=gpu-042 State=DRAIN" in shown


def test_it_acknowledges_before_it_reads(slack: FakeSlack) -> None:
    before = set(slack.messages)
    name = slack.command("own.out")
    done = until(
        lambda: [m for ts, m in list(slack.messages.items()) if ts not in before and "import-error" in m.shown]
    )
    assert slack.acked_at[name] < done[0].changed_at


def test_a_recorded_incident_is_shown(slack: FakeSlack, thread: str) -> None:
    assert slack.messages[opened(slack, "#1")].shown.startswith("failed: gpu-lost")
    assert "incident 4000 cannot be shown: no incident 4000" in slack.messages[opened(slack, "4000")].shown
    assert "job 99 cannot be shown: no incident of job 99 is recorded" in slack.messages[opened(slack, "—job 99")].shown
    assert slack.messages[opened(slack, "--job 771204")].shown.startswith("failed: gpu-lost")


def test_what_was_not_seen_is_said(slack: FakeSlack, root: Path) -> None:
    (root / "mixed").mkdir()
    (root / "mixed" / "job.out").write_text(LOG)
    (root / "mixed" / "job.out.tar").write_bytes(b"\0" * 2000)
    assert "job.out.tar: no log by its name, left out" in slack.messages[opened(slack, "mixed")].shown


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.out"])
def test_nothing_outside_of_the_roots_is_read(slack: FakeSlack, path: str) -> None:
    assert "outside of the roots; --root DIR allows another folder" in slack.messages[opened(slack, path)].shown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "/triage PATH... diagnoses a log"),
        ("help", "Then ask in the thread"),
        ("--jb 1", "there is no --jb"),
        ("'x", "cannot be read"),
    ],
)
def test_what_is_no_command_is_told_to_who_typed_it(slack: FakeSlack, text: str, says: str) -> None:
    name = slack.command(text)
    assert says in until(lambda: slack.acks.get(name))["text"]


def test_questions_in_the_thread_are_answered(slack: FakeSlack, thread: str) -> None:
    assert "hardware" in reply(slack, thread, "is it the node or my code?").shown
    assert "Rank 3, all that is kept" in reply(slack, thread, "show me rank 3 around the failure").shown
    assert "gpu-042.dmesg:6" in reply(slack, thread, "!evidence E1").shown
    assert "Handover" in reply(slack, thread, f"<@{ME}> the handover please").shown
    assert "There is no /bogus" in reply(slack, thread, "!bogus").shown


def test_what_people_say_to_each_other_is_left_alone(slack: FakeSlack, thread: str) -> None:
    for text, more in (
        ("I drained the node", {}),
        ("<@U0BOB> is it the node?", {}),
        ("why?", {"user": "U0BOT2", "bot_id": "B1"}),
        ("why?", {"subtype": "message_changed"}),
        ("why?", {"channel": "C0OTHER"}),
    ):
        slack.say(text, thread, **more)
    slack.say("why?", "")
    slack.say("why?", "1700000000.000001")
    assert "established" in reply(slack, thread, "how sure are you?").shown
    assert len(slack.replies(thread)) == 1


def test_what_slack_sends_twice_is_answered_once(slack: FakeSlack, thread: str) -> None:
    for _ in range(3):
        slack.say("when did it start?", thread, ts="1800009999.000001")
    count = len(slack.messages)
    name = [slack.command("own.out", trigger="same") for _ in range(3)][-1]
    until(lambda: name in slack.acks)
    until(lambda: any(m.changes and "import-error" in m.shown for m in list(slack.messages.values())[count:]))
    assert "2026-11-18" in reply(slack, thread, "when did it start?").shown
    assert len(slack.replies(thread)) == 2
    assert sum("import-error" in m.shown for m in list(slack.messages.values())[count:]) == 1


def test_an_outcome_is_recorded_after_the_button(slack: FakeSlack, thread: str, chosen: Settings) -> None:
    asks = reply(slack, thread, "resolve confirmed fix=“replaced the GPU” worked=yes")
    (ts,) = [ts for ts, m in slack.messages.items() if m is asks]
    assert "Record for incident 1: confirmed, fix 'replaced the GPU', it worked?" in asks.shown
    assert _outcomes(chosen) == []
    for _ in range(2):
        slack.press(ts, RECORD)
    until(lambda: asks.changes)
    assert "incident 1: confirmed by ada (U0ADA)" in asks.shown
    assert not asks.buttons
    assert _outcomes(chosen) == [("confirmed", "replaced the GPU", "yes", "ada (U0ADA)", "slack")]


def test_cancel_records_nothing(slack: FakeSlack, thread: str, chosen: Settings) -> None:
    before = _outcomes(chosen)
    asks = reply(slack, thread, "resolve rejected fix=- worked=no")
    (ts,) = [ts for ts, m in slack.messages.items() if m is asks]
    slack.press(ts, CANCEL)
    until(lambda: asks.changes)
    assert "Nothing is recorded." in asks.shown
    assert _outcomes(chosen) == before


def test_an_outcome_is_recorded_by_the_form(slack: FakeSlack, thread: str, chosen: Settings) -> None:
    before, count = _outcomes(chosen), len(slack.views)
    slack.press(thread, OUTCOME)
    view = until(lambda: slack.views[count:])[0]
    assert [block["block_id"] for block in view["blocks"]] == ["verdict", "cause", "fix", "worked", "note"]
    refused = slack.submit(view, verdict="confirmed", fix="x" * 4001)
    assert "at most 4,000 are kept" in until(lambda: slack.acks.get(refused))["errors"]["verdict"]
    stranger = slack.submit(
        {**view, "private_metadata": view["private_metadata"].replace(CHANNEL, "C0OTHER")}, verdict="confirmed"
    )
    assert "You may not ask" in until(lambda: slack.acks.get(stranger))["errors"]["verdict"]
    slack.submit(view, verdict="corrected", cause="a riser, not the GPU", worked="unknown")
    told = until(lambda: [m for m in slack.replies(thread) if "corrected by ada (U0ADA)" in m.shown])
    assert len(told) == 1
    assert len(_outcomes(chosen)) == len(before) + 1


def test_who_is_not_named_is_refused(slack: FakeSlack) -> None:
    count = len(slack.messages)
    name = slack.command("lost-gpu", channel="C0OTHER")
    assert "You may not ask triage here" in until(lambda: slack.acks.get(name))["text"]
    assert len(slack.messages) == count


def test_a_channel_without_the_bot_is_told_to_invite_it(slack: FakeSlack) -> None:
    slack.refuses["chat.postMessage"] = "not_in_channel"
    try:
        slack.command("1")
        assert "invite me" in until(lambda: slack.whispers)[0]
    finally:
        del slack.refuses["chat.postMessage"]


def test_a_telling_of_progress_that_slack_does_not_take_ends_no_diagnosis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot, "BETWEEN", 0.0)
    with FakeSlack() as fake:

        def diagnose(_wanted: Asked, tell: bot.Tell) -> Subject:
            fake.refuses["chat.update"] = "internal_error"
            tell("reading")
            del fake.refuses["chat.update"]
            raise InputError("the log is empty")

        everyone = Access(frozenset({CHANNEL}), frozenset())
        parts = bot.Parts(everyone, diagnose, lambda _who: pytest.fail("nothing is asked"), tmp_path, ME)
        made = bot.Bot(parts, web(BOT, f"{fake.url}/api/"))
        made.command({"channel_id": CHANNEL, "user_id": USER, "text": "own.out", "trigger_id": "t"})
        said = until(lambda: [m.text for m in list(fake.messages.values()) if not m.text.endswith(" ...")])
        assert said == ["own.out cannot be shown: the log is empty."]
        made.close(PATIENCE)


def test_an_answer_fits_in_a_message(slack: FakeSlack, root: Path) -> None:
    lines = [f"[rank{n % 3}] said {'& <b> ' * 100}{n}\n" for n in range(400)]
    (root / "long.out").write_text("".join(lines) + LOG)
    shown = reply(slack, opened(slack, "long.out"), "!log 1").shown
    assert "there is more than Slack shows; ask for less." in shown
    assert len(shown) < 12_000


def test_a_log_can_neither_call_people_nor_give_secrets_away(slack: FakeSlack) -> None:
    thread = opened(slack, "own.out")
    reply(slack, thread, "!log own.out 2")
    reply(slack, thread, "why?")
    sent = [slack.messages[thread], *slack.replies(thread)]
    assert all(TOKEN not in json.dumps(message.blocks) + message.text for message in sent)
    assert any("[redacted" in message.shown for message in sent)
    assert not any("<!channel>" in message.text for message in sent)
    for block in (block for message in sent for block in message.blocks):
        assert block["type"] == "rich_text" or "<!channel>" not in json.dumps(block)
        assert "mrkdwn" not in json.dumps(block)


def test_what_no_part_is_for_is_acknowledged(slack: FakeSlack) -> None:
    name = slack.event("reaction_added")
    until(lambda: name in slack.acks)


def test_it_waits_where_slack_is_asked_too_often(slack: FakeSlack, thread: str) -> None:
    slack.limited = 1
    assert "hardware" in reply(slack, thread, "is it the node or my code?").shown


def test_it_connects_anew_when_slack_hangs_up(slack: FakeSlack, thread: str) -> None:
    count = slack.connections
    slack.hang_up()
    until(lambda: slack.connections > count)
    assert "hardware" in reply(slack, thread, "is it the node or my code?").shown


def _outcomes(chosen: Settings) -> list[tuple[str, str, str, str, str]]:
    with IncidentStore.open(chosen.database_url) as store:
        return [(v.verdict, v.fix, v.worked, v.who, v.via) for v in store.get(1).verdicts]
