"""`triage chat` at a real terminal: tmux drives it, its screen is read, kill -9 ends it, and it goes on."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.openai_server import Answer, OpenAIServer

pytestmark = pytest.mark.service
PATIENCE = 90.0  # seconds, on a busy machine


class Terminal:
    """A tmux of its own, with one window of 100 columns and 50 rows."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "tmux"
        self._folder = folder

    def start(self, *args: str, **env: str) -> None:
        given = {
            "TRIAGE_HOME": str(self._folder / "home"),
            "PYTHONPATH": str(REPO),
            "TERM": "xterm-256color",
            "PS1": "$ ",
            **env,
        }
        variables = [f"{name}={value}" for name, value in given.items()]
        command = shlex.join(["env", *variables, sys.executable, "-m", "triage", "chat", *args])
        keep = f"trap : INT; {command}; echo ended $?; exec cat"
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "50", "-c", str(self._folder), "sh", "-c", keep
        )

    def keys(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def say(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def paste(self, text: str) -> None:
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p")

    def screen(self, escapes: bool = False) -> str:
        return self._tmux("capture-pane", "-p", "-S", "-500", "-J", *(["-e"] if escapes else []))

    def sees(self, *words: str) -> None:
        """Waits until the screen shows all of these in this order."""
        pattern = re.compile(".*".join(map(re.escape, words)), re.DOTALL)
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            shown = " ".join(self.screen().split())  # wherever its lines are wrapped
            if pattern.search(shown):
                return
            time.sleep(0.2)
        raise AssertionError(f"{words} not on the screen:\n{self.screen()}")

    def process(self) -> int:
        """Of triage itself."""
        shell = self._tmux("list-panes", "-F", "#{pane_pid}").strip()
        return int(subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, check=True).stdout.split()[0])

    def stop(self) -> None:
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, check=False)

    def _tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *args], capture_output=True, text=True, check=False, timeout=30
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REPO / "examples" / "lost-gpu", tmp_path / "lost-gpu"))


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Callable[[], Terminal]]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed (apt-get install -y tmux)")
    made: list[Terminal] = []

    def make() -> Terminal:
        folder = tmp_path / f"t{len(made)}"
        folder.mkdir()
        (folder / "home").symlink_to(tmp_path / "home")
        made.append(Terminal(folder))
        return made[-1]

    (tmp_path / "home").mkdir(exist_ok=True)
    yield make
    for terminal in made:
        terminal.stop()


def test_a_session_at_the_terminal_survives_kill_9(terminals: Callable[[], Terminal], log: Path) -> None:
    terminal = terminals()
    terminal.start(str(log))
    terminal.sees("Incident 1", "gpu-lost, established", "(no model is set", "triage>")
    terminal.say("is it the node or my code?")
    terminal.sees(
        "The node: the lines say that hardware failed.", "E1 ", "gpu-042.dmesg:6", "fallen off the bus", "triage>"
    )
    terminal.keys("/evi", "Tab")  # completed to /evidence
    terminal.keys(" E3", "Enter")
    terminal.sees("E3 [root, gpu-lost", "pcieport", "triage>")
    terminal.paste("why did it\ndie?")
    terminal.keys("Enter")
    terminal.sees("gpu-lost, established: the lines say so themselves.", "What followed from it:", "triage>")
    os.kill(terminal.process(), signal.SIGKILL)
    terminal.sees("ended 137")
    terminal.stop()

    again = terminals()
    again.start("--resume")
    again.sees("> is it the node or my code?", "The node: the lines say", "> why did it die?", "Incident 1", "triage>")
    again.keys("Up")
    again.sees("triage> why did it")  # the history of what was typed
    again.keys("C-c")
    again.say("/resolve confirmed fix=drained gpu-042 worked=yes")
    again.sees("Record for incident 1: confirmed", "yes or no")
    again.say("yes")
    again.sees("incident 1: confirmed by", "the fix worked")
    again.say("what fixed it last time?")
    again.sees("Fix: drained gpu-042 (it worked)", "triage>")
    again.keys("C-d")
    again.sees("conversation 1 is kept: triage chat --resume 1", "ended 0")


def test_an_answer_is_interrupted_and_the_session_goes_on(terminals: Callable[[], Terminal], log: Path) -> None:
    slow = "The GPU fell off the bus (E1). " + "It waits and waits and waits for more of its words (E1). " * 40
    terminal = terminals()
    look = Answer(tool_calls=(("read_lines", '{"file": "gpu-042.dmesg", "line": 6}'),))
    with OpenAIServer([look, Answer(slow, drip=0.15), "The GPU fell off the bus (E1)."]) as server:
        terminal.start(str(log), **server.env(), NO_COLOR="1")
        terminal.sees("Incident 1", "triage>")
        terminal.say("what is it about, then?")
        terminal.sees("[read_lines: file gpu-042.dmesg, line 6]", "The GPU fell off the bus (E1). It waits and waits")
        terminal.keys("C-c")
        terminal.sees("(stopped; what was said is kept)", "triage>")
        terminal.say("once more?")
        terminal.sees("once more?", "The GPU fell off the bus (E1).", "E1 ", "gpu-042.dmesg:6", "triage>")
        terminal.say("/quit")
        terminal.sees("is kept", "ended 0")
    assert "\x1b[2m" not in terminal.screen(escapes=True)


def test_what_a_log_holds_does_not_steer_the_terminal(terminals: Callable[[], Terminal], tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    log.write_bytes(b"step 1 loss 2.0\n\x1b]2;owned\x07\x1b[2J\x1b[31mTraceback (most recent call last):\n"
                    b'  File "train.py", line 3, in f\nZeroDivisionError: \x1b[5mdivision\x1b[0m by zero\x07\n')  # fmt: skip
    terminal = terminals()
    terminal.start(str(log), NO_COLOR="1")
    terminal.sees("zero-division-error", "triage>")
    terminal.say("job.out:3")
    terminal.sees("job.out:3", "ZeroDivisionError: division by zero", "triage>")
    shown = terminal.screen(escapes=True)
    assert "\x1b[5m" not in shown
    assert "\x1b[31m" not in shown
    assert "owned" not in terminal._tmux("display-message", "-p", "#{pane_title}")
