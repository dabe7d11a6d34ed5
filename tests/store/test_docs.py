"""docs/database.md says what is so: its tables, its queries, its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.store.processes import ROOT
from tests.store.samples import ECC, OOM, as_json
from triage.cli.incidents import app
from triage.store import migrate, schema
from triage.store.incidents import IncidentStore
from triage.store.values import JobRef

PAGE = (ROOT / "docs" / "database.md").read_text("utf-8")


def blocks(language: str, holding: str) -> list[str]:
    return [b for b in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if holding in b]


def test_the_tables_named_are_the_tables_there_are() -> None:
    named = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)

    assert sorted(named) == sorted([*schema.METADATA.tables, migrate.VERSION_TABLE])


def test_the_queries_answer(store: IncidentStore) -> None:
    for diagnosis in (ECC, OOM, ECC):
        store.record(diagnosis, as_json(diagnosis), JobRef(gpu_hours=1.5))

    nodes, types = blocks("sql", "SELECT")
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql(nodes).all() == [("gpu-017", 2)]
        assert connection.exec_driver_sql(types).all() == [("ecc-error", 2, 3.0), ("out-of-memory", 1, 1.5)]


def test_the_back_up_holds_what_was_just_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    backup, restore = (line.split("#")[0].split()[2:] for line in blocks("sh", "backup")[0].splitlines())
    monkeypatch.setenv("TRIAGE_HOME", str(tmp_path / "one"))
    with IncidentStore.open(f"sqlite:///{tmp_path}/one/triage.db") as store:
        store.record(ECC, as_json(ECC))
        assert CliRunner().invoke(app, backup).exit_code == 0

    monkeypatch.setenv("TRIAGE_HOME", str(tmp_path / "two"))
    assert CliRunner().invoke(app, restore).stdout == "1 incident restored from triage-copy.db\n"
    with IncidentStore.open(f"sqlite:///{tmp_path}/two/triage.db") as copy:
        assert copy.get(1).result["failure_type"] == "ecc-error"


@pytest.mark.service
def test_the_roles_and_the_password_file_of_the_page(postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.admin() as connection:
        for statement in blocks("sql", "CREATE ROLE")[0].split(";\n"):
            connection.execute(statement)
    (tmp_path / "pgpass").write_text(f"127.0.0.1:{postgres.port}:triage:triage:change-me\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))

    with IncidentStore.open(f"postgresql+psycopg://triage@127.0.0.1:{postgres.port}/triage?sslmode=prefer") as store:
        assert store.record(ECC, as_json(ECC)) == 1
