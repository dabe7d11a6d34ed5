from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.notify.servers import certificate, post
from triage.errors import UsageError
from triage.notify import Delivery, Message, channels, send
from triage.notify.mail import Server

MESSAGE = Message(
    "incident-7",
    "hung: rank 3\r\nBcc: evil@example.org",
    "hung",
    "Grüße",
    (("job", "4711"),),
    body_markdown="## hung\n.\nQUIT\n",
)
LOGIN = ("ada", "p@ss:word/1")
URL_LOGIN = "ada:p%40ss%3Aword%2F1"


def one(smtp_url: str, message: Message = MESSAGE, seconds: float = 20.0) -> str:
    (sent,) = send(
        channels(["mailto:a@b.example,c@d.example"]), message, Delivery(smtp_url, "triage@x.example", seconds=seconds)
    )
    return sent.problem


def test_a_letter_arrives_whole_and_no_header_is_slipped_in() -> None:
    with post() as server:
        assert one(f"smtp://127.0.0.1:{server.port}") == ""
    (letter,) = server.letters
    assert letter["Subject"] == "[triage] hung: rank 3 Bcc: evil@example.org"
    assert (letter["From"], letter["To"], letter["Bcc"]) == ("triage@x.example", "a@b.example, c@d.example", None)
    text = letter.get_content().replace("\r\n", "\n")
    assert "Grüße" in text
    assert "job: 4711" in text
    assert "\n.\nQUIT" in text


def test_letters_of_one_incident_are_one_conversation() -> None:
    from dataclasses import replace

    with post() as server:
        url = f"smtp://127.0.0.1:{server.port}"
        assert (one(url), one(url, replace(MESSAGE, is_update=True))) == ("", "")
    first, second = server.letters
    assert second["In-Reply-To"] == second["References"] == first["Message-ID"] != second["Message-ID"]
    assert second["Subject"].startswith("[triage] Update: hung")


def test_a_server_that_is_busy_is_asked_again_and_one_that_refuses_is_not() -> None:
    with post() as server:
        server.answers = ["451 try later", "250 ok"]
        assert one(f"smtp://127.0.0.1:{server.port}") == ""
        assert server.came == 2
    with post() as server:
        server.answers = ["554 no thanks"]
        assert one(f"smtp://127.0.0.1:{server.port}") == "SMTP 554: no thanks"
        assert server.came == 1


def test_who_was_refused_is_said_and_nobody_gets_it_twice() -> None:
    with post() as server:
        server.refused = {"c@d.example": ["451 greylisted"], "a@b.example": []}
        assert one(f"smtp://127.0.0.1:{server.port}") == ""
    assert server.got == [["a@b.example"], ["c@d.example"]]
    with post() as server:
        server.refused = {"c@d.example": ["550 no such user"] * 9}
        assert one(f"smtp://127.0.0.1:{server.port}") == "c@d.example: SMTP 550: no such user"
    assert server.got == [["a@b.example"]]


def test_a_letter_that_was_taken_is_not_sent_again_for_an_odd_farewell() -> None:
    with post() as server:
        server.end = "421 going down"
        assert one(f"smtp://127.0.0.1:{server.port}") == ""
    assert len(server.letters) == 1


def test_nobody_there_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert one(f"smtp://127.0.0.1:{port}", seconds=1.0).startswith("Connection refused")


def test_a_login_is_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = certificate(tmp_path)
    if found is None:
        pytest.skip("there is no openssl that makes a certificate")
    cert, context = found
    with post(tls=context, login=LOGIN) as server:
        url = f"smtp://{URL_LOGIN}@127.0.0.1:{server.port}"
        assert one(url).startswith("TLS: ")  # nobody vouches for the certificate
        assert server.logins == []
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        assert one(url) == ""
        assert server.logins == [(*LOGIN, True)]
        wrong = one(url.replace("ada:", "bob:"))
    assert wrong.startswith("SMTP 535")
    assert LOGIN[1] not in wrong


@pytest.mark.filterwarnings("ignore:Requiring AUTH")
def test_without_encryption_a_password_goes_to_this_machine_alone() -> None:
    with post(login=LOGIN) as server:
        assert one(f"smtp://{URL_LOGIN}@127.0.0.1:{server.port}") == ""
        assert server.logins == [(*LOGIN, False)]
        # The same machine by a name that does not say so.
        refused = one(f"smtp://{URL_LOGIN}@127.1:{server.port}")
        assert refused == "127.1 offers no encryption, and the password is not sent without"
        assert len(server.logins) == 1


@pytest.mark.filterwarnings("ignore:Requiring AUTH")
def test_a_password_that_smtp_cannot_send_is_said_but_not_shown() -> None:
    with post(login=LOGIN) as server:
        said = one(f"smtp://ada:w%C3%B6rd@127.0.0.1:{server.port}")
    assert said == "SMTP's login takes no characters but those of ASCII in the name and the password"


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("", Server("localhost", 25)),
        ("smtp://mail.example", Server("mail.example", 25)),
        ("smtps://mail.example", Server("mail.example", 465, True)),
        (f"smtp://{URL_LOGIN}@mail.example", Server("mail.example", 587, False, *LOGIN)),
        ("smtp://mail.example:2525", Server("mail.example", 2525)),
    ],
)
def test_the_url_of_a_mail_server(url: str, server: Server) -> None:
    assert Server.parse(url) == server


@pytest.mark.parametrize(
    "url", ["mail.example", "http://u:hunter22@mail.example", "smtp://", "smtp://u:hunter22@h:port"]
)
def test_what_is_none_is_refused_in_words_without_its_password(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        Server.parse(url)
    assert "hunter22" not in str(refused.value)
