"""The vectors that passages are searched by: written only where they are others, and dealt out to parts."""

import re
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import numpy as np
import pytest
from pgvector.asyncpg import register_vector

from recollect.accounts.identity.model import operator_caller
from recollect.memory import revising
from recollect.memory.model import NewMemory, Target
from recollect.platform import migrate as migrating
from recollect.platform.connections import APP_ROLE, OPERATOR_ROLE, session_settings
from recollect.platform.db import Database
from recollect.platform.operator_sessions import Operator
from recollect.platform.sql import Queries
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
from tests.integration.retrieval.test_recall_migration import OLD, OLD_TENANT
from tests.support.memories import Agent, at_work

ROWS = """
    SELECT p.text, p.xmin::text || p.ctid::text AS passage, v.xmin::text || v.ctid::text AS vector
    FROM passages p JOIN searched_vectors v ON v.tenant_id = p.tenant_id AND v.passage_id = p.id
    WHERE p.tenant_id = $1"""
"""Where each passage's row and its vector's are: an update moves a row."""

ASKED = (
    ("graph.passages", "settle renew_passages rebuild_passages remove_passages_of_nodes"),
    (
        "retrieval.recall",
        "find_candidates find_indexed_candidates find_narrowed_candidates find_narrowed_candidates_at",
    ),
    ("retrieval.recall", "find_near_duplicates find_similar find_similar_entities"),
    ("retention.erasure", "clear_windows"),
    ("accounts.usage", "list_stored"),
)
"""The statements of the application on the vectors, but for those that are written alike."""


async def rows_of(owner: asyncpg.Connection, agent: Agent) -> dict[str, tuple[str, str]]:
    rows = await owner.fetch(ROWS, agent.caller.tenant_id)
    return {row["text"]: (row["passage"], row["vector"]) for row in rows}


def said(*texts: str) -> list[NewMemory]:
    return [NewMemory(text, thread="talk") for text in texts]


async def test_words_and_claims_of_a_passage_write_nothing_where_vectors_are_indexed(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*said("the boat left", "it rained", "tea was cold", "Mira steered"))
        await agent.embed()
        before = await rows_of(owner, agent)
        await agent.remember(*said("the island was empty"))
        await agent.embed()
        after = await rows_of(owner, agent)
        # The words around reach all four, the vector that neighbours share in the last one.
        assert {text for text, (passage, _) in before.items() if after[text][0] != passage} == set(before)
        assert {text for text, (_, vector) in before.items() if after[text][1] != vector} == {"Mira steered"}
        await owner.execute("UPDATE passages SET settled = false WHERE tenant_id = $1", agent.caller.tenant_id)
        await agent.embed()
        again = await rows_of(owner, agent)
        assert all(again[text][0] != passage for text, (passage, _) in after.items())
        assert {text: vector for text, (_, vector) in again.items()} == {t: vector for t, (_, vector) in after.items()}


