"""What a signature and a runbook both say is said once, by the step that has the command."""

from __future__ import annotations

from triage import kb
from triage.diagnose.merging import clauses, left_of, once, only_looks
from triage.domain import PLACEHOLDERS, Remedy
from triage.runbooks import open_names

DONE = ("Drain gpu103 for test", "Restart from step 40 without gpu103", "Power-cycle gpu103 once nothing runs there")


def test_what_the_steps_do_is_left_out_of_the_remedy() -> None:
    remedy = (
        "Drain the node and reboot it, with a cold power cycle if the GPU stays away; look at PCIe AER lines before it. "
        "Restart the job without this node; a GPU that repeats goes to RMA."
    )
    assert left_of(remedy, DONE) == "Look at PCIe AER lines before it. A GPU that repeats goes to RMA."
    assert left_of(
        "Drain the node and have the power cabling of the GPU checked. Restart the job without it.", DONE
    ) == ("Have the power cabling of the GPU checked.")
    assert left_of("Restart the job without this node.", DONE) == ""


def test_what_the_action_speaks_against_is_left_out() -> None:
    remedy = "Remount or restart on another node; do not let several ranks replace the same files."
    assert left_of(remedy, (), frozenset({"restart"})) == "Do not let several ranks replace the same files."
    assert left_of("Restart on another node; look at the mount.", (), frozenset({"restart"})) == "Look at the mount."


def test_code_and_brackets_are_not_cut() -> None:
    assert clauses("Set `A=1; B=2` first; then (see a. b) go. Look.") == [
        "Set `A=1; B=2` first;",
        "then (see a. b) go.",
        "Look.",
    ]


def test_the_same_words_or_command_stand_once() -> None:
    look = Remedy("See the state and reason of the job", "w", "read-only", "sacct -j 7")
    again = Remedy("Look at the accounting", "w", "read-only", "sacct -j 7")
    words = Remedy("See the state and the reason of this job", "w", "read-only")
    other = Remedy("Correct the request", "w", "reversible")
    assert once([look, again, words, other]) == [look, other]


def test_looking_changes_nothing() -> None:
    assert only_looks("Look at PCIe AER lines before it; ask the owner.")
    assert not only_looks("Look at the lines; set NCCL_DEBUG=WARN.")


def test_remedies_name_only_what_can_be_filled() -> None:
    assert {s.id for s in kb.signatures() if set(open_names(s.remedy)) - set(PLACEHOLDERS)} == set()
