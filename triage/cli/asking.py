"""The failure agent as the settings would have it: its options, and what its tools may look into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from triage import kb, learned
from triage.cli import output
from triage.config import Settings
from triage.domain import Diagnosis, Folded, JobLog, Similar
from triage.evidence.match import Matcher
from triage.llm.private import Private
from triage.parts import Explain, Tell

NO_PRICES = "TRIAGE_LLM_MOST_COST bounds nothing without TRIAGE_LLM_PRICE_IN and TRIAGE_LLM_PRICE_OUT"
_MOST_INCIDENTS = 5


def explain(
    asked: Private | None, chosen: Settings, matcher: Matcher, tell: Tell, notes: Sequence[str] = ()
) -> Explain | None:
    """The failure agent with this model; None without one. notes: to be said beside its answer. What a learned signature found needs no model again."""
    if asked is None:
        return None

    def explained(log: JobLog, folded: Folded, rules: Diagnosis) -> Diagnosis:
        if learned.answers(rules):
            return rules
        if asked.unsaid:
            output.note(
                f"the log goes to {asked.unsaid}, as TRIAGE_LLM_BASE_URL names no other server; to keep it here: --llm off"
            )
        from triage.agents import case, failure_agent
        from triage.agents.tools.on_facts import FactTools
        from triage.agents.tools.on_log import LogTools
        from triage.evidence.known import known_nodes
        from triage.ingest.again import raw_lines
        from triage.llm.limits import Prices
        from triage.llm.noted import Noted
        from triage.runbooks import runbooks

        labels = kb.taxonomy()
        facts = FactTools(log, rules, labels, matcher, runbooks().of, incidents_of(chosen))
        options = failure_agent.Options(
            steps=chosen.llm_steps,
            samples=chosen.llm_samples,
            critic=chosen.llm_critic,
            context=chosen.llm_context,
            timeout=chosen.llm_timeout,
            limits=failure_agent.limits(chosen.llm_timeout, chosen.llm_most_cost),
            prices=Prices(chosen.llm_price_in, chosen.llm_price_out),
        )
        said = [*notes]  # behind the answer: the question stays what it was
        if options.limits.cost is not None and None in (chosen.llm_price_in, chosen.llm_price_out):
            said.append(NO_PRICES)
        tools = (*LogTools(log, rules, raw_lines).all(), *facts.all())
        kinds = {file.name: file.kind for file in log.files}
        model = Noted(asked.for_job(known_nodes(log)))
        found = failure_agent.explain(
            case.Case(log, folded, rules),
            model,
            labels,
            options,
            tools,
            lambda line: bool(matcher.match(line, kinds.get(line.file, "job"))),
            tell,
        )
        return replace(found, calls=model.calls, missing=(*found.missing, *said))

    return explained


def incidents_of(chosen: Settings) -> Callable[[str], Sequence[Similar]]:
    """Past incidents for words, as a tool of a model looks for them."""

    def search(words: str) -> Sequence[Similar]:
        from triage.cli import recalling
        from triage.retrieve.rank import MIN_SCORE_ASKED, Query

        return recalling.similar(chosen, Query(words), _MOST_INCIDENTS, MIN_SCORE_ASKED)[0]

    return search
