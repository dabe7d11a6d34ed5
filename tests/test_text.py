"""Small functions on text: ranges of ranks, and lists of hosts as Slurm writes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.text import host_list


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (["gpu01", "gpu02", "gpu03", "gpu07"], "gpu[01-03,07]"),
        (["gpu-042"], "gpu-042"),
        (["n3", "n1", "n2", "n1"], "n[1-3]"),
        (["n9", "n10", "n11"], "n9,n[10-11]"),
        (["n09", "n10"], "n[09-10]"),
        (["login", "r1n02", "r1n01", "r2n01"], "login,r1n[01-02],r2n01"),
        (["a1b", "a2b"], "a1b,a2b"),
        (["n007", "n07", "n7"], "n007,n07,n7"),
        ([], ""),
    ],
)
def test_hosts_are_folded_as_slurm_takes_them(hosts: list[str], said: str) -> None:
    assert host_list(hosts) == said


@given(st.lists(st.from_regex(r"[a-c]{1,2}[0-9]{0,3}", fullmatch=True), max_size=12))
def test_a_folded_list_names_the_same_hosts(hosts: list[str]) -> None:
    assert sorted(_unfolded(host_list(hosts))) == sorted(set(hosts))


def _unfolded(text: str) -> list[str]:
    found = []
    for stem, inside, plain in re.findall(r"([^,\[]+)\[([^\]]+)\]|([^,\[\]]+)", text):
        if plain:
            found.append(plain)
        for span in inside.split(",") if inside else []:
            first, _, last = span.partition("-")
            found += [f"{stem}{n:0{len(first)}d}" for n in range(int(first), int(last or first) + 1)]
    return found
