"""Workers whose embedder answers 429, 500, garbage or nothing, and that are killed meanwhile.

In the end every passage has its vector, or is set aside if the embedder always refuses it. None is lost, and none is
embedded twice except in batches that a killed worker had in hand. Random choices follow from the seed.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.embedding_server import DIMENSIONS, EmbeddingAnswer, EmbeddingServer, embeddings, serving_embeddings
from tests.support.gateway import eventually
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import embedded_within, killed, remember, waiting, working

TIMEOUT_SECONDS = 3
"""Seconds in which the server of the test answers on a busy machine, unless the test delays it."""

TROUBLES: tuple[Callable[[random.Random], EmbeddingAnswer], ...] = (
    lambda chance: EmbeddingAnswer(b"", 429, {"Retry-After": str(chance.choice((0.2, 1)))}),
    lambda chance: EmbeddingAnswer(b"", 429),
    lambda chance: EmbeddingAnswer(b"", chance.choice((500, 502, 503))),
    lambda chance: EmbeddingAnswer(b'{"data": [{"index": 0, "embedding": "?"}]}'),
    lambda chance: embeddings((0, [1.0] * DIMENSIONS), (0, [1.0] * DIMENSIONS)),
    lambda chance: EmbeddingAnswer(b""),
)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving_embeddings() as server:
        yield server


@pytest.fixture
def remote(settings: Settings, server: EmbeddingServer) -> Settings:
    """Settings of a worker that uses the server, in batches of seven."""
    changed = {
        "embedder": "openai",
        "embedding_url": server.url,
        "embedding_dimensions": DIMENSIONS,
        "embedding_batch": 7,
        "embedding_timeout_seconds": TIMEOUT_SECONDS,
        "sweep_seconds": 1,
    }
    return settings.model_copy(update=changed)


async def refused(owner: asyncpg.Connection, caller: Caller) -> int:
    """Passages of the caller's tenant that were set aside."""
    query = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND refused IS NOT NULL"
    return int(await owner.fetchval(query, caller.tenant_id))


async def has_refused(owner: asyncpg.Connection, caller: Caller, number: int) -> bool:
    return await refused(owner, caller) == number


async def test_every_passage_is_embedded_in_the_end_or_set_aside(
    remote: Settings,
    server: EmbeddingServer,
    db: Database,
    new_tenant: NewTenant,
    owner: asyncpg.Connection,
    tmp_path: Path,
    seed: int,
) -> None:
    """Two tenants, one with a text that the embedder refuses; an embedder that misbehaves in runs; a worker killed."""
    chance = random.Random(seed)
    callers = [operator_caller(await new_tenant()) for _ in range(2)]
    people = [f"person {number}" for number in range(chance.randint(10, 40))]
    place = chance.randrange(len(people))
    await remember(db, callers[0], *people[:place], "poison", *people[place:])
    await remember(db, callers[1], *people)
    server.poison, server.mischief = "poison", mischief(chance, server)
    for _ in range(2):
        await killed(remote, tmp_path, chance, seconds=2)
    with working(remote, tmp_path), working(remote, tmp_path):
        await eventually(partial(has_refused, owner, callers[0], 2))
        assert await embedded_within(owner, callers[1])
        await eventually(partial(is_done, owner, callers[0]))
    assert await refused(owner, callers[1]) == 0
    for caller in callers:
        query = "SELECT count(*) FROM passage_vectors WHERE tenant_id = $1"
        assert await owner.fetchval(query, caller.tenant_id) == 2 * len(people)
    texts = {f"{person}: likes {liking}" for person in people for liking in ("coffee", "tea")}
    # Twice for two tenants; more often only where a worker was killed, or waited no longer, for the answer.
    assert all(server.vouched[text] >= 2 for text in texts)
    assert sum(server.vouched[text] - 2 for text in texts) <= 2 * 4 * 7


async def is_done(owner: asyncpg.Connection, caller: Caller) -> bool:
    return await waiting(owner, caller) == 2


def mischief(chance: random.Random, server: EmbeddingServer) -> Callable[[], EmbeddingAnswer | None]:
    """Make runs of requests fail in one way, or exceed the timeout, now and then."""
    left = 0
    trouble = TROUBLES[0]

    def decide() -> EmbeddingAnswer | None:
        nonlocal left, trouble
        server.seconds = 0
        if left == 0 and chance.random() < 0.1:
            left, trouble = chance.randint(1, 6), chance.choice(TROUBLES)
            if chance.random() < 0.15:
                left, server.seconds = 0, TIMEOUT_SECONDS + 1
        if left == 0:
            return None
        left -= 1
        return trouble(chance)

    return decide


async def test_a_worker_respects_the_retry_after_of_its_embedder(
    remote: Settings, server: EmbeddingServer, db: Database, caller: Caller, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    await remember(db, caller, "Alice")
    """It sweeps each second, and asks nothing in those of the pause."""
    server.answers = [EmbeddingAnswer(b"", 429, {"Retry-After": "6"})]
    with working(remote, tmp_path) as worker:
        await asyncio.to_thread(worker.wait_for, "embedding paused")
        server.answers = []
        assert await embedded_within(owner, caller)
        assert worker.lines("embedding paused")[0]["seconds"] == 6
        assert worker.stop() == 0
    refused, asked_again = server.requested_at[:2]
    assert asked_again - refused >= 6


@pytest.mark.timeout(1_500)  # In a soak run, filling and embedding the many takes minutes.
async def test_ten_passages_of_a_tenant_do_not_wait_for_the_many_of_another(
    remote: Settings,
    server: EmbeddingServer,
    db: Database,
    new_tenant: NewTenant,
    owner: asyncpg.Connection,
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    """Valkey is away, so no wake-up helps: the ten arrive while the worker embeds the many, and are done first."""
    many = 100_000 if pytestconfig.getoption("soak") else 3_000
    busy, other = [operator_caller(await new_tenant()) for _ in range(2)]
    for start in range(0, many // 2, 500):
        await remember(db, busy, *[f"person {number}" for number in range(start, start + 500)])
    server.seconds = 0.1
    alone = remote.model_copy(update={"redis_url": "redis://127.0.0.1:1/0", "embedding_batch": 25})
    with working(alone, tmp_path):
        assert await asyncio.to_thread(server.requested.wait, MAX_WAIT_SECONDS)
        await remember(db, other, *[f"friend {number}" for number in range(5)])
        assert await embedded_within(owner, other)
        left = await waiting(owner, busy)
        assert left > many / 3
        server.seconds = 0
        assert await embedded_within(owner, busy, MAX_WAIT_SECONDS + many / 100)
    assert all(count == 1 for text, count in server.vouched.items() if text.startswith(("person", "friend")))