async def test_what_is_removed_leaves_the_indexes_and_serves_the_past(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        kept, gone = await agent.remember("the violin is in the garden", "the engine was never built")
        await agent.embed()
        async with agent.writing() as (tx, revision):
            await revising.forget(tx, revision, [Target(id=gone.id)], delete=True)
        live = "SELECT p.memory_id FROM searched_vectors v JOIN passages p ON p.id = v.passage_id AND v.live = $2"
        for lives, memory in ((True, kept), (False, gone)):
            rows = await owner.fetch(f"{live} WHERE v.tenant_id = $1", agent.caller.tenant_id, lives)
            assert {row["memory_id"] for row in rows} == {memory.id}


@pytest.mark.parametrize(("capability", "name"), [(of, name) for of, names in ASKED for name in names.split()])
async def test_a_statement_is_planned_on_the_part_of_its_tenant_alone(
    settings: Settings, capability: str, name: str
) -> None:
    query = Queries(f"recollect.{capability}").by_name[name].with_types(vector="halfvec")
    tenant_id = uuid4()
    place = query.parameters.index("tenant_id") + 1

    def known(parameter: re.Match[str]) -> str:
        """A session plans with what it is asked with: here with the tenant alone."""
        number = int(parameter[1])
        return f"'{tenant_id}'::uuid" if number == place else f"${number - (number > place)}"

    statement = re.sub(r"\$(\d+)", known, query.text)
    app = await asyncpg.connect(settings.database_url, server_settings=session_settings(APP_ROLE, settings))
    told: list[str] = []
    app.add_log_listener(lambda _, notice: told.append(notice.message))
    try:  # Values would be planned with, and take branches out of the plan: a statement without any is explained by DO.
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


async def test_nobody_reads_a_part_by_its_own_name_and_the_policy_holds_there_too(
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


async def test_the_part_that_is_named_is_the_one_that_holds_a_tenants_vectors(
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


def test_each_part_has_so_many_indexes_at_most_whatever_the_others_have() -> None:
    crowded = [LargeGraph(uuid4(), uuid4(), 3) for _ in range(MAX_INDEXES + 5)]
    other = LargeGraph(uuid4(), uuid4(), 4)
    assert first_of_each_partition([*crowded, other]) == [*crowded[:MAX_INDEXES], other]


@pytest.fixture
async def of_before(postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a database of the version before, in which three passages are searched by their vectors."""
    released = migrating.migrations()
    monkeypatch.setattr(migrating, "migrations", lambda: [m for m in released if m.name < "0047"])
    name = f"vectors_of_before_{uuid4().hex[:8]}"
    administrator = await asyncpg.connect(postgres.url())
    try:
        await administrator.execute(f"CREATE DATABASE {name}")
    finally:
        await administrator.close()
    url = urlunsplit(urlsplit(postgres.url())._replace(path=f"/{name}"))
    await migrating.migrate(url)
    monkeypatch.setattr(migrating, "migrations", lambda: released)
    return url


async def test_vectors_of_before_are_copied_and_those_that_the_version_before_writes_are_taken_over(
    of_before: str,
) -> None:
    async def searched() -> dict[str, tuple[str, list[float], bool]]:
        rows = await owner.fetch(
            "SELECT p.text, v.model, v.embedding, v.live FROM searched_vectors v JOIN passages p ON p.id = v.passage_id"
        )
        return {row["text"]: (row["model"], row["embedding"].to_list(), row["live"]) for row in rows}

    owner = await asyncpg.connect(of_before, server_settings={"search_path": "recollect, public"})
    try:
        await register_vector(owner)
        await owner.execute(OLD_TENANT)
        filled = OLD.replace("tsv, added", "tsv, sequence, said_at, added").replace(
            "to_tsvector('english', $1), 1", "to_tsvector('english', $1), gen_random_uuid(), now(), 1"
        )
        for text in ("boat", "rain", "tea", "bare"):
            await owner.execute(filled, text)
        old_settle = "UPDATE passages SET embedding = $2, embedding_model = 'm', settled = true WHERE text = $1"
        for place, text in enumerate(("boat", "rain", "tea")):
            await owner.execute(old_settle, text, np.eye(3, dtype=np.float16)[place])
        await owner.execute("UPDATE passages SET removed_revision = 2 WHERE text = 'tea'")
        await migrating.migrate(of_before)
        copied = {"boat": ("m", [1, 0, 0], True), "rain": ("m", [0, 1, 0], True), "tea": ("m", [0, 0, 1], False)}
        assert await searched() == copied
        # A worker and a gateway of the version before are still at work.
        await owner.execute(old_settle, "boat", np.array([0, 1, 1], np.float16))
        await owner.execute(old_settle, "bare", np.array([1, 1, 1], np.float16))
        assert await searched() == copied | {"boat": ("m", [0, 1, 1], True), "bare": ("m", [1, 1, 1], True)}
        await owner.execute("UPDATE passages SET embedding = NULL, embedding_model = NULL WHERE text = 'boat'")
        await owner.execute("DELETE FROM passages WHERE text = 'rain'")
        assert set(await searched()) == {"tea", "bare"}
        # What the worker of this version empties goes nowhere.
        await owner.execute("UPDATE passages SET embedding = NULL WHERE text = 'bare'")
        assert set(await searched()) == {"tea", "bare"}
    finally:
        await owner.close()
