"""What holds for every log: one result however it is cut, every line counted, nothing hot lost, nothing dropped wrongly."""

import dataclasses
import itertools

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compress.seed import EVERYTHING, RULES, SIGNATURES, kept, scan
from tests.examples import examples
from triage.compress import clean, guard
from triage.compress.linewise import AFTER_PREFIX, RULE_END, confine

# Pieces that share skeletons and differ in what decides.
_NUMBER = st.integers(0, 999).map(str)
_HEX = st.text("0123456789abcdef", min_size=0, max_size=6)
_BODIES = (
    st.builds("exit code {}".format, st.sampled_from(["0", "9", "137", "1"])),
    st.builds("exited with code: {}".format, st.sampled_from(["0", "9", "1", "19"])),
    st.builds('1.2.3.4 "GET /metrics HTTP/1.1" {}'.format, st.sampled_from(["200", "500", "20"])),
    st.builds(
        "worker {} {}".format, st.sampled_from(["1", "23", "f", ""]), st.sampled_from(["added", "dead", "dead  "])
    ),
    st.builds("worker {} {}".format, _NUMBER, st.sampled_from(["ready", "ry", "r4e4y  "])),
    st.builds("{} done, errors: {}".format, _NUMBER, st.sampled_from(["0", "3", ""])),
    st.builds("iteration {}/ 500 | lm loss: {} |".format, _NUMBER, st.sampled_from(["2.1", "nan", "inf", "nn", "1"])),
    st.builds(
        "n{}:1:2 [{}] NCCL INFO {}".format, _HEX, _NUMBER, st.sampled_from(["Connected", "Failed", "Fil", "Fil1"])
    ),
    st.builds("NVRM: Xid (PCI:{}:00): {}, pid".format, _HEX, st.sampled_from(["79", "48", "43", "7"])),
    st.builds("x.py:{}: {}Warning: old".format, _NUMBER, st.sampled_from(["Future", "User", "Deprecation"])),
    st.sampled_from(["Killed", "Kill", "Killd", "Killed ", "", "  ", "12", "\t", "ERROR: x"]),
    st.sampled_from(["CUDA out of memory", "cuda out of memory", "CUDA out o memory", "CUDA out of mmory"]),
    st.builds(" {}%|##| {}/9 [".format, _NUMBER, _NUMBER),
    st.text(max_size=12).filter(lambda text: "\n" not in text),
)
_LABELS = st.sampled_from(["", "", "", "3: ", "[rank12]: ", "[default3]:", " 7: [rank1]:", "[1,5]<stderr>:", "5:"])
_COLOURS = st.sampled_from([b"", b"", b"\x1b[31m", b"\x1b[1;32mINFO\x1b[0m ", b"\x00", b"\xff\xfe", b"#033[0m"])


