"""`triage kb`: whole output and exit codes, on the shipped knowledge and on the user's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.cli.conftest import Run
from tests.kb.test_user_incidents import GOOD
from triage import kb as knowledge
from triage.cli import kb, kb_store
from triage.errors import InputError, KnowledgeError, NotFoundError, UsageError

REPO = Path(__file__).parents[2]
RECORD = {
    "id": "XX-9001",
    "org": "Example Lab",
    "date": "2025-02-03",
    "title": {"en": "Tokens in a log: hf_abcdefghijklmnopqrstuvwx stayed readable"},
    "components": ["nccl"],
    "root_cause": "config-error",
    "summary": {"en": "A job printed its environment. RuntimeError: pump 7 lost pressure came first."},
    "symptoms_text": {"en": 'The log shows "RuntimeError: pump 7 lost pressure" again and again.'},
    "remediation": [{"text": {"en": "Rotated the key."}}],
}


def run(*words: str, code: int = 0) -> Result:
    """What the command says; an error is raised, as for the one place that prints it."""
    result = CliRunner().invoke(kb.app, words, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert (result.return_value or 0) == code, result.output
    return result


def asked(*words: str) -> dict[str, Any]:
    return dict(json.loads(run(*words, "--format", "json").stdout))


def home() -> Path:
    return Path(os.environ["TRIAGE_HOME"])


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD, "utf-8")
    return path


# ------------------------------------------------------------------------------------------------ list and show
def test_list_shows_shipped_and_own(good: Path) -> None:
    before = run("list").stdout
    run("add", str(good))
    shown = run("list").stdout
    assert (
        shown.replace(before, "")
        == "site-7  gpu-lost  2026-05-01  Our cluster  (own)\n    Cooling loop of row 7 failed\n"
    )
    assert "IL-0125  cuda-error  2022-05-18  BigScience\n" in before


@pytest.mark.parametrize(
    ("kind", "known"), [("signatures", knowledge.signatures()), ("filters", knowledge.filter_rules())]
)
def test_list_of_a_kind_is_whole(kind: str, known: tuple[Any, ...]) -> None:
    document = asked("list", "--kind", kind)
    assert document["schema"] == "triage.kb/1" and document["kind"] == kind
    assert [entry["id"] for entry in document["entries"]] == [entry.id for entry in known]


def test_list_by_type() -> None:
    entries = asked("list", "--type", "ecc-error")["entries"]
    assert entries and {entry["failure_type"] for entry in entries} == {"ecc-error"}
    empty = run("list", "--type", "zero-division-error")
    assert (empty.stdout, empty.stderr) == ("", "triage: no incident of this type is known\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("list", "--kind", "runes"), "use incidents, signatures, filters"),
        (("list", "--type", "ecc-eror"), "did you mean ecc-error"),
        (("list", "--kind", "filters", "--type", "ecc-error"), "--type does not go with --kind filters"),
        (("list", "--format", "xml"), "use text, json"),
        (("search", "x", "--type", "nonsense"), "--type 'nonsense' is not known"),
    ],
)
def test_wrong_usage_says_what_to_give(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(*words)
    assert says in str(caught.value)


def test_show_an_own_incident_whole(good: Path) -> None:
    run("add", str(good))
    assert run("show", "site-7").stdout == (
        "site-7  (incident, own)\n"
        "Cooling loop of row 7 failed\n"
        "failure type: gpu-lost; root cause class: hardware-failure; org: Our cluster;\n"
        "date: 2026-05-01; outcome: confirmed\n"
        "\nComponents:\n  - gpu\n"
        "\nSymptoms:\n  GPUs of one row throttle and then vanish.\n"
        "\nRoot cause:\n  A pump stopped.\n"
        "\nRemediation:\n  - Moved the jobs to row 8.\n"
    )


@pytest.mark.parametrize("entry", ["IL-0125", knowledge.signatures()[0].id, knowledge.filter_rules()[0].id])
def test_show_finds_any_kind(entry: str) -> None:
    assert run("show", entry).stdout.startswith(entry + "  (")
    document = asked("show", entry)
    assert document["id"] == entry and document["origin"] == "shipped"


def test_show_fits_80_columns() -> None:
    wide = [line for line in run("show", "IL-0426").stdout.splitlines() if len(line) > 80 and "://" not in line]
    assert wide == []


def test_show_what_is_not_there() -> None:
    with pytest.raises(NotFoundError, match="did you mean IL-0125"):
        run("show", "IL-O125")


# ------------------------------------------------------------------------------------------------ search
def test_search_says_why() -> None:
    shown = run("search", "Got completion with error 12, opcode 0, len 0, vendor err 129").stdout
    _, first, *_ = shown.split("\n0.")
    assert (
        "modelarts-roce-completion-error-12\n      InfiniBand completion error 12 on an unstable RoCE network\n"
        in first
    )
    assert "      why: " in first and "      fix: NCCL_IB_GID_INDEX=3" in first


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Xid 79 GPU has fallen off the bus", [("signature", "xid.79"), ("runbook", "gpu-lost")]),
        ("PMIX ERROR", [("signature", "mpi.pmi")]),
        ("disk quota", [("signature", "st.quota"), ("runbook", "disk-full")]),
        ("KeyError: 'lm_loss'", [("signature", "py.key-error"), ("runbook", "key-error")]),
    ],
)
def test_search_finds_signatures_and_runbooks_too(text: str, wanted: list[tuple[str, str]]) -> None:
    found = [(entry["kind"], entry["id"]) for entry in asked("search", text)["known"]]
    assert [entry for entry in wanted if entry not in found] == []
    assert f"{wanted[0][0]} {wanted[0][1]}: " in run("search", text).stdout


def test_search_finds_own_incidents_at_once(good: Path) -> None:
    run("search", "anything")
    run("add", str(good))
    found = asked("search", "pump", "of", "the", "cooling", "loop", "stopped")["similar"]
    assert found[0]["incident"] == "site-7"
    assert found[0]["remediation"] == ["Moved the jobs to row 8."]


def test_search_for_what_is_not_known() -> None:
    result = run("search", "how to bake bread")
    assert (result.stdout, result.stderr.count("nothing like it is known")) == ("", 1)
    found = asked("search", "how to bake bread")
    assert (found["similar"], found["known"]) == ([], [])


def test_search_goes_on_without_an_index() -> None:
    (home() / "index").write_text("a file stands here")
    result = run("search", "Got completion with error 12, opcode 0, len 0, vendor err 129")
    assert "modelarts-roce-completion-error-12" in result.stdout
    assert "similar incidents were searched by words and labels only" in result.stderr


# ------------------------------------------------------------------------------------------------ import and add
def test_import_stores_without_secrets_and_twice_changes_nothing(tmp_path: Path) -> None:
    source = tmp_path / "records.json"
    source.write_text(json.dumps([RECORD, {**RECORD, "id": "IL-0125"}]), "utf-8")
    folder = home() / "kb" / "incidents"
    assert run("import", str(source)).stdout == f"1 added, 1 shipped with triage already: {folder}\n"
    (stored,) = folder.glob("*.yaml")
    text = stored.read_text("utf-8")
    assert "hf_abc" not in text and "[redacted:hf-token]" in text
    assert run("import", str(source)).stdout == f"1 known already, 1 shipped with triage already: {folder}\n"
    assert stored.read_text("utf-8") == text
    incident = knowledge.load_incident(stored)
    assert incident.error_strings == ("RuntimeError: pump 7 lost pressure",)
    assert asked("search", "RuntimeError: pump 7 lost pressure")["similar"][0]["incident"] == "XX-9001"
    assert run("check").stdout.startswith("ok: ")


def test_import_of_a_folder_takes_what_it_can(tmp_path: Path, good: Path) -> None:
    (tmp_path / "page.txt").write_text("A guide, not an incident.", "utf-8")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    result = run("import", str(tmp_path), code=2)
    assert result.stdout == f"1 added: {home() / 'kb' / 'incidents'}\n"
    assert result.stderr.startswith(f"triage: {tmp_path / 'page.txt'}: not a file of incidents")
    assert result.stderr.count("\n") == 1


def test_import_the_seeds(shared: Path) -> None:
    seeds = sorted((shared / "seeds").glob("*.txt"))
    if not seeds:
        pytest.skip("the seeds are not beside this checkout")
    result = run("import", *map(str, seeds), code=2)  # one of them is a guide
    assert result.stdout.startswith("4 shipped with triage already: ")
    assert result.stderr.count("not a file of incidents") == 1


@pytest.mark.parametrize("kind", ["missing", "empty folder"])
def test_import_of_nothing_is_an_error(kind: str, tmp_path: Path) -> None:
    path = tmp_path / kind
    if kind == "empty folder":
        path.mkdir()
    with pytest.raises(InputError, match=kind):
        run("import", str(path))


def test_add_and_add_again(good: Path) -> None:
    stored = home() / "kb" / "incidents" / "site-7.yaml"
    assert run("add", str(good)).stdout == f"added: site-7 in {stored}\n"
    assert run("add", str(good)).stdout == f"known already: site-7 in {stored}\n"
    good.write_text(GOOD.replace("A pump stopped.", "Two pumps stopped, password=hunter2secret."), "utf-8")
    assert run("add", str(good)).stdout == f"updated: site-7 in {stored}\n"
    assert "hunter2secret" not in stored.read_text("utf-8") and "Two pumps" in stored.read_text("utf-8")
    assert [path.name for path in stored.parent.iterdir()] == ["site-7.yaml"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("id: site-7", "id: IL-0125"), "give your incident another id"),
        (("symptoms: GPUs of one row throttle and then vanish.", "symptoms: ' '"), "symptoms is empty"),
        (("title: Cooling loop of row 7 failed\n", ""), "it lacks title"),
        (("gpu-lost", "gpu-gone"), "is not one of"),
    ],
)
def test_add_refuses_what_is_not_whole(good: Path, change: tuple[str, str], says: str) -> None:
    good.write_text(GOOD.replace(*change), "utf-8")
    with pytest.raises(KnowledgeError) as caught:
        run("add", str(good))
    assert says in str(caught.value)
    assert not (home() / "kb").exists()


def test_any_id_has_a_file_of_its_own(tmp_path: Path) -> None:
    ids = ["a/b", "a-b", "../../etc/passwd", ".hidden", "db:12", "ä", "x" * 500, "x" * 501, "CON"]
    paths = {kb_store.path_of(tmp_path, name) for name in ids}
    assert len(paths) == len(ids)
    assert {path.parent for path in paths} == {tmp_path / "kb" / "incidents"}


def test_a_home_that_cannot_be_written_is_said(good: Path) -> None:
    home().joinpath("kb").write_text("a file stands here")
    with pytest.raises(InputError, match="set TRIAGE_HOME"):
        run("add", str(good))


def test_imported_text_does_not_steer_the_terminal(good: Path) -> None:
    good.write_text(GOOD.replace("title: Cooling loop of row 7 failed", 'title: "\\e[31mred\\e[0m \\x07"'), "utf-8")
    run("add", str(good))
    assert "\x1b" not in run("list").stdout + run("show", "site-7").stdout


# ------------------------------------------------------------------------------------------------ check
def test_the_shipped_knowledge_is_sound() -> None:
    result = run("check")
    assert result.stdout.startswith("ok: ") and result.stdout.count("\n") == 1
    counts = asked("check")["checked"]
    assert counts["signatures"] >= 120 and counts["incidents"] >= 40 and counts["filters"] >= 100


SIGNATURE = {
    "id": "site.pump",
    "title": "a pump stopped",
    "patterns": ["pump \\d+ lost pressure"],
    "failure_type": "gpu-lost",
    "root_cause_class": "hardware-failure",
    "role": "root",
    "remedy": "Look at the pump.",
    "examples": ["pump 7 lost pressure"],
    "counter_examples": ["pump 7 is fine"],
}
FILTER = {
    "id": "site.poll",
    "title": "polling",
    "pattern": "^poll \\d+$",
    "examples": ["poll 1"],
    "counter_examples": ["poll x"],
}


def write_own(kind: str, *entries: dict[str, Any]) -> Path:
    path = home() / "kb" / kind / "own.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(list(entries)), "utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "entry", "change", "says"),
    [
        ("signatures", SIGNATURE, {"examples": ["nothing"]}, "site.pump: does not match its example 'nothing'"),
        (
            "signatures",
            SIGNATURE,
            {"counter_examples": ["pump 8 lost pressure"]},
            "matches its counter-example 'pump 8",
        ),
        ("signatures", SIGNATURE, {"counter_examples": []}, "site.pump: it has no counter_examples"),
        ("signatures", SIGNATURE, {"patterns": ["(?=x)y"]}, "site.pump: "),
        ("signatures", SIGNATURE, {"unless": ["["]}, "site.pump: "),
        ("signatures", SIGNATURE, {"role": "hero"}, "role 'hero' is not one of"),
        ("signatures", SIGNATURE, {"id": "xid.79"}, "xid.79: the id stands in "),
        ("filters", FILTER, {"examples": ["poll"]}, "site.poll: does not match its example 'poll'"),
        ("filters", FILTER, {"counter_examples": ["2026-01-02 03:04:05 poll 4"]}, "matches its counter-example"),
        ("filters", FILTER, {"pattern": "%{NO_SUCH_PIECE}"}, "unknown %{NO_SUCH_PIECE}"),
        ("filters", FILTER, {"pattern": "(a"}, "site.poll"),
    ],
)
def test_check_finds_what_is_wrong(kind: str, entry: dict[str, Any], change: dict[str, Any], says: str) -> None:
    path = write_own(kind, {**entry, **change})
    result = run("check", code=2)
    (line,) = result.stdout.splitlines()
    assert line.startswith(str(path)) and says in line


def test_check_takes_sound_rules_of_ones_own_and_names_every_problem() -> None:
    write_own("filters", FILTER)
    path = write_own("signatures", SIGNATURE)
    before = asked("check")
    assert before["problems"] == []
    bad = [{**SIGNATURE, "id": f"site.{n}", "examples": [f"none {n}", f"nor {n}"]} for n in range(3)]
    path.write_text(yaml.safe_dump(bad), "utf-8")
    (home() / "kb" / "incidents").mkdir()
    (home() / "kb" / "incidents" / "x.yaml").write_text("id: [")
    assert len(run("check", code=2).stdout.splitlines()) == 7


def test_check_of_a_broken_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "kb"
    shutil.copytree(knowledge.root(), root)
    (root / "cascades.yaml").write_text("- id: x\n  cause: [nonsense]\n", "utf-8")
    code = f"""
