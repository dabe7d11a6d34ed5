"""A night on call in a real browser: logs in, the diagnosis read, what was left out opened, questions asked, the outcome said."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.evaluation import chromium
from tests.evaluation.chromium import Chromium
from tests.openai_server import Answer, Asked, OpenAIServer
from tests.web import serving
from tests.web.serving import LOST_GPU, WRITE, Served

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(
        chromium.binary() is None, reason="no chromium here (Debian: apt-get install chromium; or set CHROMIUM)"
    ),
]
MANY = 200_000
SLOWLY = "what happened in all detail?"
ANSWERS = (
    "GPU fell off the bus on gpu-042 [E1].",
    "Drain gpu-042, whose GPU fell off the bus [E1].",
    "Rank 11 failed first: its GPU fell off the bus [E1].",
)
QUESTIONS = ("is it the node or my code?", "what should I do first?", "which rank failed first?")


def scripted(asked: Asked) -> str | Answer:
    """To the last question that was asked; what explains a diagnosis gets nothing of use, and the rules' answer stands."""
    last = str(asked.messages[-1].get("content"))
    if SLOWLY in last:
        return Answer("The GPU has fallen off the bus [E1]. " * 30, drip=0.05)
    found = {last.rfind(question): answer for question, answer in zip(QUESTIONS, ANSWERS, strict=True)}
    return found[max(found)] if max(found) >= 0 else "nothing"


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With a model that says what is scripted."""
    with OpenAIServer(scripted) as model:
        env = {"TRIAGE_LLM": "openai:scripted", "TRIAGE_LLM_BASE_URL": model.url, "TRIAGE_LLM_API_KEY": "none"}
        found = serving.start(tmp_path_factory.mktemp("home"), TRIAGE_SERVE_RATE="60000", **env)
        try:
            yield found
        finally:
            serving.kill(found)


@pytest.fixture(scope="module")
def incident(night: Served) -> int:
    return night.diagnosed({path.name: path.read_bytes() for path in sorted(LOST_GPU.iterdir())})


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Chromium]:
    with Chromium(tmp_path / "profile") as opened:
        yield opened


def sign_in(tab: Chromium, served: Served, to: str = "/") -> None:
    tab.open(f"{served.url}/login?token={WRITE}&next={to}")
    wait(tab, f"location.pathname === {to!r}")


def wait(tab: Chromium, condition: str, seconds: float = serving.PATIENCE) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if tab.run(condition):
                return
        except AssertionError:  # the page is being left
            pass
        time.sleep(0.1)
    raise AssertionError(f"{condition} did not come true: {tab.run('document.body.innerText')[:2000]}")


def choose_files(tab: Chromium, selector: str, files: list[Path]) -> None:
    root = tab("DOM.getDocument")["root"]["nodeId"]
    node = tab("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
    tab("DOM.setFileInputFiles", nodeId=node, files=[str(f) for f in files])


def faults(tab: Chromium) -> list[str]:
    """What axe calls serious or critical."""
    spec = find_spec("axe_core_python")
    assert spec is not None and spec.origin is not None
    (script,) = Path(spec.origin).parent.rglob("axe.min.js")
    tab("Page.setBypassCSP", enabled=True)
    tab("Runtime.evaluate", expression=script.read_text("utf-8"))
    found = tab.run(
        "axe.run(document).then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact))"
        ".map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 120)).join(' | ')))"
    )
    assert isinstance(found, list)
    return found


def test_a_night_on_call(tab: Chromium, night: Served) -> None:
    sign_in(tab, night, "/upload")
    choose_files(tab, "#logs", sorted(LOST_GPU.iterdir()))
    tab.run("document.querySelector('#upload button').click()")
    wait(tab, "location.pathname.startsWith('/jobs/')")
    wait(tab, "location.pathname.startsWith('/incidents/')")
    here = tab.run("location.pathname")
    wait(tab, "document.querySelector('.gap a') !== null")
    assert "GPU fell off the bus" in tab.run("document.querySelector('h1').innerText")
    assert "gpu-lost" in tab.run("document.querySelector('.head .chips').innerText")

    before = tab.run("document.querySelectorAll('.l').length")
    tab.run("document.querySelectorAll('.logfile')[1].querySelector('.gap a').click()")
    wait(tab, f"document.querySelectorAll('.l').length > {before} + 20")
    assert "iteration" in tab.run("document.querySelector('.opened').textContent")

    for number, question in enumerate(QUESTIONS, 1):
        tab.run(f"document.getElementById('said').value = {question!r}")
        tab.run("document.getElementById('ask').requestSubmit()")
        wait(tab, f"document.querySelectorAll('.answer').length === {number} && !document.querySelector('[aria-busy]')")
        assert ANSWERS[number - 1].split(" [")[0] in tab.run("document.querySelector('.answer:last-child').innerText")
        assert "gpu-042.dmesg:6" in tab.run("document.querySelector('.answer:last-child').innerText")

    tab.run("document.querySelector('[name=verdict][value=confirmed]').click()")
    tab.run("document.getElementById('o-fix').value = 'drained gpu-042'")
    tab.run("document.getElementById('o-fix').form.requestSubmit()")
    wait(tab, "document.querySelector('.verdicts')?.innerText.includes('drained gpu-042')")

    tab.open(f"{night.url}/?text=fell+off&verdict=confirmed&node=gpu-042")
    assert tab.run("document.querySelector('.incidents .row').getAttribute('href')") == here
    assert [p for p in tab.problems() if not re.match(r"fetched http://127\.0\.0\.1:", p)] == []


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1440, 900)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_fault(
    tab: Chromium, night: Served, incident: int, width: int, height: int, scheme: str
) -> None:
    sign_in(tab, night)
    for path in (
        "/",
        f"/incidents/{incident}",
        "/upload",
        "/dashboard",
        f"/incidents/{incident}/log",
        "/incidents/99999",
        "/login",
    ):
        tab.open(night.url + path, width, height, scheme)
        if path == f"/incidents/{incident}":
            wait(tab, "document.querySelector('.gap a') !== null")
        assert faults(tab) == [], path
        assert tab.run("document.documentElement.scrollWidth <= innerWidth"), path


def test_two_hundred_thousand_lines_stay_quick(tab: Chromium, night: Served, tmp_path: Path) -> None:
    head, tail = "step 0 | loss 2.0\n", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    log = head + "".join(f"step {n} | loss {2 - n / MANY:.4f} | lr 1.0e-4\n" for n in range(1, MANY)) + tail
    number = night.diagnosed({"big.log": log.encode()})
    sign_in(tab, night, f"/incidents/{number}")
    wait(tab, "document.querySelector('.gap a') !== null")
    tab.run(
        "[...document.querySelectorAll('.gap a')].sort((a, b) => b.parentNode.dataset.last - a.parentNode.dataset.last)[0].click()"
    )
    wait(
        tab, "document.querySelectorAll('.gap button').length === 2 && document.querySelectorAll('.chunk').length === 1"
    )
    tab.run("document.querySelectorAll('.gap button')[1].click()")
    wait(tab, f"document.querySelectorAll('.chunk .l').length > {MANY} * 0.9")
    frames = """new Promise(done => {
      const home = document.querySelector('.opened').parentNode, times = []; let last = performance.now(), n = 0;
      const step = (now) => { times.push(now - last); last = now; home.scrollTop = home.scrollHeight * (n++ / 30);
        n < 30 ? requestAnimationFrame(step) : done(times.sort((a, b) => a - b)); };
      requestAnimationFrame(step); })"""
    times = tab.run(frames)
    assert times[len(times) // 2] < 500, (
        times
    )  # milliseconds; without leaving out what is not seen a frame takes seconds


def test_a_client_that_goes_away_leaves_the_conversation_free(night: Served, incident: int) -> None:
    path = f"/api/v1/incidents/{incident}/chat"
    with night.client() as client:
        with client.stream("POST", path, json={"said": SLOWLY}) as answer:
            pieces = answer.iter_bytes(16)  # which closes the answer when it is forgotten
            next(pieces)
            assert night.client().post(path, json={"said": "/hypotheses"}).status_code == 409
        end = time.monotonic() + 30
        while (code := client.post(path, json={"said": "/hypotheses"}).status_code) == 409:
            assert time.monotonic() < end
            time.sleep(0.2)
        assert code == 200
        assert "stopped" in {turn["state"] for turn in client.get(path).json()}
