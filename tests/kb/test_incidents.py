"""The shipped incidents: each one loads, is complete, speaks the taxonomy and is told in our own words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from triage import kb
from triage.domain import KnownIncident
from triage.regex import compile_pattern

FOLDER = kb.root() / "incidents"
FILES = sorted(FOLDER.glob("*.yaml"))
OUTCOMES = {"confirmed", "corrected", "rejected", "none"}
LONGEST_QUOTE = 11  # words


def ids(path: Path) -> str:
    return path.stem


@pytest.fixture(scope="module")
def incidents() -> tuple[KnownIncident, ...]:
    return kb.known_incidents()


def test_there_are_enough_and_no_id_stands_twice(incidents: tuple[KnownIncident, ...]) -> None:
    assert len(incidents) >= 40
    assert len({i.id for i in incidents}) == len(incidents) == len(FILES)
    assert {"IL-0125", "IL-0428", "IL-0239", "IL-0426", "modelarts-suspension-guide"} <= {i.id for i in incidents}


def test_they_cover_many_kinds_of_failure(incidents: tuple[KnownIncident, ...]) -> None:
    assert len({i.failure_type for i in incidents}) >= 15
    assert len({i.root_cause_class for i in incidents}) >= 7


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_an_incident_is_complete(path: Path) -> None:
    incident = kb.load_incident(path)  # checks failure_type and root_cause_class against the taxonomy
    assert incident.id == path.stem
    for text in (incident.org, incident.title, incident.symptoms, incident.root_cause):
        assert text.strip()
    assert len(incident.title) <= 130
    assert len(incident.symptoms) >= 60
    assert incident.remediation
    assert all(step.strip() for step in incident.remediation + incident.facts + incident.error_strings)
    assert incident.components
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", term) for term in incident.components)
    assert re.fullmatch(r"\d{4}(-\d\d(-\d\d)?)?", incident.date)
    assert incident.outcome in OUTCOMES


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_an_incident_names_its_sources(path: Path) -> None:
    sources = kb.load_incident(path).sources
    assert sources
    for source in sources:
        assert re.fullmatch(r"https://[\w.-]+/\S+", source.url)
        assert source.title.strip()


# ------------------------------------------------------------------------------------------------ our own words
def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def runs(text: str) -> Iterator[tuple[str, ...]]:
    """Every run of words one longer than may be quoted."""
    tokens = words(text)
    for start in range(len(tokens) - LONGEST_QUOTE):
        yield tuple(tokens[start : start + LONGEST_QUOTE + 1])


def prose(incident: KnownIncident) -> list[str]:
    """All text of an incident but what a program printed."""
    told = (incident.title, incident.symptoms, incident.root_cause, incident.lessons)
    return [*told, *incident.remediation, *incident.facts]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def texts(path: Path) -> Iterator[str]:
    text = path.read_text("utf-8")
    try:
        yield from strings(json.loads(text))
    except json.JSONDecodeError:
        yield text


def test_no_error_string_is_a_routine_line(incidents: tuple[KnownIncident, ...]) -> None:
    """A string that healthy logs hold as well would make every one of them look like the incident."""
    rules = [(rule.id, compile_pattern(rule.pattern)) for rule in kb.filter_rules()]
    strings_of = [(i.id, string) for i in incidents for string in i.error_strings]
    assert not [
        (name, rule, string) for name, string in strings_of for rule, pattern in rules if pattern.search(string)
    ]


@pytest.fixture(scope="module")
def told(shared: Path) -> list[str]:
    """The texts that the incidents were taken from."""
    sources = [*shared.glob("seeds/*.txt"), *shared.glob("histories/*.md")]
    if not sources:
        pytest.skip(f"the sources are not in {shared}")
    return [text for path in sources for text in texts(path)]


def test_each_error_string_was_printed(incidents: tuple[KnownIncident, ...], told: list[str]) -> None:
    everything = " ".join(" ".join(told).split())
    assert not [(i.id, s) for i in incidents for s in i.error_strings if " ".join(s.split()) not in everything]


def test_no_sentence_is_copied_from_the_sources(incidents: tuple[KnownIncident, ...], told: list[str]) -> None:
    known = {run for text in told for run in runs(text)}
    copied = {(i.id, " ".join(run)) for i in incidents for text in prose(i) for run in runs(text) if run in known}
    assert not copied


def test_the_check_for_copies_finds_one() -> None:
    source = "one two three four five six seven eight nine ten eleven twelve thirteen"
    assert set(runs(source)) & set(runs("zero: One two, three four five six seven eight nine ten eleven TWELVE!"))
    assert not set(runs(source)) & set(runs("one two three four five six seven eight nine ten eleven and thirteen"))
