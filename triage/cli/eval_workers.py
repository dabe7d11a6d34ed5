"""Imported by the process from which all workers of an evaluation are forked: what they share is made there once.

Nothing that starts a thread or holds a file open may be made here, for a fork would not have it.
"""

from __future__ import annotations

import contextlib

with contextlib.suppress(Exception):  # whatever is wrong is met again by each worker, which says it
    from triage import kb, pipeline
    from triage.cli import asking, wiring  # noqa: F401
    from triage.evaluation import baselines, worker  # noqa: F401

    pipeline.compiled(kb.filter_rules(), wiring.knowledge().matcher)
