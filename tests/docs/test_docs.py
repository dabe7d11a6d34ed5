"""The documents say what the program does: commands, settings, links."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.conftest import REPO
from triage.cli.main import COMMANDS
from triage.evaluation.gate import load_gate
from triage.evaluation.importers import labels

PAGES = sorted([*REPO.glob("*.md"), *REPO.glob("docs/*.md"), *REPO.glob("benchmarks/*.md")])


def test_the_settings_page_is_made_from_the_code() -> None:
    page = runpy.run_path(str(REPO / "tools" / "settings_doc.py"))["page"]()
    assert (REPO / "docs" / "settings.md").read_text("utf-8") == page, "run: python tools/settings_doc.py"


def test_the_page_of_labels_and_figures_is_made_from_the_code() -> None:
    page = runpy.run_path(str(REPO / "tools" / "labels_doc.py"))["page"]()
    assert (REPO / "docs" / "labels-and-figures.md").read_text("utf-8") == page, "run: python tools/labels_doc.py"


def test_the_gate_file_of_the_documents_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(
        r"```yaml\n(schema: triage\.gate/1\n.*?)```", (REPO / "docs" / "evaluation.md").read_text("utf-8"), re.DOTALL
    )
    (tmp_path / "gate.yaml").write_text(text)
    assert len(load_gate(tmp_path / "gate.yaml")) == 4


def test_every_column_of_a_table_of_labels_is_told() -> None:
    text = (REPO / "docs" / "evaluation.md").read_text("utf-8")
    assert [name for name in (*labels._KNOWN, *labels._RENAMED) if f"`{name}`" not in text] == []


def test_every_command_stands_in_the_readme_or_docs() -> None:
    text = "\n".join(p.read_text("utf-8") for p in PAGES)
    assert [c for c in COMMANDS if f"triage {c}" not in text] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(REPO)))
def test_links_resolve(path) -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_each_proof_of_the_threat_model_is_there() -> None:
    named = set(re.findall(r"tests/[\w/.]*\w", (REPO / "docs" / "threat-model.md").read_text("utf-8")))
    assert len(named) > 15
    assert [name for name in sorted(named) if not (REPO / name).exists()] == []
