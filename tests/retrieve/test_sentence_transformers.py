"""Any sentence-transformers model behind the same interface, proved with a tiny random one that the test makes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from triage.domain import KnownIncident
from triage.errors import UsageError
from triage.retrieve.embedding import load_embedder
from triage.retrieve.rank import Query
from triage.retrieve.retriever import open_retriever

WIDTH = 24


def make_model(folder: Path, seed: int) -> Path:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(seed)
    folder.mkdir(parents=True)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), "utf-8")
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder / "bert")
    word = Transformer(str(folder / "bert"), max_seq_length=64)
    SentenceTransformer(modules=[word, Pooling(WIDTH)], device="cpu").save(str(folder / "model"))
    return folder / "model"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("tiny") / "one", seed=1)


@pytest.mark.torch
def test_vectors_have_the_shape_and_length_that_the_index_needs(tiny: Path) -> None:
    embedder = load_embedder(f"sentence-transformers:{tiny}", offline=True)
    assert embedder.dimension == WIDTH
    vectors = embedder.embed(["nccl timeout", "", "disk full " * 5000, b"\xff odd".decode("utf-8", "surrogateescape")])
    assert len(vectors) == 4
    for vector in vectors:
        assert vector.dtype == np.float32 and vector.shape == (WIDTH,)
        assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-4)
    assert np.allclose(vectors[0], embedder.embed(["nccl timeout"])[0], atol=1e-4)
    assert embedder.embed([]) == []


@pytest.mark.torch
def test_it_finds_incidents_and_keeps_apart_from_another_model(tiny: Path, tmp_path: Path) -> None:
    known = [
        KnownIncident(name, "", "", name, "unknown", "unknown", (), text, (), text, ())
        for name, text in (("a", "link flap on the fabric"), ("b", "no space left on the disk"))
    ]
    home = tmp_path / "home"
    other = make_model(tmp_path / "two", seed=2)
    for folder in (tiny, other):
        retriever = open_retriever(home, "", f"sentence-transformers:{folder}", known)
        assert retriever.sync() == 2, "each model fills a collection of its own"
        found = retriever.cosines(Query("b. no space left on the disk"))
        # A random model knows no meaning; it does know a text that it has seen.
        assert max(found, key=found.__getitem__) == "b" and found["b"] == pytest.approx(1, abs=1e-3)
    assert open_retriever(home, "", f"sentence-transformers:{tiny}", known).sync() == 0


@pytest.mark.torch
def test_weights_changed_in_place_are_another_model(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "one", seed=1)
    before = load_embedder(f"sentence-transformers:{folder}").name
    make_model(tmp_path / "two", seed=2)
    weights = next(path for path in folder.rglob("*.safetensors"))
    weights.write_bytes(next((tmp_path / "two" / "model").rglob("*.safetensors")).read_bytes())
    assert load_embedder(f"sentence-transformers:{folder}").name != before


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["missing", "empty"])
def test_a_model_that_is_not_there_is_one_clear_line(kind: str, tmp_path: Path) -> None:
    if kind == "empty":
        (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="cannot be loaded") as caught:
        load_embedder(f"sentence-transformers:{tmp_path / kind}", offline=True)
    assert "\n" not in str(caught.value)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UsageError, match=r"pip install 'hpc-triage\[sentence-transformers\]'"):
        load_embedder(f"sentence-transformers:{tmp_path}")


def test_the_default_never_imports_torch() -> None:
    import subprocess

    code = "from triage.retrieve.embedding import load_embedder as l; l().embed(['x']); import sys; print('torch' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert found.stdout == "False\n"
