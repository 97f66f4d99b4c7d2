"""An import reads what it changes in pages: a worker's memory does not grow with what is stored of its items."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from recollect.caller import Caller
from recollect.graph.aliases import service as aliases
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import indexing
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.graph.passages import service as passages
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewEdge, RelationFilter
from recollect.postgres.database import Database
from recollect.transfer import service as transfer
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import ImportResult, Strategy
from recollect.transfer.records import EntityRecord, FactRecord, ObservationRecord, Placement, RelationRecord
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work
from tests.support.read_bytes import bytes_read

COUNT, LARGE = 30, "large " * 500
"""As many items, each with 3 kB of metadata."""

PAGE = 15_000
BOUND = 2 * PAGE
"""What a statement may bring: a page, and what its rows have beside. All items together have thrice as much."""


@pytest.fixture
async def agent(db: Database, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Agent]:
    monkeypatch.setattr(nodes, "PAGE_BYTES", PAGE)
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


async def store(agent: Agent, *, status: str = "active") -> None:
    """Entities with an observation each, facts, and a relation of each entity, all with much metadata."""
    async with agent.writing() as (tx, revision):
        fields = [NodeFields(f"e{n}", "thing", metadata={"n": n, "text": LARGE}, status=status) for n in range(COUNT)]
        ids = await nodes.create_nodes(tx, revision, fields)
        facts = [NodeFields(None, "note", content=f"fact {n}", metadata={"text": LARGE}) for n in range(COUNT)]
        await nodes.create_nodes(tx, revision, facts)
        said = [NewObservation(f"e{n}", f"said {n}", "t", metadata={"text": LARGE}) for n in range(COUNT)]
        await observations.add_observations(tx, revision, said, across_threads=False, brings_back=False)
        edges = [NewEdge(ids[n], ids[n - 1], "knows", metadata={"text": LARGE}) for n in range(COUNT)]
        await relations.add_edges(tx, revision, edges)


def parsed(*records: Any) -> list[ParsedRecord]:
    return [ParsedRecord(f"line {number}", record) for number, record in enumerate(records, 1)]


def entity(number: int, **fields: Any) -> EntityRecord:
    return EntityRecord(name=f"e{number}", entity_type="thing", **{"observations": [], **fields})


def file_of_all() -> list[ParsedRecord]:
    """What is stored, with a new value in each metadata."""
    new = {"new": 1}
    said = ObservationRecord(thread="t", metadata=new)
    return parsed(
        *(entity(n, metadata=new, observations=[f"said {n}"], said=[said], aliases=[f"a{n}"]) for n in range(COUNT)),
        *(FactRecord(text=f"fact {n}", kind="note", metadata=new) for n in range(COUNT)),
        *(
            RelationRecord(from_=f"e{n}", to=f"e{(n - 1) % COUNT}", relation_type="knows", metadata=new)
            for n in range(COUNT)
        ),
        *(Placement(name=f"e{n}", parent_id="e0") for n in range(1, COUNT)),
    )


async def import_of(agent: Agent, items: list[ParsedRecord], strategy: Strategy) -> ImportResult:
    """The result of a worker's step, of which each statement brought little."""
    with bytes_read() as most:
        async with agent.writing() as (tx, revision):
            result = await transfer.import_items(tx, revision, items, strategy)
    assert max(most.values()) <= BOUND, {name: size for name, size in most.items() if size > BOUND}
    assert result.problems == ()
    return result


@pytest.mark.parametrize("strategy", [Strategy.MERGE, Strategy.REPLACE])
async def test_what_exists_is_read_and_changed_in_pages(agent: Agent, strategy: Strategy) -> None:
    await store(agent)
    result = await import_of(agent, file_of_all(), strategy)
    assert (result.entities_updated, result.facts_updated, result.relations_updated) == (COUNT, COUNT, COUNT)
    assert (result.entities_created, result.facts_created, result.relations_created) == (0, 0, 0)
    kept = {"text": LARGE} if strategy is Strategy.MERGE else {}
    async with agent.writing() as (tx, revision):
        heads = await nodes.require_entity_heads(tx, revision.graph, [f"e{n}" for n in range(COUNT)])
        assert {heads[f"e{n}"].fields.parent_id for n in range(1, COUNT)} == {heads["e0"].id}
        named = await aliases.names_of(tx, [head.id for head in heads.values()])
        assert {entity.name: entity.aliases for entity in named.values()} == {f"e{n}": f"a{n}" for n in range(COUNT)}
        assert all(head.metadata.keys() == {"new", *kept, *(["n"] if kept else [])} for head in heads.values())
        stored = await observations.list_observations(tx, [head.id for head in heads.values()])
        assert [o.metadata for o in stored] == [{"new": 1, **kept}] * COUNT
        found = await relations.search_relations(GraphView(tx, revision.graph), RelationFilter(None, None, "knows"))
        assert len(found) == COUNT


