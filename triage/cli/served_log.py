"""What a process that serves writes to stderr: lines with their time, secrets replaced."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from triage.redact import redact


class _NoSecrets(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def to_stderr(levels: Mapping[str, int]) -> None:
    """levels: of each logger by name, the least that is written."""
    handler = logging.StreamHandler()
    handler.setFormatter(_NoSecrets("%(asctime)s %(levelname)s %(message)s"))
    for name, level in levels.items():
        log = logging.getLogger(name)
        log.addHandler(handler)
        log.setLevel(level)
        log.propagate = False
