"""The failure agent: a model reads the evidence that code found and says what it makes of it; code holds it to the log.

The rules' answer is there before a model is asked, and stands whatever the model does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triage import prompts
from triage.agents import agreement, critic
from triage.agents import answer as answers
from triage.agents.answer import Answer
from triage.agents.asking import Asker
from triage.agents.case import CHARS_PER_TOKEN, Case, Ground, inputs
from triage.agents.critic import Criticism
from triage.agents.grounding import Grounded, ground
from triage.agents.merging import Measure, may_lead, merge
from triage.agents.talking import FINISH, Bounds, Talk, plain, with_tools
from triage.agents.tools.kit import RESULT, Tool, Toolbox
from triage.domain import AgentRun, Diagnosis, LogLine
from triage.errors import ModelError
from triage.llm.errors import ModelBudgetError, ModelRequestError, ModelTooLongError, ModelToolsError
from triage.llm.limits import Limited, Limits, Prices
from triage.llm.values import ChatModel, Message
from triage.taxonomy import Taxonomy

PROMPTS = ("diagnose", "diagnose-repair", "diagnose-tools", RESULT, FINISH, "diagnose-critic")
LIMITS = Limits(calls=12, tokens=200_000)  # for each answer asked for; seconds come with the time-out of a call
SECONDS = 1.5  # of the time-out of a call, for all calls of an answer
STEPS = 8
_OTHER_ANSWERS = 0.7  # temperature of all answers but the first
_ANSWER_TOKENS = 1024  # of an answer where the context is small
_SMALL = 16_000  # tokens of a context in which there is no room for tools
_NO_PRICES = Prices()


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is asked. steps: rounds of tools, 0 for none; samples: answers; context: tokens that the model takes.

    critic: a second pass tries to prove the answer wrong; None: where the model's answer would stand before the rules'.
    """

    steps: int = STEPS
    samples: int = 1
    critic: bool | None = None
    context: int | None = None
    timeout: float = 120.0  # seconds of one call
    limits: Limits = LIMITS
    prices: Prices = _NO_PRICES


DEFAULT = Options()


def limits(timeout: float, most_cost: float | None = None) -> Limits:
    """Those of one answer. timeout: seconds of one call."""
    return replace(LIMITS, seconds=timeout * SECONDS, cost=most_cost)


def explain(
    case: Case,
    model: ChatModel,
    labels: Taxonomy,
    options: Options = DEFAULT,
    tools: Sequence[Tool] = (),
    knows: Callable[[LogLine], bool] = lambda _line: False,
    tell: Callable[[str], None] = lambda _text: None,
) -> Diagnosis:
    """The rules' diagnosis with what a model makes of the evidence. Never raises ModelError: it becomes a note.

    knows: whether a rule knows a line; tell: is told how far it is.
    """
    tell(f"asking {model.name}")
    limited = Limited(model, options.limits.times(options.samples), options.prices)
    return _Agent(case, labels, options, tools, knows, limited, tell).run()


