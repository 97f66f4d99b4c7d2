"""Finding the texts on which an embedder fails."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding import UNMEASURED, EmbeddingFailed, FailureCause, Vectors
from recollect.graph.passages.model import PendingPassage
from recollect_workers.bisect_failures import HARMLESS, EmbedOutcome, embed_bisecting
from recollect_workers.embedder_backoff import Backoff

TENANT = UUID(int=1)


class Picky:
    """An embedder that fails on the texts that `fails` names, as it says; its vectors are the texts' lengths."""

    model, dimensions, similarity_thresholds = "picky", 1, UNMEASURED

    def __init__(self, fails: Callable[[str], Exception | None]) -> None:
        self._fails = fails
        self.calls: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        for text in texts:
            if (failure := self._fails(text)) is not None:
                raise failure
        return np.array([[len(text)] for text in texts], np.float32)

    async def close(self) -> None:
        """Nothing to give back."""


def claimed(*texts: str) -> list[PendingPassage]:
    return [PendingPassage(uuid4(), datetime.now(UTC), text) for text in texts]


def outcome(embedder: Picky, passages: list[PendingPassage], seconds: float = 60) -> EmbedOutcome:
    return asyncio.run(embed_bisecting(embedder, passages, seconds=seconds))


def poisoned(text: str) -> Exception | None:
    return EmbeddingFailed("answered HTTP 400", cause=FailureCause.TEXT) if text.startswith("poison") else None


@given(st.lists(st.booleans(), max_size=40))
def test_each_text_is_embedded_unless_it_causes_the_failure(poison: list[bool]) -> None:
    passages = claimed(*[f"poison {n}" if bad else "x" * n for n, bad in enumerate(poison)])
    found = outcome(Picky(poisoned), passages)
    good = [passage for passage, bad in zip(passages, poison, strict=True) if not bad]
    assert found.ids == [passage.id for passage in good]
    assert found.vectors.tolist() == [[len(passage.text or "")] for passage in good]
    assert [failed.id for failed in found.failed] == [p.id for p, bad in zip(passages, poison, strict=True) if bad]
    assert {(failed.reason, failed.certain) for failed in found.failed} <= {("The embedder answered HTTP 400.", True)}
    assert (found.aborted_by, found.smallest_failed_group) == (None, None)


def test_one_failing_text_of_many_is_found_in_few_requests() -> None:
    embedder = Picky(poisoned)
    found = outcome(embedder, claimed(*[f"text {n}" for n in range(255)], "poison"))
    assert (len(found.ids), len(found.failed)) == (255, 1)
    assert len(embedder.calls) <= 3 * 9


@pytest.mark.parametrize("cause", list(FailureCause))
def test_no_text_is_blamed_where_the_embedder_fails_on_everything(cause: FailureCause) -> None:
    embedder = Picky(lambda _: EmbeddingFailed("answered nonsense", cause=cause))
    found = outcome(embedder, claimed("a", "b", "c"))
    assert (found.ids, found.failed) == ([], [])
    assert found.aborted_by is not None
    assert found.aborted_by.cause is cause
    assert len(embedder.calls) <= 2


def test_vectors_from_before_the_embedder_went_away_are_kept() -> None:
    calls: list[str] = []

    def fails(text: str) -> Exception | None:
        calls.append(text)
        if text == HARMLESS:
            return None
        return (
            EmbeddingFailed("broke")
            if len(calls) == 4
            else EmbeddingFailed("left", cause=FailureCause.UNREACHABLE)
            if len(calls) > 8
            else None
        )

    passages = claimed("a", "b", "c", "d", "e")
    found = outcome(Picky(fails), passages)
    assert found.aborted_by is not None
    assert found.ids == [passage.id for passage in passages[:2]]
    assert found.failed == []


def test_an_unexpected_error_is_reported_without_its_message() -> None:
    found = outcome(Picky(lambda text: ValueError(text) if text == "secret" else None), claimed("secret", "b"))
    assert [(failed.reason, failed.certain) for failed in found.failed] == [
        ("The embedder failed (ValueError).", False)
    ]


def test_no_group_is_divided_after_the_time_limit() -> None:
    found = outcome(Picky(poisoned), claimed("poison", "b", "c", "d"), seconds=0)
    assert (found.ids, found.failed, found.aborted_by, found.smallest_failed_group) == ([], [], None, 4)
    assert len(outcome(Picky(poisoned), claimed("poison"), seconds=0).failed) == 1


async def test_waits_grow_and_the_retry_after_of_the_embedder_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    backoff, failure = Backoff(), EmbeddingFailed("is away", cause=FailureCause.UNREACHABLE)
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    waits = []
    for _ in range(9):
        waits.append(backoff.note_failure(failure))
        now += 1_000
    assert all(2**n / 2 <= wait <= 2**n for n, wait in enumerate(waits[:6]))
    assert all(30 <= wait <= 60 for wait in waits[6:])
    backoff.note_success()
    assert backoff.note_failure(EmbeddingFailed("is busy", cause=FailureCause.UNREACHABLE, retry_after=7)) == 7
    now += 1_000
    assert backoff.note_failure(EmbeddingFailed("is busy", cause=FailureCause.UNREACHABLE, retry_after=1e9)) == 600


async def test_simultaneous_failures_count_once() -> None:
    backoff = Backoff()
    assert not backoff.waiting
    for _ in range(8):
        assert backoff.note_failure(EmbeddingFailed("is away", cause=FailureCause.UNREACHABLE)) <= 1
        assert backoff.waiting


def test_a_batch_that_took_too_long_is_halved_and_grows_again() -> None:
    backoff = Backoff()
    assert backoff.batch(TENANT, 256) == 256
    backoff.shrink(TENANT, 64)
    assert backoff.batch(TENANT, 256) == 32
    backoff.shrink(TENANT, 1)
    assert backoff.batch(TENANT, 256) == 1
    assert backoff.batch(UUID(int=2), 256) == 256
    for _ in range(8):
        backoff.grow(TENANT, 256)
    assert backoff.batch(TENANT, 256) == 256
