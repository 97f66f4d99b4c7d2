"""`python -m tests.support.minilm_original FOLDER`: the package's MiniLM beside the original, and vectors to compare.

FOLDER holds `model.safetensors` and `tokenizer.json` of sentence-transformers/all-MiniLM-L6-v2, from wherever they can
be had: the hash says whether they are the ones. It checks that every matrix of the package is the original one brought
to the nearest of 255 steps a column, and everything else equal to it, then writes tests/fixtures/minilm_float32.jsonl
anew: the texts that are in it, their tokens and their vectors, by a forward pass of its own in float64.
"""

import base64
import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from tokenizers import Tokenizer

from recollect.embedding.models.minilm import checked_weights
from recollect.embedding.models.minilm_graph import Matrix, Weights

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
RECORDED = Path(__file__).parents[1] / "fixtures" / "minilm_float32.jsonl"
PARTS = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
MATRICES = [f"encoder.layer.{i}.{part}" for i in range(6) for part in (*PARTS, "intermediate.dense", "output.dense")]
POOLER = {"pooler.dense.weight", "pooler.dense.bias"}
"""Weights for the original task of BERT, which mean pooling does not need."""

Array = NDArray[np.floating[Any]]


def main(folder: Path) -> None:
    file = (folder / "model.safetensors").read_bytes()
    assert hashlib.sha256(file).hexdigest() == SHA256, "not the weights that were published"
    original = load(file)
    compare(original, Weights.of(checked_weights()))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    texts = [json.loads(line)["text"] for line in RECORDED.read_text().splitlines()]
    RECORDED.write_text("".join(recorded(text, tokenizer.encode(text).ids, original) + "\n" for text in texts))
    print(f"{len(original)} tensors compared, {len(texts)} vectors written")


def compare(original: dict[str, Array], ours: Weights) -> None:
    """Raises AssertionError where the package's weights are not the original ones, rounded."""
    tables = [original[f"embeddings.{table}_embeddings.weight"] for table in ("word", "position")]
    for table, matrix in zip(tables, ours.tables, strict=True):
        assert_nearest(table, matrix)
    for name, matrix in zip(MATRICES, ours.matrices, strict=True):
        assert_nearest(original[f"{name}.weight"].T, matrix)
    rounded = {f"{name}.weight" for name in MATRICES}
    rounded |= {"embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"}
    for name in original.keys() - rounded - POOLER:
        assert np.array_equal(original[name].reshape(-1), ours.floats[name].reshape(-1)), name


def assert_nearest(original: Array, matrix: Matrix) -> None:
    assert original.shape == matrix.steps.shape
    assert (np.abs(original - matrix.values()) / matrix.scale).max() < 0.5001


def recorded(text: str, tokens: list[int], original: dict[str, Array]) -> str:
    vector = base64.b64encode(embedded(tokens, original).astype("<f2").tobytes()).decode()
    return json.dumps({"text": text, "tokens": tokens, "vector": vector}, ensure_ascii=False)


def embedded(tokens: list[int], original: dict[str, Array]) -> Array:
    """BERT (Devlin et al. 2019), then the mean over the tokens, of length one."""

    def linear(states: Array, name: str) -> Array:
        weights: Array = original[f"{name}.weight"].T.astype(np.float64)
        return states @ weights + original[f"{name}.bias"]

    def normalised(states: Array, name: str) -> Array:
        centred = states - states.mean(-1, keepdims=True)
        spread: Array = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        scaled: Array = centred / spread * original[f"{name}.weight"]
        return scaled + original[f"{name}.bias"]

    def heads(states: Array) -> Array:
        apart: Array = states.reshape(len(tokens), 12, 32).transpose(1, 0, 2)
        return apart

    token, position, segment = (original[f"embeddings.{it}_embeddings.weight"] for it in TABLES)
    states = normalised(token[tokens].astype(np.float64) + position[: len(tokens)] + segment[0], "embeddings.LayerNorm")
    for name in (f"encoder.layer.{layer}" for layer in range(6)):
        query, key, value = (heads(linear(states, f"{name}.{part}")) for part in PARTS[:3])
        weights = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(32))
        attended = (weights / weights.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(states.shape)
        attended = states + linear(attended, f"{name}.attention.output.dense")
        states = normalised(attended, f"{name}.attention.output.LayerNorm")
        raised = linear(states, f"{name}.intermediate.dense")
        raised = raised * 0.5 * (1 + ERF(raised / math.sqrt(2)))
        states = normalised(states + linear(raised, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    mean = states.mean(0)
    return np.asarray(mean / np.linalg.norm(mean))


TABLES = ("word", "position", "token_type")
ERF = np.vectorize(math.erf, otypes=[np.float64])

if __name__ == "__main__":
    main(Path(sys.argv[1]))
