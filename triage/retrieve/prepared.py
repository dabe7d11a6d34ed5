"""Vectors of the passages of the shipped incidents, made ahead: each new installation would embed the same ones first.

A vector is found by its text alone, so none can be out of date; a passage that was changed is embedded by the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from triage.retrieve.index import Vector


def key(text: str) -> bytes:
    """The name of a text; it has no lone surrogates."""
    return hashlib.sha256(text.encode()).digest()[:16]


def load(file: Path) -> Mapping[bytes, Vector]:
    """Vectors by `key`, float32 of length 1. Errors: what numpy raises for a file that is missing or damaged."""
    with np.load(file) as arrays:
        names, vectors = arrays["names"], arrays["vectors"].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {bytes(name): vector for name, vector in zip(names, vectors, strict=True)}


def save(file: Path, vectors: Mapping[bytes, Vector]) -> None:
    """In half precision: a cosine is off by less than 0.001. The same vectors give the same bytes."""
    ordered = sorted(vectors.items())
    names: np.ndarray[Any, Any] = np.array([list(name) for name, _ in ordered], np.uint8)
    np.savez(file, names=names, vectors=np.stack([vector for _, vector in ordered]).astype(np.float16))


def split(texts: Sequence[str], known: Mapping[bytes, Vector]) -> tuple[dict[int, Vector], list[int]]:
    """The vectors that are there, by place, and the places of the others."""
    found = {i: known[name] for i, text in enumerate(texts) if (name := key(text)) in known}
    return found, [i for i in range(len(texts)) if i not in found]
