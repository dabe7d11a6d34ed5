from __future__ import annotations

import pytest

from tests.openai_server import Answer, OpenAIServer, status
from triage.llm import errors
from triage.llm.limits import Limited, Limits, Prices
from triage.llm.values import question


def test_calls_are_counted_whatever_comes_of_them() -> None:
    with OpenAIServer(["a", status(401), "never"]) as server:
        model = Limited(server.model(), Limits(calls=2))
        model.ask(question("x"))
        with pytest.raises(errors.ModelRefusedError):
            model.ask(question("x"))
        with pytest.raises(errors.ModelBudgetError, match="limit of 2 calls"):
            model.ask(question("x"))
    assert len(server.requests) == 2
    assert (model.used.calls, model.used.tokens_in, model.used.tokens_out) == (2, 100, 10)
    assert model.used.seconds > 0


def test_what_is_left_of_the_tokens_bounds_the_answer_and_then_the_calls() -> None:
    with OpenAIServer([Answer("a", usage=(300, 200)), Answer("b", "length", usage=(300, 200))]) as server:
        model = Limited(server.model(), Limits(tokens=1000))
        model.ask(question("x" * 400))
        with pytest.raises(errors.ModelCutError):
            model.ask(question("x" * 400))
        with pytest.raises(errors.ModelBudgetError, match="1000 tokens"):
            model.ask(question("x" * 400))
    assert [r.body["max_tokens"] for r in server.requests] == [900, 400]
    assert (model.used.tokens_in, model.used.tokens_out) == (600, 400)


def test_what_is_left_of_the_seconds_is_the_deadline() -> None:
    with OpenAIServer(["warm", Answer("a", wait=0.2), Answer("b", wait=30)]) as server:
        warm = server.model()
        warm.ask(question("x"))  # imports the client
        model = Limited(warm, Limits(seconds=1.5))
        model.ask(question("x"))
        with pytest.raises(errors.ModelSlowError):
            model.ask(question("x"))
        with pytest.raises(errors.ModelBudgetError, match=r"1\.5 s"):
            model.ask(question("x"))
    assert model.used.seconds < 5


def test_prices_are_per_million_tokens() -> None:
    assert Prices(2.5, 10.0).cost(1_000_000, 100_000) == 3.5
    assert Prices(2.5, None).cost(1, 1) is None


def test_a_cost_is_looked_at_before_it_is_spent() -> None:
    with OpenAIServer([Answer("a", usage=(1000, 100))] * 3) as server:
        model = Limited(server.model(), Limits(cost=0.01), Prices(1.0, 10.0))
        model.ask(question("x" * 4000, max_tokens=4000))
        with pytest.raises(errors.ModelBudgetError, match=r"cost of 0\.01") as caught:
            model.ask(question("x" * 40_000))
        with pytest.raises(errors.ModelBudgetError):
            Limited(server.model(), Limits(cost=1e-7), Prices(1.0, 10.0)).ask(question("x" * 4000))
    assert [r.body["max_tokens"] for r in server.requests] == [900]
    assert caught.value.limit == "cost"


@pytest.mark.parametrize("usage", [(-(10**10), -(10**10)), (10**12, 10**12), (0, 0)])
def test_a_count_that_cannot_be_is_not_believed(usage: tuple[int, int]) -> None:
    with OpenAIServer([Answer("x" * 40, usage=usage)]) as server:
        model = Limited(server.model(), Limits(tokens=1000), Prices(1.0, 1.0))
        model.ask(question("x" * 400))
    assert (model.used.tokens_in, model.used.tokens_out) == (100, 10)
