"""`triage incidents`: the whole output, from a database made by the store itself."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.databases import lay_down
from tests.store.samples import ECC, HUNG, OOM
from triage import __version__, report
from triage.cli import incident_filters, incident_list, incidents
from triage.errors import NotFoundError, UsageError
from triage.store.incidents import IncidentStore
from triage.store.values import JobRef, Verdict

NOW = datetime(2026, 3, 1, 2, 59, 30, tzinfo=UTC)


def run(*words: str) -> Result:
    """What the command says; an error is raised, as for the one place that prints it."""
    result = CliRunner().invoke(incidents.app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def store() -> Iterator[IncidentStore]:
    """1: an ECC error, 02:59; 2: out of memory, an hour later; 3: hung, two hours later."""
    hours = iter(range(100))
    url = lay_down(f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db")
    with IncidentStore.open(url, lambda: NOW + timedelta(hours=next(hours))) as opened:
        for diagnosis, job in (
            (ECC, JobRef("4711", "pretrain-7b", "slurm", owner="ada")),
            (OOM, None),
            (HUNG, JobRef(name="finetune")),
        ):
            opened.record(diagnosis, report.to_json(diagnosis), job)
        yield opened


def test_the_list_is_newest_first_and_whole_in_a_pipe(store: IncidentStore) -> None:
    long = dataclasses.replace(
        OOM,
        outcome="interrupted",
        failure_type="dataset-loading-error",
        root_cause="A shard could not be opened by any of its readers",
    )
    store.record(long, report.to_json(long))

    result = run("list")

    assert result.stdout == (
        "ID  RECORDED (UTC)    OUTCOME      TYPE                   CAUSE\n"
        " 4  2026-03-01 05:59  interrupted  dataset-loading-error  A shard could not be opened by any of its readers\n"
        " 3  2026-03-01 04:59  hung         hang                   It waits for rank 7 on gpu-099\n"
        " 2  2026-03-01 03:59  failed       out-of-memory          The batch does not fit\n"
        " 1  2026-03-01 02:59  failed       ecc-error              double-bit ECC error\n"
    )
    in_terminal = incident_list.as_text(store.list(), 80)
    assert "A shard could not b...\n" in in_terminal
    assert max(map(len, in_terminal.splitlines())) <= 80
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--type ecc-error", [1]),
        ("--outcome failed", [2, 1]),
        ("--node gpu-016", [1]),
        ("--since 2026-03-01T03:59:30", [3, 2]),
        ("--since 2026-03-01T05:59:30+01:00", [3]),
        ("--text BATCH", [2]),
        ("--job 4711", [1]),
        ("--job finetune", [3]),
        ("--user ada", [1]),
        ("--verdict none", [3, 2, 1]),
        ("--verdict confirmed", []),
        ("--status established", [1]),
        ("--until 2026-03-01T03:59:30", [1]),
        ("--since 2026-03-01T03:59:30 --until 2026-03-01T04:59:30", [2]),
        ("--sort type", [1, 3, 2]),
        ("--outcome failed --limit 1", [2]),
    ],
)
def test_filters(store: IncidentStore, words: str, found: list[int]) -> None:
    document = json.loads(run("list", "--format", "json", *words.split()).stdout)

    assert [i["id"] for i in document["incidents"]] == found


def test_the_list_as_json_is_one_object(store: IncidentStore) -> None:
    store.resolve(1, Verdict("confirmed", "ada"))

    document = json.loads(run("list", "--format", "json", "--node", "gpu-017").stdout)

    assert document == {
        "schema": "triage.incidents/1",
        "incidents": [
            {
                "id": 1,
                "created_at": "2026-03-01T02:59:30+00:00",
                "title": "double-bit ECC error",
                "outcome": "failed",
                "failure_type": "ecc-error",
                "category": "infrastructure",
                "root_cause_class": "hardware-failure",
                "status": "established",
                "action": "restart-excluding",
                "fingerprint": "f3c0ffee",
                "nodes": ["gpu-017", "gpu-016"],
                "job": "4711",
                "gpu_hours": None,
                "verdict": "confirmed",
                "true_type": "ecc-error",
                "true_class": "hardware-failure",
                "owner": "ada",
                "attempts": 1,
                "last_seen": "2026-03-01T02:59:30+00:00",
            }
        ],
    }


def test_the_list_as_markdown(store: IncidentStore) -> None:
    odd = dataclasses.replace(OOM, root_cause="a|b *c* \x1b[31m<d>")
    store.record(odd, report.to_json(odd))

    assert run("list", "--format", "markdown", "--limit", "2").stdout == (
        "| Incident | Recorded (UTC) | Outcome | Type | Cause |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| 4 | 2026-03-01 05:59 | failed | out-of-memory | a\\|b \\*c\\* �\\[31m\\<d\\> |\n"
        "| 3 | 2026-03-01 04:59 | hung | hang | It waits for rank 7 on gpu-099 |\n"
    )


def test_nothing_of_a_log_acts_on_the_terminal(store: IncidentStore) -> None:
    odd = dataclasses.replace(OOM, root_cause="\x1b]0;owned\x07 \u202ereversed")
    incident = store.record(odd, report.to_json(odd), JobRef("1\x1b[2J", "n\x9b"))

    shown = run("list").stdout + run("show", str(incident)).stdout.splitlines()[0]

    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)


def test_more_than_fit_are_announced(store: IncidentStore) -> None:
    result = run("list", "--limit", "2")

    assert len(result.stdout.splitlines()) == 3
    assert result.stderr == "triage: only the newest 2 are shown; more with --limit\n"
    assert run("list", "--limit", "3").stderr == ""


def test_an_empty_database_says_what_to_do() -> None:
    result = run("list")

    assert result.stdout == ""
    assert result.stderr == "triage: no incident is recorded yet; `triage diagnose PATH...` records one\n"
    assert json.loads(run("list", "--format", "json").stdout) == {"schema": "triage.incidents/1", "incidents": []}


def test_filters_that_fit_nothing_say_so(store: IncidentStore) -> None:
    result = run("list", "--node", "gpu-404")

    assert (result.stdout, result.stderr) == (
        "",
        "triage: no incident fits these filters; leave one out, or go further back with --since\n",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("list --type ecc", "--type 'ecc' is not known; did you mean ecc-error?"),
        ("list --type qqqq", "--type 'qqqq' is not known; see kb/taxonomy.yaml"),
        ("list --verdict good", "--verdict 'good' is not known; use confirmed, corrected, rejected, none"),
        ("list --status sure", "--status 'sure' is not known; use established, supported, hypothesis, unknown"),
        ("list --sort age", "--sort 'age' is not known; use created, last-seen, attempts, gpu-hours, type"),
        ("stats --until soon", "--until 'soon' is no time; use 7d, 12h, 2026-01-31 or 2026-01-31T03:00+01:00"),
        ("list --outcome dead", "--outcome 'dead' is not known; use failed, hung, interrupted, healthy, unknown"),
        ("list --since soon", "--since 'soon' is no time; use 7d, 12h, 2026-01-31 or 2026-01-31T03:00+01:00"),
        ("list --since 99999w", "--since '99999w' is no time; use 7d, 12h, 2026-01-31 or 2026-01-31T03:00+01:00"),
        (
            "list --since 0001-01-01T00:00+14:00",
            "--since '0001-01-01T00:00+14:00' is no time; use 7d, 12h, 2026-01-31 or 2026-01-31T03:00+01:00",
        ),
        (
            "stats --until 9999-12-31T23:59-14:00",
            "--until '9999-12-31T23:59-14:00' is no time; use 7d, 12h, 2026-01-31 or 2026-01-31T03:00+01:00",
        ),
        ("list --since 1d --until 2d", "--since 1d is not before --until 2d; no time lies between them"),
        ("list --format yaml", "--format 'yaml' is not known; use text, json, markdown"),
    ],
)
def test_a_slip_in_the_words_is_told(words: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(*words.split())

    assert str(caught.value) == message


@pytest.mark.parametrize(
    "option", ["type", "outcome", "node", "user", "job", "verdict", "status", "since", "until", "text"]
)
@pytest.mark.parametrize("command", ["list", "stats"])
def test_an_empty_filter_is_a_variable_that_is_not_set(command: str, option: str) -> None:
    with pytest.raises(UsageError, match=f"^--{option} is empty; is a variable of the shell not set"):
        run(command, f"--{option}", "")


@pytest.mark.parametrize(
    ("value", "when"),
    [
        ("30m", NOW - timedelta(minutes=30)),
        ("12h", NOW - timedelta(hours=12)),
        ("7d", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(weeks=2)),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T04:00+01:00", datetime(2026, 1, 31, 3, tzinfo=UTC)),
        ("9999-12-31", datetime(9999, 12, 31, tzinfo=UTC)),
    ],
)
def test_since(value: str, when: datetime) -> None:
    assert incident_filters.parse_time(value, NOW) == when


def test_show_as_json_is_the_stored_object(store: IncidentStore) -> None:
    shown = run("show", "1", "--format", "json").stdout

    document = json.loads(shown)
    record = document.pop("record")
    assert document == {**report.to_json(ECC), "incident": 1}
    first = "2026-03-01T02:59:30+00:00"
    assert (record["first_seen"], record["last_seen"], record["outcomes"], record["feedback"]) == (first, first, [], [])
    assert record["same_failure"] == {"first": first, "last": first, "same_job": 1, "other_jobs": 0}
    assert [(a["number"], a["external_id"], a["recorded_at"]) for a in record["attempts"]] == [(1, "4711", first)]
    assert [(v["version"], v["failure_type"], v["at"]) for v in record["versions"]] == [(1, "ecc-error", first)]
    assert shown.count("\n") == 1


def test_show_as_text_and_markdown_print_the_stored_result(store: IncidentStore) -> None:
    store.resolve(
        1, Verdict("corrected", "ada", cause="the *riser* card", fix="reseated\nit", worked="yes", failure_type="hang")
    )
    result = {**report.to_json(ECC), "incident": 1}
    heading = f"Incident 1, recorded 2026-03-01 02:59 UTC by triage {__version__}, job 4711 (pretrain-7b) of ada, corrected by ada"

    outcome = (
        "What turned out\n  2026-03-01 05:59 UTC: corrected by ada (cli)\n    it was: hang\n    cause: the *riser* card\n"
        "    fix (worked): reseated it\n\n"
    )
    assert run("show", "1").stdout == f"{heading}\n\n{outcome}{report.render_text(result, 80)}"
    outcome = (
        "## What turned out\n\n- 2026-03-01 05:59 UTC: corrected by ada (cli)\n  - it was: hang\n"
        "  - cause: the \\*riser\\* card\n  - fix (worked): reseated it\n\n"
    )
    assert (
        run("show", "1", "--format", "markdown").stdout == f"_{heading}_\n\n{outcome}{report.render_markdown(result)}"
    )


def test_show_tells_attempts_readings_and_how_often_it_was_seen(store: IncidentStore) -> None:
    store.file(
        ECC, report.to_json(ECC), JobRef("4711_2", "pretrain-7b", "slurm", owner="ada"), window=timedelta(days=1)
    )
    store.revise(1, OOM, report.to_json(OOM))
    store.record(ECC, report.to_json(ECC))

    shown = run("show", "1", "--version", "2").stdout
    assert "attempt 2 of incident 1" in shown
    assert (
        "Seen\n  attempt 1: 2026-03-01 02:59 UTC, job 4711\n  attempt 2: 2026-03-01 05:59 UTC, job 4711_2\n"
        "  diagnosis 1 of attempt 1: 2026-03-01 02:59 UTC, ecc-error (established) by\n    llm:small-1\n"
    ) in shown
    assert (
        "  the same failure: 2 times in this job, 1 time in others, first 2026-03-01," not in shown
    )  # it is out of memory now
    assert "- attempt 2: 2026-03-01 05:59 UTC, job 4711\\_2\n" in run("show", "1", "--format", "markdown").stdout
    assert "the same failure: 1 time in this job, 0 times in others" not in run("show", "4").stdout


def test_the_tasks_of_a_large_array_do_not_hide_the_diagnosis(store: IncidentStore) -> None:
    for task in range(1, 40):
        job = JobRef(f"4711_{task}", "pretrain-7b", "slurm", owner="ada")
        store.file(ECC, report.to_json(ECC), job, window=timedelta(days=9))

    shown = run("show", "1").stdout
    listed = [line.split(":")[0].strip() for line in shown.splitlines() if line.startswith("  attempt ")]
    assert listed == [f"attempt {n}" for n in (1, 2, 3, *range(34, 41))]
    assert "  attempt 3: 2026-03-01 06:59 UTC, job 4711_2\n  ... 30 more (--format json has all)\n" in shown
    assert len(json.loads(run("show", "1", "--format", "json").stdout)["record"]["attempts"]) == 40


def test_show_tells_a_later_diagnosis(store: IncidentStore) -> None:
    store.revise(2, ECC, report.to_json(ECC))

    assert run("show", "2").stdout.startswith(
        f"Incident 2, recorded 2026-03-01 03:59 UTC by triage {__version__}, diagnosis 2\n"
    )


def test_an_incident_that_is_not_there(store: IncidentStore) -> None:
    with pytest.raises(NotFoundError, match="no incident 9; see: triage incidents list"):
        run("show", "9")


def test_an_incident_is_forgotten_when_told_so(store: IncidentStore) -> None:
    with pytest.raises(
        UsageError, match="nothing was forgotten: nobody can be asked here; --yes forgets without asking"
    ):
        run("forget", "2")

    assert run("forget", "2", "--yes").stdout == "incident 2 is forgotten\n"
    assert [s.id for s in store.list()] == [3, 1]
    with pytest.raises(NotFoundError, match="no incident 2"):
        run("forget", "2", "--yes")


def test_a_number_below_one_is_no_option(triage: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = triage("incidents", "show", "-5")

    assert (done.returncode, done.stderr) == (
        2,
        "triage: -5 is no number of anything here: numbers begin at 1 (see triage --help)\n",
    )


def test_a_damaged_database_is_replaced_and_kept(
    triage: Callable[..., subprocess.CompletedProcess[str]], store: IncidentStore, tmp_path: Path
) -> None:
    run("backup", str(tmp_path / "copy.db"))
    store.close()
    home = Path(os.environ["TRIAGE_HOME"])
    (home / "triage.db").write_bytes(b"\xff" * 9000)

    refused = triage("incidents", "restore", str(tmp_path / "copy.db"))
    assert (refused.returncode, "is damaged: file is not a database; --replace puts" in refused.stderr) == (2, True)
    done = triage("incidents", "restore", str(tmp_path / "copy.db"), "--replace")

    assert done.stdout.startswith("3 incidents restored from")
    (kept,) = home.glob("triage.db.damaged-*")
    assert done.stderr == f"triage: the database was damaged; it is kept as {kept}\n"
    assert kept.read_bytes() == b"\xff" * 9000
    assert triage("incidents", "list").stdout.count("\n") == 4


def test_the_program_prints_one_line_and_ends_with_2(tmp_path: Path) -> None:
    environment = {**os.environ, "TRIAGE_DATABASE_URL": "postgresql://ada:hunter22@127.0.0.1:9/x"}
    done = subprocess.run(
        [sys.executable, "-m", "triage", "incidents", "list"],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("triage: ")
    assert done.stderr.count("\n") == 1
    assert "hunter22" not in done.stderr
