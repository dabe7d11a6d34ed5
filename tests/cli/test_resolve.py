"""`triage incidents resolve`: from options, and asked at a real terminal."""

from __future__ import annotations

import getpass
import json
import os
import pty
import select
import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

from tests.conftest import REPO
from tests.databases import lay_down
from tests.store.samples import ECC
from triage import report
from triage.cli import incidents
from triage.errors import NotFoundError, UsageError
from triage.store.incidents import IncidentStore
from triage.store.values import Verdict


def run(*words: str) -> Result:
    """An error is raised, as for the one place that prints it."""
    result = CliRunner().invoke(incidents.app, ["resolve", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def store():
    with IncidentStore.open(lay_down(f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db")) as opened:
        opened.record(ECC, report.to_json(ECC))
        yield opened


def verdicts(store: IncidentStore) -> list[Verdict]:
    return list(store.get(1).verdicts)


def test_what_is_given_is_kept_with_who_when_and_from_where(store: IncidentStore) -> None:
    words = "--verdict corrected --cause riser --fix reseated --worked yes --note third --type nvlink-error"
    done = run("1", *words.split(), "--class", "hardware-failure")

    assert done.stdout == (f"incident 1: corrected by {getpass.getuser()}, ecc-error -> nvlink-error, the fix worked\n")
    (kept,) = verdicts(store)
    assert kept.at is not None
    assert kept == Verdict(
        "corrected",
        getpass.getuser(),
        "cli",
        "riser",
        "reseated",
        "yes",
        "third",
        kept.at,
        "nvlink-error",
        "hardware-failure",
        1,
    )


def test_the_first_answer_stays_beside_the_later_ones(store: IncidentStore) -> None:
    run("1", "--verdict", "confirmed")
    run("1", "--verdict", "rejected", "--note", "came back")

    assert [v.verdict for v in verdicts(store)] == ["confirmed", "rejected"]
    assert store.get(1).result["failure_type"] == "ecc-error"
    assert store.get(1).summary.failure_type == "ecc-error"


def test_as_json(store: IncidentStore) -> None:
    shown = json.loads(run("1", "--verdict", "confirmed", "--format", "json").stdout)

    assert shown.pop("at").endswith("+00:00")
    assert shown.pop("learned")["covered"] is True
    assert shown == {
        "schema": "triage.outcome/1",
        "incident": 1,
        "verdict": "confirmed",
        "who": getpass.getuser(),
        "via": "cli",
        "cause": "",
        "fix": "",
        "worked": "unknown",
        "note": "",
        "failure_type": "ecc-error",
        "root_cause_class": "hardware-failure",
        "version": 1,
    }
    assert json.loads(CliRunner().invoke(incidents.app, ["show", "1", "--format", "json"]).stdout)["record"]["outcomes"] == [
        {key: value for key, value in shown.items() if key not in ("schema", "incident")} | {"at": verdicts(store)[0].at.isoformat()}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "nothing says how the diagnosis turned out; use --verdict confirmed|corrected|rejected"),
        ("--verdict right", "--verdict 'right' is not known; use confirmed, corrected, rejected"),
        ("--verdict confirmed --worked maybe", "--worked 'maybe' is not known; use yes, no, unknown"),
        ("--verdict corrected --type ecc", "--type 'ecc' is not known; did you mean ecc-error?"),
        ("--verdict corrected --class qq", "--class 'qq' is not known; docs/labels-and-figures.md lists them"),
        ("--verdict corrected --class nonsense", "--class 'nonsense' is not known; docs/labels-and-figures.md lists them"),
        (f"--verdict confirmed --fix {'x' * 4001}", "the fix has 4,001 characters, at most 4,000 are kept; say it in brief"),
        ("--verdict rejected --fix rebooted --worked yes", "a rejected diagnosis leaves open what it was, so no fix is known to work; "
         "if it is known now, the verdict is corrected, with the cause or the type"),
        ("--verdict corrected --type ecc-error --class hardware-failure",
         "a corrected diagnosis needs what it was instead; give the cause, the type or the class"),
        ("--verdict corrected", "a corrected diagnosis needs what it was instead; give the cause, the type or the class"),
        ("--verdict confirmed --type hang", "a confirmed diagnosis keeps its labels; for other ones the verdict is corrected"),
    ],
)  # fmt: skip
def test_a_slip_is_told_and_nothing_kept(store: IncidentStore, words: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        run("1", *words.split())

    assert str(caught.value) == message
    assert verdicts(store) == []


def test_the_cause_that_triage_told_is_no_correction(store: IncidentStore) -> None:
    with pytest.raises(UsageError, match="a corrected diagnosis needs what it was instead"):
        run("1", "--verdict", "corrected", "--cause", f" {ECC.root_cause}\n")
    run("1", "--verdict", "corrected", "--cause", "the GPU's riser")

    assert [(v.verdict, v.failure_type) for v in verdicts(store)] == [("corrected", "ecc-error")]


def test_blanks_are_nothing(store: IncidentStore) -> None:
    run("1", "--verdict", "confirmed", "--cause", "", "--fix", "   ", "--note", " \n")

    (kept,) = verdicts(store)
    assert (kept.cause, kept.fix, kept.note) == ("", "", "")


def test_an_incident_that_is_not_there(store: IncidentStore) -> None:
    with pytest.raises(NotFoundError, match="no incident 9; see: triage incidents list"):
        run("9", "--verdict", "confirmed")


def test_secrets_are_not_kept(store: IncidentStore) -> None:
    run("1", "--verdict", "confirmed", "--fix", "export API_KEY=sk-abcdefghijklmnopqrstuvwxyz0123456789")

    assert "sk-abcdefghij" not in verdicts(store)[0].fix


def at_terminal(answers: list[str], *words: str) -> tuple[int, str]:
    """Exit code and all that was seen; each answer is typed once a question waits."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "triage", "incidents", "resolve", *words]
    child = subprocess.Popen(command, cwd=REPO, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    seen, waiting = "", list(answers)
    try:
        while piece := _read(ours):
            seen += piece
            if seen.endswith(": ") and waiting:
                os.write(ours, waiting.pop(0).encode())
        return child.wait(30), seen.replace("\r\n", "\n")
    finally:
        child.kill()
        os.close(ours)


def _read(terminal: int) -> str:
    """ "" when the other side is closed, or says nothing for long."""
    if not select.select([terminal], [], [], 30)[0]:
        return ""
    try:
        return os.read(terminal, 4096).decode("utf-8", "replace")
    except OSError:
        return ""


def test_at_a_terminal_what_is_missing_is_asked_with_what_triage_said(store: IncidentStore) -> None:
    code, seen = at_terminal(["wrong\n", "conf\n", "\n", "-\n", "\n"], "1")

    assert code == 0, seen
    assert f"The cause [{ECC.root_cause}]: " in seen
    assert "What was done about it: " in seen
    assert "'wrong' is not known, use confirmed, corrected, rejected" in seen
    (kept,) = verdicts(store)
    assert (kept.verdict, kept.cause, kept.fix, kept.worked) == ("confirmed", ECC.root_cause, "", "unknown")


def test_at_a_terminal_a_correction_asks_for_the_labels(store: IncidentStore) -> None:
    code, seen = at_terminal(
        ["cor\n", "nvlink-error\n", "hardware-failure\n", "a riser\n", "y\n", "\n"], "1", "--fix", "reseated"
    )

    assert code == 0, seen
    assert "Failure type [ecc-error]: " in seen
    assert "What was done" not in seen
    (kept,) = verdicts(store)
    assert (kept.failure_type, kept.root_cause_class) == ("nvlink-error", "hardware-failure")
    assert (kept.cause, kept.fix, kept.worked) == ("a riser", "reseated", "yes")


def test_at_a_terminal_enter_records_nothing_that_was_not_done(store: IncidentStore) -> None:
    code, seen = at_terminal(["conf\n", "\n", "\n", "\n"], "1")

    assert code == 0, seen
    assert (verdicts(store)[0].fix, verdicts(store)[0].worked) == ("", "unknown")


def test_at_a_terminal_a_correction_that_changes_nothing_is_asked_again(store: IncidentStore) -> None:
    answers = ["corr\n", "\n", "\n", "\n", f"{ECC.root_cause}\n", "a riser\n", "\n", "\n"]
    code, seen = at_terminal(answers, "1")

    assert code == 0, seen
    assert seen.count("type and class stay, so say what the cause was instead") == 2
    assert verdicts(store)[0].cause == "a riser"


def test_at_a_terminal_no_fix_worked_of_what_is_not_known(store: IncidentStore) -> None:
    code, seen = at_terminal(["rej\n", "\n", "rebooted\n", "yes\n", "no\n", "\n"], "1")

    assert code == 0, seen
    assert "'yes' is not known, use no, unknown" in seen
    assert (verdicts(store)[0].fix, verdicts(store)[0].worked) == ("rebooted", "no")


def test_at_a_terminal_a_line_can_be_edited(store: IncidentStore) -> None:
    code, seen = at_terminal(["corr\n", "\n", "\n", "bad IMM\x1b[D\x1b[D\x1b[DD\n", "\n", "\n"], "1")

    assert code == 0, seen
    assert verdicts(store)[0].cause == "bad DIMM"


def test_at_a_terminal_nothing_is_asked_when_all_is_given(store: IncidentStore) -> None:
    code, seen = at_terminal([], "1", "--verdict", "rejected", "--cause", "", "--fix", "")

    assert (code, seen) == (0, f"incident 1: rejected by {getpass.getuser()}\n")


def test_a_question_that_is_left_keeps_nothing(store: IncidentStore) -> None:
    code, seen = at_terminal(["rej\n", "\x04"], "1")

    assert code == 130, seen
    assert verdicts(store) == []