from pathlib import Path
from triage import kb
kb.root = lambda: Path({str(root)!r})
from triage.cli import kb_check
print(*kb_check.check(Path({str(home())!r}))[1], sep="\\n")
"""
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "cascades.yaml" in found.stdout


def test_the_command_is_wired_to_its_exit_codes() -> None:
    """By way of the program itself, which alone prints errors."""
    environment = {**os.environ, "PYTHONPATH": str(REPO)}

    def triage(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "triage", "kb", *words], check=False, capture_output=True, text=True, env=environment
        )
        return done.returncode, done.stderr

    assert triage("list") == (0, "")
    assert triage("show", "IL-O125") == (2, "triage: the knowledge base has no 'IL-O125'; did you mean IL-0125?\n")
    write_own("signatures", {**SIGNATURE, "examples": ["nothing"]})
    assert triage("check")[0] == 2


def test_an_incident_that_is_none_says_what_it_lacks_in_words(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("titel: Cooling\n")
    done = triage("kb", "add", "mine.yaml")
    assert done.returncode == 2
    assert (
        "mine.yaml: the incident without an id: no field is called titel (did you mean title?); it lacks "
        in done.stderr
    )
    assert "[" not in done.stderr and "KnownIncident" not in done.stderr


def test_a_search_for_nothing_asks_for_words(triage: Run) -> None:
    done = triage("kb", "search", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("triage: nothing to search for; give words")


def test_a_variable_that_is_no_setting_is_heard_of_once(triage: Run) -> None:
    done = triage("config", "show", TRIAGE_TOKENBUDGET="1", TRIAGE_FOO="1", TRIAGE_DEBUG="1")
    assert done.returncode == 0
    assert done.stderr == (
        "triage: TRIAGE_FOO is no setting and has no effect; `triage config show` lists the settings\n"
        "triage: TRIAGE_TOKENBUDGET is no setting and has no effect; did you mean TRIAGE_TOKEN_BUDGET?\n"
    )
