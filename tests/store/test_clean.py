"""What is kept out of the database."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.store.samples import ECC, as_json
from triage.domain import Remedy, Similar
from triage.errors import StoreError
from triage.store import clean
from triage.store.incidents import IncidentStore
from triage.store.values import JobRef, Verdict


def test_a_settings_snapshot_holds_no_secret() -> None:
    given = {
        "llm": "openai:small-1",
        "llm_api_key": "sk-1",
        "hub_token": "hf-1",
        "serve_tokens": "ada:write:w-1",
        "llm_max_tokens": 4096,
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
        "llm_max_tokens": "4096",
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


SECRET = "hf_" + "Ab1" * 11
LINE = f"login with {SECRET} failed"


def test_no_free_text_carries_a_secret_into_the_file(tmp_path: Path) -> None:
    """Evidence arrives redacted; what a stage forgot is caught here. The proof is in the bytes of the database."""
    leaky = dataclasses.replace(
        ECC,
        root_cause=LINE,
        evidence=(dataclasses.replace(ECC.evidence[0], text=LINE, title=LINE, file=f"{SECRET} x.log"),),
        hypotheses=(dataclasses.replace(ECC.hypotheses[0], root_cause=LINE, check=LINE),),
        remediation=(Remedy(LINE, LINE, "read-only", LINE),),
        similar=(Similar("IL-1", LINE, 0.5, LINE),),
        missing=(LINE,),
    )
    with IncidentStore.open(f"sqlite:///{tmp_path}/t.db") as store:
        incident = store.record(leaky, as_json(leaky), JobRef(name=LINE), {"note": LINE})
        store.revise(incident, leaky, as_json(leaky))
        store.resolve(incident, Verdict("corrected", "ada", cause=LINE, fix=LINE, note=LINE))
        stored = store.get(incident)
        written = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert SECRET.encode() not in written
    assert written.count(b"login with [redacted:hf-token] failed") > 20
    assert stored.result["missing"] == ["login with [redacted:hf-token] failed"]


def test_digests_are_no_secrets() -> None:
    digest = "0123456789abcdef0123456789abcdef01234567"
    odd = {"prompts": [{"name": "api key check", "version": 1, "sha256": digest}], "fingerprint": digest}

    assert clean.tree(odd) == odd