@pytest.mark.parametrize("strategy", [Strategy.MERGE, Strategy.REPLACE])
async def test_a_relation_that_comes_twice_is_changed_once_by_what_comes_last(agent: Agent, strategy: Strategy) -> None:
    """However many pages of others come in between; and so is a new one, which stays as it came first."""
    await store(agent)

    def relation(n: int, type_: str, said: str) -> RelationRecord:
        return RelationRecord(from_=f"e{n}", to=f"e{(n - 1) % COUNT}", relation_type=type_, metadata={"said": said})

    first = [relation(n, "knows", "first") for n in range(COUNT)]
    items = parsed(relation(0, "likes", "first"), *first, relation(0, "knows", "last"), relation(0, "likes", "last"))
    result = await import_of(agent, items, strategy)
    assert (result.relations_created, result.relations_updated, result.relations_skipped) == (1, COUNT, 2)
    async with agent.writing() as (tx, revision):
        heads = await nodes.require_entity_heads(tx, revision.graph, ["e0", f"e{COUNT - 1}"])
        first_end, second_end = (head.id for head in heads.values())
        edges = await relations.edges_between(tx, revision.graph, first_end, second_end)
    assert {edge.type: edge.metadata["said"] for edge in edges} == {"knows": "last", "likes": "first"}


async def test_what_is_skipped_is_not_read(agent: Agent) -> None:
    await store(agent)
    with bytes_read() as most:
        async with agent.writing() as (tx, revision):
            result = await transfer.import_items(tx, revision, file_of_all(), Strategy.SKIP)
    assert (result.entities_skipped, result.facts_skipped, result.relations_skipped) == (COUNT, COUNT, COUNT)
    assert "read_heads" not in "".join(most)
    assert max(most.values()) < PAGE


async def test_hidden_entities_are_brought_back_in_pages(agent: Agent) -> None:
    await store(agent, status="outdated")
    result = await import_of(
        agent, parsed(*(entity(n, observations=[f"new {n}"]) for n in range(COUNT))), Strategy.SKIP
    )
    assert result.entities_updated == COUNT
    async with agent.writing() as (tx, revision):
        heads = await nodes.require_entity_heads(tx, revision.graph, [f"e{n}" for n in range(COUNT)])
        stored = await observations.list_observations(tx, [head.id for head in heads.values()])
    assert {head.status for head in heads.values()} == {"active"}
    assert {o.content: o.is_active for o in stored} == {
        **{f"said {n}": False for n in range(COUNT)},
        **{f"new {n}": True for n in range(COUNT)},
    }


async def test_observations_that_a_file_lacks_are_removed_without_reading_their_metadata(agent: Agent) -> None:
    await store(agent)
    await import_of(agent, parsed(*(entity(n, observations=["other"]) for n in range(COUNT))), Strategy.REPLACE)
    assert {e.observations for e in (await agent.read()).entities} == {("other",)}


async def test_passages_are_made_anew_a_few_at_a_time(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new name of an entity is a word of each of its memories, however many it has."""
    await agent.create("Ada")
    await agent.observe("Ada", *(f"said {n} of it" for n in range(COUNT)))
    made, index_memories = list[int](), passages.index_memories

    async def counted(tx: Any, revision: Any, memories: Any) -> None:
        made.append(len(given := list(memories)))
        await index_memories(tx, revision, given)

    monkeypatch.setattr(indexing, "MAX_INDEXED", 10)
    monkeypatch.setattr(passages, "index_memories", counted)
    async with agent.writing() as (tx, revision):
        (head,) = (await nodes.require_entity_heads(tx, revision.graph, ["Ada"])).values()
        await aliases.alias(tx, revision, {head.id: ["Countess"]})
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, importance=1.0))])
    assert made == [10, 10, 10, 1]
    assert len(await agent.recalled("Countess", limit=COUNT + 1, token_budget=10_000)) == COUNT


def test_records_are_small_beside_what_is_stored() -> None:
    """What the tests above measure is not the file."""
    assert sum(len(msgspec.json.encode(item.record)) for item in file_of_all()) < PAGE
