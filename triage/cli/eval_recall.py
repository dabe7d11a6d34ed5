"""As eval_workers, where past incidents are looked for besides: the libraries of the index take a second to import."""

from __future__ import annotations

import contextlib

with contextlib.suppress(Exception):  # each worker meets it again, and does without the index
    import chromadb.api.rust  # noqa: F401
    import sqlalchemy.orm  # noqa: F401
    import tokenizers  # noqa: F401

    from triage import kb
    from triage.cli import recalling  # noqa: F401
    from triage.retrieve import retriever  # noqa: F401

    kb.known_incidents()
