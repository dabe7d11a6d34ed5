"""The page, the summary and the README's table, made from a run folder."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPO
from tests.evaluation import synthetic
from triage import markup
from triage.errors import InputError
from triage.evaluation import cases, figures, html, markdown, metrics, record, view
from triage.evaluation.page import lines, parts, svg

ALLOWED = frozenset(
    re.findall(
        r"\w+",
        "html head meta title style body a header button h1 h2 h3 h4 p b nav ul ol li main section div svg line circle rect text g table "
        "caption thead tbody tr th td span details summary figure figcaption dl dt dd form label input select option output pre code "
        "footer script",
    )
)


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, and text."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.write(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def source(folder: Path) -> str:
    path = html.write(folder)
    assert path == folder / "report.html"
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def render(records: list[dict[str, Any]], **about: Any) -> str:
    return html.render({**synthetic.run(records), **about}, records, metrics.score(records, resamples=50))


# ------------------------------------------------------------------------------------------------ nothing acts, nothing is fetched
def test_text_of_a_log_cannot_become_markup(page: Page) -> None:
    assert {tag for tag, _ in page.elements} <= ALLOWED
    assert page.unbalanced == []
    assert len(page.all("script")) == 1
    for tag, attributes in page.elements:
        assert not [a for a in attributes if a.startswith("on")], (tag, attributes)
    assert "<script>document.title='owned'</script>" in page.text, "it is shown as it stood"
    assert '"><img src=x onerror=' in page.text


def test_text_of_a_log_cannot_hide_or_reorder(source: str, page: Page) -> None:
    assert (
        re.findall(
            "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e0fff]",
            source,
        )
        == []
    )
    assert "user⟨U+202E⟩gnp.exe⟨U+2066⟩" in page.text
    assert "RuntimeError:  red ⟨U+0000⟩⟨U+0007⟩ bell" in page.text, "colours are gone, controls are named"
    assert "⟨U+D800⟩ lone surrogate and ⟨U+E0041⟩ a tag" in page.text
    assert "العربية" in page.text, "right-to-left writing itself stays"


def test_names_from_records_are_escaped_too() -> None:
    records = synthetic.records(3)
    nasty = '"><script>x</script>'
    for r in records:
        r["tags"], r["split"], r["source"], r["problem"] = [nasty], nasty, nasty, ""
        r["case"] = r["case"] + nasty
        r["result"] = {
            **synthetic.records(12)[11]["result"],
            "failure_type": nasty,
            "status": nasty,
            "action": nasty,
            "suspects": {"nodes": [nasty]},
        }
        r["files"] = {nasty: 3}
        r["baselines"] = {nasty: {"failure_type": nasty, "outcome": nasty}}
    made = Page(
        render(records, version=nasty, model=nasty, settings={nasty: nasty}, packages={nasty: nasty}, command=nasty)
    )
    assert len(made.all("script")) == 1
    assert made.unbalanced == []
    assert {tag for tag, _ in made.elements} <= ALLOWED


def test_a_page_needs_nothing_else(source: str, page: Page) -> None:
    for tag, attributes in page.elements:
        assert not {"src", "srcset", "poster", "data", "action"} & attributes.keys(), (tag, attributes)
        assert (attributes.get("href") or "#").startswith("#"), (tag, attributes)
    assert not re.search(r"url\(|@import|https?://|//cdn", re.sub(r"<body>.*<script>", "", source, flags=re.S))


def test_the_policy_allows_the_one_script_alone(source: str, page: Page) -> None:
    policy = next(m["content"] or "" for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    script = re.findall(r"<script>(.*?)</script>", source, flags=re.S)[-1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


# ------------------------------------------------------------------------------------------------ structure
def test_every_link_leads_somewhere_and_every_id_is_one(page: Page) -> None:
    ids = Counter(a["id"] for _, a in page.elements if a.get("id"))
    assert [i for i, n in ids.items() if n > 1] == []
    links = {(a.get("href") or "#")[1:] for a in page.all("a")}
    assert len(links) > 60
    assert links - ids.keys() == set()
    labelled = [a["aria-labelledby"] for _, a in page.elements if a.get("aria-labelledby")]
    assert set(labelled) <= ids.keys()


def test_headings_descend_one_by_one(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert [(a, b) for a, b in pairwise(levels) if b > a + 1] == []


def test_every_row_of_a_table_is_as_wide_as_its_head(source: str) -> None:
    for table in re.findall(r"<table.*?</table>", source, flags=re.S):
        widths = {len(re.findall(r"<t[hd][ >]", row)) for row in re.findall(r"<tr.*?</tr>", table, flags=re.S)}
        assert len(widths) == 1, table[:300]


def test_two_cases_whose_names_look_alike_have_places_of_their_own() -> None:
    records = synthetic.records(4)
    for r, name in zip(records, ("a/b", "a b", "a-b", "é"), strict=True):
        r["case"] = name
    rows = view.report(synthetic.run(records), records, metrics.score(records, resamples=10)).rows
    assert len({r.anchor for r in rows}) == 4


# ------------------------------------------------------------------------------------------------ what it says
def test_the_headline_says_what_the_records_say(folder: Path, page: Page) -> None:
    records = record.read_records(folder)
    right = sum(
        r["result"] is not None
        and r["result"]["failure_type"] in [r["expect"]["failure_type"], *r["expect"]["also_accept"]]
        for r in records
    )
    healthy = [r for r in records if r["expect"]["outcome"] == "healthy"]
    alarms = [r for r in healthy if r["result"]["outcome"] != "healthy"]
    assert f"The failure type was right in {right / 60:.0%} of 60 cases" in page.text
    assert f"{right} of 60 · " in page.text
    assert (
        f"{len(alarms)} of {len(healthy)} healthy jobs raised a false alarm and 1 of {60 - len(healthy)} failures were called healthy; 2 gave no answer."
        in page.text
    )


def test_costly_mistakes_are_named_before_any_figure_of_the_rest(page: Page) -> None:
    text = page.text
    wrong, base = text.index("What went wrong", text.index("Headline figures")), text.index("Beside the baselines")
    named = text[wrong:base]
    heads = [
        "Crashes and timeouts",
        "Missed failures",
        "False alarms",
        "Misleading types",
        "Needless stops",
        "Wrong nodes accused",
        "Other wrong answers",
        "Guilty ranks missed",
    ]
    assert [named.index(h) for h in heads] == sorted(named.index(h) for h in heads)
    assert "c001 gpu-lost → healthy" in named
    assert "c000 healthy → out-of-memory" in named
    assert "c003 network-error → timeout" in named
    assert (
        "c045 hang → key-error · outcome failed instead of hung · action fix-and-resubmit instead of kill-and-restart"
        in named
    )
    assert (
        "c044 disk-full → gpu-lost · accuses gpu-044, label: no node · action restart-excluding instead of escalate"
        in named
    )


def test_nodes_and_ranks_that_were_missed_are_counted_and_named(folder: Path, page: Page) -> None:
    rows = view.load(folder).rows
    for what in ("node", "rank"):
        known = [r for r in rows if r.answer.want.get(f"{what}s")]
        hits = [r for r in known if r.marks[f"{what}_top1"]]
        assert 0 < len(hits) < len(known)
        assert f"guilty {what} {'was named ' if what == 'node' else ''}in {len(hits)} of {len(known)}" in page.text
        assert f"Guilty {what}s missed {len(known) - len(hits)} of {len(known)}" in page.text
        shown = [a for a in page.all("details") if f"{what}_top1" in (a.get("data-show") or "").split()]
        assert len(shown) == len(known) - len(hits)
    summary = markdown.summary(folder)
    for name in ("cause_class_accepted", "node_top1", "rank_top1"):
        assert f"| {figures.figure(name).label} |" in summary


def test_the_matrix_holds_every_record_once(folder: Path, source: str) -> None:
    for matrix in re.findall(r'<table class="matrix">.*?</table>', source, flags=re.S):
        assert sum(map(int, re.findall(r">(\d+)</a></td>", matrix))) == 60
        assert sum(map(int, re.findall(r'class="sum">(\d+)<', matrix))) == 60
    types = re.findall(r'<table class="matrix">.*?</table>', source, flags=re.S)[1]
    assert "runtime-error" not in types, "only what occurs"
    assert 'title="gpu-lost answered as healthy: 1 of 5 (c001)"' in types


def test_types_never_confused_are_folded_away_where_there_are_many() -> None:
    records = synthetic.records(60)
    names = ("type-error", "name-error", "value-error", "index-error", "os-error")
    for r, name in zip(records[20:25], names, strict=True):
        r["expect"]["failure_type"] = r["result"]["failure_type"] = name
    made = render(records)
    fold = re.search(r"Leave out the (\d+) of (\d+) types that were never confused", made)
    assert fold
    hidden = set(re.findall(r'<tr class="clean"><th scope="row">([^<]+)', made))
    assert set(names) <= hidden
    assert len(hidden) == int(fold[1])
    assert "gpu-lost" not in hidden


def test_every_case_is_there_without_the_script(folder: Path, page: Page) -> None:
    cases = [a for a in page.all("details") if "case" in (a.get("class") or "").split()]
    assert len(cases) == 60
    assert {a["data-want"] for a in cases} == {r["expect"]["failure_type"] for r in record.read_records(folder)}
    shown = {a["data-show"] or "" for a in cases if a["data-want"] == "healthy" and a["data-got"] == "out-of-memory"}
    assert {"wrong", "false_alarm", "outcome"} <= set(shown.pop().split())


def test_a_case_shows_expected_beside_answered(source: str) -> None:
    case = source.partition('id="case-c025"')[2].partition("</details>")[0]
    rows = {
        head: (want, re.sub(r"<[^>]+>", "", got).strip())
        for head, want, got in re.findall(r'<tr><th scope="row">([^<]+)</th><td>([^<]*)</td><td>(.*?)</td></tr>', case)
    }  # fmt: skip
    assert rows["Failure type"] == ("gpu-lost", "key-error ✗wrong")
    assert rows["Action"] == ("restart-excluding", "fix-and-resubmit ✗wrong")
    assert rows["Nodes"] == ("gpu-025", "– ✗wrong")
    assert rows["Must not say"] == ("key-error or out-of-memory", "said ✗wrong")
    assert "Baselines: " in case
    assert "kept of the log" in case


def test_labelled_lines_stand_beside_cited_ones() -> None:
    found = synthetic.records(13)[12]
    found["expect"]["evidence"] = [
        ["job.out", 5, 7],
        ["job.out", 20, 20],
        ["job.out", 30, 34],
        ["", 40, 40],
        ["other.log", 2, 2],
    ]
    found["files"] = {"logs/job.out": 50, "other.log": 9}
    found["expect"]["evidence"][0][0] = found["expect"]["evidence"][1][0] = found["expect"]["evidence"][2][0] = (
        "logs/job.out"
    )
    found["labelled"] = [
        ["logs/job.out", n, said] for n, said in ((5, "before"), (20, "missed"), (31, "here"), (32, "too"))
    ]
    found["result"]["evidence"] = [
        {"id": "E1", "file": "./logs/job.out", "line": 6, "text": "the cause", "role": "root", "repeats": 3},
        {"id": "E2", "file": "job.out", "line": 25, "text": "beside it", "role": "cascade"},
        {"id": "E3", "file": "logs/job.out", "line": "no number", "text": "?", "role": "context"},
    ]
    row = view.report({}, [found], {}).rows[0]
    seen = [(x.file, x.where, x.labelled, x.role, x.text) for x in lines.beside(row)]
    assert seen == [
        ("any file", ("40",), True, "", ""),
        ("logs/job.out", ("6",), True, "root", "the cause"),
        ("logs/job.out", ("20",), True, "", "missed"),
        ("logs/job.out", ("25",), False, "cascade", "beside it"),
        ("logs/job.out", ("30–34",), True, "", "here\ntoo"),
        ("other.log", ("2",), True, "", ""),
    ]


def test_missed_lines_of_many_ranks_stand_in_one_row() -> None:
    found = synthetic.records(13)[12]
    found["expect"]["evidence"] = [["job.out", n, n] for n in range(1, 40)]
    found["labelled"] = [["job.out", n, f"rank {n % 9}: NCCL error"] for n in range(1, 40)]
    found["result"]["evidence"] = []
    row = view.report({}, [found], {}).rows[0]
    (line,) = lines.beside(row)
    assert line.text.count("NCCL error") == lines.TOGETHER
    assert "job.out:1, 2, 3, 4, 5, 6 and 33 more" in Page(lines.lines(row, 9000)).text


def test_a_model_adds_tokens_prompts_and_what_varied_between_repeats(tmp_path: Path) -> None:
    page = Page(html.write(synthetic.write(tmp_path, 12, repeats=3, model="openai:some")).read_text("utf-8"))
    assert "tokens and cost" in page.text
    assert "Tokens a case" in page.text
    assert "version 3, cccccccccccccccc" in page.text
    assert "cases were answered differently from one repeat to another" in page.text
    assert len([a for a in page.all("details") if "case" in (a.get("class") or "").split()]) == 36
    assert "c005 #3" in page.text


def test_without_a_model_there_is_no_word_of_tokens(page: Page) -> None:
    assert "Tokens a case" not in page.text


@pytest.mark.parametrize("bare", ["metrics", "records", "labels"])
def test_what_is_not_there_leaves_no_hole(bare: str) -> None:
    records = [] if bare == "records" else synthetic.records(5)
    if bare == "labels":
        for r in records:
            r["expect"] = {"outcome": "failed"}
            del r["compressed"], r["citations"], r["baselines"], r["peak_mb"], r["gpu_hours"]
    found = {} if bare == "metrics" else metrics.score(records, resamples=10)
    made = Page(html.render({"schema": record.SCHEMA}, records, found))
    assert made.unbalanced == []
    assert "None" not in made.text.replace("None: ", "")
    assert "nan" not in made.text.lower().split()


def test_a_page_stays_small(tmp_path: Path) -> None:
    records = synthetic.records(300)
    line = {"id": "E", "file": "job.out", "line": 9, "text": "<&>" * 166, "role": "context"}
    for r in records:
        if r["result"]:
            r["result"]["evidence"] = [{**line, "line": n} for n in range(1, 40)]
    assert len(render(synthetic.records(300)).encode()) < 2_000_000
    heavy = render(records)
    assert "more in records.jsonl" in heavy
    assert len(heavy.encode()) < 3_000_000, "even where every character takes five"


def test_a_run_that_cannot_be_read_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.json|records\.jsonl"):
        html.write(tmp_path)
    run = synthetic.write(tmp_path / "run", 4)
    (run / record.METRICS).unlink()
    with pytest.raises(InputError, match="is not finished: its figures are not made"):
        html.write(run)
    assert not (run / "report.html").exists()


def test_a_torn_last_record_is_left_out(tmp_path: Path) -> None:
    run = synthetic.write(tmp_path, 5)
    lines = (run / record.RECORDS).read_text().splitlines(keepends=True)
    (run / record.RECORDS).write_text("".join(lines[:4]) + lines[4][:100])
    made = Page(html.write(run).read_text("utf-8"))
    assert len([a for a in made.all("details") if "case" in (a.get("class") or "").split()]) == 4


def test_an_unfinished_run_says_so(tmp_path: Path, page: Page) -> None:
    run = synthetic.write(tmp_path, 8)
    lines = (run / record.RECORDS).read_text().splitlines(keepends=True)
    (run / record.RECORDS).write_text("".join(lines[:5]))
    said = "This run is not finished: 3 of 8 cases have no record (c005, c006, c007)."
    assert said in Page(html.write(run).read_text("utf-8")).text
    assert f"**{said}**" in markdown.summary(run)
    assert "not finished" not in page.text


def test_nothing_but_the_page_is_left_behind(folder: Path, source: str) -> None:
    assert sorted(p.name for p in folder.iterdir()) == ["metrics.json", "records.jsonl", "report.html", "run.json"]


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        (["test"], None),
        (["dev"], "All cases are of the split dev"),
        (["dev", "test"], " of the split test. On unseen logs expect the latter at best, and less if test cases were looked at."),
    ],
)  # fmt: skip
def test_figures_on_cases_seen_before_say_so(splits: list[str], said: str | None) -> None:
    records = synthetic.records(40)
    for i, r in enumerate(records):
        r["split"] = splits[i % len(splits)]
    made = render(records)
    assert (said in made) if said else ("split dev" not in made)


# ------------------------------------------------------------------------------------------------ pieces
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"), ("a\rb", "ab"), ("\x9b31m", "⟨U+009B⟩31m"), ("x\u200dy", "x⟨U+200D⟩y"), ("\x1b", "⟨U+001B⟩"),
        ("tab\there\nand", "tab\there\nand"), ("⚠\ufe0f", "⚠\ufe0f"),
    ],
)  # fmt: skip
def test_visible(text: str, shown: str) -> None:
    assert markup.visible(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0%"), (1, "100%"), (0.004, "0.4%"), (0.994, "99.4%"), (0.916, "92%"), (0.99, "99%")],
)
def test_percent_never_rounds_a_doubt_away(value: float, shown: str) -> None:
    assert figures.percent(value) == shown


@pytest.mark.parametrize(
    ("metric", "unit", "shown"),
    [
        ({"value": 0.92, "low": 0.86, "high": 0.97, "n": 88}, "share", "92% (86–97%)"),
        ({"value": 0.51, "low": 0.34, "high": 0.68, "n": 9}, "seconds", "0.51 s (0.34–0.68 s)"),
        ({"value": 0.09, "low": 0.04, "high": 0.68, "n": 9}, "seconds", "90 ms (40 ms–0.68 s)"),
        ({"value": 215.0, "low": None, "high": None, "n": 9}, "megabytes", "215 MB"),
        ({"value": 0.5, "low": 0.25, "high": 0.75, "n": 9}, "score", "0.50 (0.25–0.75)"),
        (None, "share", "–"),
    ],
)  # fmt: skip
def test_a_figure_is_written_with_its_interval(metric: Any, unit: Any, shown: str) -> None:
    assert figures.with_interval(metric, unit) == shown


def test_pieces_in_back_ticks_stand_as_code() -> None:
    made = markup.join(parts.quoted("it said `<b>` and `cut he…"))
    assert made == "it said <code>&lt;b&gt;</code> and <code>cut he…</code>"
    assert markup.join(parts.quoted("plain")) == "plain"


def test_a_status_that_claims_nothing_is_no_step_of_the_scale(folder: Path, page: Page, source: str) -> None:
    scale = source.partition('class="tracks statuses"')[2].partition("</table>")[0]
    assert re.findall(r'<th scope="row">(?:<a[^>]*>)?(\w+)', scale) == ["established", "supported", "hypothesis"]
    unknown = [r for r in view.load(folder).rows if r.answer.status == "unknown"]
    assert f"{len(unknown)} answers (" in page.text
    assert "they claim no cause and say what to fetch" in page.text


def test_each_figure_of_a_group_tells_how_many_cases_count_in_it(folder: Path, source: str) -> None:
    tables = re.findall(r'<table class="tracks groups">.*?</table>', source, flags=re.S)
    assert len(tables) == 2, "splits and tags apart"
    found = record.read_metrics(folder)["splits"]["tag:hardware"]
    row = next(r for r in re.findall(r"<tr.*?</tr>", tables[1], flags=re.S) if ">hardware</a>" in r)
    for name in ("type_accepted", "root_hit", "missed_failure"):
        count = figures.counted(found[name]).replace(" of ", "/")
        assert f'>{figures.percent(found[name]["value"])} <span class="note">{count}</span></td>' in row
    assert "test" in re.findall(r">(\w+)</a></th>", tables[0])


def test_every_metric_has_a_name_for_readers() -> None:
    bare = [n for n in metrics.metric_names() if not n.endswith("_gpu") and n not in figures.FIGURES]
    assert bare == []
    better = {"higher": "high", "lower": "low", "": ""}
    for name, entry in metrics.definitions().items():
        if name in figures.FIGURES:
            assert figures.FIGURES[name].better == better[entry["better"]], name


@pytest.mark.parametrize(
    "values",
    [[0.05, 0.3, 4.0, 120.0], [101.0, 102.5, 140.0], [3.0], [0.0, 5.0], [1.0, 8.0], [0.001, 99999.0], [2.0, 2.0]],
)
def test_bins_hold_every_value_once(values: list[float]) -> None:
    found = svg.bins(values)
    assert sum(n for _, _, n in found) == sum(v > 0 for v in values)
    assert [a for a, _, _ in found[1:]] == [b for _, b, _ in found[:-1]]
    assert 1 <= len(found) <= 26
    assert found[0][2]
    assert found[-1][2]


def test_a_track_speaks_and_stays_inside() -> None:
    made = svg.track({"value": 1.0, "low": 0.9, "high": 1.2, "n": 3}, "Outcome")
    assert 'role="img" aria-label="Outcome: 100%, interval 90–120%"' in made
    assert {float(x) for x in re.findall(r'[xc][12x]="([\d.]+)%"', made)} <= {0, 25, 50, 75, 90, 100}
    assert "not labelled" in svg.track(None, "Outcome")


# ------------------------------------------------------------------------------------------------ markdown
def test_the_summary_has_the_table_the_worst_types_and_the_wrong_cases(folder: Path) -> None:
    made = markdown.summary(folder, record.read_metrics(folder))
    report = view.load(folder)
    lines = made.splitlines()
    head = next(x for x in lines if x.startswith("| measure"))
    assert head == "| measure | n | triage | keyword-table | last-exception | first-error |"
    assert any(re.fullmatch(r"\| Failure type right \| 60 \| 72% \(\d+–\d+%\) \| .* \|", x) for x in lines)
    assert (
        "- **disk-full**: 2 of 5 right (40%); `c032` as time-limit, `c044` as gpu-lost, `c056` as node-failure" in lines
    )
    wrong = [r for r in report.rows if not r.right]
    assert sum(x.startswith("| `c") for x in lines) == len(wrong)
    assert f"## Wrong: {len(wrong)} of 60" in lines
    assert markdown.write(folder).read_text("utf-8") == made
    (folder / "summary.md").unlink()


def test_log_text_in_the_summary_cannot_act(folder: Path) -> None:
    made = markdown.summary(folder)
    outside = re.sub(r"`[^`\n]*`", "", made)
    assert not re.search(r"[<>\x00-\x08\x0b-\x1f\u202e]", outside)
    for block in re.findall(r"(?:^\|.*\n)+", made, flags=re.M):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}) == 1


def test_a_summary_of_a_run_without_a_mistake_says_so() -> None:
    records = [
        r for r in synthetic.records(60) if r["result"] and r["result"]["failure_type"] == r["expect"]["failure_type"]
    ]
    report = view.report(synthetic.run(records), records, metrics.score(records, resamples=10))
    made = "\n".join(markdown._lines(report))
    assert f"No case is wrong by failure type or outcome, of {len(records)}." in made
    assert "Worst types" not in made


# ------------------------------------------------------------------------------------------------ the README's table
TOOL = REPO / "tools" / "results_table.py"


def table(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(REPO)},
    )


def test_the_table_goes_between_its_markers_and_stays_when_made_again(folder: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# A\n\n<!-- results:begin -->\nold\n<!-- results:end -->\n\nafter\n")
    arguments = (f"made up={folder / 'metrics.json'}", folder / "metrics.json", "--readme", readme)
    stale = table(*arguments, "--check")
    assert stale.returncode == 1
    assert "the table of results is stale; make results writes it anew" in stale.stderr
    assert "+| made up | Failure type right |" in stale.stderr
    assert table(*arguments, "--write").returncode == 0
    once = readme.read_text()
    assert table(*arguments, "--write").returncode == 0
    assert readme.read_text() == once
    assert table(*arguments, "--check").returncode == 0
    assert once.startswith(
        "# A\n\n<!-- results:begin -->\n| cases | measure | n | triage | keyword-table | last-exception | first-error |\n"
    )
    assert once.endswith("|\n<!-- results:end -->\n\nafter\n")
    assert "old" not in once
    assert (
        f"| made up | Failure type right | 60 | **{figures.with_interval(record.read_metrics(folder)['splits']['all']['type_accepted'])}** |"
        in once
    )
    assert f"| {folder.name} | Failure type right |" in once, "a set without a name is called as its folder"
    assert len({x.count("|") for x in once.splitlines() if x.startswith("|")}) == 1


def test_a_set_whose_logs_are_not_here_keeps_its_rows(folder: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(
        "<!-- results:begin -->\n| cases | measure | n | triage | first-error | gone |\n| --- | --- | ---: | ---: | ---: | ---: |\n"
        "| elsewhere | Outcome right | 9 | **1** | 2 | 3 |\n|  | False alarm | 9 | **4** | 5 | 6 |\n"
        "| here | Outcome right | 1 | **7** | 8 | 9 |\n<!-- results:end -->\n"
    )
    assert table(f"here={folder / 'metrics.json'}", "--readme", readme, "--write").returncode == 0
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in readme.read_text().splitlines()
        if line.startswith("|")
    ]
    assert rows[0] == ["cases", "measure", "n", "triage", "first-error", "gone"], (
        "the order of the columns is that of all sets"
    )
    assert rows[2:4] == [
        ["elsewhere", "Outcome right", "9", "**1**", "2", "3"],
        ["", "False alarm", "9", "**4**", "5", "6"],
    ]
    assert rows[4][:3] == ["here", "Failure type right", "60"] and rows[4][5] == "–"
    assert table(f"here={folder / 'metrics.json'}", "--readme", readme, "--check").returncode == 0


def test_the_readme_counts_the_cases_that_are_there() -> None:
    """A cheap sign that the table is stale; `make check-results` looks at every figure."""
    labelled = [c for c in cases.load_cases(REPO / "eval" / "cases") if c.expect.failure_type]
    assert f"| eval/cases | Failure type right | {len(labelled)} |" in (REPO / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("readme", "metrics_text", "said"),
    [
        ("no markers", None, "needs one line <!-- results:begin -->"),
        ("<!-- results:end --><!-- results:begin -->", None, "needs one line"),
        ("<!-- results:begin --><!-- results:end -->", "{", "metrics.json: Expecting"),
        ("<!-- results:begin --><!-- results:end -->", "[]", "metrics.json: is no metrics.json of triage eval"),
    ],
)
def test_what_is_wrong_with_the_table_is_said_in_a_line(
    folder: Path, tmp_path: Path, readme: str, metrics_text: str | None, said: str
) -> None:
    page, figures_file = tmp_path / "README.md", tmp_path / "metrics.json"
    page.write_text(readme)
    figures_file.write_text(json.dumps(record.read_metrics(folder)) if metrics_text is None else metrics_text)
    done = table(figures_file, "--readme", page, "--write")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert page.read_text() == readme
