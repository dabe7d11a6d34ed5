"""Small functions on text: ranges of ranks, and lists of hosts as Slurm writes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.text import FOLLOWED, closing, excluding, host_list, middle_cut, together_told, without_consequences


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


@pytest.mark.parametrize(
    ("scheduler", "option"),
    [
        ("slurm", "--exclude='h41n[02-03]'"),
        ("lsf", "-R \"select[hname!='h41n02' && hname!='h41n03']\""),
        ("sge", "-l h='!(h41n02|h41n03)'"),
        ("flux", "--requires=-host:'h41n[02-03]'"),
        ("pbs", ""),
        ("kubernetes", ""),
        ("none", ""),
    ],
)
def test_hosts_are_left_out_in_the_schedulers_own_words(scheduler: str, option: str) -> None:
    assert excluding(scheduler, ["h41n02", "h41n03"]) == option


@pytest.mark.parametrize(
    ("scheduler", "command"),
    [
        ("slurm", "scontrol update NodeName='h41n[02-03]' State=DRAIN Reason=triage:gpu-lost"),
        ("kubernetes", "kubectl cordon h41n02 h41n03"),
        ("pbs", "pbsnodes -o -C triage:gpu-lost h41n02 h41n03"),
        ("lsf", "badmin hclose -C triage:gpu-lost h41n02 h41n03"),
        ("sge", "qmod -d '*@h41n02' '*@h41n03'"),
        ("flux", "flux resource drain 'h41n[02-03]' triage:gpu-lost"),
        ("none", ""),
    ],
)
def test_hosts_are_closed_in_the_schedulers_own_words(scheduler: str, command: str) -> None:
    assert closing(scheduler, ["h41n02", "h41n03"], "triage:gpu-lost") == command


@pytest.mark.parametrize("host", ["n1'$(id)'", "a;rm -rf ~", "--all", "n1 n2", "", "n\u0661"])
def test_what_is_no_host_name_reaches_no_command(host: str) -> None:
    for scheduler in ("slurm", "lsf", "sge", "flux", "pbs", "kubernetes"):
        assert excluding(scheduler, ["n1", host]) == closing(scheduler, ["n1", host], "triage:hang") == ""
    assert closing("slurm", ["n1"], "a b; c") == ""


def test_a_long_line_is_cut_in_the_middle_around_its_reason() -> None:
    plain = "it begins so " + "x " * 200 + "and ends with the reason"
    assert middle_cut(plain, 80).startswith("it begins so") and middle_cut(plain, 80).endswith("with the reason")
    inside = "it begins so " + "x " * 200 + "connection refused by peer " + "y " * 200
    assert "connection refused by peer" in middle_cut(inside, 120) and middle_cut(inside, 120).endswith(" ...")
    for limit in (40, 80, 200):
        assert len(middle_cut(plain, limit)) <= limit and len(middle_cut(inside, limit)) <= limit + 4
    assert middle_cut("short", 80) == "short"


def test_what_has_one_reason_is_told_together() -> None:
    full = "the disk / is full; free some space"
    notes = (
        "earlier incidents were not compared: the incident database /h/t.db: " + full,
        "no GPU is named",
        "the incident was not recorded: the incident database /h/t.db: " + full,
        "similar incidents were searched by words only: the index /h/i: " + full,
        "a.log: cut short",
        "b.log: cut short",
    )
    assert together_told(notes) == (
        "earlier incidents were not compared, the incident was not recorded and similar incidents were searched by words only: "
        + full,
        "no GPU is named",
        "a.log: cut short",
        "b.log: cut short",
    )


def test_what_has_one_reason_at_one_place_is_told_with_the_place() -> None:
    newer = (
        "the incident database /h/t.db has schema 14, this triage knows up to 12; a newer one wrote it: upgrade (pip)"
    )
    notes = (f"learned signatures were not used: {newer}", f"the incident was not recorded: {newer}")
    assert together_told(notes) == (f"learned signatures were not used and the incident was not recorded: {newer}",)
    gone = "the incident database h:5432: connection refused; is it running?"
    assert together_told((f"a: {gone}", f"b: {gone}")) == (f"a and b: {gone}",)


def test_what_followed_is_left_out_of_what_is_asked() -> None:
    cause = f"Rank 3 lost its GPU (a.log:3). {FOLLOWED}srun ended v1.2 of it; NCCL timed out. Seen twice."
    assert without_consequences(cause) == "Rank 3 lost its GPU (a.log:3). Seen twice."
    assert without_consequences("Nothing followed.") == "Nothing followed."


def test_a_host_with_a_number_without_end_is_listed_as_it_is() -> None:
    hosts = ["n1", "n2", f"n{'9' * 5000}"]
    assert host_list(hosts) == f"n[1-2],{hosts[2]}"
