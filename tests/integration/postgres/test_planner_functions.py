"""The functions of planner.sql are names only: PostgreSQL plans what they stand for, as the role that asks."""

import re

import asyncpg
import pytest

from recollect.postgres import schema
from recollect.postgres.connections import APP_ROLE, OWNER_ROLE, session_settings
from recollect.postgres.sql import Queries
from recollect.settings import Settings
from tests.integration.postgres.test_queries import CAPABILITIES, OPERATORS_CAPABILITIES

FUNCTIONS = set(re.findall(r"^CREATE FUNCTION ([a-z_]+)\(", schema.read("planner"), re.MULTILINE))
CALL = re.compile(rf"\b({'|'.join(sorted(FUNCTIONS))})\(")

PLANNED = {
    "same_key(id, $1::uuid)": "id >= $1) AND (nodes.id <= $1)",
    "same_key(name, $1::text)": "name >= $1) AND (nodes.name <= $1)",
    "same_key(added_revision, $1::bigint)": "added_revision >= $1) AND (nodes.added_revision <= $1)",
    "as_filter(graph_id = $1)": "graph_id = $1) IS TRUE",
    "is_live(removed_revision) AND id = $1": "COALESCE(nodes.removed_revision, '0'::bigint) = 0",
    "is_live_at(removed_revision, $1)": "removed_revision IS NULL) OR (nodes.removed_revision > $1)",
    "is_current(expires_at) AND id = $1": "expires_at IS NULL) OR (nodes.expires_at > statement_timestamp()",
    "is_current_at(expires_at, $1)": "expires_at IS NULL) OR (nodes.expires_at > $1)",
}
"""Conditions on nodes, and what plans have in their place."""

LIVE_NAME = "graph_id = $2 AND removed_revision IS NULL AND name IS NOT NULL"

BY_INDEX = {
    "same_key(id, $2::uuid) ORDER BY id LIMIT 1": ("nodes_pkey", "id >= $2) AND (nodes.id <= $2)"),
    f"{LIVE_NAME} AND same_key(name, $3::text) ORDER BY name LIMIT 1": (
        "nodes_live_name",
        "name >= $3) AND (nodes.name <= $3)",
    ),
    "as_filter(graph_id = $2) AND id = $3 AND is_live(removed_revision)": ("nodes_pkey", "id = $3)"),
}
"""Conditions on a tenant's nodes, the index that serves them, and what it is asked."""


async def _app(settings: Settings) -> asyncpg.Connection:
    """A session of the application that plans statements once, as in a transaction that looks rows up by keys."""
    once = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_sort": "off"}
    return await asyncpg.connect(settings.database_url, server_settings=session_settings(APP_ROLE, settings) | once)


async def _plan(connection: asyncpg.Connection, query: str) -> str:
    """The plan that a session keeps for a prepared query."""
    count = len((await connection.prepare(query)).get_parameters())
    given = f"({', '.join(['NULL'] * count)})" if count else ""
    await connection.execute(f"PREPARE asked AS {query}")
    try:
        return "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN (VERBOSE) EXECUTE asked{given}"))
    finally:
        await connection.execute("DEALLOCATE asked")


@pytest.mark.parametrize("relation", ["nodes", "search_nodes"], ids=["under row-level security", "through a view"])
async def test_plans_have_the_condition_in_the_place_of_the_call(
    settings: Settings, subtests: pytest.Subtests, relation: str
) -> None:
    assert {call for condition in PLANNED for call in CALL.findall(condition)} == FUNCTIONS
    app = await _app(settings)
    for condition, planned in PLANNED.items():
        with subtests.test(condition):
            plan = await _plan(app, f"SELECT id FROM {relation} WHERE {condition}")
            assert planned in plan
            assert not CALL.search(plan)
    for condition, (index, asked) in BY_INDEX.items():
        with subtests.test(condition):
            plan = await _plan(app, f"SELECT id FROM {relation} WHERE tenant_id = $1 AND {condition}")
            assert re.search(rf"Index (Only )?Scan using {index} on", plan), plan
            assert asked in next(line for line in plan.splitlines() if "Index Cond" in line), plan
    await app.close()


async def test_no_plan_of_a_query_calls_one(settings: Settings, subtests: pytest.Subtests) -> None:
    """PostgreSQL would call a function where an argument that it repeats is dear, or a role has no right to it."""
    generic = {"plan_cache_mode": "force_generic_plan"}
    app, owner = [
        await asyncpg.connect(url, server_settings=session_settings(role, settings) | generic)
        for url, role in [(settings.database_url, APP_ROLE), (settings.migration_url, OWNER_ROLE)]
    ]
    planned = 0
    for capability in CAPABILITIES:
        connection = owner if capability in OPERATORS_CAPABILITIES else app
        for name, query in Queries(f"recollect.{capability}").by_name.items():
            text = query.with_types(vector="halfvec").text
            if CALL.search(text):
                planned += 1
                with subtests.test(f"{capability}.{name}"):
                    assert not CALL.findall(await _plan(connection, text))
    assert planned > 100
    await app.close()
    await owner.close()


def test_no_index_and_no_constraint_uses_one(subtests: pytest.Subtests) -> None:
    for file in schema.FILES:
        with subtests.test(file):
            definitions = re.findall(r"^(?:CREATE (?!FUNCTION)|ALTER)[^;]*;", schema.read(file), re.MULTILINE)
            assert [text for text in definitions if CALL.search(text)] == []
