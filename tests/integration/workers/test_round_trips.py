"""The statements that a wake-up sends to PostgreSQL for one memory, in order; each entry is one round trip."""

import asyncio

from recollect.caller import Caller
from recollect.embedding import create_embedder
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from tests.contract.test_round_trips import name_of
from tests.support.quick_embedder import QUICK_EMBEDDER
from tests.support.statements import sent_statements
from tests.support.workers import remember

CLAIMED = ["BEGIN (set_config)", "quotas.find_quotas", "passages.claim_pending", "COMMIT"]
SETTLED = [
    "BEGIN (set_config)",
    "quotas.find_quotas",
    "passages.lock_claimed_graphs",
    "passages.lock_indexes",
    "passages.insert_embeddings",
    "passages.find_windows",
    "passages.settle",
    "usage.add_usage",
    "COMMIT",
]
LOOKED_AFTER = ["BEGIN (set_config)", "passages.any_pending", "passage_words.graphs_to_count", "COMMIT"]


async def test_commits_of_a_wake_up_do_not_wait_for_the_disk_unlike_those_of_calls(
    settings: Settings, db: Database, caller: Caller
) -> None:
    with sent_statements() as sent:
        await remember(db, caller, "Alice")
    assert not any("synchronous_commit" in statement for statement in sent)
    sent = await sent_by_wake_up(settings, db, caller)
    commits = [statement for statement in sent if name_of(statement) == "COMMIT"]
    assert ["SET LOCAL synchronous_commit = off; " in commit for commit in commits] == [True, True, False]


async def test_a_wake_up_claims_a_small_batch_once(settings: Settings, db: Database, caller: Caller) -> None:
    await remember(db, caller, "Alice")
    sent = await sent_by_wake_up(settings, db, caller)
    assert [name_of(statement) for statement in sent] == [*CLAIMED, *SETTLED, *LOOKED_AFTER]


async def sent_by_wake_up(settings: Settings, db: Database, caller: Caller) -> list[str]:
    async with connect_redis(settings) as redis:
        embedder = create_embedder(Settings(embedder=QUICK_EMBEDDER))
        context = WorkerContext(settings, db, embedder, Wakeups(redis), asyncio.Event())
        with sent_statements() as sent:
            await embedding.woken(context, caller.tenant_id, {})
        await context.wakeups.aclose()
    return sent