@dataclass(slots=True)
class _Agent:
    """One piece of work. room: tokens of a prompt, once the model has said that it takes no more."""

    case: Case
    labels: Taxonomy
    options: Options
    tools: Sequence[Tool]
    knows: Callable[[LogLine], bool]
    limited: Limited
    tell: Callable[[str], None]
    asker: Asker = field(init=False)
    box: Toolbox = field(init=False)
    ground: Ground = field(init=False)
    room: int | None = None
    steps: int = 0
    stopped: str = ""
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        told = inputs(self.case, self.labels)
        self.ground = Ground(self.case, f"{told['hypotheses']}\n{told['facts']}")
        self.asker = Asker(self.limited, deadline=self.options.timeout, tell=self.tell)
        self.box = Toolbox(self.tools if self.options.steps else (), self.ground.add)
        self.room = self.options.context
        if self.room is not None and self.room < _SMALL:
            self.box.tools = ()

    def run(self) -> Diagnosis:
        held = self._answers()
        result, criticism = self.case.rules, None
        if held:
            vote = agreement.vote([g.answer for g in held], self.options.samples, result.failure_type)
            criticism = self._criticism(vote)
            result = merge(result, vote, self._measure(), self.limited.name, criticism or critic.NONE)
            dropped = [d for g in held for d in g.dropped]
            self.notes += _dropped(self.limited.name, dropped)
        used = self.limited.used
        usage = {"llm_calls": used.calls, "tokens_in": used.tokens_in, "tokens_out": used.tokens_out}
        cost = self.limited.cost
        return replace(
            result,
            missing=(*result.missing, *self.notes),
            prompts=self.asker.used,
            usage={**result.usage, **usage, **({} if cost is None else {"cost": cost})},
            agent=self._record(held, criticism),
        )

    def _measure(self) -> Measure:
        return Measure(self.ground.lines, self.labels, self.knows)

    def _record(self, held: Sequence[Grounded], criticism: Criticism | None) -> AgentRun:
        return AgentRun(
            self.steps,
            tuple(self.box.uses),
            self.stopped,
            tuple(g.answer.failure_type for g in held),
            self.options.samples,
            None if criticism is None else len(criticism.objections),
            None if criticism is None else len(criticism.dropped),
        )

    def _answers(self) -> list[Grounded]:
        """Those that held. A model that fails once is not asked for a further one."""
        held: list[Grounded] = []
        for n in range(self.options.samples):
            try:
                found, why = self._answer(_OTHER_ANSWERS if n else 0.0)
            except ModelError as error:
                self.stopped = error.limit if isinstance(error, ModelBudgetError) else "failed"
                stands = "the answers before it stand" if held else "the rules' answer stands"
                self.notes.append(f"{self.limited.name} gave no answer: {error}; {stands}")
                break
            if found is not None:
                held.append(found)
            else:
                self.notes.append(f"the answer of {self.limited.name} did not hold ({why}); the rules' answer stands")
        return held

    def _answer(self, temperature: float) -> tuple[Grounded | None, str]:
        """One that holds, after one repair at most; else None and why."""
        talk = self._talk("diagnose", temperature)
        found, problems = self._checked(talk.text)
        if problems:
            listed = "\n".join(f"- {problem}" for problem in problems)
            repair = Message("user", self.asker.fill("diagnose-repair", problems=listed))
            talk = self._plain((*talk.messages, repair), temperature, self._schema("diagnose"))
            found, problems = self._checked(talk.text)
        return (None, "; ".join(problems[:3])) if problems else (found, "")

    def _checked(self, said: str) -> tuple[Grounded | None, tuple[str, ...]]:
        answer, problems = answers.read(said, self.labels)
        if answer is None:
            return None, problems
        found = ground(answer, self.ground)
        return found, found.broken

    def _talk(self, prompt: str, temperature: float = 0.0, **more: str) -> Talk:
        """Asks with tools, where there are some and the model takes them; in less room, where it has no more."""
        try:
            talk = self._with_tools(prompt, temperature, more)
        except (ModelToolsError, ModelRequestError):
            if not self.box.tools:
                raise
            self.box.tools, self.stopped = (), "no tools"
            talk = self._without(prompt, temperature, more)
        except ModelTooLongError as error:
            if self.room is not None and error.room is None:
                raise
            self.box.tools = ()
            self.room, self.stopped = error.room or self._half(prompt, more), "context"
            talk = self._without(prompt, temperature, more)
        self.steps += talk.steps
        if not self.stopped or talk.stopped != "answered":
            self.stopped = talk.stopped
        return talk

    def _with_tools(self, prompt: str, temperature: float, more: dict[str, str]) -> Talk:
        if not self.box.tools:
            return self._without(prompt, temperature, more)
        system = Message("system", self.asker.fill("diagnose-tools", steps=str(self.options.steps)))
        bounds = Bounds(self.options.steps, self.limited.nearly)
        return with_tools(self.asker, (system, self._question(prompt, more)), self.box, bounds, temperature)

    def _without(self, prompt: str, temperature: float, more: dict[str, str]) -> Talk:
        return self._plain((self._question(prompt, more),), temperature, self._schema(prompt))

    def _plain(self, messages: tuple[Message, ...], temperature: float, schema: dict[str, Any] | None) -> Talk:
        most = _ANSWER_TOKENS if self.room is not None and self.room < _SMALL else None
        return plain(self.asker, messages, temperature, schema, most, tuple(self.box.specs))

    def _question(self, prompt: str, more: dict[str, str]) -> Message:
        """Within the room there is, if it is little, beside an answer and the same answer mended."""
        taken = 2 * _ANSWER_TOKENS + int(len("".join(more.values())) / CHARS_PER_TOKEN)
        known = {**inputs(self.case, self.labels, None if self.room is None else max(0, self.room - taken)), **more}
        wanted = prompts.load(prompt).inputs
        return Message("user", self.asker.fill(prompt, **{name: known[name] for name in wanted}))

    def _half(self, prompt: str, more: dict[str, str]) -> int:
        """Of what was asked, in tokens: the server did not say how many it takes."""
        return int(len(self._question(prompt, more).content) / CHARS_PER_TOKEN / 2) + 2 * _ANSWER_TOKENS

    def _schema(self, prompt: str) -> dict[str, Any] | None:
        return answers.schema(self.labels) if prompt == "diagnose" else None

    def _criticism(self, vote: agreement.Vote) -> Criticism | None:
        """What a second pass says against the answer; None when it is not asked, or says nothing that can be read."""
        answer = vote.leader
        if not self._is_criticised(answer, vote):
            return None
        self.tell(f"asking {self.limited.name} what speaks against it")
        try:
            talk = self._talk("diagnose-critic", answer=critic.as_text(answer))
        except ModelError as error:
            self.notes.append(f"{self.limited.name} was not heard on what speaks against its answer: {error}")
            return None
        found = critic.read(talk.text, answer, self.ground)
        if found is None:
            self.notes.append(f"what {self.limited.name} says against its answer cannot be read")
        elif found.dropped:
            count = len(found.dropped)
            self.notes.append(
                f"of what {self.limited.name} says against its answer, {count} did not hold and was dropped"
            )
        return found

    def _is_criticised(self, answer: Answer, vote: agreement.Vote) -> bool:
        if not answer.names_a_cause or self.options.critic is False:
            return False
        if self.options.critic:
            return True
        differs = answer.failure_type != self.case.rules.failure_type
        return differs and may_lead(self.case.rules, vote, self._measure())


def _dropped(model: str, dropped: Sequence[str]) -> list[str]:
    if not dropped:
        return []
    return [f"of what {model} said, {len(dropped)} did not hold and was dropped: {'; '.join(dropped[:3])}"]
