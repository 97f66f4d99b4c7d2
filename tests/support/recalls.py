"""Recall as a gateway does it, with the cache and without it, in one snapshot."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.cache import Lookup, RecallCache, encode, key_material
from recollect.retrieval.recall.model import Recalled, RecallFilter
from recollect.retrieval.recall.ranking import RankedPassage
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.shared_cache import SharedCache
from tests.support.memories import embedded_questions

SECRET = b"of these tests"


@dataclass(frozen=True)
class Twice:
    """One recall, answered with the cache and without it."""

    cached: Recalled
    searched: Recalled
    lookup: Lookup | None

    @property
    def hits(self) -> int:
        """The number of questions that the cache answered."""
        return self.lookup.hits if self.lookup else 0

    @property
    def texts(self) -> list[str]:
        """The texts that were found, best first."""
        return [hit.text for hit in self.cached.hits]


@dataclass(frozen=True)
class RecallStack:
    """The parts of a gateway: a pool, a connection to Redis, and a cache."""

    db: Database
    redis: Redis
    cache: RecallCache

    async def recall(self, caller: Caller, *texts: str, graph: str | None = None, **only: Any) -> Twice:
        """Recall as a tool does, and, in the same snapshot, without the cache."""
        questions, wanted = await embedded_questions(*texts), RecallFilter(**only)
        lookup = await self.cache.look_up(caller, graph or caller.default_graph, questions, wanted)
        async with self.db.transaction(caller, read_only=True) as tx:
            cached, searched = [
                await recall.recall(
                    await graphs.view(tx, graph), questions, wanted, limit=100, token_budget=50_000, cached=known
                )
                for known in (lookup, None)
            ]
        self.cache.store(lookup)
        await self.cache.shared.settle()
        return Twice(cached, searched, lookup)

    async def cached(self, caller: Caller, *texts: str, **only: Any) -> list[str]:
        """The cached answer, once there is one: asserts that it equals the result of a search."""
        for _ in range(2):
            await self.recall(caller, *texts, **only)
        answer = await self.recall(caller, *texts, **only)
        assert answer.cached == answer.searched
        assert answer.hits == len(texts)
        return answer.texts

    async def keys(self, caller: Caller) -> list[bytes]:
        """The keys of the tenant's values in Redis."""
        return sorted(await self.redis.keys(f"recollect:recall:*{caller.tenant_id}*:*"))

    async def forge(self, caller: Caller, text: str, ranking: Sequence[RankedPassage]) -> None:
        """Store a ranking as the cached answer to a question, as somebody with the secret could."""
        state = self.cache._states[(caller.tenant_id, caller.default_graph)]
        [question] = await embedded_questions(text)
        self.cache.shared.put(caller.tenant_id, key_material(state, question, RecallFilter()), encode(ranking))
        await self.cache.shared.settle()


@asynccontextmanager
async def stack(settings: Settings, *, max_entries: int = 1000, ttl_seconds: int = 60) -> AsyncIterator[RecallStack]:
    """A stack on the servers of these settings, which waits longer for Redis than gateways do, for slow machines."""
    async with (
        Database.connect(settings.database_url, settings=settings) as db,
        connect_redis(settings) as redis,
    ):
        shared = SharedCache(
            redis, "recall", secret=SECRET, max_entries=max_entries, ttl_seconds=ttl_seconds, wait_seconds=1.0
        )
        yield RecallStack(db, redis, RecallCache(shared))
        await shared.settle()