@st.composite
def _line(draw, bodies) -> bytes:
    label, colour, body = draw(_LABELS).encode(), draw(_COLOURS), draw(bodies).encode()
    at = draw(st.sampled_from([0, 0, len(body) // 2, len(body)]))
    return label + body[:at] + colour + body[at:]


@st.composite
def _logs(draw) -> bytes:
    """A few wordings, many lines of each, so that lines of one skeleton meet."""
    bodies = st.one_of(draw(st.lists(st.sampled_from(_BODIES), min_size=1, max_size=3)))
    line = _line(bodies) if draw(st.booleans()) else bodies.map(str.encode)
    shown = st.one_of(line, line, line, st.lists(line, min_size=2, max_size=4).map(b"\r".join))
    end = draw(st.sampled_from([b"\n", b"\n", b"\r\n"]))
    return end.join(draw(st.lists(shown, max_size=40))) + draw(st.sampled_from([b"", end]))


LOGS = _logs()
# Blocks and lines small enough that a short log crosses every border.
SMALL = dataclasses.replace(EVERYTHING, block=200, portion=3, line_limit=200, line_keep=20)
TIGHT = dataclasses.replace(SMALL, max_templates=5, budget=4000, head_lines=2, tail_lines=3)

signatures = [re2.compile(pattern) for pattern in SIGNATURES]
prefix = re2.compile(AFTER_PREFIX)
whole_signatures = [re2.compile(confine(pattern, end=r"[\t ]*$")) for pattern in SIGNATURES]
whole_rules = [(rule, re2.compile(confine(rule.pattern, AFTER_PREFIX, RULE_END))) for rule in RULES]
rules = {rule.id: (rule, re2.compile(rule.pattern)) for rule in RULES}


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(borders)]


@settings(deadline=None)
@given(LOGS, st.lists(st.integers(0, 10**6), max_size=30), st.sampled_from([SMALL, TIGHT, EVERYTHING]))
def test_how_the_bytes_are_cut_makes_no_difference(data, places, limits):
    assert scan(_cut(data, places), limits) == scan(data, limits)


@settings(deadline=None)
@given(LOGS, st.sampled_from([SMALL, TIGHT, EVERYTHING]))
def test_every_line_and_byte_is_counted(data, limits):
    found = scan(data, limits)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    assert found.lines_in == lines
    assert found.bytes_in == len(data) == sum(run.bytes_in for run in found.runs)
    assert sum(template.count for run in found.runs for template in run.templates) == lines


@settings(deadline=None)
@given(LOGS)
def test_every_line_is_kept_under_its_own_number(data):
    found = kept(scan(data, EVERYTHING))
    lines = data.split(b"\n")
    assert [number for number, _, _ in found] == list(range(1, len(found) + 1))
    for (_, raw, _), line in zip(found, lines, strict=False):
        if b"\r" not in line.rstrip(b"\r"):
            assert raw == line.rstrip(b"\r")


@settings(deadline=None, max_examples=examples(300))
@given(LOGS, st.sampled_from([SMALL, EVERYTHING]))
def test_a_line_is_hot_exactly_when_a_signature_matches_it(data, limits):
    for _, raw, kind in kept(scan(data, limits)):
        text = clean.text(raw).rstrip("\t ")
        if len(text) < 150:
            assert (kind == "hot") == any(pattern.search(text) for pattern in signatures), text


@settings(deadline=None, max_examples=examples(300))
@given(LOGS, st.sampled_from([SMALL, EVERYTHING]))
def test_a_dropped_line_is_one_that_its_rule_matches_and_no_guard_holds(data, limits):
    for _, raw, kind in kept(scan(data, limits)):
        if kind in ("hot", ""):
            continue
        rule, pattern = rules[kind]
        text = clean.text(raw)
        assert any(
            prefix.fullmatch(text[:at]) and (pattern.search(text[at:]) or pattern.search(text[at:].rstrip("\t ")))
            for at in range(len(text) + 1)
        ), text
        assert guard.alarm(text) in (("", "warning", "mention") if rule.drops_warnings else ("",)), text


def line_by_line(raw: bytes) -> str:
    """What RE2 says of one line on its own: "hot", the rule that takes it, or ""."""
    text = clean.text(raw)
    if any(pattern.search(text) for pattern in whole_signatures):
        return "hot"
    grade = guard.alarm(text)
    if grade == "error":
        return ""
    return next((rule.id for rule, pattern in whole_rules if pattern.search(text) and fits(rule, grade)), "")


def fits(rule, grade) -> bool:
    return not grade or rule.drops_warnings


@settings(deadline=None, max_examples=examples(500))
@given(LOGS, st.integers(1, 4), st.sampled_from([SMALL, EVERYTHING]))
def test_each_line_is_what_re2_says_of_it_alone(data, times, limits):
    """However wordings repeat, from block to block and within one."""
    for number, raw, kind in kept(scan((data + b"\n") * times, limits)):
        if len(raw) < 150 and clean.OVERWRITTEN not in raw:
            assert kind == line_by_line(raw), (number, raw)


@settings(deadline=None, max_examples=examples(300))
@given(LOGS, st.integers(1, 4))
def test_what_is_kept_of_a_template_are_its_first_and_last_lines(data, times):
    """Whatever is placed at once, and whatever as late as can be."""
    data = (data + b"\n") * times
    few = dataclasses.replace(SMALL, hot=(3, 2), alarm=(2, 3), plain=(1, 1), routine=(2, 2))
    everything = scan(data, SMALL).runs
    for kind, run in zip((scan(data, few).runs), everything, strict=True):
        for template, whole in zip(kind.templates, run.templates, strict=True):
            name = "hot" if whole.hot else "routine" if whole.rule else "alarm" if is_alarm(whole) else "plain"
            most, tail = getattr(few, name)
            assert template.first == whole.first[:most]
            assert template.last == whole.first[most:][-tail:]
            assert (template.id, template.count, template.rule, template.hot, template.ranks) == (
                whole.id, whole.count, whole.rule, whole.hot, whole.ranks,
            )  # fmt: skip


def is_alarm(template) -> bool:
    return bool(guard.alarm(clean.text(template.first[0].raw)))


@settings(deadline=None, max_examples=examples(300))
@given(LOGS)
def test_no_loud_text_is_lost_under_a_carriage_return(data):
    lines = data.split(b"\n")
    for number, raw, _ in kept(scan(data, EVERYTHING)):
        for state in lines[number - 1].split(b"\r"):
            text = clean.text(state).rstrip("\t ")
            if any(pattern.search(text) for pattern in signatures):
                assert state.strip() in raw


@settings(deadline=None)
@given(LOGS)
def test_without_the_signatures_themselves_a_skeleton_that_may_match_is_hot(data):
    for _, raw, kind in kept(scan(data, EVERYTHING, signatures=())):
        text = clean.text(raw).rstrip("\t ")
        if any(pattern.search(text) for pattern in signatures):
            assert kind == "hot", text


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_chunks_of_one_size(size):
    data = b"worker 1 added\r\nworker 2 dead\n" * 40 + b"3: Killed"
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert scan(chunks, SMALL) == scan(data, SMALL)
