"""Memories are found by the words of their kinds, tags, sources and metadata, and these follow every change."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite
from recollect.graph.observations import service as observations
from recollect.graph.passage_words import word_rebuild
from recollect.graph.passages.labels import memory_labels
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.retention.erasure import service as erasure
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.memories import Agent, at_work

PACKED = NewMemory(
    "The blue box is packed",
    kind="milestone",
    tags=("relocation", "倉庫"),
    source="wiki-4711",
    metadata={"ticket": 90210, "people": ["Quincy"]},
)
ASKED = ("milestone", "milestones", "relocation", "倉庫", "wiki-4711", "90210", "quincy", "relocation milestone")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
METADATA = st.dictionaries(
    TEXT, st.one_of(TEXT, st.integers(-9_999, 9_999), st.none(), st.booleans(), st.lists(TEXT)), max_size=4
)


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*(f"The green pen number {n} is lost" for n in range(20)))
        yield agent


async def test_a_fact_and_an_observation_are_found_by_what_they_say_of_themselves(
    agent: Agent, subtests: pytest.Subtests
) -> None:
    await agent.remember(PACKED, replace(PACKED, text="The red box is packed", about=("Ida",)))
    for is_embedded in (False, True):
        if is_embedded:
            await agent.embed()
        for question in ASKED:
            with subtests.test(question, is_embedded=is_embedded):
                found = await agent.recalled(question)
                assert set(found[:2]) == {"The blue box is packed", "The red box is packed"}


async def test_words_of_the_text_weigh_more(agent: Agent) -> None:
    await agent.remember(replace(PACKED, tags=("gazebo",)), "We painted the gazebo", "Nothing is painted")
    for _ in range(2):
        assert (await agent.recalled("gazebo"))[:2] == ["We painted the gazebo", "The blue box is packed"]
        await agent.embed()


async def test_the_first_passage_of_a_long_text_has_the_labels(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.remember(replace(PACKED, text=" ".join(f"It rained in week {n}." for n in range(60))))
    places = await owner.fetch(
        "SELECT place FROM passages WHERE tenant_id = $1 AND tsv @@ 'reloc'", agent.caller.tenant_id
    )
    assert [row["place"] for row in places] == [0]
    assert len(await agent.recalled("relocation")) == 1


async def test_labels_of_a_fact_follow_its_changes_and_vectors_stay(agent: Agent, owner: asyncpg.Connection) -> None:
    [fact] = await agent.remember(PACKED)
    await agent.embed()
    await change_node(agent, fact.id, tags=("departure",), kind="note", metadata={})
    for question in ("relocation", "milestone", "90210"):
        assert "The blue box is packed" not in await agent.recalled(question)
    assert (await agent.recalled("departure"))[:1] == ["The blue box is packed"]
    assert (await agent.recall("departure")).waiting == 0
    assert await agent.embed() == 0
    live = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND node_id = $2 AND removed_revision IS NULL"
    assert await owner.fetchval(live, agent.caller.tenant_id, fact.id) == 1


async def test_labels_of_an_observation_follow_its_changes(agent: Agent) -> None:
    [stored] = await agent.remember(replace(PACKED, about=("Ida",)))
    async with agent.writing() as (tx, revision):
        [old] = (await observations.observations_by_id(tx, revision.graph, [stored.id])).values()
        await observations.rewrite(tx, revision, [old], [replace(old, tags=("departure",), source=None)])
    assert await agent.recalled("relocation") == []
    assert await agent.recalled("wiki-4711") == []
    assert (await agent.recalled("departure"))[:1] == ["The blue box is packed"]


async def test_an_entity_with_a_text_keeps_one_passage_of_its_name_at_most(
    agent: Agent, owner: asyncpg.Connection
) -> None:
    async with agent.writing() as (tx, revision):
        [node_id] = await nodes.create_nodes(
            tx, revision, [NodeFields(name="Box", content="It is packed", tags=("relocation",))]
        )
    await agent.observe("Box", "It is blue")
    said = "SELECT said_at FROM passages WHERE tenant_id = $1 AND node_id = $2 AND source = 'fact'"
    times = await owner.fetch(said, agent.caller.tenant_id, node_id)
    await change_node(agent, node_id, tags=("departure",))
    rows = await owner.fetch(
        "SELECT source FROM passages WHERE tenant_id = $1 AND node_id = $2 AND removed_revision IS NULL ORDER BY 1",
        agent.caller.tenant_id,
        node_id,
    )
    assert [row["source"] for row in rows] == ["fact", "observation"]
    assert await owner.fetch(said, agent.caller.tenant_id, node_id) == times * 2  # The old one serves the past.
    assert await agent.recalled("relocation") == []
    assert await agent.recalled("departure") == ["It is packed"]


async def test_words_of_labels_are_erased_with_a_person(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create("Quincy")
    async with agent.writing() as (tx, revision):
        [box] = await nodes.create_nodes(
            tx, revision, [NodeFields(name="Box", content="It is packed", tags=("Quincy", "relocation"))]
        )
    await agent.remember(replace(PACKED, about=("Ida",)), NewMemory("It rained", metadata={"by": "Quincy"}))
    async with agent.db.transaction(agent.caller) as tx:
        await erasure.erase_person(tx, "default", "Quincy")
    left = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND tsv @@ 'quinci'"
    assert await owner.fetchval(left, agent.caller.tenant_id) == 0
    labels = "SELECT count(*) FROM {} WHERE tenant_id = $1 AND labels @@ 'quinci'"
    for table in ("nodes", "node_versions"):
        assert await owner.fetchval(labels.format(table), agent.caller.tenant_id) == 0
    assert await agent.recalled("relocation") == ["It is packed"]
    assert await owner.fetchval("SELECT tags FROM nodes WHERE id = $1", box) == ["relocation"]


async def test_passages_of_before_get_their_labels(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.remember(PACKED, replace(PACKED, text="The red box is packed", about=("Ida",)))
    before = await vectors(agent, owner)
    await owner.execute(
        "UPDATE passages SET words_version = 2, tsv = ts_filter(tsv, '{c,d}') WHERE tenant_id = $1",
        agent.caller.tenant_id,
    )
    assert await agent.recalled("relocation") == []
    async with agent.db.transaction(agent.caller) as tx:
        assert await word_rebuild.rebuild_page(tx) == 23  # With the name that was removed from search.
    assert await vectors(agent, owner) == before
    assert len(await agent.recalled("relocation")) == 2


@examples(50)
@given(kind=st.none() | TEXT, tags=st.lists(TEXT, max_size=3), source=st.none() | TEXT, metadata=METADATA)
async def test_python_and_postgresql_find_the_same_labels(
    owner: asyncpg.Connection, kind: str | None, tags: list[str], source: str | None, metadata: dict[str, object]
) -> None:
    stored = "SELECT memory_labels($1, $2, $3, $4::text::jsonb)"
    found = await owner.fetchval(stored, kind, tags, source, json.dumps(metadata))
    assert found == memory_labels(kind, tags, source, metadata)


async def vectors(agent: Agent, owner: asyncpg.Connection) -> list[asyncpg.Record]:
    rows: list[asyncpg.Record] = await owner.fetch(
        "SELECT text, tsv::text FROM passages WHERE tenant_id = $1 AND removed_revision IS NULL ORDER BY text",
        agent.caller.tenant_id,
    )
    return rows


async def change_node(agent: Agent, node_id: UUID, **fields: object) -> None:
    async with agent.writing() as (tx, revision):
        [head] = (await nodes.read_heads(tx, revision.graph, [node_id])).values()
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, **fields))])  # type: ignore[arg-type]
