"""Write docs/settings.md from the settings themselves: `python tools/settings_doc.py`."""

from __future__ import annotations

from pathlib import Path

from triage.config import SETTINGS

TARGET = Path(__file__).resolve().parents[1] / "docs" / "settings.md"


def page() -> str:
    rows = [
        f"| `TRIAGE_{s.name.upper()}` | `{s.name}` | {s.help} | {f'`{s.default}`' if s.default else ''} |"
        for s in SETTINGS
    ]
    return "\n".join(
        [
            "# Settings",
            "",
            "Made by `python tools/settings_doc.py` from triage/config/table.py. Flags win over the environment, the environment over `triage.toml` in the",
            "working folder, that over `triage.toml` in the user's config folder.",
            "",
            "| variable | in triage.toml | what | default |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
