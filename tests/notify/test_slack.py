"""What Slack gets: its limits are kept, and no text of a log is markup."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.notify import Message
from triage.notify.message import clean
from triage.notify.slack import payload

EVIL = "<!channel> <https://evil.example|click> *b* _i_ ~s~ `c` ```d``` :smile: @here & <@U123> > quote"


def texts(value: Any) -> list[tuple[str, str]]:
    """type and text of each text object and each element of rich text."""
    found = []
    if isinstance(value, dict):
        if isinstance(value.get("text"), str) and "type" in value:
            found.append((value["type"], value["text"]))
        for inside in value.values():
            found += texts(inside)
    for inside in value if isinstance(value, list) else ():
        found += texts(inside)
    return found


MESSAGE = Message(
    "k",
    EVIL,
    "hung",
    EVIL,
    (("node", EVIL), ("evidence", f"{EVIL}\n{EVIL}")),
    (("run", "https://ci.example/1?a=b&c=<d>"),),
)


def test_text_of_a_log_is_never_where_slack_reads_markup() -> None:
    told = payload(MESSAGE)
    kinds = {kind for kind, text in texts(told["blocks"]) if "smile" in text}
    assert kinds == {"plain_text", "text"}  # the second within preformatted rich text
    for kind, text in texts(told["blocks"]):
        if kind == "plain_text":
            assert "<" not in text
            assert ">" not in text
    assert "<" not in told["text"]
    assert told["mrkdwn"] is False


def test_emoji_are_not_made_of_words_between_colons() -> None:
    def plain(value: Any) -> list[dict[str, Any]]:
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        own = [value] if isinstance(value, dict) and value.get("type") == "plain_text" else []
        return own + [one for each in inside for one in plain(each)]

    assert {one["emoji"] for one in plain(payload(MESSAGE))} == {False}


def test_a_link_is_one_and_its_text_cannot_end_it() -> None:
    told = payload(
        Message(
            "k",
            "t",
            "s",
            links=(("a|b> <!channel>", "https://ci.example/?a=1&b=2"), ("no", "https://x.example/|<!here>")),
        )
    )
    (text,) = [text for kind, text in texts(told["blocks"]) if kind == "mrkdwn"]
    assert text == "<https://ci.example/?a=1&amp;b=2|a|b&gt; &lt;!channel&gt;>"


@pytest.mark.parametrize("filler", ["x", "&", "<", "é", "\n"])
def test_the_limits_of_slack_are_kept(filler: str) -> None:
    long = filler * 20_000
    fields = tuple((f"name {n}", "v") for n in range(47)) + tuple((f"long {n}", long) for n in range(40))
    told = payload(clean(Message("k", long, "s", long, fields)))
    assert len(told["blocks"]) <= 50
    for block in told["blocks"]:
        assert len(block.get("fields", [])) <= 10
        assert len(block.get("text", {}).get("text", "")) <= (150 if block["type"] == "header" else 3000)
        assert all(1 <= len(one["text"]) <= 2000 for one in block.get("fields", []))
    assert all(len(text) <= 3000 for _, text in texts(told["blocks"]))
    assert len(told["text"]) <= 3000


@given(st.text(alphabet="&<>a;m p", max_size=400), st.integers(0, 3200))
def test_no_escaped_character_is_cut_in_two(tail: str, start: int) -> None:
    told = payload(Message("k", "x" * start + tail, "s", "x" * start + tail))
    for kind, text in texts(told["blocks"]):
        if kind == "plain_text":
            rest = text.removesuffix("…").replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
            assert "&" not in rest


def test_it_is_json() -> None:
    assert json.loads(json.dumps(payload(MESSAGE)))["blocks"][0]["type"] == "header"
