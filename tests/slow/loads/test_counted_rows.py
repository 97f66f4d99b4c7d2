"""The bytes that count for a plan are near what takes the disk."""

import re
from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.accounts.quotas.model import ROW_BYTES
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.errors import QuotaExceeded
from recollect.graph.aliases import service as aliases
from recollect.postgres import schema
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work
from tests.support.quotas import limit

MANY, AT_ONCE = 10_000, 1_000
COUNTED = "SELECT coalesce(sum(counted_bytes(h)), 0)::bigint FROM graph_heads h WHERE tenant_id = $1"
NODE_TABLES = ("nodes", "node_versions", "passages", "changes")


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent


async def counted(agent: Agent, owner: asyncpg.Connection) -> int:
    bytes_: int = await owner.fetchval(COUNTED, agent.caller.tenant_id)
    return bytes_


async def taken(owner: asyncpg.Connection, tables: tuple[str, ...]) -> int:
    """The bytes of these tables on disk, with their indexes."""
    bytes_: int = await owner.fetchval(
        "SELECT sum(pg_total_relation_size(t::regclass))::bigint FROM unnest($1::text[]) t", [*tables]
    )
    return bytes_


@pytest.mark.proves("security: counted-rows")
@pytest.mark.usefixtures("leaves_nothing")
async def test_what_is_counted_is_near_what_it_takes_on_disk(
    agent: Agent, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    """Within a third, of 10,000 rows each. Rows of other tests leave free space in tables, which is compared with."""

    async def fill(what: str) -> None:
        for first in range(0, MANY, AT_ONCE):
            names = [f"entity {n}" for n in range(first, first + AT_ONCE)]
            match what:
                case "entities":
                    await agent.create(*names)
                case "relations":
                    await agent.relate(*((name, names[n - 1], "knows") for n, name in enumerate(names)))
                case _:
                    await agent.observe(names[0], *(f"says {name}" for name in names))

    for what, tables in {
        "entities": NODE_TABLES,
        "relations": ("relations", "changes"),
        "observations": ("observations", "passages", "changes"),
    }.items():
        await owner.execute(f"VACUUM FULL {', '.join(tables)}")
        before = await counted(agent, owner), await taken(owner, tables)
        await fill(what)
        grown = await counted(agent, owner) - before[0], await taken(owner, tables) - before[1]
        with subtests.test(what):
            assert 2 / 3 <= grown[0] / grown[1] <= 3 / 2, grown


async def test_relations_alone_reach_the_limit_of_bytes(
    agent: Agent, operator: Operator, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    """Also where each is deleted again: its row is history."""
    await agent.create("Ada", "Grace")
    room = await counted(agent, owner) + 5 * (ROW_BYTES["relations"] + 2 * ROW_BYTES["changes"] + len("knows{}"))
    await limit(operator, tenant.slug, stored_bytes=room)
    for _ in range(4):
        await agent.relate(("Ada", "Grace", "knows"))
        await agent.unrelate(("Ada", "Grace", "knows"))
    await agent.relate(("Ada", "Grace", "knows"))
    with pytest.raises(
        QuotaExceeded, match="bytes of what is stored, with rows, indexes, history and the log"
    ) as refused:
        await agent.relate(("Grace", "Ada", "knows"))
    assert "compact" in refused.value.message
    await assert_laws(agent)


async def test_aliases_and_their_text_are_counted(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create("Ada")
    before = await counted(agent, owner)
    async with agent.writing() as (tx, revision):
        [ada] = await tx.fetch(Query.compile("SELECT id FROM nodes WHERE tenant_id = :tenant_id"))
        changed = await aliases.alias(tx, revision, {ada["id"]: ["x" * 500, "y" * 500]})
        revision.touch("entities_changed", changed)
    rows = 2 * (ROW_BYTES["aliases"] + 500) + ROW_BYTES["changes"]
    assert await counted(agent, owner) == before + rows


def test_the_schema_has_the_bytes_of_the_model() -> None:
    """Those of rows in SQL are those in Python, so that messages and documents are right."""
    sql = schema.read("stored_bytes")
    for table, bytes_ in ROW_BYTES.items():
        if table == "changes":
            assert f"{bytes_} * head.revision" in sql
        else:
            body = re.search(rf"row_bytes_of\(\w+ {table}\)[^$]*\$\$([^$]*)\$\$", sql)
            assert body is not None, table
            assert f"{bytes_}::bigint" in body[1], table
