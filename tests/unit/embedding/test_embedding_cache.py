"""The cache of question vectors: its bounds, single flight, and what is never cached."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding import UNMEASURED, Embedded, TokenBits, Vectors
from recollect.embedding.cache import MAX_CHARACTERS, CachedEmbedder, LruRows
from recollect.errors import ErrorCode, Unavailable

DIMENSIONS = 4
TENANT, OTHER = UUID(int=1), UUID(int=2)


class RecordingEmbedder:
    """An embedder that records its requests, and answers when `gate` is open; "bad" texts fail."""

    model = "recording"
    dimensions = DIMENSIONS
    similarity_thresholds = UNMEASURED

    def __init__(self) -> None:
        self.requested: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.closed = False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.requested.append(list(texts))
        await self.gate.wait()
        if "bad" in texts:
            raise Unavailable("away", code=ErrorCode.EMBEDDER_UNAVAILABLE)
        return np.array([vector_of(text) for text in texts], np.float32).reshape(len(texts), DIMENSIONS)

    async def close(self) -> None:
        self.closed = True


def vector_of(text: str) -> list[float]:
    return [float(len(text)), float(sum(map(ord, text)) % 997), 1.0, 0.0]


def cached(embedder: RecordingEmbedder, *, max_entries: int = 100, max_bytes: int = 100_000) -> CachedEmbedder:
    return CachedEmbedder(embedder, max_entries=max_entries, max_bytes=max_bytes)


async def test_a_text_is_embedded_once_and_rows_keep_the_order_of_the_texts() -> None:
    inner = RecordingEmbedder()
    cache = cached(inner)
    for texts in (["tea", "rain"], ["rain", "sun", "rain"], ["sun"], []):
        rows = await cache.embed(TENANT, texts)
        assert rows.shape == (len(texts), DIMENSIONS)
        assert rows.tolist() == [vector_of(text) for text in texts]
        rows.fill(0)  # The caller's own: what is remembered stays.
    assert inner.requested == [["tea", "rain"], ["sun"]]
    assert (cache.tallies.of(TENANT).hits, cache.tallies.of(TENANT).misses) == (2, 3)


class TokenwiseEmbedder(RecordingEmbedder):
    """An embedder that returns token vectors, too: as many as a text has letters."""

    async def embed_questions(self, texts: Sequence[str]) -> Embedded[Vectors]:
        tokens = [np.full((len(text), DIMENSIONS), len(text), np.float32) for text in texts]
        return Embedded(await self.embed(texts), tokens)

    async def embed_passages(self, texts: Sequence[str]) -> Embedded[TokenBits]:
        raise NotImplementedError("questions are not kept")


async def test_the_token_vectors_of_a_question_are_cached_with_its_vector() -> None:
    inner = TokenwiseEmbedder()
    cache = cached(inner).of(TENANT)
    for _ in range(2):
        embedded = await cache.embed_questions(["tea", ""])
        assert embedded.vectors.tolist() == [vector_of("tea"), vector_of("")]
        assert [tokens.tolist() for tokens in embedded.tokens] == [[[3.0] * DIMENSIONS] * 3, []]
        embedded.tokens[0].fill(0)  # The caller's own.
    assert inner.requested == [["tea", ""]]
    assert [len(tokens) for tokens in (await cached(RecordingEmbedder()).embed_questions(TENANT, ["tea"])).tokens] == [
        0
    ]


async def test_equal_texts_requested_at_once_are_embedded_once() -> None:
    inner = RecordingEmbedder()
    cache = cached(inner)
    inner.gate.clear()
    calls = [asyncio.create_task(cache.embed(TENANT, texts)) for texts in (["tea", "rain"], ["tea"], ["rain", "sun"])]
    await asyncio.sleep(0.01)
    assert inner.requested == [["tea", "rain"], ["sun"]]
    inner.gate.set()
    answers = await asyncio.gather(*calls)
    assert [rows.tolist() for rows in answers] == [
        [vector_of("tea"), vector_of("rain")],
        [vector_of("tea")],
        [vector_of("rain"), vector_of("sun")],
    ]


async def test_a_cancelled_call_does_not_cancel_others_for_the_same_text() -> None:
    inner = RecordingEmbedder()
    cache = cached(inner)
    inner.gate.clear()
    first, second = (asyncio.create_task(cache.embed(TENANT, ["tea"])) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.sleep(0.01)
    inner.gate.set()
    assert (await second).tolist() == [vector_of("tea")]
    assert first.cancelled()
    assert inner.requested == [["tea"]]


async def test_a_failure_reaches_all_waiting_calls_and_is_not_cached() -> None:
    inner = RecordingEmbedder()
    cache = cached(inner)
    for _ in range(2):
        answers = await asyncio.gather(
            cache.embed(TENANT, ["bad"]), cache.embed(TENANT, ["bad"]), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [Unavailable, Unavailable]
    assert inner.requested == [["bad"], ["bad"]]
    assert cache.recent.entries() == {}


async def test_a_text_longer_than_a_question_is_not_cached() -> None:
    inner = RecordingEmbedder()
    cache = cached(inner)
    for _ in range(2):
        await cache.embed(TENANT, ["x" * (MAX_CHARACTERS + 1)])
        await cache.embed(TENANT, ["y" * MAX_CHARACTERS])
    assert [len(texts[0]) for texts in inner.requested] == [MAX_CHARACTERS + 1, MAX_CHARACTERS, MAX_CHARACTERS + 1]


async def test_closing_cancels_pending_calls_and_closes_the_embedder() -> None:
    inner = RecordingEmbedder()
    cache = cached(inner)
    inner.gate.clear()
    waiting = asyncio.create_task(cache.embed(TENANT, ["tea"]))
    await asyncio.sleep(0.01)
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert inner.closed


async def test_the_least_recently_used_text_is_evicted_first() -> None:
    inner = RecordingEmbedder()
    cache = cached(inner, max_entries=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await cache.embed(TENANT, [text])
    assert inner.requested == [["a"], ["b"], ["c"], ["b"]]


async def test_one_call_may_have_more_texts_than_the_cache_keeps() -> None:
    cache = cached(RecordingEmbedder(), max_entries=2)
    texts = [str(number) for number in range(10)]
    assert (await cache.embed(TENANT, texts)).tolist() == [vector_of(text) for text in texts]
    assert cache.recent.size(TENANT) == 2


async def test_each_tenant_has_its_text_embedded_for_itself() -> None:
    """Also while the other tenant's vector is cached or being computed."""
    inner = RecordingEmbedder()
    cache = cached(inner)
    inner.gate.clear()
    both = [asyncio.create_task(cache.of(tenant).embed(["tea"])) for tenant in (TENANT, OTHER)]
    await asyncio.sleep(0.01)
    assert inner.requested == [["tea"], ["tea"]]
    inner.gate.set()
    await asyncio.gather(*both)
    await cache.of(TENANT).embed(["rain"])
    await cache.of(OTHER).embed(["rain"])
    assert inner.requested[2:] == [["rain"], ["rain"]]
    await cache.of(TENANT).embed(["rain"])
    assert [cache.tallies.of(tenant).hits for tenant in (TENANT, OTHER)] == [1, 0]
    assert [cache.recent.size(tenant) for tenant in (TENANT, OTHER)] == [2, 2]


