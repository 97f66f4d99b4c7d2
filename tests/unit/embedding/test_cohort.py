"""The cosines that an answer needs depend on how near its question is to memories in general."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from recollect.embedding import MeasuredEmbedder, MiniLMEmbedder, SimilarityThresholds, thresholds_of
from recollect.embedding.cache import CachedEmbedder
from recollect.embedding.models.cohort import COHORT, nearness_to_cohort
from tests.support.embedders import loaded_minilm
from tests.unit.embedding.test_embedding_cache import TENANT

NEAR_TO_ALL = "When is the user's meeting?"
NEAR_TO_NONE = "Which gabbro did Thandeka hammer?"
GERMAN = "Wann ist die Besprechung mit der Bank?"


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    return loaded_minilm()


async def _of(embedder: MiniLMEmbedder, question: str) -> SimilarityThresholds:
    [vector] = await embedder.embed([question])
    return await thresholds_of(embedder, question, vector)


async def test_a_question_that_is_near_to_anything_needs_a_nearer_answer(embedder: MiniLMEmbedder) -> None:
    usual = embedder.similarity_thresholds
    general, special = await _of(embedder, NEAR_TO_ALL), await _of(embedder, NEAR_TO_NONE)
    assert general.best > usual.best > special.best >= usual.meaning
    assert (general.best_turn or 0) > (usual.best_turn or 0) > (special.best_turn or 0)
    filtered = [thresholds.under_filter() for thresholds in (general, usual, special)]
    assert filtered[0].best > filtered[1].best == filtered[2].best == usual.meaning
    assert replace(general, best=0, best_turn=0, best_narrowed=0) == replace(
        usual, best=0, best_turn=0, best_narrowed=0
    ), "all else stays"


async def test_the_cohort_is_english_and_says_nothing_of_other_languages(embedder: MiniLMEmbedder) -> None:
    assert await _of(embedder, GERMAN) == embedder.similarity_thresholds


async def test_without_a_vector_the_usual_cosines_count(embedder: MiniLMEmbedder) -> None:
    assert await thresholds_of(embedder, NEAR_TO_ALL) == embedder.similarity_thresholds


async def test_they_are_the_same_behind_a_cache(embedder: MiniLMEmbedder) -> None:
    cached = CachedEmbedder(MeasuredEmbedder(embedder, "minilm"), max_entries=10, max_bytes=100_000).of(TENANT)
    [vector] = await cached.embed([NEAR_TO_ALL])
    assert await thresholds_of(cached, NEAR_TO_ALL, vector) == await _of(embedder, NEAR_TO_ALL)


async def test_the_cohort_is_embedded_once(embedder: MiniLMEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "_cohort", None)
    embedded: list[int] = []
    embed_passages = embedder.embed_passages

    async def counted(texts: list[str]) -> object:
        embedded.append(len(texts))
        return await embed_passages(texts)

    monkeypatch.setattr(embedder, "embed_passages", counted)
    [vector] = (await embedder.embed_questions([NEAR_TO_ALL])).vectors
    await asyncio.gather(*(embedder.thresholds_of(NEAR_TO_ALL, vector) for _ in range(3)))
    assert embedded == [len(COHORT)]


def test_nearness_is_the_mean_of_the_nearest_of_the_cohort() -> None:
    cosines = np.linspace(0, 1, 101, dtype=np.float32)
    cohort = np.column_stack([cosines, np.zeros_like(cosines)])
    assert nearness_to_cohort(np.array([1, 0], np.float32), cohort) == pytest.approx(np.mean(cosines[-20:]))


def test_no_shift_leads_below_the_cosine_of_any_memory() -> None:
    thresholds = SimilarityThresholds(meaning=0.25, best=0.3, best_turn=0.41)
    lower, higher = thresholds.shifted(-0.1), thresholds.shifted(0.1)
    assert (lower.best, lower.best_turn, lower.under_filter().best) == pytest.approx((0.25, 0.31, 0.25))
    assert (higher.best, higher.best_turn, higher.under_filter().best) == pytest.approx((0.4, 0.51, 0.35))
    assert SimilarityThresholds(meaning=0.25, best=0.3).shifted(0.1).best_turn == pytest.approx(0.4)


def test_under_a_filter_any_memory_needs_the_same_and_the_best_no_less() -> None:
    of_two, of_one = (
        SimilarityThresholds(meaning=0.2, best=0.25, best_turn=0.4, narrowed=each) for each in (0.22, None)
    )
    for thresholds, least in ((of_two, 0.22), (of_one, 0.2)):
        for shift, best in ((0.0, least), (-0.1, least), (0.1, least + 0.1)):
            filtered = thresholds.shifted(shift).under_filter()
            assert (filtered.meaning, filtered.best, filtered.best_turn) == pytest.approx((least, best, best))
        assert thresholds.under_filter().best == least


def test_the_cohort_has_no_text_twice() -> None:
    assert len(COHORT) == len({text.casefold() for text in COHORT}) > 200
    assert all(text == text.strip() != "" for text in COHORT)
