"""The folders whose logs `triage serve` may be pointed to."""

from __future__ import annotations

import os
from pathlib import Path

from triage.config import Settings
from triage.roots import roots_of

SETTING = "TRIAGE_SERVE_ROOTS"


def roots(chosen: Settings) -> tuple[Path, ...]:
    """Errors: UsageError for one that is no folder."""
    return roots_of([name for name in chosen.serve_roots.split(os.pathsep) if name], SETTING)
