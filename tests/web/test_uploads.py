from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from triage.errors import InputError
from triage.web import uploads


async def body() -> AsyncIterator[bytes]:
    yield b"hello\n"


def test_a_place_that_takes_no_file_is_said(tmp_path: Path) -> None:
    taken = tmp_path / "logs"
    taken.write_text("no folder")
    with pytest.raises(InputError, match="could not write the upload"):
        asyncio.run(uploads.raw(body(), "node/job.log", taken))
    taken.unlink()
    taken.mkdir()
    assert asyncio.run(uploads.raw(body(), "node/job.log", taken)) == ["node/job.log"]
