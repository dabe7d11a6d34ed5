"""A diagnosis as JSON, as text for a terminal or CI log, as markdown. Pure.

Text and markdown are made from the JSON object, so that a stored result prints the same years later.
"""

from triage.report.as_json import SCHEMA, folded_json, to_json, visible
from triage.report.folded import render_folded
from triage.report.markdown import render_markdown
from triage.report.text import render_text

__all__ = ["SCHEMA", "folded_json", "render_folded", "render_markdown", "render_text", "to_json", "visible"]
