"""No search finds or counts nodes of another tenant."""

import asyncpg
import pytest

from recollect.postgres.sql import Query
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import BooleanQuery, DateQuery, FuzzyQuery, RankedQuery
from tests.integration.retrieval.test_classic_searches import searched
from tests.support.memories import names
from tests.tenancy.conftest import Neighbour


async def test_each_search_finds_only_the_tenants_own_entities(neighbours: tuple[Neighbour, Neighbour]) -> None:
    mine, theirs = neighbours
    await mine.create("Grace")
    for agent, others in ((mine, ["Grace"]), (theirs, [])):
        assert names(await searched(agent, search.search_boolean, BooleanQuery("NOT type:cat"))) == ["Ada", *others]
        assert names(await searched(agent, search.search_dates, DateQuery())) == ["Ada", *others]
        assert names(await searched(agent, search.search_fuzzy, FuzzyQuery("persn"))) == ["Ada"]
        [hit] = (await searched(agent, search.search_ranked, RankedQuery("programs"))).hits
        assert hit.entity.name == "Ada"
        assert (hit.score > 0) is bool(others)  # ln(N / n) of what each has


async def test_the_past_of_another_tenant_is_not_read(neighbours: tuple[Neighbour, Neighbour]) -> None:
    mine, theirs = neighbours
    revision = str((await theirs.head()).revision)
    await mine.delete("Ada")
    assert names(await searched(theirs, search.search_boolean, BooleanQuery("Ada"), revision)) == ["Ada"]
    assert names(await searched(mine, search.search_boolean, BooleanQuery("Ada"))) == []


QUERIES = {
    "entities_of": Query.compile(
        "SELECT id FROM entities_of(:owner_id, :graph_id, :revision, clock_timestamp()) WHERE id = :node_id"
    ),
    "statements_of": Query.compile(
        "SELECT id FROM statements_of(:owner_id, :graph_id, :revision, clock_timestamp()) WHERE node_id = :node_id"
    ),
    "entity_of": Query.compile(
        "SELECT name FROM entity_of(:owner_id, :graph_id, :node_id, :revision, clock_timestamp())"
    ),
    "statements_about": Query.compile(
        "SELECT content FROM statements_about(:owner_id, :graph_id, :node_id, :revision, clock_timestamp())"
    ),
}


@pytest.mark.proves("security: searches-of-one-tenant")
@pytest.mark.parametrize("revision", [None, 3])
@pytest.mark.parametrize("function", QUERIES)
async def test_the_functions_of_searches_show_no_rows_of_another_tenant(
    neighbours: tuple[Neighbour, Neighbour], function: str, revision: int | None
) -> None:
    """They run as their caller: for ids of another tenant they return no row, now or in the past."""
    mine, theirs = neighbours
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        found = await tx.fetchrow(Query.compile("SELECT graph_id, id AS node_id FROM nodes WHERE name = 'Ada'"))
        query, mine_by_id = (
            QUERIES[function],
            {**(found or {}), "owner_id": mine.caller.tenant_id, "revision": revision},
        )
        assert await tx.fetch(query, **mine_by_id)
    async with theirs.db.transaction(theirs.caller, read_only=True) as tx:
        assert await tx.fetch(query, **mine_by_id) == []
    async with mine.db.system() as session:
        assert await session.fetch(query, **mine_by_id) == []


RECALLED = {
    "find_nearest": Query.compile(
        "SELECT id FROM find_nearest(:owner_id, :graph_id, 'model', 2, '[1, 0]', 40, 50, :include_outdated, 0, 1)"
    ),
    "find_nearest_of_kind": Query.compile(
        "SELECT id FROM find_nearest_of_kind(:owner_id, :graph_id, 'model', 2, '[1, 0]', 40, 50, :include_outdated,"
        " 0, 1, false)"
    ),
    "kinds_of_vectors": Query.compile(
        "SELECT FROM kinds_of_vectors(:owner_id, :graph_id) AS kinds WHERE cardinality(kinds) > 0 OR :include_outdated"
    ),
    "find_by_words": Query.compile(
        "SELECT id FROM find_by_words(:owner_id, :graph_id, '{engin}', '{1}', 'engin', 'engin', 50, :include_outdated)"
    ),
    "is_word_in_use": Query.compile(
        "SELECT FROM is_word_in_use(:owner_id, :graph_id, 'engin') AS is_used WHERE is_used OR :include_outdated"
    ),
    "has_unusual_nodes": Query.compile(
        "SELECT FROM has_unusual_nodes(:owner_id, :graph_id) AS has WHERE has OR :include_outdated"
    ),
    "is_node_shown": Query.compile(
        "SELECT FROM is_node_shown(:owner_id, :node_id, :include_outdated) AS is_shown WHERE is_shown IS NOT NULL"
    ),
}


@pytest.mark.parametrize("function", RECALLED)
async def test_the_functions_of_recall_show_no_rows_of_another_tenant(
    neighbours: tuple[Neighbour, Neighbour], owner: asyncpg.Connection, function: str
) -> None:
    mine, theirs = neighbours
    archive = "UPDATE nodes SET status = 'archived' WHERE tenant_id = $1 AND name = 'Ada'"
    await owner.execute(archive, mine.caller.tenant_id)
    graph_id = await owner.fetchval("SELECT id FROM graphs WHERE tenant_id = $1", mine.caller.tenant_id)
    node_id = await owner.fetchval("SELECT id FROM nodes WHERE tenant_id = $1 LIMIT 1", mine.caller.tenant_id)
    query = RECALLED[function]
    known = {"owner_id": mine.caller.tenant_id, "graph_id": graph_id, "node_id": node_id, "include_outdated": False}
    asked = {name: value for name, value in known.items() if name in query.parameters}
    for neighbour, finds in ((mine, True), (theirs, False)):
        async with neighbour.db.transaction(neighbour.caller, read_only=True) as tx:
            assert bool(await tx.fetch(query, **asked)) is finds
    async with mine.db.system() as session:
        assert await session.fetch(query, **asked) == []
