"""The documents say what the program does: commands, settings, links."""

from __future__ import annotations

import re
import runpy

import pytest

from tests.conftest import REPO
from triage.cli.main import COMMANDS

PAGES = sorted([*REPO.glob("*.md"), *REPO.glob("docs/*.md"), *REPO.glob("benchmarks/*.md")])


def test_the_settings_page_is_made_from_the_code() -> None:
    page = runpy.run_path(str(REPO / "tools" / "settings_doc.py"))["page"]()
    assert (REPO / "docs" / "settings.md").read_text("utf-8") == page, "run: python tools/settings_doc.py"


def test_every_command_stands_in_the_readme_or_docs() -> None:
    text = "\n".join(p.read_text("utf-8") for p in PAGES)
    assert [c for c in COMMANDS if f"triage {c}" not in text] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(REPO)))
def test_links_resolve(path) -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []
