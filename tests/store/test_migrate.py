"""Migrations: equal to the models, all or nothing, and no data lost on the way from any older schema."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.store.processes import ROOT
from tests.store.samples import ECC, as_json
from triage.domain import Filed, InputFile
from triage.errors import StoreError
from triage.store import engine, migrate, schema, tables
from triage.store.attempts import run_of
from triage.store.incidents import IncidentStore
from triage.store.known import KnownReader
from triage.store.rules import RuleStore
from triage.store.signatures import SignatureStore
from triage.store.values import JobRef

# What a database of each schema may hold, in that schema's own words; add one with each revision.
OLD_DATA = {
    "0001": """
        INSERT INTO job VALUES (1, 'slurm', '4711', 'pretrain', '', '2025-12-31 23:00:00.000000');
        INSERT INTO incident VALUES (7, 1, '2026-01-01 03:00:00.000000', 'ECC', 'failed', 'ecc-error', 'infrastructure',
            'hardware-failure', 'established', 'restart-excluding', 'f3c0ffee', 1.5);
        INSERT INTO incident_node VALUES (1, 7, 'gpu-017', true);
        INSERT INTO diagnosis VALUES (3, 7, 1, '2026-01-01 03:00:00.000000', 'rules', '0.1.0', 'failed', 'ecc-error',
            'hardware-failure', 'established', 'GPU 3', 'restart-excluding',
            '{"schema":"triage.diagnosis/1","incident":7}',
            '{}', '{}', '{}');
        INSERT INTO evidence VALUES (1, 3, 'E1', 'a.log', 3, 'Xid 48', 'root', 'ecc-error', 'ECC', 'xid-48', NULL,
            'gpu-017', NULL, NULL, 1);
        INSERT INTO outcome VALUES (1, 7, 'confirmed', '', '', 'yes', '', 'ada', '2026-01-02 03:00:00.000000', 'cli')
    """,
}
OLD_DATA["0002"] = (
    OLD_DATA["0001"]
    + """;
        INSERT INTO job_kind VALUES (2, 'k1', '["script:train.py"]', '2026-01-01 03:00:00.000000');
        INSERT INTO rule VALUES (5, 2, 'd1', '^step', 'steps', '[]', '[]', 'active', '', 'model', 'm', '[]', '', '[]',
            2, 3, 40, 2, '2026-01-01 03:00:00.000000', NULL, 'ada');
        INSERT INTO rule_change VALUES (9, '2026-01-01 03:00:00.000000', 'ada', 'approve', NULL);
        INSERT INTO rule_event VALUES (1, 9, 5, 'shadow', 'active', 'looked at')
    """
)
OLD_DATA["0003"] = (
    OLD_DATA["0002"]
    + """;
        INSERT INTO good_run VALUES (4, 2, 7, '2026-01-01 03:00:00.000000', '{}')
    """
)
OLD_DATA["0004"] = (
    OLD_DATA["0003"].replace("'cli')", "'cli', 'ecc-error', 'hardware-failure', 1)")
    + """;
        INSERT INTO outcome VALUES (2, 7, 'corrected', 'a riser', 'reseated', 'yes', '', 'bob', '2026-01-03 03:00:00.000000',
            'cli', 'nvlink-error', NULL, 1)
    """
)
OLD_DATA["0005"] = (
    OLD_DATA["0004"]
    + """;
        INSERT INTO learned_signature VALUES (6, 7, 'd2', 'lattice lost', 'a lattice', 'network-error', 'network-failure',
            'failed', 'reseat it', 'active', '', 'mined', '', '[]', '', '["lattice lost"]', 'ada',
            '2026-01-01 03:00:00.000000', '2026-04-01 03:00:00.000000', 'ada');
        INSERT INTO signature_event VALUES (1, 9, 6, '', 'active', '');
        INSERT INTO signature_outcome VALUES (1, 6, 7, 'confirmed')
    """
)
OLD_DATA["0006"] = (
    OLD_DATA["0005"]
    .replace("'{}', '{}', '{}');", "'{}', '{}', '{}', 1, 'kb1', '[]');")
    .replace("'f3c0ffee', 1.5);", "'f3c0ffee', 1.5, 'ada');")
    + """;
        INSERT INTO attempt VALUES (1, 7, 1, '2026-01-01 03:00:00.000000', '4711', '', 'd1', 'b1', '[]', 100, 1.5);
        INSERT INTO model_call VALUES (1, 3, 1, 'm', '', 0.5, 10, 20);
        INSERT INTO feedback VALUES (1, 3, 'step', '1', 'up', '', 'ada', 'web', '2026-01-03 03:00:00.000000')
    """
)
OLD_DATA["0007"] = OLD_DATA["0006"].replace("'kb1', '[]');", "'kb1', '[]', 2.5);")
OLD_DATA["0008"] = (
    OLD_DATA["0007"]
    + """;
        INSERT INTO recovery_action VALUES
          (1, 7, 'drain', 'w', 'reversible', '["scontrol"]', 'u', 'ada', '2026-01-03 03:00:00.000000', NULL, NULL, '')
    """
)
OLD_DATA["0009"] = OLD_DATA["0008"].replace("'kb1', '[]', 2.5);", "'kb1', '[]', 2.5, 'ada');")
OLD_DATA["0010"] = (
    OLD_DATA["0009"]
    + """;
        INSERT INTO chat_session VALUES (1, 7, 'ada', 'why?', '2026-01-03 03:00:00.000000', '2026-01-03 03:00:00.000000');
        INSERT INTO chat_turn VALUES (1, 1, 1, 7, '2026-01-03 03:00:00.000000', 'answered', 'why?', 'ECC', 'code', '[]',
            '[]', '[]', '[]', 0)
    """
)
OLD_DATA["0011"] = OLD_DATA["0010"]
OLD_DATA["0012"] = OLD_DATA["0011"]


def connect(url: str) -> sa.Engine:
    connected = engine.connect(engine.parse(url))
    if (file := engine.path(connected.url)) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    return connected


def test_the_revisions_named_are_the_files_there_are() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrate.SCRIPTS))
    scripts = ScriptDirectory.from_config(config)

    assert tuple(r.revision for r in scripts.walk_revisions())[::-1] == migrate.REVISIONS
    assert scripts.get_heads() == [migrate.HEAD]


def test_migrations_make_what_the_models_say(store: IncidentStore) -> None:
    with store._engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True, "version_table": migrate.VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)

        assert compare_metadata(context, schema.METADATA) == []


def test_the_asked_for_indexes_are_there(store: IncidentStore) -> None:
    found = {tuple(i["column_names"]) for i in sa.inspect(store._engine).get_indexes("incident")}

    assert {("created_at",), ("failure_type",), ("fingerprint",)} <= found


def old_database(url: str, revision: str) -> None:
    old = connect(url)
    migrate.upgrade(old, revision)
    assert migrate.revision(old) == revision
    with old.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SET LOCAL timezone = 'UTC'"))
        for statement in OLD_DATA[revision].split(";"):
            connection.exec_driver_sql(statement)
        if connection.dialect.name == "postgresql":  # whose counters do not see numbers that were given
            for table in set(sa.inspect(connection).get_table_names()) - {migrate.VERSION_TABLE}:
                counter = f"pg_get_serial_sequence('{table}', 'id')"
                connection.execute(sa.text(f"SELECT setval({counter}, (SELECT coalesce(max(id), 1) FROM {table}))"))
    old.dispose()


@pytest.mark.parametrize("revision", migrate.REVISIONS)
def test_data_of_every_older_schema_is_kept(url: str, revision: str) -> None:
    old_database(url, revision)

    with IncidentStore.open(url) as store:
        found = store.get(7)
        assert migrate.revision(store._engine) == migrate.HEAD

    assert (found.summary.title, found.summary.nodes, found.verdicts[0].verdict) == ("ECC", ("gpu-017",), "confirmed")
    assert found.verdicts[0].failure_type == "ecc-error"  # what was confirmed was so
    assert found.summary.true_type == ("ecc-error" if revision < "0004" else "nvlink-error")
    assert found.summary.created_at.isoformat() == "2026-01-01T03:00:00+00:00"
    assert [(a.number, a.external_id, a.gpu_hours) for a in found.attempts] == [(1, "4711", 1.5)]
    assert (found.summary.attempts, found.summary.last_seen) == (1, found.summary.created_at)
    assert (found.result["incident"], found.job.external_id, found.summary.gpu_hours) == (7, "4711", 1.5)
    with RuleStore.open(url) as rules:
        kept = [(r.rule.id, r.job, r.state, r.hits) for r in rules.list()]
        assert kept == ([] if revision == "0001" else [("learned.5", "k1", "active", 40)])
    with SignatureStore.open(url) as signatures:
        known = [(s.id, s.incident, s.state, s.confirmed) for s in signatures.list()]
        assert known == ([("learned-signature.6", 7, "active", 1)] if revision >= "0005" else [])


AGAIN = replace(
    ECC,
    evidence=(replace(ECC.evidence[0], file="logs/a.log", line=3, text="Xid 48"),),
    fingerprint="newer",
    inputs=(InputFile("a.log", "/r/a.log", 10, "d", "h"),),
)


@pytest.mark.parametrize("revision", migrate.REVISIONS)
def test_a_log_of_every_older_schema_is_known_when_it_is_read_again(url: str, revision: str) -> None:
    old_database(url, revision)
    job = JobRef("4711", scheduler="slurm")

    with IncidentStore.open(url) as store, store._engine.begin() as connection:
        if revision >= "0006":  # that knows digests
            connection.execute(sa.update(tables.Attempt).values(digest=run_of(AGAIN).digest))
    with KnownReader.open(url) as known:
        assert known.own(AGAIN, job, timedelta()) == 7
    with IncidentStore.open(url) as store:
        assert store.file(AGAIN, as_json(AGAIN), job) == Filed(7, 1, 2)
        assert store.get(7).summary.fingerprint == "newer"
        assert store.file(AGAIN, as_json(AGAIN), job) == Filed(7, 1, 3)  # by its digest now


@pytest.mark.parametrize(
    ("change", "job"),
    [
        ({}, "4712"),
        ({"evidence": (replace(AGAIN.evidence[0], line=4),)}, "4711"),
        ({"evidence": (replace(AGAIN.evidence[0], text="Xid 79"),)}, "4711"),
        ({"evidence": ()}, "4711"),
        ({}, ""),  # the line tells no time, and nothing tells how long the log was
    ],
    ids=["another job", "another place", "another line", "nothing cited", "no job"],
)
def test_another_log_than_that_of_an_older_schema_is_new(tmp_path: Path, change: dict[str, object], job: str) -> None:
    url = f"sqlite:///{tmp_path}/triage.db"
    old_database(url, "0005")
    other = replace(AGAIN, **change)  # type: ignore[arg-type]

    with IncidentStore.open(url) as store:
        assert store.file(other, as_json(other), JobRef(job, scheduler="slurm") if job else None).incident == 8


def test_a_line_with_its_time_tells_the_log_without_a_job(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/triage.db"
    old_database(url, "0005")
    line = "2026-01-01 02:59:59 Xid 48"
    with connect(url).begin() as connection:
        connection.exec_driver_sql(f"UPDATE evidence SET text = '{line}'")
    timed = replace(AGAIN, evidence=(replace(AGAIN.evidence[0], text=line),))

    with IncidentStore.open(url) as store:
        assert store.file(timed, as_json(timed)).incident == 7


def test_whose_the_job_is_was_who_ran_triage(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/triage.db"
    old_database(url, "0007")

    with IncidentStore.open(url) as store:
        assert store.get(7).summary.owner == ""
        assert [v.recorded_by for v in store.get(7).versions] == ["ada"]


def test_opening_again_changes_nothing(url: str) -> None:
    def schema() -> list[tuple[str, list[str]]]:
        inspector = sa.inspect(store._engine)
        return [(t, [c["name"] for c in inspector.get_columns(t)]) for t in sorted(inspector.get_table_names())]

    with IncidentStore.open(url) as store:
        store.record(ECC, as_json(ECC))
        before = schema()
    migrate.upgrade(connect(url))  # one that came late finds the work done
    with IncidentStore.open(url) as store:
        assert schema() == before
        assert [s.id for s in store.list()] == [1]


@pytest.fixture
def next_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Pretends that this code is one revision on: gives it a body."""

    def make(body: str) -> None:
        scripts = tmp_path / "migrations"
        shutil.copytree(migrate.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
        head = (
            f"import sqlalchemy as sa\nfrom alembic import op\n\nrevision = 'next'\ndown_revision = {migrate.HEAD!r}\n"
        )
        (scripts / "versions" / "next.py").write_text(f"{head}\ndef upgrade():\n    {body}\n")
        monkeypatch.setattr(migrate, "SCRIPTS", scripts)
        monkeypatch.setattr(migrate, "REVISIONS", (*migrate.REVISIONS, "next"))
        monkeypatch.setattr(migrate, "HEAD", "next")
        monkeypatch.setattr(migrate.upgrade, "__defaults__", ("next",))

    return make


def test_a_table_that_must_be_copied_keeps_what_refers_to_it(url: str, next_revision) -> None:
    """SQLite alters by copying: dropping the old table must not delete the rows below it."""
    with IncidentStore.open(url) as store:
        incident = store.record(ECC, as_json(ECC))
    next_revision(
        "with op.batch_alter_table('incident', recreate='auto') as t: t.alter_column('title', type_=sa.String(500))"
    )

    with IncidentStore.open(url) as store:
        assert migrate.revision(store._engine) == "next"
        assert store.get(incident).result["failure_type"] == "ecc-error"
        with store._engine.connect() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(tables.Evidence)) == 2
            if connection.dialect.name == "sqlite":  # enforced again for what follows
                assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_migration_that_fails_leaves_the_old_schema(url: str, next_revision) -> None:
    with IncidentStore.open(url) as store:
        store.record(ECC, as_json(ECC))
    before = migrate.HEAD
    next_revision(
        "op.execute('CREATE TABLE half (id INTEGER)'); op.execute('DROP TABLE similar_shown'); op.execute('nonsense')"
    )

    with pytest.raises(StoreError, match="syntax error"):
        IncidentStore.open(url)

    again = connect(url)
    assert migrate.revision(again) == before
    assert not sa.inspect(again).has_table("half")
    assert sa.inspect(again).has_table("similar_shown")


@pytest.mark.service
def test_an_older_triage_refuses_what_a_newer_one_made(
    postgres, next_revision, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.create()
    next_revision("op.add_column('incident', sa.Column('site', sa.Text()))")
    IncidentStore.open(url).close()
    monkeypatch.undo()

    with pytest.raises(StoreError, match=f"has schema next, this triage knows up to {migrate.HEAD}"):
        IncidentStore.open(url)


def loaded(code: str, *words: str) -> set[str]:
    """The modules that a fresh interpreter holds after this code."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nsys.stdout.write('\\n'.join(sys.modules))", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_alembic_is_loaded_only_when_there_is_work(tmp_path: Path) -> None:
    code = "from triage.store.incidents import IncidentStore\nIncidentStore.open(sys.argv[1]).close()"
    url = f"sqlite:///{tmp_path}/t.db"

    assert "alembic" in loaded(code, url)
    assert not {"alembic", "mako", "filelock"} & loaded(code, url)


@pytest.mark.parametrize("module", ["triage.store", "triage.store.values", "triage.cli.incidents", "triage.cli.rules"])
def test_sqlalchemy_is_loaded_only_when_a_database_is_opened(module: str) -> None:
    assert not {"sqlalchemy", "alembic"} & loaded(f"import {module}")
