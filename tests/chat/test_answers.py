"""What code answers to plain questions: from the evidence, with lines that are there, or that it is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.talks import LOST_GPU, asker, case, cited, done, fresh, notes, refuted, said, subject, talk
from triage.chat.values import Event
from triage.redact import LineRedactor

QUESTIONS = [
    "why?", "is it the node or my code?", "what should I do?", "which nodes do I drain?", "is it safe to restart?", "when did it start?",
    "show me the log around the failure", "what fixed it last time?", "how sure are you?", "what did you not look at?", "how much was lost?",
    "has this happened before?", "which ranks failed first?", "could it be OOM?", "timeline", "write the handover", "/hypotheses", "/evidence",
    "/suspects", "/remedy", "/next", "/runs", "/similar",
]  # fmt: skip
CASES = [LOST_GPU, *map(case, ("c106", "c128", "c147", "c202", "c226", "s020", "s035", "s045", "s070", "s085", "s095"))]


def ask(question: str, paths: tuple[str, ...] = LOST_GPU) -> list[Event]:
    return asker(talk(subject(paths)))(question)


@pytest.mark.parametrize("paths", CASES, ids=lambda p: Path(p[0]).parent.name)
def test_each_line_that_an_answer_cites_is_there(paths: tuple[str, ...]) -> None:
    ask = asker(talk(subject(paths)))
    for question in QUESTIONS:
        events = ask(question)
        assert said(events).strip() or cited(events), question
        assert done(events).produced_by == "code"
        for line in cited(events):
            raw = Path(line.file).read_bytes().split(b"\n")[line.line - 1].decode("utf-8", "replace")
            words = " ".join(line.text.split())
            assert words in " ".join(LineRedactor().redact(raw, line.line).split()), (question, line)


@pytest.mark.parametrize(
    "question", [q for q in QUESTIONS if not q.startswith(("/", "has this", "could", "what fixed"))]
)
def test_answers_differ_by_what_the_diagnosis_holds(question: str) -> None:
    found = set()
    for paths in CASES:
        events = ask(question, paths)
        found.add((said(events), tuple((c.file, c.line) for c in cited(events))))
    assert len(found) >= len(CASES) - 2  # of jobs that went well some say the same


def test_a_lost_gpu_is_the_node_and_says_which() -> None:
    events = ask("is it the node or my code?")

    assert said(events).startswith("The node: the lines say that hardware failed.")
    assert "Suspected: gpu-042." in said(events)
    assert cited(events)[0].id == "E1"
    assert "fallen off the bus" in cited(events)[0].text


def test_a_bug_is_the_code_and_drains_nothing() -> None:
    division = case("c106")

    assert said(ask("is it the node or my code?", division)).startswith("The code:")
    assert said(ask("which nodes do I drain?", division)).startswith("None: no line of the log blames a node")
    assert said(ask("is it safe to restart?", division)).startswith("No: it would fail again.")


def test_a_job_that_was_cancelled_is_neither() -> None:
    assert said(ask("is it the node or my code?", case("c202"))).startswith(
        "Neither: the lines suggest that it was ended from outside"
    )


def test_what_the_evidence_does_not_tell_is_unknown() -> None:
    unknown = case("s070")

    assert said(ask("is it the node or my code?", unknown)).startswith("Unknown: the evidence does not tell")
    assert "unknown" in said(ask("how sure are you?", unknown))
    assert said(ask("which nodes do I drain?", unknown)).startswith("None")


@pytest.mark.parametrize("question", ["why?", "is it the node or my code?", "when did it start?"])
def test_of_a_job_that_went_well_nothing_failed(question: str) -> None:
    assert said(ask(question, case("c226"))).startswith("Nothing failed")


@pytest.mark.parametrize("paths", CASES, ids=lambda p: Path(p[0]).parent.name)
def test_only_suspects_are_to_be_drained(paths: tuple[str, ...]) -> None:
    about = subject(paths)
    events = asker(talk(about))("which nodes should I drain?")

    assert said(events).startswith("None") != bool(about.result["suspects"]["nodes"])
    commands = [line for line in said(events).split("\n") if line.strip().startswith("$")]
    assert all(any(node in line for node in about.result["suspects"]["nodes"]) for line in commands)


def test_commands_for_the_node_are_those_of_the_diagnosis() -> None:
    assert "$ scontrol update NodeName=gpu-042 State=DRAIN Reason=triage:gpu-lost" in said(
        ask("which nodes do I drain?")
    )


def test_a_rank_is_shown_with_the_first_line_of_the_cause() -> None:
    events = ask("show me rank 3 around the failure")

    assert all("3" in line.text for line in cited(events)[:2])
    assert "Watchdog caught" in cited(events)[-2].text
    assert cited(events)[-1].id == "E1"


def test_a_rank_is_named_in_any_way() -> None:
    shown = cited(ask("/log 3"))

    assert shown
    assert all(cited(ask(question)) == shown for question in ("/log rank 3", "/log rank3", "rank 3", "show rank=3"))


def test_a_rank_that_is_not_there_is_said_so() -> None:
    assert (
        said(ask("show me rank 37 around the failure")) == "Rank 37 is nowhere in this log; ranks that speak: 0-15.\n"
    )


@pytest.mark.parametrize("question", ["show me what gpu-042 said", "/log gpu-042", "gpu-042", "/log node gpu-042"])
def test_a_node_is_shown(question: str) -> None:
    assert any("fallen off the bus" in line.text for line in cited(ask(question)))


@pytest.mark.parametrize("question", ["gpu-042.dmesg:6", "/log gpu-042.dmesg 6", "E1", "/evidence E1", "/evidence 1"])
def test_a_citation_opens_the_lines_around_it(question: str) -> None:
    found = cited(ask(question))

    assert {line.line for line in found} == set(range(1, 9))
    assert all(line.file.endswith("gpu-042.dmesg") for line in found)


def test_places_that_are_not_there_are_said_so() -> None:
    assert "none kept" in said(ask("gpu-042.dmesg:4711"))
    assert "no file is called" in said(ask("other.log:3"))
    assert "There is no E99; there are E1, E2" in said(ask("/evidence 99"))


@pytest.mark.parametrize("what", ["gpu-999", "-1", "abc"])
def test_what_is_nowhere_in_the_log_is_not_taken_for_something_else(what: str) -> None:
    events = ask(f"/log {what}")
    assert said(events).startswith(f"{what} is no rank, node or file of this log; there are nodes ")
    assert "gpu-042.dmesg" in said(events)
    assert cited(events) == []
    assert cited(ask("/log gpu-042.dmesg -5")) == []


def test_the_same_nodes_are_refused_with_the_first_word() -> None:
    assert said(ask("can I just restart it on the same nodes?")).startswith("Not on the same nodes: leave out gpu-042")


def test_a_log_that_has_gone_leaves_what_was_cited() -> None:
    talk_of = asker(talk(subject(log=False)))

    assert [line.id for line in cited(talk_of("show me rank 11"))][:2] == ["E1", "E4"]
    assert "the log cannot be read again: job.out is not there any more" in notes(talk_of("E1"))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what is Xid 79?", "GPU fell off the bus"),
        ("what does exit code 137 mean?", "137 is SIGKILL"),
        ("exit code 1?", "a failure of the program's own"),
        ("what is SIGBUS?", "the shared memory of /dev is full"),
        ("what does xid 4711 mean", "the knowledge base has nothing on Xid 4711"),
        ("what does 'CUDA out of memory. Tried to allocate 2.50 GiB' mean", "out-of-memory"),
        ("what is nccl-timeout?", "collective watchdog fired"),
        ("what does restart-excluding mean?", "leaving out the suspect nodes"),
    ],
)
def test_codes_are_looked_up(question: str, answer: str) -> None:
    assert answer in said(ask(question))


def test_a_code_that_this_log_has_is_shown_in_it() -> None:
    assert cited(ask("what is Xid 79?"))[0].id == "E1"
    assert "No line that is cited here speaks of Xid 48" in said(ask("what is Xid 48?"))


def test_a_cause_that_was_not_found_is_denied_and_one_that_was_is_told() -> None:
    assert "No line that was cited speaks of out-of-memory" in said(ask("could it be OOM?"))
    assert said(ask("is it a gpu-lost?")).startswith("Yes: gpu-lost is what was found")
    assert "cuda-error was considered (hypothesis)" in said(ask("could it be a cuda-error"))


def test_steps_are_told_one_at_a_time() -> None:
    ask = asker(talk(subject()))
    steps = [said(ask("/next")).split("\n")[0] for _ in range(8)]

    assert steps[0].startswith("1. See which GPUs gpu-042 still lists")
    assert steps[1].startswith("2. Drain gpu-042")
    assert steps[7] == "No further step."


def test_a_question_that_is_not_understood_says_what_can_be_asked_and_that_no_model_is_set() -> None:
    answer = said(ask("sing me a song"))

    assert answer.startswith("I cannot tell what that asks for and no model is set (TRIAGE_LLM) that could.")
    assert "what fixed it last time?" in answer


def test_a_handover_holds_what_is_known_and_what_is_open() -> None:
    text = said(ask("write the handover"))

    for words in ("gpu-lost (established)", "job 771204", "nodes gpu-042", "3.65 GPU-hours", "`sbatch --exclude=gpu-042 JOBSCRIPT`",
                  "cuda-error is not ruled out", "nobody has recorded it yet"):  # fmt: skip
        assert words in text


def test_nothing_of_a_log_can_steer_a_terminal(tmp_path: Path) -> None:
    log = tmp_path / "job\x1b[31m.out"
    log.write_bytes(b"\x1b]0;owned\x07step 1 loss 2.0\n\x1b[2J\x1b[1;31mTraceback (most recent call last):\n"
                    b'  File "\x9b31mtrain.py", line 3, in f\nZeroDivisionError: \x1b[5mdivision by zero\x07\n')  # fmt: skip
    ask = asker(talk(fresh([log])))

    for question in (*QUESTIONS, "E1", "\x1b[31mwhy?\x1b[0m"):
        for event in ask(question):
            shown = "".join(str(getattr(event, name, "")) for name in ("text", "file", "note", "words"))
            assert all(c.isprintable() or c in "\n\t" for c in shown), (question, event)


def test_a_defect_in_an_answer_costs_that_answer_alone() -> None:
    broken = asker(talk(subject(progress=None)))

    assert said(broken("how much was lost?")).startswith("That went wrong inside (TypeError)")
    assert said(broken("which nodes do I drain?")).startswith("gpu-042")


@pytest.mark.parametrize(
    "question",
    [
        "",
        "   ",
        "/",
        "//",
        "/log",
        "/log rank",
        "/evidence x",
        "/open",
        "why? " * 6000,
        "\x00\xff\udc80",
        "/incidents type='x",
        "%s {0}",
        "\u202e?",
    ],
)
def test_odd_questions_are_answered(question: str) -> None:
    events = ask(question)
    assert said(events).strip() or cited(events)


@pytest.mark.parametrize("question", ["is gpu-041 ok?", "and gpu-041?"])
def test_a_node_that_no_line_blames_is_not_blamed(question: str) -> None:
    assert said(ask(question)).startswith("No line blames gpu-041.")


def test_a_suspect_is_told_with_its_lines() -> None:
    events = ask("gpu-042 then?")

    assert said(events).startswith("gpu-042 is suspected:")
    assert cited(events)[0].id == "E1"


def test_a_traceback_and_a_time_of_day_are_shown() -> None:
    traceback, at = cited(ask("show me the traceback")), cited(ask("what happened at 02:03?"))

    assert "Traceback (most recent call last)" in traceback[0].text
    assert "CUDA error: unspecified launch failure" in "".join(line.text for line in traceback)
    assert all("02:03:51" in line.text for line in at)
    assert said(ask("what happened at 12:34?")) == "No line that was kept is of 12:34.\n"


def test_the_cause_reads_whole_without_the_lines_that_are_cited_below() -> None:
    assert "GPU fell off the bus (Xid 79) on rank 11 (gpu-042). What followed" in said(ask("why?"))
    assert "waited: `11: [rank11]: For debugging" in said(ask("why?"))


def test_whether_it_was_a_rank_is_said_before_its_lines() -> None:
    assert said(ask("was it rank 11?")).startswith("Rank 11 is suspected:")
    assert said(ask("did rank 3 crash?")).startswith("No line blames rank 3.")
    assert "Rank 99 is nowhere in this log; ranks that speak: 0-15." in said(ask("was it rank 99?"))
    assert said(ask("show me rank -3")) == "-3 is no rank.\n" and not cited(ask("show me rank -3"))


def test_a_node_that_is_nowhere_is_said() -> None:
    assert said(ask("is gpu-777 bad?")).startswith("gpu-777 is nowhere in this log; there are nodes gpu-041, gpu-042")


def test_of_a_checkpoint_that_the_log_names_it_is_not_known_whether_it_is_complete() -> None:
    assert "triage recover checkpoints DIR" in said(ask("is the checkpoint ok?"))


@pytest.mark.parametrize(
    "question",
    ["why?", "is it the node or my code?", "what should I do?", "which nodes do I drain?", "is it safe to restart?", "how sure are you?",
     "is gpu-042 bad?", "was it rank 11?", "/next", "write the handover"],
)  # fmt: skip
def test_what_a_person_said_instead_stands_before_what_rests_on_the_diagnosis(question: str) -> None:
    text = said(asker(talk(refuted()))(question))
    assert "ada rejected this diagnosis: somebody pulled the cable." in text[:200]


def test_by_a_refuted_diagnosis_no_node_is_drained_and_no_restart_is_safe() -> None:
    ask = asker(talk(refuted()))
    for question in ("which nodes do I drain?", "is it safe to restart?"):
        assert "$ " not in said(ask(question)), question


def test_what_helped_reads_as_a_sentence_and_a_refuted_step_is_not_proposed() -> None:
    assert ".;" not in said(ask("what fixed it last time?"))
    assert "What is proposed for this one" in said(ask("what fixed it last time?"))
    assert "What is proposed" not in said(asker(talk(refuted()))("what fixed it last time?"))
