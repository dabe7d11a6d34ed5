from __future__ import annotations

import pytest

from triage.errors import UsageError
from triage.notify import channels


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("slack:https://hooks.slack.com/services/T0/B0/secret", "slack", "slack:hooks.slack.com"),
        ("https://user:secret@hook.example:8443/secret?token=secret", "webhook", "https://hook.example:8443"),
        ("http://10.0.0.1/secret", "webhook", "http://10.0.0.1"),
        ("command:/usr/local/bin/page --key secret 'on call'", "command", "command:/usr/local/bin/page"),
        ("mailto:a@b.example, c@d.example", "mail", "mailto:a@b.example,c@d.example"),
        ("MAILTO:a@b.example", "mail", "mailto:a@b.example"),
    ],
)
def test_a_channel_is_read_and_shown_without_its_secrets(text: str, kind: str, name: str) -> None:
    (found,) = channels([text])
    assert (found.kind, found.name) == (kind, name)
    if kind in ("slack", "webhook"):
        assert "secret" not in repr(found)


def test_the_arguments_of_a_command_are_those_of_a_shell_with_no_shell() -> None:
    assert channels(["command:page 'on call' $HOME"])[0].argv == ("page", "on call", "$HOME")


def test_several_stand_in_one_setting_and_each_counts_once() -> None:
    found = channels(["mailto:a@b.example; https://x.example/1\ncommand:page now;", "mailto:a@b.example"])
    assert [channel.kind for channel in found] == ["mail", "webhook", "command"]


@pytest.mark.parametrize(
    "text",
    [
        "hunter22",
        "ftp://x.example/hunter22",
        "slack:hunter22",
        "slack:ftp://hunter22",
        "https:///hunter22",
        "https://[hunter22",
        "https://x.example:hunter22/",
        "https://x.example/a b hunter22",
        "command:",
        "command:'hunter22",
        "mailto:",
        "mailto:a@b, not one",
        "mailto:a@b.example\r\nBcc: x@y.example",
        "mailto:-oQ@b@c",
    ],
)
def test_what_is_none_is_refused_and_its_secret_not_repeated(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        channels([text])
    assert "hunter22" not in str(refused.value) or text == "hunter22"


def test_what_divides_channels_divides_no_quoted_argument() -> None:
    first, second = channels(["command:sh -c 'cat >> log; env' \"a;b\"; https://example.org/x"])
    assert first.argv == ("sh", "-c", "cat >> log; env", "a;b")
    assert second.url == "https://example.org/x"
