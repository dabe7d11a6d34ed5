"""What people write in Slack, and who may."""

from __future__ import annotations

import pytest

from triage.errors import UsageError
from triage.slack import access
from triage.slack.asked import Asked, command, question

ME = "U0BOT"


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("12", Asked(incident=12)),
        (" #12 ", Asked(incident=12)),
        ("--job 771204_3", Asked(job="771204_3")),
        ("—job=771204", Asked(job="771204")),
        ("job.out node-1/dmesg", Asked(paths=("job.out", "node-1/dmesg"))),
        ("“my job.out”", Asked(paths=("my job.out",))),
        ("a&amp;b.out", Asked(paths=("a&b.out",))),
        ("<http://job.out|job.out>", Asked(paths=("job.out",))),
        ("a—b.out", Asked(paths=("a—b.out",))),
        ("12 job.out", Asked(paths=("12", "job.out"))),
        ("help", None),
        ("  ", None),
    ],
)
def test_a_command_names_an_incident_a_job_or_paths(text: str, asked: Asked | None) -> None:
    assert command(text) == asked


@pytest.mark.parametrize("text", ["--job", "--job 1 2", "--job 1 job.out", "--all", "'job.out"])
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        command(text)


@pytest.mark.parametrize(
    ("said", "turn"),
    [
        ("why?", "why?"),
        ("was it the node", "was it the node"),
        ("rank 3 &lt;-- this one?", "rank 3 <-- this one?"),
        ("!log 37", "/log 37"),
        ("resolve confirmed fix=“new GPU”", '/resolve confirmed fix="new GPU"'),
        ("E3", "E3"),
        ("job.out:120", "job.out:120"),
        (f"<@{ME}> the handover", "the handover"),
        (f"<@{ME}>", "/help"),
        ("I drained gpu-042", ""),
        ("<@U0BOB> why?", ""),
        ("thanks all", ""),
        ("!quit", ""),
    ],
)
def test_of_a_thread_only_what_is_meant_for_it_is_answered(said: str, turn: str) -> None:
    assert question(said, ME) == turn


@pytest.mark.parametrize(
    ("channels", "users", "may", "may_not"),
    [
        ("C0A, C0B", "", [("C0A", "U0X"), ("C0B", "U0Y")], [("C0C", "U0X"), ("D0A", "U0X")]),
        ("", "U0X W0Y", [("C0A", "U0X"), ("D0A", "W0Y")], [("C0A", "U0Z")]),
        ("C0A", "U0X", [("C0A", "U0X"), ("D0A", "U0X")], [("C0B", "U0X"), ("C0A", "U0Y"), ("D0A", "U0Y")]),
        ("*", "", [("C0A", "U0X")], [("D0A", "U0X")]),
        ("D0A", "", [("D0A", "U0X")], [("D0B", "U0X")]),
    ],
)
def test_who_is_named_may_ask(
    channels: str, users: str, may: list[tuple[str, str]], may_not: list[tuple[str, str]]
) -> None:
    allowed = access.parse(channels, users)
    assert all(allowed.may(*one) for one in may)
    assert not any(allowed.may(*one) for one in may_not)
