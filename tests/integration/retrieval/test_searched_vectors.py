"""Searched vectors: they are written only if they change, and are partitioned by tenant."""

import re
from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.memory import revising
from recollect.memory.model import MemoryRef, NewMemory
from recollect.postgres.connections import APP_ROLE, OPERATOR_ROLE, session_settings
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries
from recollect.retrieval.vector_indexes import store as vector_indexes
from recollect.retrieval.vector_indexes.model import (
    MAX_INDEXES,
    PARTITIONS,
    LargeGraph,
    first_of_each_partition,
    partition_name,
)
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work

ROWS = """
    SELECT p.text, p.xmin::text || p.ctid::text AS passage, v.xmin::text || v.ctid::text AS vector
    FROM passages p JOIN searched_vectors v ON v.tenant_id = p.tenant_id AND v.passage_id = p.id
    WHERE p.tenant_id = $1"""
"""Where each passage's row and its vector's row are stored: an update moves a row."""

ASKED = (
    ("graph.passages", "settle renew_passages remove_passages_of_nodes"),
    (
        "retrieval.recall",
        "find_candidates find_indexed_candidates find_narrowed_candidates find_narrowed_candidates_at",
    ),
    ("retrieval.similarity", "find_near_duplicates find_similar find_similar_entities"),
    ("retention.erasure", "clear_windows"),
    ("accounts.usage", "list_stored"),
)
"""The application's statements on the vectors, without those that are written like one of these."""


async def rows_of(owner: asyncpg.Connection, agent: Agent) -> dict[str, tuple[str, str]]:
    rows = await owner.fetch(ROWS, agent.caller.tenant_id)
    return {row["text"]: (row["passage"], row["vector"]) for row in rows}


def said(*texts: str) -> list[NewMemory]:
    return [NewMemory(text, thread="talk") for text in texts]


async def test_claiming_and_new_windows_do_not_rewrite_vectors(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*said("the boat left", "it rained", "tea was cold", "Mira steered"))
        await agent.embed()
        before = await rows_of(owner, agent)
        await agent.remember(*said("the island was empty"))
        await agent.embed()
        after = await rows_of(owner, agent)
        # The windows of all four change; the vector, which neighbours share in, only in the last one.
        assert {text for text, (passage, _) in before.items() if after[text][0] != passage} == set(before)
        assert {text for text, (_, vector) in before.items() if after[text][1] != vector} == {"Mira steered"}
        await owner.execute("UPDATE passages SET settled = false WHERE tenant_id = $1", agent.caller.tenant_id)
        await agent.embed()
        again = await rows_of(owner, agent)
        assert all(again[text][0] != passage for text, (passage, _) in after.items())
        assert {text: vector for text, (_, vector) in again.items()} == {t: vector for t, (_, vector) in after.items()}


async def test_vectors_of_deleted_memories_leave_the_indexes_and_serve_the_past(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        kept, gone = await agent.remember("the violin is in the garden", "the engine was never built")
        await agent.embed()
        async with agent.writing() as (tx, revision):
            await revising.forget(tx, revision, [MemoryRef(id=gone.id)], delete=True)
        live = "SELECT p.memory_id FROM searched_vectors v JOIN passages p ON p.id = v.passage_id AND v.live = $2"
        for lives, memory in ((True, kept), (False, gone)):
            rows = await owner.fetch(f"{live} WHERE v.tenant_id = $1", agent.caller.tenant_id, lives)
            assert {row["memory_id"] for row in rows} == {memory.id}


@pytest.mark.parametrize(("capability", "name"), [(of, name) for of, names in ASKED for name in names.split()])
async def test_a_statement_is_planned_on_its_tenants_part_only(settings: Settings, capability: str, name: str) -> None:
    query = Queries(f"recollect.{capability}").by_name[name].with_types(vector="halfvec")
    tenant_id = uuid4()
    place = query.parameters.index("tenant_id") + 1

    def known(parameter: re.Match[str]) -> str:
        """The planner knows the tenant's value, and no other."""
        number = int(parameter[1])
        return f"'{tenant_id}'::uuid" if number == place else f"${number - (number > place)}"

    statement = re.sub(r"\$(\d+)", known, query.text)
    app = await asyncpg.connect(settings.database_url, server_settings=session_settings(APP_ROLE, settings))
    told: list[str] = []
    app.add_log_listener(lambda _, notice: told.append(notice.message))
    try:  # With values, EXPLAIN would prune the plan: DO explains it without any.
        await app.execute(
            "DO $do$ DECLARE line text; BEGIN "
            f"FOR line IN EXECUTE $explained$EXPLAIN (GENERIC_PLAN) {statement}$explained$ "
            "LOOP RAISE NOTICE '%', line; END LOOP; END $do$"
        )
    finally:
        await app.close()
    plan = "\n".join(told)
    async with Operator.connect(settings.migration_url, settings) as operator:
        part = await vector_indexes.find_partition(operator, tenant_id)
    assert set(re.findall(r"searched_vectors_\d\d\b", plan)) == {partition_name(part)}


async def test_parts_cannot_be_read_directly_and_have_the_tenant_policy(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection, postgres: LocalPostgres
) -> None:
    caller = operator_caller(await new_tenant())
    superuser = await asyncpg.connect(postgres.url(), server_settings={"search_path": "recollect, public"})
    async with at_work(db, caller) as agent:
        await agent.remember("the boat left")
        await agent.embed()
        part = await owner.fetchval(
            "SELECT tableoid::regclass::text FROM searched_vectors WHERE tenant_id = $1", caller.tenant_id
        )
        try:
            for role in (APP_ROLE, OPERATOR_ROLE):
                rights = "SELECT has_any_column_privilege($1, $2, 'SELECT, INSERT, UPDATE') OR "
                rights += "has_table_privilege($1, $2, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')"
                for number in range(PARTITIONS):
                    assert not await superuser.fetchval(rights, role, partition_name(number))
            transaction = superuser.transaction()
            await transaction.start()
            await superuser.execute(f"GRANT SELECT ON {part} TO {APP_ROLE}; SET LOCAL ROLE {APP_ROLE}")
            for tenant_id, seen in ((uuid4(), 0), (caller.tenant_id, 1)):
                await superuser.execute("SELECT set_config('recollect.tenant_id', $1, true)", str(tenant_id))
                assert await superuser.fetchval(f"SELECT count(*) FROM {part}") == seen
            await transaction.rollback()
        finally:
            await superuser.close()


async def test_the_computed_part_is_the_one_with_the_tenants_vectors(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection, settings: Settings
) -> None:
    callers = [operator_caller(await new_tenant()) for _ in range(3)]
    for caller in callers:
        await Agent(db, caller).remember("the boat left")
        await Agent(db, caller).embed()
    async with Operator.connect(settings.migration_url, settings) as operator:
        large = {
            graph.tenant_id: graph.partition
            for graph in await vector_indexes.find_large(operator, memories=1, limit=10**6)
        }
    for caller in callers:
        part = "SELECT tableoid::regclass::text FROM searched_vectors WHERE tenant_id = $1"
        assert await owner.fetchval(part, caller.tenant_id) == partition_name(large[caller.tenant_id])


def test_number_of_indexes_is_limited_for_each_part() -> None:
    crowded = [LargeGraph(uuid4(), uuid4(), 3) for _ in range(MAX_INDEXES + 5)]
    other = LargeGraph(uuid4(), uuid4(), 4)
    assert first_of_each_partition([*crowded, other]) == [*crowded[:MAX_INDEXES], other]
