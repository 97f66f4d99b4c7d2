"""The Universal Sentence Encoder's graph, built from the package's arrays: a convolutional network over tokens.

Yang et al. 2020 (Multilingual Universal Sentence Encoder for Semantic Retrieval); the encoder of the convolutional
variant. Three branches look at 2, 3 and 5 tokens at a time, each twice; their sum over a text goes through a small
network. The table of tokens stays outside of the graph.
"""

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto

from recollect.embedding.models.onnx_graph import Array, OnnxGraphBuilder

_BRANCHES = {2: (0, 1), 3: (1, 1), 5: (2, 2)}
"""By how many tokens a branch looks at: how many of them come before and after."""

_EPSILON = 1e-12


def encoder(arrays: Mapping[str, Array]) -> bytes:
    """The graph: from `tokens`, float32 (n, 512), their vectors, to `sentence`, (1, 512), not yet of length one."""
    graph = OnnxGraphBuilder()
    features = [_branch(graph, arrays, width) for width in _BRANCHES]
    states = graph.op("Concat", "tokens", *features, axis=1)
    states = _normalised(graph, states, arrays["ln_g"], arrays["ln_b"])
    sentence = _dense(graph, arrays, _summed(graph, arrays, states))
    return graph.model("use", [("tokens", TensorProto.FLOAT, ("n", 512))], sentence=(sentence, (1, 512)))


def _branch(graph: OnnxGraphBuilder, arrays: Mapping[str, Array], width: int) -> str:
    states = graph.op("MatMul", "tokens", graph.constant(arrays[f"proj{width}"]))
    states = graph.op("Add", states, graph.constant(arrays[f"proj_b{width}"]))
    states = _normalised(graph, states, arrays[f"ln_g{width}"], arrays[f"ln_b{width}"])
    channels = graph.op("Unsqueeze", graph.op("Transpose", states, perm=[1, 0]), graph.constant(np.array([0])))
    for layer in (1, 2):
        channels = _convolved(graph, channels, arrays[f"w{layer}_{width}"], arrays[f"b{layer}_{width}"], width)
    return graph.op("Transpose", graph.op("Squeeze", channels, graph.constant(np.array([0]))), perm=[1, 0])


def _convolved(graph: OnnxGraphBuilder, channels: str, weights: Array, bias: Array, width: int) -> str:
    kernel = weights.reshape(width, 256, 256).transpose(2, 1, 0)
    seen = graph.op("Conv", channels, graph.constant(kernel), graph.constant(bias), pads=_BRANCHES[width])
    return graph.op("Add", graph.op("Relu", seen), channels)


def _summed(graph: OnnxGraphBuilder, arrays: Mapping[str, Array], states: str) -> str:
    """The projection of the states, summed over the tokens and divided by the square root of their number."""
    count = graph.op("Cast", graph.op("Shape", states, start=0, end=1), to=TensorProto.FLOAT)
    total = graph.op("ReduceSum", states, graph.constant(np.array([0])), keepdims=1)
    total = graph.op("MatMul", total, graph.constant(arrays["cnn_W"]))
    total = graph.op("Add", total, graph.op("Mul", graph.constant(arrays["cnn_b"]), count))
    return graph.op("Div", total, graph.op("Sqrt", count))


def _dense(graph: OnnxGraphBuilder, arrays: Mapping[str, Array], summed: str) -> str:
    """The network at the end, whose second and fourth layers also get what the layer before them got."""

    def product(states: str, name: str) -> str:
        return graph.op("MatMul", states, graph.constant(arrays[name]))

    first = graph.op("Relu", product(summed, "d0"))
    second = graph.op("Relu", graph.op("Add", product(first, "d1"), product(summed, "p1")))
    third = graph.op("Relu", product(second, "d2"))
    return graph.op("Tanh", graph.op("Add", product(third, "d3"), product(second, "p3")))


def _normalised(graph: OnnxGraphBuilder, states: str, weight: Array, bias: Array) -> str:
    scale, added = graph.constant(weight), graph.constant(bias)
    return graph.op("LayerNormalization", states, scale, added, axis=-1, epsilon=_EPSILON)
