"""Databases of the present schema, as a first start leaves them: copies of one that was migrated once a process."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from triage.store import engine, migrate


@functools.cache
def _sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "triage.db"
        made = engine.connect(engine.parse(f"sqlite:///{file}"))
        migrate.ensure(made)
        made.dispose()
        return file.read_bytes()


def lay_down(url: str) -> str:
    """A migrated SQLite database where there is none; the URL. Tests of a first start and of migration do without."""
    file = engine.path(engine.parse(url))
    assert file is not None
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.touch(mode=0o600, exist_ok=False)
    file.write_bytes(_sqlite())
    return url
