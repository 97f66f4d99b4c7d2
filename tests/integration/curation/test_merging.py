"""A merge makes one entity of several, and loses nothing that was known of any of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.hierarchy.model import PageRequest
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work, names, triples


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


async def set_parent(agent: Agent, name: str, parent: str | None) -> None:
    async with agent.writing() as (tx, revision):
        await hierarchy.set_parent(tx, revision, name, parent)


async def descendants(agent: Agent, name: str) -> list[tuple[str, str | None]]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        page = await hierarchy.get_descendants(await graphs.view(tx, agent.graph), name, PageRequest())
    return [(entity.name, entity.parent) for entity in page.entities]


@pytest.mark.proves("enhanced-server: merge-several")
async def test_a_merged_entity_has_everything_of_its_sources(agent: Agent) -> None:
    await agent.create(NewEntity("A. Lovelace", None, ("writes programs", "is a countess"), ("Math",), 2))
    await agent.create(NewEntity("Ada", "person", ("writes programs", "likes tea"), ("math", "poetry"), 7.5))
    before = {entity.name: entity for entity in (await agent.read()).entities}
    merged = await agent.merge(["Ada", "A. Lovelace"])
    assert (merged.moved_observations, merged.added_observations) == (2, 1)
    (left,) = (await agent.read()).entities
    assert merged.entity == left
    assert (left.id, left.name, left.kind) == (before["Ada"].id, "Ada", "person")
    assert left.observations == ("writes programs", "likes tea", "is a countess")
    assert (left.tags, left.importance) == (("math", "poetry"), 7.5)
    assert left.created_at == before["A. Lovelace"].created_at
    assert (await agent.head()).entities == 1


async def test_contents_and_metadata_are_kept(agent: Agent) -> None:
    fields = [
        NodeFields(name="Ada", metadata={"born": 1815}),
        NodeFields(name="Countess", content="wrote programs", summary="in short", metadata={"born": 0, "died": 1852}),
        NodeFields(name="A.L.", content="liked poetry"),
    ]
    async with agent.writing() as (tx, revision):
        await lineages.put_nodes(tx, revision, [Draft(one) for one in fields])
    merged = await agent.merge(["Ada", "Countess", "A.L."])
    assert merged.entity.observations == ("liked poetry",)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        left = await lineages.get_node(await graphs.view(tx, "default"), merged.entity.id)
    assert (left.content, left.summary, left.metadata) == ("wrote programs", "in short", {"born": 1815, "died": 1852})
    assert sorted(await agent.recalled("Countess")) == ["liked poetry", "wrote programs"]


@pytest.mark.parametrize("kept", ["Guest", "Ada"])
async def test_observations_without_expiry_survive_a_merge_with_an_expiring_entity(agent: Agent, kept: str) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs", "drinks tea")))
    async with agent.writing() as (tx, revision):
        soon = revision.at + timedelta(days=1)
        guest = NodeFields("Guest", "person", content="sits in room 7", ttl_days=1.0, expires_at=soon)
        await nodes.create_nodes(tx, revision, [guest])
        await observations.add_observations(
            tx, revision, [NewObservation("Guest", said) for said in ("wears a hat", "drinks tea")]
        )
        met = await naming.require_entities(tx, revision.graph, ["Ada", "Guest"])
    merged = await agent.merge(["Ada", "Guest"], kept)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        left = await lineages.get_node(await graphs.view(tx, "default"), merged.entity.id)
        said = {o.content: o.expires_at for o in await observations.list_observations(tx, [left.node_id])}
    assert (left.ttl_days, left.expires_at) == (None, None)
    assert said == {"writes programs": None, "wears a hat": soon, "sits in room 7": soon, "drinks tea": None}
    assert (left.content, merged.entity.id) == (None, met[kept].id)
    assert (merged.moved_observations, merged.added_observations) == {"Ada": (3, 2), "Guest": (2, 1)}[kept]


@pytest.mark.parametrize("kept", ["Ada", "Bea"])
@pytest.mark.parametrize("days", [2, None])
async def test_a_common_observation_expires_at_the_later_time(agent: Agent, kept: str, days: int | None) -> None:
    await agent.create(NewEntity("Ada", "person"), NewEntity("Bea", "person"))
    async with agent.writing() as (tx, revision):
        soon = revision.at + timedelta(days=1)
        later = None if days is None else revision.at + timedelta(days=days)
        said = [
            NewObservation("Ada", "drinks tea", expires_at=soon),
            NewObservation("Bea", "drinks tea", None, None, later),
        ]
        await observations.add_observations(tx, revision, said)
    merged = await agent.merge(["Ada", "Bea"], kept)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        (left,) = await observations.list_observations(tx, [merged.entity.id])
    assert (left.content, left.expires_at) == ("drinks tea", later)


@pytest.mark.parametrize("kept", ["Ada", "Bea"])
@pytest.mark.parametrize("status", ["outdated", "archived"])
async def test_content_of_an_inactive_source_becomes_outdated(agent: Agent, status: str, kept: str) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",), content="tunes the engine"))
    await agent.create(NewEntity("Bea", "person", ("grows roses",)))
    await agent.let_go("Ada", status)
    merged = await agent.merge(["Ada", "Bea"], kept)
    assert (merged.entity.status, merged.entity.observations, merged.entity.content) == (
        "active",
        ("grows roses",),
        None,
    )
    assert (merged.moved_observations, merged.added_observations) == ((1, 1) if kept == "Ada" else (0, 0))
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        node = await lineages.get_node(await graphs.view(tx, "default"), merged.entity.id)
        said = {o.content: (o.status, o.reason) for o in await observations.list_observations(tx, [node.node_id])}
    assert (node.status, node.reason) == ("active", None)
    past = ("outdated", "was wrong")
    assert said == {"grows roses": ("active", None), "writes programs": past, "tunes the engine": past}
    assert await agent.recalled("grows roses") == ["grows roses"]
    assert await agent.recalled("writes programs for the engine") == []
    assert set(await agent.recalled("writes programs for the engine", include_outdated=True)) >= {
        "writes programs",
        "tunes the engine",
    }


async def test_observations_of_an_expiring_inactive_source_become_outdated_and_expire(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",)))
    async with agent.writing() as (tx, revision):
        soon = revision.at + timedelta(days=1)
        await nodes.create_nodes(tx, revision, [NodeFields("Guest", "person", ttl_days=1.0, expires_at=soon)])
        await observations.add_observations(tx, revision, [NewObservation("Guest", "wears a hat")])
    await agent.let_go("Guest", "outdated")
    merged = await agent.merge(["Guest", "Ada"])
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        said = await observations.list_observations(tx, [merged.entity.id])
    assert {(o.content, o.status, o.expires_at) for o in said} == {
        ("writes programs", "active", None),
        ("wears a hat", "outdated", soon),
    }


async def test_undoing_a_merge_restores_an_inactive_source(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",), content="tunes the engine"))
    await agent.create(NewEntity("Bea", "person", ("grows roses",)))
    await agent.let_go("Ada", "outdated")
    before = (await agent.read()).entities
    await agent.merge(["Ada", "Bea"])
    async with agent.db.transaction(agent.caller) as tx:
        await undoing.undo_changes(tx, None, "undo", ChangeRange(3), dry_run=False)
    after = (await agent.read()).entities
    assert [(e.id, e.status, e.content, e.observations) for e in after] == [
        (e.id, e.status, e.content, e.observations) for e in before
    ]
    assert await agent.recalled("grows roses") == ["grows roses"]
    assert await agent.recalled("writes programs") == []


async def test_a_merge_of_inactive_entities_has_the_status_of_the_kept_one(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",)), NewEntity("Bea", "person", ("grows roses",)))
    await agent.let_go("Ada", "outdated")
    await agent.let_go("Bea", "archived")
    merged = await agent.merge(["Bea", "Ada"])
    assert (merged.entity.status, merged.entity.observations) == ("archived", ("grows roses",))


@pytest.mark.proves("enhanced-server: merge-redirects-relations")
async def test_relations_are_redirected_without_duplicates_or_loops(agent: Agent) -> None:
    await agent.create("Ada", "Countess", "Babbage")
    await agent.relate(
        ("Countess", "Babbage", "knows"),
        ("Ada", "Babbage", "knows"),
        ("Babbage", "Countess", "admires"),
        ("Countess", "Ada", "is"),
        ("Ada", "Countess", "is"),
        ("Countess", "Countess", "trusts"),
        ("Countess", "the engine", "programs"),
        ("Babbage", "the engine", "built"),
    )
    merged = await agent.merge(["Ada", "Countess"])
    assert sorted(triples(await agent.read())) == [
        ("Ada", "Babbage", "knows"),
        ("Ada", "the engine", "programs"),
        ("Babbage", "Ada", "admires"),
        ("Babbage", "the engine", "built"),
    ]
    assert (merged.redirected_relations, merged.duplicate_relations, merged.self_loops) == (2, 1, 3)
    assert (await agent.head()).placeholders == 1


@pytest.mark.proves("crate: merge")
async def test_relations_that_become_equal_are_redirected_once(agent: Agent) -> None:
    await agent.create("Ada", "Countess", "A.L.", "Babbage")
    await agent.relate(("Countess", "Babbage", "knows"), ("A.L.", "Babbage", "knows"), ("A.L.", "Countess", "is"))
    merged = await agent.merge(["Ada", "Countess", "A.L."])
    assert (merged.redirected_relations, merged.duplicate_relations, merged.self_loops) == (1, 1, 1)


async def test_the_name_of_an_entity_that_is_not_merged_is_refused(agent: Agent) -> None:
    await agent.create("Ada", "Countess")
    await agent.create(NewEntity("Innocent", "person", ("likes tea",)))
    before = (await agent.read(), await agent.head())
    with pytest.raises(Conflict) as refused:
        await agent.merge(["Ada", "Countess"], "Innocent")
    assert (refused.value.code, refused.value.path) == (ErrorCode.NAME_TAKEN, "targetName")
    assert (await agent.read(), await agent.head()) == before
    merged = await agent.merge(["Ada", "Countess", "Innocent"], "Innocent")
    assert (merged.entity.id, merged.entity.observations) == (before[0].entities[2].id, ("likes tea",))


async def test_a_merge_needs_two_names(agent: Agent) -> None:
    await agent.create("Ada", "Countess")
    for target in (None, "Ada", "Countess", "Lovelace"):
        with pytest.raises(InvalidInput) as refused:
            await agent.merge(["Ada", "Ada"], target)
        assert refused.value.path == "entityNames"


async def test_a_redirected_relation_keeps_its_creation_time(agent: Agent) -> None:
    await agent.create("Ada", "Countess", "Babbage")
    await agent.relate(("Countess", "Babbage", "knows"))
    (before,) = (await agent.read()).relations
    await agent.merge(["Ada", "Countess"])
    (after,) = (await agent.read()).relations
    assert ((after.source, after.created_at), before.source) == (("Ada", before.created_at), "Countess")


@pytest.mark.proves("enhanced-server: merge-redirects-relations")
async def test_a_merged_entity_keeps_its_history(agent: Agent) -> None:
    await agent.create("Ada", "Countess")
    countess = (await agent.open("Countess")).entities[0].id
    await agent.merge(["Ada", "Countess"])
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        versions = await lineages.history(tx, graph, countess)
        assert [(v.name, v.deleted) for v in versions] == [("Countess", True), ("Countess", False)]
        with pytest.raises(NotFound):
            await lineages.get_node(GraphView(tx, graph), countess)


async def test_children_are_moved_to_the_merged_entity(agent: Agent) -> None:
    await agent.create("top", "Ada", "Countess", "child", "grandchild")
    for name, parent in (("Countess", "top"), ("child", "Countess"), ("grandchild", "child")):
        await set_parent(agent, name, parent)
    await agent.merge(["Ada", "Countess"])
    assert await descendants(agent, "Ada") == [("child", "Ada"), ("grandchild", "child")]


@pytest.mark.parametrize("kept", ["top", "middle", "bottom"])
async def test_merging_ancestors_with_descendants_makes_no_cycle(agent: Agent, kept: str) -> None:
    await agent.create("root", "top", "middle", "between", "bottom", "leaf")
    line = ["root", "top", "middle", "between", "bottom", "leaf"]
    for parent, name in pairwise(line):
        await set_parent(agent, name, parent)
    others = [name for name in ("top", "middle", "bottom") if name != kept]
    await agent.merge([kept, *others])
    assert sorted(await descendants(agent, "root")) == sorted([(kept, "root"), ("between", kept), ("leaf", kept)])


async def test_entities_can_be_merged_under_a_new_name(agent: Agent) -> None:
    await agent.create(*(NewEntity(name, "person", (f"was called {name}",)) for name in ("Ada", "Countess", "A.L.")))
    await agent.merge(["Ada", "Countess", "A.L."], "Ada Lovelace")
    assert names(await agent.read()) == ["Ada Lovelace"]
    assert len((await agent.open("Ada Lovelace")).entities[0].observations) == 3


@pytest.mark.parametrize("target", ["Countess", "Ada"])
async def test_the_target_may_be_any_of_the_merged_entities(agent: Agent, target: str) -> None:
    await agent.create("Ada", "Countess", "A.L.")
    await agent.merge(["Ada", "Countess"], target)
    assert sorted(names(await agent.read())) == sorted(["A.L.", target])
    await agent.merge([target, "A.L."], "A.L.")
    assert names(await agent.read()) == ["A.L."]


async def test_a_placeholder_gives_its_name_and_relations_to_the_merged_entity(agent: Agent) -> None:
    await agent.create("Ada", "Countess", "Babbage")
    await agent.relate(("Babbage", "Ada Lovelace", "knows"), ("Countess", "Ada Lovelace", "is"))
    await agent.merge(["Ada", "Countess"], "Ada Lovelace")
    assert triples(await agent.read()) == [("Babbage", "Ada Lovelace", "knows")]
    head = await agent.head()
    assert (head.entities, head.placeholders) == (2, 0)


async def test_former_names_find_even_later_observations(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",)), "Countess", "Enchantress")
    await agent.merge(["Countess", "Enchantress"])
    await agent.merge(["Ada", "Countess"], "Byron's daughter")
    await agent.remember(NewMemory("likes tea", about=("Byron's daughter",)))
    for alias in ("Ada", "Countess", "Enchantress"):
        assert sorted(await agent.recalled(alias)) == ["likes tea", "writes programs"]
    await agent.unobserve(("Byron's daughter", "likes tea"), ("Byron's daughter", "writes programs"))
    assert await agent.recalled("Enchantress") == ["Byron's daughter"]
    assert await agent.create("Countess") == ["Countess"]


async def test_an_invalid_merge_changes_nothing(agent: Agent) -> None:
    await agent.create("Ada")
    await agent.relate(("Ada", "Babbage", "knows"))
    head = await agent.head()
    for merged, target in ((["Ada", "Babbage"], None), (["Ada", "nobody"], None), (["nobody", "Ada"], "Ada")):
        with pytest.raises(NotFound):
            await agent.merge(merged, target)
    for merged, target in ((["Ada"], None), (["Ada", "Ada"], None), (["nobody"], "Ada"), (["Ada"], "Grace")):
        with pytest.raises(InvalidInput):
            await agent.merge(merged, target)
    assert await agent.head() == head


async def test_entities_of_another_tenant_cannot_be_merged(agent: Agent, new_tenant: NewTenant) -> None:
    await agent.create("Ada")
    async with at_work(agent.db, operator_caller(await new_tenant())) as stranger:
        await stranger.create("Countess", "Babbage")
        with pytest.raises(NotFound):
            await stranger.merge(["Countess", "Ada"])
        await stranger.merge(["Countess", "Babbage"], "Ada")
    assert names(await agent.read()) == ["Ada"]


async def test_concurrent_merges_and_writes_lose_nothing(agent: Agent) -> None:
    """Each refusal names an entity that another merge took. All observations of the remaining entities are there."""
    everybody = [f"entity {n}" for n in range(8)]
    await agent.create(*(NewEntity(name, "person", (f"from {name}",)) for name in everybody))
    await agent.relate(*((name, "hub", "knows") for name in everybody))

    async def observed(n: int) -> str | None:
        said = f"later {n}"
        try:
            await agent.observe(everybody[n % 8], said)
        except NotFound:
            return None
        return said

    async def merged(n: int) -> None:
        with suppress(NotFound):
            await agent.merge([everybody[n], everybody[(n + 1) % 8], everybody[(n + 3) % 8]])

    results = await asyncio.gather(*(observed(n) for n in range(24)), *(merged(n) for n in range(8)))
    kept = {said for entity in (await agent.read()).entities for said in entity.observations}
    assert kept == {f"from {name}" for name in everybody} | {said for said in results if said}
    left = names(await agent.read())
    assert len(left) < 8
    assert sorted(triples(await agent.read())) == sorted((name, "hub", "knows") for name in left)


async def test_undoing_a_merge_restores_expiry(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("drinks tea",)))
    async with agent.writing() as (tx, revision):
        soon = revision.at + timedelta(days=1)
        guest = NodeFields("Guest", "person", content="sits in room 7", ttl_days=1.0, expires_at=soon)
        await nodes.create_nodes(tx, revision, [guest])
        await observations.add_observations(
            tx, revision, [NewObservation("Guest", said) for said in ("wears a hat", "drinks tea")]
        )
        met = await naming.require_entities(tx, revision.graph, ["Guest"])
    await agent.merge(["Ada", "Guest"], "Guest")
    async with agent.db.transaction(agent.caller) as tx:
        await undoing.undo_changes(tx, None, "undo", ChangeRange(2), dry_run=False)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        left = await lineages.get_node(await graphs.view(tx, "default"), met["Guest"].id)
        said = {o.content: o.expires_at for o in await observations.list_observations(tx, [left.node_id])}
    assert (left.content, left.expires_at) == ("sits in room 7", soon)
    assert said == {"wears a hat": None, "drinks tea": None}
