"""Summaries and tags are found by the words that recall finds, in every script, also while they are analysed anew."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import label_rebuild
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite
from recollect.memory import searching
from recollect.postgres.database import Database
from recollect.retrieval.recall.model import RecallFilter
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import words
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work, embedded_questions, embedder

TAGGED = {
    "部署流程": "怎么部署应用",
    "会議室": "会議はいつ",
    "กรุงเทพมหานคร": "กรุงเทพ",
    "الكتاب": "كتاب",
    "Haustür-Schlüssel": "schluessel",
    "São Paulo": "sao paulo",
    "JIRA-4711": "what about 4711",
    "UserService": "user service",
    "Will": "Will",
    "running shoes": "Which shoe did she run in?",
}
"""Tags, and questions that find them."""


@pytest.fixture(scope="module")
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create(*(NewEntity(f"Node {n}", "thing", (), (tag,)) for n, tag in enumerate(TAGGED)))
        async with agent.writing() as (tx, revision):
            summed = [NodeFields(name=f"Sum {n}", summary=tag) for n, tag in enumerate(TAGGED)]
            await nodes.create_nodes(tx, revision, summed)
        await agent.create(*(NewEntity(f"Other {n}", "thing", (), (f"tag {n}",)) for n in range(20)))
        yield agent


@pytest.fixture
async def context(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    async with connect_redis(settings) as redis:
        wakeups = Wakeups(redis)
        yield WorkerContext(settings, db, embedder(), wakeups, asyncio.Event())
        await wakeups.aclose()


async def found(agent: Agent, question: str, as_of: str | None = None) -> dict[str | None, str]:
    """The nodes that search_graph finds, with the text by which each was found."""
    [asked] = await embedded_questions(question)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, agent.graph, as_of)
        ranked = await searching.search_nodes(view, replace(asked, vector=None), RecallFilter(), limit=50)
    return {node.name: text for node, _, text in ranked.nodes}


async def test_labels_are_found_in_every_script_now_and_in_the_past(agent: Agent, subtests: pytest.Subtests) -> None:
    revision = str((await agent.head()).revision)
    for n, (tag, question) in enumerate(TAGGED.items()):
        for moment in (None, revision):
            with subtests.test(question, moment=moment):
                hits = await found(agent, question, moment)
                assert {name: text for name, text in hits.items() if text == tag} == {f"Node {n}": tag, f"Sum {n}": tag}
                assert not any(name and name.startswith("Other") for name in hits)


async def test_labels_follow_each_change(db: Database, new_tenant: NewTenant) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create(NewEntity("Ada", "person", (), ("会議室",)))
        await change(agent, "Ada", tags=("部署", "ﬁnal"), summary="Erste Programmiererin")
        assert await found(agent, "会議") == {}
        assert await found(agent, "final") == {"Ada": "ﬁnal"}
        assert await found(agent, "部署") == {"Ada": "部署"}
        assert await found(agent, "programmiererin") == {"Ada": "Erste Programmiererin"}
        assert await found(agent, "会議", "1") == {"Ada": "会議室"}
        await change(agent, "Ada", tags=(), summary=None)
        assert await found(agent, "final programmiererin") == {}


async def test_labels_of_the_previous_release_are_found_and_analysed_anew(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection, context: WorkerContext
) -> None:
    """It knows nothing of their words, whether it writes a node anew or changes one."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create(NewEntity("Ada", "person", (), ("running dogs",)), NewEntity("Bob", "person", (), ("old",)))
        tenant_id = agent.caller.tenant_id
        for table in ("nodes", "node_versions"):
            await owner.execute(
                f"UPDATE {table} SET labels = NULL, labels_version = 0 WHERE tenant_id = $1 AND name = 'Ada'", tenant_id
            )
        await owner.execute(
            "UPDATE nodes SET tags = '{会議室,barking}' WHERE tenant_id = $1 AND name = 'Bob'", tenant_id
        )
        for moment in (None, "1"):
            assert await found(agent, "which dog ran", moment) == {"Ada": "running dogs"}
        assert await found(agent, "bark") == {"Bob": "barking"}
        assert await found(agent, "会議") == {}
        assert await found(agent, "old") == {}
        await words.rebuild(context)
        assert await found(agent, "会議") == {"Bob": "会議室"}
        assert await found(agent, "running dog") == {"Ada": "running dogs"}
        left = "SELECT count(*) FROM nodes WHERE tenant_id = $1 AND labels_version < 2 AND tags <> '{}'"
        assert await owner.fetchval(left, tenant_id) == 0


async def test_labels_are_analysed_in_pages_beside_writes(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    """A node that another transaction writes is left out: it is not waited for, and no older words are stored."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create(*(NewEntity(f"Node {n}", "thing", (), (f"label {n}",)) for n in range(5)))
        await owner.execute("UPDATE nodes SET labels_version = 0 WHERE tenant_id = $1", agent.caller.tenant_id)
        async with agent.writing() as (tx, revision):
            head = (await nodes.require_entity_heads(tx, revision.graph, ["Node 0"]))["Node 0"]
            await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, tags=("other",)))])
            async with agent.db.transaction(agent.caller) as worker:
                assert await label_rebuild.rebuild_page(worker, limit=3) == 3
            async with agent.db.transaction(agent.caller) as worker:
                assert await label_rebuild.rebuild_page(worker, limit=3) == 1
        async with agent.db.transaction(agent.caller) as worker:
            assert await label_rebuild.rebuild_page(worker, limit=3) == 0
        assert await found(agent, "other") == {"Node 0": "other"}
        assert await found(agent, "label") == {f"Node {n}": f"label {n}" for n in range(1, 5)}


async def change(agent: Agent, name: str, **fields: object) -> None:
    async with agent.writing() as (tx, revision):
        head = (await nodes.require_entity_heads(tx, revision.graph, [name]))[name]
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, **fields))])  # type: ignore[arg-type]
