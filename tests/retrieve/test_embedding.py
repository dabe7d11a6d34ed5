"""The shipped model: whole, equal to what it was made from, quick, and silent on the network."""

from __future__ import annotations

import hashlib
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from triage import config
from triage.errors import IndexUnavailableError, UsageError
from triage.retrieve import embedding, prepared
from triage.retrieve.embedding import MINILM, PREPARED, MiniLM, load_embedder

REPO = Path(__file__).resolve().parents[2]
MODEL = Path(embedding.__file__).parent / "model"


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def test_the_shipped_files_are_those_of_the_build() -> None:
    sums = dict(reversed(line.split()) for line in (MODEL / "SHA256SUMS").read_text("utf-8").splitlines())
    assert sums.keys() == {"model.onnx", "tokenizer.json"}
    for name, expected in sums.items():
        assert hashlib.sha256((MODEL / name).read_bytes()).hexdigest() == expected, name
    assert "Apache License" in (MODEL / "NOTICE").read_text("utf-8")


def test_the_setting_names_the_shipped_model() -> None:
    assert load_embedder(config.DEFAULT_EMBEDDING).name == MINILM


def test_vectors_are_those_of_the_published_model(model: MiniLM) -> None:
    """Cosines that sentence-transformers itself gives for these pairs, with the published weights in float32."""
    pairs = {
        ("CUDA error: unknown error", "the GPU died with an unknown CUDA error"): 0.7653,
        ("Xid 79, GPU has fallen off the bus", "a graphics card is no longer enumerated"): 0.4677,
        ("training hangs without any error", "the job stopped making progress silently"): 0.4701,
        ("No space left on device", "the tokenizer could not be downloaded"): 0.2138,
    }
    for (one, other), expected in pairs.items():
        a, b = model.embed([one, other])
        assert float(a @ b) == pytest.approx(expected, abs=0.02), (one, other)


def test_vectors_are_float32_of_length_one_and_in_order(model: MiniLM) -> None:
    texts = ["short", "a much longer line " * 40, "", "short", "NCCL WARN Timeout", "ранг 3 завис", "\x00\x1b[31m"]
    vectors = model.embed(texts)
    assert len(vectors) == len(texts)
    for vector in vectors:
        assert vector.dtype == np.float32 and vector.shape == (model.dimension,)
        assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-4)
    assert np.allclose(vectors[0], vectors[3])
    for text, vector in zip(texts, vectors, strict=True):
        assert float(model.embed([text])[0] @ vector) > 0.995, f"{text!r} depends on what it was embedded with"
    assert model.embed([]) == []


def test_a_line_of_megabytes_and_bytes_that_are_no_utf8_are_taken(model: MiniLM) -> None:
    long, odd = model.embed(["error " * 500_000, b"rank \xff\xfe died".decode("utf-8", "surrogateescape")])
    assert float(long @ model.embed(["error " * 2000])[0]) > 0.999
    assert np.isfinite(odd).all()


def test_it_loads_in_time_and_asks_no_host() -> None:
    code = """
import sys, time
import triage.retrieve.embedding as e
hosts = []
sys.addaudithook(lambda event, args: hosts.append(args) if event in ("socket.connect", "socket.getaddrinfo") else None)
start = time.perf_counter()
e.MiniLM().embed(["a line"])
import os
assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
assert not hosts, hosts
print(time.perf_counter() - start)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(found.stdout) < 3, "0.15 s on two quiet cores; the room is for a busy machine"


def test_the_passages_of_the_shipped_incidents_have_their_vectors(model: MiniLM) -> None:
    texts = runpy.run_path(str(REPO / "tools" / "embed_incidents.py"))["texts"]()
    known = prepared.load(MODEL / PREPARED)
    assert known.keys() == set(map(prepared.key, texts)), "run: python tools/embed_incidents.py"
    assert (MODEL / PREPARED).stat().st_size < 300_000
    some = texts[::20]
    for text, vector in zip(some, model.compute(some), strict=True):
        assert float(known[prepared.key(text)] @ vector) > 0.995, text


def test_the_model_is_not_loaded_for_texts_that_have_a_vector(tmp_path: Path) -> None:
    text = runpy.run_path(str(REPO / "tools" / "embed_incidents.py"))["texts"]()[0]
    (tmp_path / PREPARED).write_bytes((MODEL / PREPARED).read_bytes())
    without_a_model = MiniLM(tmp_path)
    assert without_a_model.embed([text])[0].shape == (384,)
    with pytest.raises(IndexUnavailableError):
        without_a_model.embed([text, f"{text} "])


@pytest.mark.parametrize("name", ["model.onnx", PREPARED])
def test_a_broken_model_file_is_one_clear_line(tmp_path: Path, name: str) -> None:
    for other in ("tokenizer.json", "model.onnx", PREPARED):
        (tmp_path / other).write_bytes((MODEL / other).read_bytes()[: 1000 if other == name else None])
    with pytest.raises(IndexUnavailableError, match="install the package again") as caught:
        MiniLM(tmp_path).embed(["x"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "all-MiniLM", "openai:text-embedding-3"])
def test_an_unknown_name_says_what_there_is(name: str) -> None:
    with pytest.raises(UsageError, match=f"use {MINILM} or sentence-transformers:NAME_OR_PATH"):
        load_embedder(name)
