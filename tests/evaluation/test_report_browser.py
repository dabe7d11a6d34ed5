"""The page in a real browser: it filters, fits, can be read and worked by keyboard, and nothing in a log acts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation import chromium, synthetic
from tests.evaluation.chromium import Chromium
from triage.evaluation import html, view
from triage.evaluation.view import Report

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(
        chromium.binary() is None, reason="no chromium here (Debian: apt-get install chromium; or set CHROMIUM)"
    ),
]
SHOWN = "[...document.querySelectorAll('.case')].filter(c => c.offsetParent !== null).map(c => c.querySelector('.id').textContent)"
# Every text node, its colour against what stands behind it, by WCAG 2; colours are read back through a canvas.
CONTRAST = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const rgba = (c) => {
    if (!known.has(c)) {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1);
      known.set(c, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(c);
  };
  const light = ([r, g, b]) => [r, g, b].map(v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; })
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; }
    return [255, 255, 255, 255];
  };
  const found = new Map();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const own = rgba(e.closest('svg') ? style.fill : style.color);
    const [a, b] = [light(own), light(behind(e.closest('svg') ?? e))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    const name = e.tagName + '.' + (e.getAttribute('class') ?? '');
    if (ratio < 4.5) found.set(name, ratio.toFixed(2) + ' ' + walk.currentNode.data.slice(0, 30));
  }
  return [...found].map(x => x.join(' '));
})()"""
WIDE = """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && !e.closest('.scroll, nav, .sr, .skip')
  && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.tagName + '.' + e.className)"""
OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.write(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return view.load(folder)


@pytest.fixture(scope="module")
def url(folder: Path) -> str:
    return html.write(folder).as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def tab(browser: Chromium, url: str) -> Chromium:
    browser.open(url)
    return browser


def choose(tab: Chromium, **values: str) -> list[str]:
    """Sets controls as a reader does, and tells the cases that are shown."""
    for name, value in values.items():
        script = (
            f"(c => {{ c.value = {value!r}; c.dispatchEvent(new Event('input', {{bubbles: true}})); return c.value; }})"
        )
        assert tab.run(f"{script}(document.getElementById('f-{name}'))") == value
    found = tab.run(SHOWN)
    assert isinstance(found, list)
    return found


def titles(rows: Any) -> set[str]:
    return {r.title for r in rows}


# ------------------------------------------------------------------------------------------------ filters
def test_filters_show_the_cases_that_fit_and_count_them(tab: Chromium, report: Report) -> None:
    rows = report.rows
    wrong = titles(r for r in rows if not r.right)
    assert set(choose(tab, show="wrong")) == wrong
    assert tab.run("document.getElementById('f-count').textContent") == f"{len(wrong)} of 60 cases"
    assert set(choose(tab, show="right")) == titles(rows) - wrong
    assert choose(tab, show="missed_failure")
    for fault in ("false_alarm", "problem", "any_hit", "action"):
        assert set(choose(tab, show=fault)) == titles(report.having(fault)), fault
    tab.run("document.getElementById('f-clear').click()")
    assert set(tab.run(SHOWN)) == titles(r for r in rows if r.grave)
    assert set(choose(tab, tags="hardware")) == titles(r for r in rows if "hardware" in r.tags)
    both = titles(r for r in rows if "hardware" in r.tags and r.split == "test")
    assert set(choose(tab, split="test")) == both
    assert both
    choose(tab, tags="", split="")
    assert set(choose(tab, want="gpu-lost")) == titles(r for r in rows if r.want == "gpu-lost")
    assert choose(tab, got="healthy") == ["c001"]
    choose(tab, want="", got="")
    assert set(choose(tab, status="unknown")) == titles(r for r in rows if r.answer.status == "unknown")


def test_free_text_finds_lines_nodes_and_cases(tab: Chromium, report: Report) -> None:
    assert choose(tab, text="gpu-025") == ["c025"]
    assert set(choose(tab, text="FALLEN off bus")) == titles(
        r
        for r in report.rows
        if "fallen off the bus" in str(r.answer.got.get("evidence")) + str(r.answer.got.get("root_cause"))
    )
    assert choose(tab, text="no such text anywhere") == []
    assert tab.run("document.getElementById('f-count').textContent") == "0 of 60 cases"
    assert tab.run("document.getElementById('f-none').checkVisibility()")
    tab.run("document.getElementById('f-clear-too').click()")
    assert tab.run(SHOWN)
    assert not tab.run("document.getElementById('f-none').checkVisibility()")


def test_cases_that_matter_come_first_and_the_rest_on_request(tab: Chromium, report: Report) -> None:
    grave = titles(r for r in report.rows if r.grave)
    assert set(tab.run(SHOWN)) == grave
    count = tab.run("document.getElementById('f-count').textContent")
    assert count == f"{len(grave)} of 60 cases: wrong, or with a costly mistake"
    rest = "document.querySelector('#f-rest button')"
    assert tab.run(f"{rest}.textContent").startswith(f"Show the other {60 - len(grave)} cases")
    tab.run(f"{rest}.click()")
    assert len(tab.run(SHOWN)) == 60
    assert tab.run("document.activeElement.tagName") == "SUMMARY", "the first of those that came"
    assert not tab.run(f"{rest}.checkVisibility()")


def test_filters_stand_in_the_address_and_back_leads_to_those_before(tab: Chromium) -> None:
    def go(step: int) -> tuple[str, set[str]]:
        tab.run(
            "new Promise(done => { addEventListener('hashchange', () => setTimeout(done, 0), {once: true}); "
            f"history.go({step}); }})"
        )
        return tab.run("location.hash"), set(tab.run(SHOWN))

    first = set(tab.run(SHOWN))
    wrong = set(choose(tab, show="wrong"))
    both = set(choose(tab, got="healthy"))
    assert tab.run("location.hash") == "#cases?show=wrong&got=healthy"
    for text in ("c", "c0", "c00"):
        choose(tab, text=text)
    assert go(-1) == ("#cases?show=wrong&got=healthy", both), "a word is one step"
    assert go(-1) == ("#cases?show=wrong", wrong)
    assert go(-1) == ("", first)
    assert go(1) == ("#cases?show=wrong", wrong)
    assert tab.run("document.getElementById('f-show').value") == "wrong"
    tab.run("location.hash = '#case-c025'")
    assert go(-1) == ("#cases?show=wrong", wrong), "from a case back to the list"


def test_an_address_with_filters_shows_its_cases(browser: Chromium, url: str, report: Report) -> None:
    browser.open("about:blank")
    browser.open(f"{url}#cases?tags=hardware&split=test&want=nonsense")
    assert set(browser.run(SHOWN)) == titles(r for r in report.rows if "hardware" in r.tags and r.split == "test")
    assert browser.run("(r => r.top >= 0 && r.top < 200)(document.getElementById('cases').getBoundingClientRect())")


def test_a_count_leads_to_its_cases(tab: Chromium, report: Report) -> None:
    for link, expected in (
        (".mistake h3 a[data-set='show=rank_top1']", report.having("rank_top1")),
        (".groups a[data-set='tags=hardware']", [r for r in report.rows if "hardware" in r.tags]),
        (".groups a[data-set='split=test']", [r for r in report.rows if r.split == "test"]),
        (".types a[data-set='want=hang']", [r for r in report.rows if r.want == "hang"]),
        (".statuses a[data-set='status=supported']", [r for r in report.rows if r.answer.status == "supported"]),
    ):
        tab.run(f'document.querySelector("{link}").click()')
        tab.run("new Promise(done => setTimeout(done, 50))")
        assert set(tab.run(SHOWN)) == titles(expected), link


def test_cases_sort_by_time_and_name(tab: Chromium, report: Report) -> None:
    assert choose(tab, order="case") == sorted(titles(report.rows))
    slow = choose(tab, order="seconds")
    seconds = {r.title: r.seconds for r in report.rows}
    assert [seconds[t] for t in slow] == sorted(seconds.values(), reverse=True)
    first = choose(tab, order="place")[:3]
    assert first == [r.title for r in report.worst_first()[:3]]


def test_tables_sort_by_their_heads(tab: Chromium) -> None:
    column = "[...document.querySelectorAll('.types tbody tr')].map(r => r.cells[4].textContent)"
    head = "document.querySelectorAll('.types thead th')[4]"
    for order in ("descending", "ascending"):
        tab.run(f"{head}.querySelector('button').click()")
        assert tab.run(f"{head}.getAttribute('aria-sort')") == order
        shares = [int(x.rstrip("%")) for x in tab.run(column)]
        assert shares == sorted(shares, reverse=order == "descending")
        assert len(set(shares)) > 2


def test_a_cell_of_the_matrix_leads_to_its_cases(tab: Chromium, report: Report) -> None:
    tab.run("document.querySelector('.matrix td.right a[data-set^=\"want=storage-error\"]').click()")
    tab.run("new Promise(done => setTimeout(done, 50))")
    assert set(tab.run(SHOWN)) == titles(r for r in report.rows if r.want == r.got == "storage-error")
    tab.run("document.querySelector('.matrix td.wrong a[title^=\"gpu-lost answered as healthy\"]').click()")
    tab.run("new Promise(done => setTimeout(done, 50))")
    assert tab.run("document.getElementById('case-c001').closest('details').open")
    assert len(tab.run(SHOWN)) == 60, "a case that a filter hid is shown again"


def test_an_address_with_a_case_opens_it(browser: Chromium, url: str) -> None:
    browser.open("about:blank")
    browser.open(f"{url}#case-c025")
    assert browser.run("document.getElementById('case-c025').checkVisibility()")
    assert browser.run(
        "(r => r.top >= 0 && r.top < innerHeight)(document.getElementById('case-c025').getBoundingClientRect())"
    )


# ------------------------------------------------------------------------------------------------ safety
def test_nothing_acts_and_nothing_is_fetched(tab: Chromium) -> None:
    tab.run(OPEN_ALL)
    assert tab.run("document.title").startswith("triage evaluation: 60 cases")
    assert tab.run("document.querySelectorAll('script, img, iframe, link, object').length") == 1
    assert tab.problems() == []


def test_the_policy_stops_a_script_that_gets_in_all_the_same(tab: Chromium) -> None:
    tab.run(
        "(() => { const s = document.createElement('script'); s.textContent = \"document.title = 'owned'\"; document.body.append(s); })()"
    )
    tab.run(
        "(() => { const d = document.createElement('div'); d.innerHTML = '<img src=x onerror=\"document.title=1\">'; document.body.append(d); })()"
    )
    tab.run("new Promise(done => setTimeout(done, 50))")
    assert tab.run("document.title").startswith("triage evaluation")


# ------------------------------------------------------------------------------------------------ looks
@pytest.mark.parametrize("width", [360, 390, 768, 1024, 1440, 1600])
def test_nothing_is_wider_than_the_window(browser: Chromium, url: str, width: int) -> None:
    browser.open(url, width)
    for everything in ("0", OPEN_ALL):
        browser.run(everything)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(WIDE) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_contrast(browser: Chromium, url: str, scheme: str) -> None:
    browser.open(url, scheme=scheme)
    browser.run(OPEN_ALL)
    dark = browser.run("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark is (scheme == "dark")
    assert browser.run(CONTRAST) == []


def test_the_theme_is_chosen_over_the_system_and_back(browser: Chromium, url: str) -> None:
    browser.open(url, scheme="dark")
    seen = []
    for _ in range(4):
        seen.append(
            browser.run(
                "[document.getElementById('theme').textContent, getComputedStyle(document.body).backgroundColor]"
            )
        )
        browser.run("document.getElementById('theme').click()")
    assert [s[0] for s in seen] == ["Theme: auto", "Theme: light", "Theme: dark", "Theme: auto"]
    assert seen[1][1] == "rgb(255, 255, 255)"
    assert seen[0][1] == seen[2][1] == seen[3][1] != seen[1][1]
    browser.run("localStorage.clear()")


def test_the_keyboard_reaches_and_opens_a_case_with_its_focus_seen(tab: Chromium) -> None:
    tab.press("Tab", 9)
    assert tab.run("document.activeElement.className") == "skip"
    assert tab.run("document.activeElement.getBoundingClientRect().left >= 0")
    tab.run("document.getElementById('f-open').focus()")
    tab.press("Tab", 9)
    assert tab.run("document.activeElement.tagName") == "SUMMARY"
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert not tab.run("document.activeElement.parentElement.open")
    tab.press("Enter", 13)
    assert tab.run("document.activeElement.parentElement.open")


def test_without_the_script_everything_can_be_read(browser: Chromium, url: str) -> None:
    browser.open(url, 390, script=False)
    try:
        assert len(browser.run(SHOWN)) == 60
        assert not browser.run("document.querySelector('.filters').checkVisibility()"), (
            "filters that cannot work are not shown"
        )
        assert not browser.run("document.getElementById('theme').checkVisibility()")
        box = browser.run(
            "(s => { s.scrollIntoView(); const r = s.getBoundingClientRect(); return [r.x + 40, r.y + 10]; })(document.querySelector('.case summary'))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            browser("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        assert browser.run("document.querySelector('.case').open")
        assert browser.run("document.querySelector('.case .body').checkVisibility()")
    finally:
        browser("Emulation.setScriptExecutionDisabled", value=False)


def test_print_leaves_out_controls_and_shows_what_went_wrong(browser: Chromium, url: str) -> None:
    browser.open(url, scheme="dark", media="print")
    visible = "document.querySelector({!r}).checkVisibility({{contentVisibilityAuto: true}})"
    for gone in (".filters", "nav", "#theme"):
        assert not browser.run(visible.format(gone)), gone
    assert browser.run("document.querySelector('.case.bad .body').getBoundingClientRect().height") > 50
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    data = browser("Page.printToPDF", printBackground=False)["data"]
    assert data
