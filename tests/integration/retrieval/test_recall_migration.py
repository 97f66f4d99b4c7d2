"""Memories from before recall used windows are found after the migration, and the worker settles them."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.platform import migrate as migrating
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.support.memories import Agent
from tests.support.windows import assert_windows

OLD_TENANT = """
    WITH tenant AS (
        INSERT INTO tenants (id, slug, name) VALUES (gen_random_uuid(), 'old', 'Old') RETURNING id
    ), graph AS (
        INSERT INTO graphs (tenant_id, id, name, created_by)
        SELECT id, gen_random_uuid(), 'default', 'operator' FROM tenant
        RETURNING tenant_id, id
    ), head AS (
        INSERT INTO graph_heads (tenant_id, graph_id) SELECT tenant_id, id FROM graph
    )
    INSERT INTO graph_indexes (tenant_id, graph_id) SELECT tenant_id, id FROM graph"""

OLD = """
    WITH new_node AS (
        INSERT INTO nodes (tenant_id, graph_id, id, version_id, version, content, added_revision, created_at,
            updated_at, created_by)
        SELECT tenant_id, id, gen_random_uuid(), gen_random_uuid(), 1, $1, 1, now(), now(), 'test' FROM graphs LIMIT 1
        RETURNING *
    )
    INSERT INTO passages (tenant_id, graph_id, id, node_id, memory_id, source, place, thread, text, tsv, added_revision)
    SELECT tenant_id, graph_id, gen_random_uuid(), id, id, 'fact', 0, 'monday', $1, to_tsvector('english', $1), 1
    FROM new_node"""


@pytest.fixture
async def cluster() -> AsyncIterator[LocalPostgres]:
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        server = LocalPostgres(Path(folder), settings={"fsync": "off", "synchronous_commit": "off"})
        server.start()
        yield server
        server.stop()


async def test_memories_from_before_the_migration_are_found_and_settled(
    cluster: LocalPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = migrating.migrations()
    monkeypatch.setattr(migrating, "migrations", lambda: released[:2])
    await migrating.migrate(cluster.url())
    settings = Settings(database_url=cluster.url("recollect_app"), owner_database_url=cluster.url("recollect_owner"))
    owner = await asyncpg.connect(cluster.url("recollect_owner"), server_settings={"search_path": "recollect, public"})
    await owner.execute(OLD_TENANT)
    for text in ("the platypus left", "it rained", "tea was cold"):
        await owner.execute(OLD, text)
    monkeypatch.setattr(migrating, "migrations", lambda: released)
    await migrating.migrate(cluster.url())
    async with Operator.connect(settings.migration_url, settings) as operator:
        tenant = await tenants.find_tenant(operator, "old")
    async with Database.connect(settings.database_url, settings=settings) as db:
        agent = Agent(db, operator_caller(tenant))
        assert await agent.recalled("platypus") == ["the platypus left"]
        assert await agent.embed() == 3
        await assert_windows(agent, owner)
        assert (await agent.recalled("platypus"))[0] == "the platypus left"
    await owner.close()
