"""Any sentence-transformers model as an embedder. Needs the extra of that name; imported only when asked for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from triage.errors import IndexUnavailableError, UsageError
from triage.retrieve.embedding import first_line, readable
from triage.retrieve.index import Vector

_EXTRA = "pip install 'hpc-triage[sentence-transformers]'"


class SentenceTransformerEmbedder:
    """A model of the hub or of a folder, on the CPU. Errors: UsageError where it cannot be had."""

    def __init__(self, model: str, *, offline: bool = False) -> None:
        folder = Path(model).expanduser()
        local = folder.is_dir()
        os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
        if offline or local:
            os.environ["HF_HUB_OFFLINE"] = "1"
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging
        except ImportError as error:
            raise UsageError(f"embedding {model!r} needs sentence-transformers: {first_line(error)}", _EXTRA) from None
        logging.disable_progress_bar()
        logging.set_verbosity_error()
        try:
            self._model: Any = SentenceTransformer(
                str(folder) if local else model, device="cpu", local_files_only=offline or local
            )
        except Exception as error:
            hint = "give the path of a folder with the model" if offline else "check the name, or give a path"
            raise UsageError(f"embedding {model!r} cannot be loaded: {first_line(error)}", hint) from error
        self.name = f"{folder.name}-{_content(folder) if local else hashlib.sha256(model.encode()).hexdigest()[:12]}"
        self.dimension = len(self.embed(["size"])[0])

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        if not texts:
            return []
        cleaned = [readable(text) for text in texts]
        try:
            found = self._model.encode(cleaned, normalize_embeddings=True, show_progress_bar=False)
        except (RuntimeError, ValueError, IndexError) as error:
            raise IndexUnavailableError(f"the embedding model {self._model} failed: {first_line(error)}") from error
        return list(np.asarray(found, np.float32).reshape(len(cleaned), -1))


def _content(folder: Path) -> str:
    """Names the model in a folder by what it holds: weights changed in place are another model."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(65536))
            file.seek(max(0, path.stat().st_size - 65536))
            digest.update(file.read(65536))
    return digest.hexdigest()[:12]
