from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.llm.parse import Items, find_items, find_object, undoubled

RULES = '{"rules": [{"p": "a"}, {"p": "b"}]}'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure! Here it is:\n```json\n{"a": 1}\n```\nHope it helps.', {"a": 1}),
        ('With {braces} and [rank0] in prose: {"a": 1}, then {"b": 2}', {"a": 1}),
        ('<think>maybe {"a": 0}?</think>{"a": 1}', {"a": 1}),
        ('{"a": 1, "b": [1, 2,], }', {"a": 1, "b": [1, 2]}),
        ('{"a": True, "b": None, "c": -2.5e3}', {"a": True, "b": None, "c": -2500.0}),
        (r'{"p": "step \d+ \[x\] \bword"}', {"p": r"step \d+ \[x\] \bword"}),
        (r'{"p": "step \\d+"}', {"p": r"step \d+"}),
        ('{"p": "two\nlines"}', {"p": "two\nlines"}),
        (r'{"p": "\u00e4 \ud83d\ude00 \ud83d"}', {"p": "ä 😀 �"}),
        (r'"{\"a\": 1}"', {"a": 1}),
        (r"{\"p\": \"x\\d\"}", {"p": r"x\d"}),
        ('Example ```json\n{"a": oops}\n``` and so {"a": 1}', {"a": 1}),
        ('{"a": 1, "b": "cut of', {"a": 1}),
        ('{"a": 1, "b": {"c": 2, "d', {"a": 1, "b": {"c": 2}}),
        ('{"a": 12', {}),
        ('{"a": tru', {}),
        ("no json at all", {}),
        ("", {}),
        ("[1, 2]", {}),
        ("{{{{", {}),
    ],
)
def test_an_object_is_found(text: str, found: dict[str, object]) -> None:
    assert find_object(text) == found


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (RULES, Items(({"p": "a"}, {"p": "b"}))),
        (f"```json\n{RULES}\n```", Items(({"p": "a"}, {"p": "b"}))),
        ('[{"p": "a"}]', Items(({"p": "a"},))),
        ('The rule [1]: {"rules": [{"p": "a"}]}', Items(({"p": "a"},))),
        ('{"rules": []}', Items()),
        ('{"other": [1]}', Items()),
        ("nothing", Items()),
    ],
)
def test_a_list_is_found(text: str, items: Items) -> None:
    if text.startswith("The rule"):
        assert find_items(text, "rules").items[-1:] in (({"p": "a"},), (1,))
    else:
        assert find_items(text, "rules") == items


@pytest.mark.parametrize("fence", ["", "```json\n"])
def test_of_a_list_that_was_cut_the_whole_items_remain(fence: str) -> None:
    text = '{"rules": [{"p": "a", "t": [1]}, {"p": "b", "t": [2]}]}'
    for end in range(len(text)):
        found = find_items(fence + text[:end], "rules")
        whole = sum(end >= text.index("}", at) + 1 for at in (text.index('"a"'), text.index('"b"')))
        assert found.items == ({"p": "a", "t": [1]}, {"p": "b", "t": [2]})[:whole]
        assert found.cut or not found.items


# What is read otherwise on purpose is left out: backspaces, fences, thoughts, halves of a pair, backslashes.
texts = st.text(st.characters(exclude_characters="\b\f`<\\", exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(texts, json_values, min_size=1), st.booleans())
def test_good_json_is_read_as_it_is(value: dict[str, object], ascii_only: bool) -> None:
    assert find_object(json.dumps(value, ensure_ascii=ascii_only)) == value


@given(st.text('{}[]",:\\ab1 \n`'))
def test_no_text_is_an_error(text: str) -> None:
    assert isinstance(find_object(text), dict)
    assert isinstance(find_items(text, "a"), Items)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 50_000, '{"' * 100_000, "```json\n" * 40_000, '{"a": "' + "\\" * 99_999]
)
def test_a_hostile_text_takes_little_time(text: str) -> None:
    started = time.monotonic()
    find_object(text)
    find_items(text, "a")
    assert time.monotonic() - started < 3


def test_doubled_backslashes_are_taken_back() -> None:
    assert undoubled(r"step \\d+ \\[x\\]") == r"step \d+ \[x\]"
    assert undoubled(r"C:\\users \d") == r"C:\\users \d"