async def test_a_tenant_with_many_texts_evicts_its_own() -> None:
    inner = RecordingEmbedder()
    cache = cached(inner, max_entries=5)
    await cache.embed(OTHER, ["mine"])
    for number in range(100):
        await cache.embed(TENANT, [str(number)])
    asked = len(inner.requested)
    await cache.embed(OTHER, ["mine"])
    assert len(inner.requested) == asked
    assert (cache.recent.size(TENANT), cache.recent.size(OTHER)) == (5, 1)


@pytest.mark.proves("graph-contract: caches")
@given(
    st.lists(
        st.tuples(st.sampled_from([TENANT, OTHER]), st.text("ab", max_size=3), st.integers(0, 12), st.booleans()),
        max_size=40,
    ),
    st.integers(1, 5),
    st.integers(0, 200),
)
def test_the_bounds_hold_after_every_step(
    steps: list[tuple[UUID, str, int, bool]], max_entries: int, max_bytes: int
) -> None:
    recent = LruRows(max_entries, max_bytes)
    for tenant, text, length, put in steps:
        if put:
            recent.put((tenant, "model", text), np.zeros(length, np.float32))
        else:
            recent.get((tenant, "model", text))
        entries = recent.entries()
        held = sum(kept.row.nbytes + 4 * (len(key[1]) + len(key[2])) for key, kept in entries.items())
        assert recent.bytes == held <= max_bytes
        for each in (TENANT, OTHER):
            assert recent.size(each) == len([key for key in entries if key[0] == each]) <= max_entries


def test_a_row_larger_than_the_cache_evicts_nothing() -> None:
    recent = LruRows(10, 100)
    for length, kept in ((2, {"small", "grows"}), (100, {"small"})):
        recent.put((TENANT, "", "small"), np.zeros(1, np.float32))
        recent.put((TENANT, "", "grows"), np.zeros(length, np.float32))
        assert {text for _, _, text in recent.entries()} == kept
