"""Diagnosing files that a test writes, the whole way from bytes to the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from triage import pipeline
from triage.cli import wiring
from triage.domain import Diagnosis
from triage.parts import Parts

Diagnose = Callable[..., Diagnosis]  # name_of_file="text", or a mapping of names


@pytest.fixture(scope="session")
def whole() -> Parts:
    return wiring.parts(wiring.settings("off"), lambda _text: None, record=False, similar=False)


@pytest.fixture
def diagnosed(whole: Parts, tmp_path: Path) -> Diagnose:
    """A function of {name: text}: the diagnosis of these files; citations name them without the folder."""

    def diagnose(files: dict[str, str]) -> Diagnosis:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return pipeline.diagnose([str(tmp_path / name) for name in files], whole)[0]

    return diagnose
