"""Plain questions, in the words of people at 3 a.m."""

from __future__ import annotations

import pytest

from tests.chat.talks import desk
from triage.chat import answers, intents
from triage.chat.intents import of_history
from triage.retrieve.embedding import MiniLM

ASKED = {
    "why": [
        "why?", "what happened", "why did it die", "what's wrong with my job", "root cause?", "what went wrong here?", "explain the failure",
        "what killed it", "whats the error", "why did the job crash last night", "what is the cause", "tell me more about the crash",
    ],
    "whose": [
        "is it the node or my code?", "node or code", "Is this a hardware problem?", "is it my fault", "whose fault is it", "code or cluster?",
        "did my script break or the machine", "is this an infra issue", "was it our bug", "hardware or software failure?", "is it me or the gpu?", "who should I call?",
    ],
    "todo": ["what should I do?", "what do i do now", "how do I fix it", "next steps?", "now what", "how can we fix this", "any recommendation?", "what next?", "how do I avoid this", "will it fail again?"],
    "nodes": ["which nodes do I drain?", "what do i drain", "which node is bad", "should I cordon gpu-042?", "what node do we exclude", "suspect hosts"],
    "restart": ["is it safe to restart?", "can I resubmit", "should i just rerun it", "can we requeue the job", "restart ok?", "will a retry help", "how do I get the job running again?"],
    "when": ["when did it start?", "what time did it fail", "since when", "when was the first sign", "at what time did it break"],
    "sure": ["how sure are you?", "are you certain", "how confident is that", "can I trust this", "is that a guess", "how do you know that"],
    "unseen": ["what did you not look at?", "what is left out", "did you miss anything", "which files did you read", "what didn't you see"],
    "lost": ["how much was lost?", "what did it cost", "how many gpu hours did we lose", "how much work is wasted"],
    "before": ["has this happened before?", "is it the first time", "have we seen this already", "any similar incidents", "is anyone else affected", "how often does this happen", "Xid 79 did this again?", "the same again?", "did anyone else have this?"],
    "fixed": [
        "what fixed it last time?", "how did we fix this before", "what helped last time", "how was it solved previously", "any known fix?",
        "what did we do last time",
    ],
    "handover": ["write the handover", "hand it over to the next shift", "write a summary for the ticket", "summarize this", "tldr", "draft a report"],
    "log": [
        "show me rank 37 around the failure", "show the log", "what did rank 3 say", "rank 5", "lines around the error", "print the traceback",
        "E2", "what happened at 02:03", "show me the traceback", "job.out:120",
    ],
    "rank": ["was it rank 3?", "did rank 5 crash?", "is rank 12 to blame?"],
    "node": ["is gpu-777 bad?", "was n0012 down?"],
    "ranks": ["which ranks failed first?", "which rank died", "who failed first", "what ranks are affected"],
    "else": ["could it be OOM?", "what else could it be", "other hypotheses?", "is it a network error?", "any alternative explanation"],
    "timeline": ["timeline please", "in what order did things happen", "sequence of events"],
    "codes": ["what is Xid 79?", "what does exit code 137 mean", "exit code 137", "what is SIGBUS", "what does ncclRemoteError mean"],
    "progress": ["how far did it get", "last checkpoint?", "which step did it reach"],
    "facts": ["which job is this?", "who ran it"],
    "resolve": ["record that the node was drained and it works", "it is fixed now", "we drained it", "you were right", "mark it as resolved"],
    "help": ["help", "what can you do?"],
    "thanks": ["thanks!", "ok"],
}  # fmt: skip


@pytest.mark.parametrize(("intent", "question"), [(i, q) for i, found in ASKED.items() for q in found])
def test_the_words_tell_what_is_asked(intent: str, question: str) -> None:
    assert answers.intent_of(question, desk()) == intent


@pytest.mark.parametrize(
    ("intent", "question"),
    [
        ("whose", "do I page the operators or the developers"),
        ("nodes", "name the defective computer"),
        ("lost", "how big is the loss of work"),
        ("when", "at which moment did things go wrong"),
    ],
)
def test_other_words_that_mean_the_same_are_known_by_the_embedding(intent: str, question: str) -> None:
    assert intents.of_question(question) == ""
    assert answers.intent_of(question, desk(embed=MiniLM().embed)) == intent


@pytest.mark.parametrize(
    "question", ["foo bar", "what is the weather in Paris", "sing me a song", "12345", "дай мне лог"]
)
def test_what_is_no_question_about_a_job_is_not_known(question: str) -> None:
    assert answers.intent_of(question, desk(embed=MiniLM().embed)) == ""


@pytest.mark.parametrize(
    ("intent", "question"),
    [
        ("open", "what is still open?"),
        ("nodes", "which nodes fail most?"),
        ("types", "what fails most often"),
        ("cost", "what cost us the most gpu-hours?"),
        ("right", "how often were you right?"),
        ("last", "what happened last night"),
    ],
)
def test_questions_about_all_incidents(intent: str, question: str) -> None:
    assert of_history(question) == intent
