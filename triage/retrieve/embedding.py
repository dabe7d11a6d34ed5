"""Text to vectors: the model that the package ships, on ONNX Runtime, or any sentence-transformers model.

The shipped model is all-MiniLM-L6-v2 (model/NOTICE), made by tools/build_embedding.py with int8 weights.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from triage.errors import IndexUnavailableError, UsageError
from triage.retrieve import prepared
from triage.retrieve.index import Vector

MINILM = "all-MiniLM-L6-v2-onnx-int8"
SENTENCE_TRANSFORMERS = "sentence-transformers:"
PREPARED = "passages.npz"  # in the model's folder
MAX_TOKENS = 256  # what the model was trained on
_MAX_CHARS = 8192  # more characters than 256 tokens of any log; spares the tokenizer lines of megabytes
_BATCH_TOKENS = 1024  # bounds memory: tokens of a batch, padding included
_THREADS = 4


class Embedder(Protocol):
    name: str  # of the model; vectors of two names are never compared
    dimension: int

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One float32 vector [dimension] of length 1 a text, in order."""


def load_embedder(name: str = MINILM, *, offline: bool = False) -> Embedder:
    """The embedder of the setting `embedding`. Errors: UsageError for a name that does not exist or cannot be had."""
    if name == MINILM:
        return MiniLM()
    if name.startswith(SENTENCE_TRANSFORMERS):
        from triage.retrieve.st import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(name.removeprefix(SENTENCE_TRANSFORMERS), offline=offline)
    raise UsageError(f"embedding is {name!r}", f"use {MINILM} or {SENTENCE_TRANSFORMERS}NAME_OR_PATH")


class MiniLM:
    """all-MiniLM-L6-v2 on ONNX Runtime, on the CPU, from files of the package; loads on first use."""

    name = MINILM
    dimension = 384

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(__file__).parent / "model"
        self._model: tuple[Any, Any] | None = None
        self._prepared: Mapping[bytes, Vector] | None = None

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """The model is asked, and loaded, only for texts of which there is no vector yet."""
        cleaned = [readable(text) for text in texts]
        found, missing = prepared.split(cleaned, self._known())
        if missing:
            found.update(zip(missing, self.compute([cleaned[i] for i in missing]), strict=True))
        return [found[i] for i in range(len(texts))]

    def compute(self, texts: Sequence[str]) -> list[Vector]:
        """The same by the model itself. texts: readable."""
        tokenizer, session = self._loaded()
        tokens = [encoded.ids for encoded in tokenizer.encode_batch(texts)]
        vectors: list[Vector] = [np.zeros(0, np.float32)] * len(texts)
        for batch in _batches([len(ids) for ids in tokens]):
            ids, mask = _padded([tokens[i] for i in batch])
            (found,) = session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})
            for i, vector in zip(batch, found, strict=True):
                vectors[i] = vector
        return vectors

    def _known(self) -> Mapping[bytes, Vector]:
        if self._prepared is None:
            with self._explained():
                self._prepared = prepared.load(self._folder / PREPARED)
        return self._prepared

    def _loaded(self) -> tuple[Any, Any]:
        if self._model is None:
            os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when onnxruntime is imported; it looks up hosts otherwise
            with self._explained():
                self._model = _tokenizer(self._folder), _session(self._folder)
        return self._model

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise IndexUnavailableError(
                f"the embedding model in {self._folder} cannot be loaded: {first_line(error)}",
                "install the package again, or set TRIAGE_EMBEDDING",
            ) from error


def _tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _session(folder: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # A number of our own: by default it takes a thread for each core of the host, also where a job may use two of them.
    options.intra_op_num_threads = min(_THREADS, cores())
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])


def cores() -> int:
    """Cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def readable(text: str) -> str:
    """Text that a tokenizer takes: bounded, no lone surrogates (they stand for bytes that were not UTF-8)."""
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def first_line(error: BaseException) -> str:
    """What an exception says, in one line of at most 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions in groups of like length, so that little is padded."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) + 1) * lengths[i] > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _padded(tokens: Sequence[Sequence[int]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    width = max(map(len, tokens))
    ids, mask = np.zeros((2, len(tokens), width), np.int64)
    for row, sequence in enumerate(tokens):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return ids, mask
