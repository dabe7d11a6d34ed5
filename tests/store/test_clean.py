"""What is kept out of the database."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from triage.errors import StoreError
from triage.store import clean


def test_a_settings_snapshot_holds_no_secret() -> None:
    given = {
        "llm": "openai:small-1",
        "llm_api_key": "sk-1",
        "hub_token": "hf-1",
        "PASSWORD": "x",
        "token_budget": 12000,
        "offline": False,
        "database_url": "postgresql+psycopg://ada:hunter22@db.site:5432/triage?sslpassword=x",
        "chroma_url": "http://chroma:8000",
        "llm_base_url": "https://u:p@[::1",
        "sqlite": "sqlite:////home/ada/triage.db",
    }

    assert clean.settings(given) == {
        "llm": "openai:small-1",
        "token_budget": "12000",
        "offline": "False",
        "database_url": "postgresql+psycopg://db.site:5432/triage",
        "chroma_url": "http://chroma:8000",
        "llm_base_url": "https://...",
        "sqlite": "sqlite:////home/ada/triage.db",
    }


def test_a_result_that_is_no_json_is_refused_with_the_place() -> None:
    with pytest.raises(StoreError, match="a datetime under 'time'"):
        clean.tree({"evidence": [{"time": datetime(2026, 1, 1, tzinfo=UTC)}]})


@pytest.mark.parametrize("value", ["", "plain", "ünïcödé 𝄞", "tab\tnewline\n", "\x1b"])
def test_ordinary_text_is_left_as_it_is(value: str) -> None:
    assert clean.storable(value) == value


@pytest.mark.parametrize("value", [0, -(2**63), 2**63 - 1, None])
def test_numbers_that_fit_are_kept(value: int | None) -> None:
    assert clean.whole(value) == value
