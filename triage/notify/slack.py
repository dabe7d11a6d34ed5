"""A message as Slack's blocks. Pure.

Log text stands only where Slack reads no markup: in plain_text, with & < > escaped as all its text objects want it, and
in preformatted rich text, which is not parsed at all.
"""

from __future__ import annotations

from typing import Any

from triage.notify.message import Message

MOST_HEADER = 150
MOST_TEXT = 3000
MOST_FIELD = 2000
MOST_FIELDS = 10  # of a section
MOST_BLOCKS = 50
_SHORT = 120  # characters of a value that stands beside others
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def payload(message: Message) -> dict[str, Any]:
    """What an incoming webhook takes. text: what a notification shows, and where blocks are not shown."""
    blocks: list[dict[str, Any]] = [{"type": "header", "text": plain(message.headline, MOST_HEADER)}]
    if message.summary:
        blocks.append({"type": "section", "text": plain(message.summary, MOST_TEXT)})
    short = [(name, value) for name, value in message.fields if len(value) <= _SHORT and "\n" not in value]
    for start in range(0, len(short), MOST_FIELDS):
        told = [plain(f"{name}: {value}", MOST_FIELD) for name, value in short[start : start + MOST_FIELDS]]
        blocks.append({"type": "section", "fields": told})
    for name, value in message.fields:
        if (name, value) not in short:
            blocks.append({"type": "context", "elements": [plain(name, MOST_FIELD)]})
            blocks.append(preformatted(value))
    links = [f"<{url.translate(_ESCAPED)}|{escaped(text)}>" for text, url in message.links if "|" not in url]
    if links:
        text = {"type": "mrkdwn", "text": within(" · ".join(links), MOST_TEXT), "verbatim": True}
        blocks.append({"type": "context", "elements": [text]})
    fallback = within(
        escaped(f"{message.headline}: {message.summary}" if message.summary else message.headline), MOST_TEXT
    )
    return {"text": fallback, "mrkdwn": False, "unfurl_links": False, "blocks": blocks[:MOST_BLOCKS]}


def escaped(text: str) -> str:
    return text.translate(_ESCAPED)


def plain(text: str, most: int) -> dict[str, Any]:
    """emoji: none is made of :words: between colons."""
    return {"type": "plain_text", "text": within(escaped(text), most) or "-", "emoji": False}


def preformatted(text: str) -> dict[str, Any]:
    """A block whose text is not parsed."""
    inside = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text[:MOST_TEXT] or "-"}]}
    return {"type": "rich_text", "elements": [inside]}


def within(text: str, most: int) -> str:
    """Cut, but not within an escaped character."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    tail = cut.rfind("&")
    if tail > most - 6 and ";" not in cut[tail:]:
        cut = cut[:tail]
    return cut + "…"
