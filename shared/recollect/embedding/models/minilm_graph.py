"""MiniLM's encoder as a graph with integer matrix products, built from the package's file of weights.

That file holds each matrix as int8 with a scale per column, but multiplies in float32, which takes four times as
long. Here the activations become uint8 on the way (one scale per product) and the weights 7-bit: the sum of two
products then fits the 16 bits in which processors without VNNI instructions add them, so that all get the same result.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from recollect.embedding.models.onnx_graph import OURS, Array, OnnxGraphBuilder

_LAYERS = 6
_HEADS = 12
_EPSILON = 1e-12


def encoder(weights: bytes) -> bytes:
    """The graph: from `tokens`, int64 (1, n), to `states`, float32 (1, n, 384), the last layer, and `mean`, (1, 384),
    its mean over the tokens.

    `weights` is the package's ONNX file. It must have been checked: its names and their order are assumed.
    """
    parsed = Weights.of(weights)
    graph = OnnxGraphBuilder()
    states = _embedded(graph, parsed)
    for layer in range(_LAYERS):
        states = _layer(graph, parsed, states, layer)
    mean = graph.op("ReduceMean", states, graph.constant(np.array([1])), keepdims=0)
    tokens = ("tokens", TensorProto.INT64, (1, "n"))
    return graph.model("minilm", [tokens], states=(states, (1, "n", 384)), mean=(mean, (1, 384)))


def _embedded(graph: OnnxGraphBuilder, weights: "Weights") -> str:
    """The vector of each token, plus that of its position and of the one segment that there is."""
    table, positions = weights.tables
    steps = graph.op("Cast", graph.op("Gather", graph.constant(table.steps), "tokens"), to=TensorProto.FLOAT)
    scale = graph.op("Gather", graph.constant(table.scale), "tokens")
    first = graph.constant(np.array([0]))
    count = graph.op("Shape", "tokens", start=1, end=2)
    placed = graph.constant(positions.values() + weights.floats["embeddings.token_type_embeddings.weight"][0])
    states = graph.op("Add", graph.op("Mul", steps, scale), graph.op("Slice", placed, first, count, first))
    return _normalised(graph, weights, states, "embeddings.LayerNorm")


def _layer(graph: OnnxGraphBuilder, weights: "Weights", states: str, layer: int) -> str:
    query, key, value, out, up, down = weights.matrices[6 * layer : 6 * layer + 6]
    name = f"encoder.layer.{layer}"

    def product(states: str, matrix: Matrix, part: str) -> str:
        return _product(graph, states, matrix, weights.floats[f"{name}.{part}.bias"])

    attended = graph.op(
        "MultiHeadAttention",
        product(states, query, "attention.self.query"),
        product(states, key, "attention.self.key"),
        product(states, value, "attention.self.value"),
        domain=OURS,
        num_heads=_HEADS,
    )
    attended = graph.op("Add", states, product(attended, out, "attention.output.dense"))
    states = _normalised(graph, weights, attended, f"{name}.attention.output.LayerNorm")
    raised = graph.op("Gelu", product(states, up, "intermediate.dense"), domain=OURS)
    lowered = graph.op("Add", states, product(raised, down, "output.dense"))
    return _normalised(graph, weights, lowered, f"{name}.output.LayerNorm")


def _normalised(graph: OnnxGraphBuilder, weights: "Weights", states: str, name: str) -> str:
    weight, bias = (graph.constant(weights.floats[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.op("LayerNormalization", states, weight, bias, axis=-1, epsilon=_EPSILON)


@dataclass(frozen=True, slots=True)
class Matrix:
    """`steps * scale`: int8 steps, and a float32 scale per column (or per row, in a table of vectors)."""

    steps: Array
    scale: Array

    def values(self) -> Array:
        """The matrix as float32, of the shape of `steps`."""
        return self.steps * self.scale

    def seven_bit(self) -> Self:
        """The nearest with steps from -63 to 63."""
        steps = np.round(self.steps * np.float32(63 / 127)).astype(np.int8)
        return replace(self, steps=steps, scale=self.scale * np.float32(127 / 63))


@dataclass(frozen=True, slots=True)
class Weights:
    """The content of the file: the tables of tokens and positions, six matrices a layer, and the rest by name."""

    tables: list[Matrix]
    matrices: list[Matrix]
    floats: dict[str, Array]

    @classmethod
    def of(cls, file: bytes) -> Self:
        """Read the package's ONNX file."""
        tensors = onnx.load_from_string(file).graph.initializer
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
        stems = [name.removesuffix("_q") for name in arrays if name.endswith("_q")]
        matrices = [Matrix(arrays[f"{stem}_q"], arrays[f"{stem}_scale"]) for stem in stems]
        return cls(matrices[:2], matrices[2:], {name.removeprefix("inner."): array for name, array in arrays.items()})


def _product(graph: OnnxGraphBuilder, states: str, matrix: Matrix, bias: Array) -> str:
    """`states @ matrix + bias`, with `states` brought to uint8 by one scale for all of them."""
    narrow = matrix.seven_bit()
    steps, scale, added = (graph.constant(part) for part in (narrow.steps, narrow.scale.reshape(-1), bias))
    return graph.op("DynamicQuantizeMatMul", states, steps, scale, "", added, domain=OURS)
