"""Expiry and compaction, whose worker is killed at any moment: everything is done in the end, and done once.

Random choices follow from the seed: `make test` tries a few seeds, `make soak` many.
"""

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs.model import ARCHIVE_EXPIRED
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NewFact
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.retention.expiry.service import PURGE_EXPIRED
from recollect.settings import Settings
from tests.support.busy_worker import HASTY, has_succeeded, outlived
from tests.support.invariants import assert_laws
from tests.support.jobs import Desk
from tests.support.memories import Agent, at_work

MONTH = timedelta(days=31)


@pytest.fixture
def hasty(settings: Settings) -> Settings:
    return settings.model_copy(update=HASTY)


class TestExpiry:
    async def test_every_expired_fact_is_archived_once_and_purged_once(
        self, hasty: Settings, desk: Desk, owner: asyncpg.Connection, tmp_path: Path, seed: int
    ) -> None:
        chance = random.Random(seed)
        async with at_work(desk.db, desk.caller) as agent:
            agents = [replace(agent, graph=f"graph-{number}") for number in range(3)]
            ended = [await self.write(each) for each in agents]
            await self.let_the_retention_pass(owner, desk)
            await outlived(hasty, tmp_path, chance, partial(self.are_purged, owner, desk))
            for operation in (ARCHIVE_EXPIRED, PURGE_EXPIRED):
                touched = await self.touched(owner, desk, operation)
                assert touched == Counter(id_ for ids in ended for id_ in ids), operation
            left = await owner.fetchval(
                "SELECT count(*) FROM nodes WHERE tenant_id = $1 AND removed_revision IS NULL", desk.caller.tenant_id
            )
            assert left == 3 * 20, "what does not expire lives"
            for each in agents:
                await assert_laws(each)

    async def write(self, agent: Agent) -> list[str]:
        """Write 300 facts that expire, in thirty steps, and twenty that do not; returns the ids of the former."""
        later = datetime.now(UTC) + timedelta(hours=1)
        async with agent.writing() as (tx, revision):
            made = [NewFact(f"fact {number}", expires_at=later) for number in range(300)]
            passing = await nodes.create_facts(tx, revision, made)
            await nodes.create_facts(tx, revision, [NewFact(f"lasting {number}") for number in range(20)])
        return [str(fact.id) for fact in passing]

    async def are_purged(self, owner: asyncpg.Connection, desk: Desk) -> bool:
        waiting = "SELECT count(*) FROM nodes WHERE tenant_id = $1 AND expires_at <= now() AND removed_revision IS NULL"
        return bool(await owner.fetchval(waiting, desk.caller.tenant_id) == 0)

    async def touched(self, owner: asyncpg.Connection, desk: Desk, operation: str) -> Counter[str]:
        """How often each id occurs in changes of this operation."""
        rows = await owner.fetch(
            "SELECT unnest(ids)::text AS id FROM changes WHERE tenant_id = $1 AND operation = $2",
            desk.caller.tenant_id,
            operation,
        )
        return Counter(row["id"] for row in rows)

    async def let_the_retention_pass(self, owner: asyncpg.Connection, desk: Desk) -> None:
        for table in ("nodes", "node_versions", "passages"):
            await owner.execute(
                f"UPDATE {table} SET expires_at = expires_at - $2::interval WHERE tenant_id = $1",
                desk.caller.tenant_id,
                MONTH,
            )


class TestCompaction:
    async def test_compaction_removes_exactly_the_old_history(
        self, hasty: Settings, desk: Desk, owner: asyncpg.Connection, tmp_path: Path, seed: int
    ) -> None:
        """The worker starts the job, and does it step by step."""
        chance = random.Random(seed)
        async with at_work(desk.db, desk.caller) as agent:
            await self.write_and_delete(agent)
            lived = await self.living(owner, desk)
            await self.let_the_retention_pass(owner, desk)
            await outlived(hasty, tmp_path, chance, partial(self.is_compacted, desk))
            assert await self.count_removed_rows(owner, desk) == 0
            assert await self.living(owner, desk) == lived
            (job,) = [job for job in await desk.list() if job.kind == "compact_graph"]
            assert (job.status, (job.result or {})["nodes"], (job.result or {})["observations"]) == (
                "succeeded",
                500,
                600,
            ), "each row was counted by the step that removed it"
            await assert_laws(agent, whole=False)

    async def write_and_delete(self, agent: Agent) -> None:
        """Write entities with an observation each, delete most, and replace the observation of the others."""
        await agent.create(*[NewEntity(f"e{n}", "thing", (f"says {n}",)) for n in range(600)])
        async with agent.writing() as (tx, revision):
            await observations.add_observations(tx, revision, [NewObservation(f"e{n}", f"now {n}") for n in range(100)])
            await observations.remove_observations(tx, revision, [(f"e{n}", f"says {n}") for n in range(100)])
        await agent.delete(*[f"e{n}" for n in range(100, 600)])

    async def let_the_retention_pass(self, owner: asyncpg.Connection, desk: Desk) -> None:
        tenant_id = desk.caller.tenant_id
        for table in ("changes", "graph_heads"):
            await owner.execute(f"UPDATE {table} SET at = at - $2::interval WHERE tenant_id = $1", tenant_id, MONTH)
        await owner.execute("UPDATE graphs SET compaction_check_at = now() WHERE tenant_id = $1", tenant_id)

    async def is_compacted(self, desk: Desk) -> bool:
        jobs = [job for job in await desk.list() if job.kind == "compact_graph"]
        return bool(jobs) and all([await has_succeeded(desk, job) for job in jobs])

    async def count_removed_rows(self, owner: asyncpg.Connection, desk: Desk) -> int:
        """The number of removed rows that are still in a table."""
        tables = ("nodes", "observations", "passages")
        counts = [f"(SELECT count(*) FROM {t} WHERE tenant_id = $1 AND removed_revision IS NOT NULL)" for t in tables]
        return int(await owner.fetchval(f"SELECT {' + '.join(counts)}", desk.caller.tenant_id))

    async def living(self, owner: asyncpg.Connection, desk: Desk) -> list[tuple[str, str, int]]:
        """The current observations with their entities and numbers of passages."""
        rows = await owner.fetch(
            """SELECT n.name, o.content, (
                SELECT count(*) FROM passages p
                WHERE p.tenant_id = $1 AND p.memory_id = o.id AND p.removed_revision IS NULL
            ) FROM nodes n JOIN observations o ON o.tenant_id = $1 AND o.node_id = n.id AND o.removed_revision IS NULL
            WHERE n.tenant_id = $1 AND n.removed_revision IS NULL ORDER BY n.name""",
            desk.caller.tenant_id,
        )
        assert len(rows) == 100
        return [tuple(row) for row in rows]
