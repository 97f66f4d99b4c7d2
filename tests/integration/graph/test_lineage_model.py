"""Lineages compared with a small model: versions, heads, conflicts, history, and the head at each moment."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import Conflict, InvalidInput, NotFound, RecollectError
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import moments
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, PutOutcome, Version
from recollect.graph.nodes.model import NodeFields
from recollect.graph.relations import service as relations
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work, triples

_graphs = itertools.count(1)


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


@pytest.fixture(scope="module")
async def replaying(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs are shared out among the examples."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


async def in_new_graph(agent: Agent, policy: str, **more: Any) -> Agent:
    """The agent in a new graph with that policy."""
    agent = replace(agent, graph=f"{policy}-{next(_graphs)}")
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph(agent.graph or "", conflict_policy=policy, **more))
    return agent


async def put(agent: Agent, *drafts: Draft) -> list[PutOutcome | RecollectError]:
    async with agent.writing() as (tx, revision):
        return await lineages.put_nodes(tx, revision, drafts)


async def put_one(agent: Agent, content: str, node_id: UUID | None = None, based_on: int | None = None) -> PutOutcome:
    (outcome,) = await put(agent, Draft(NodeFields(content=content), node_id, based_on))
    if isinstance(outcome, RecollectError):
        raise outcome
    return outcome


async def get_node(agent: Agent, node_id: UUID) -> Version:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await lineages.get_node(await graphs.view(tx, agent.graph or "default"), node_id)


# In the model, a lineage is its versions; a version stays a head until a later one that does not conflict with it.


NOT_YET = datetime.min.replace(tzinfo=UTC)


@dataclass
class Written:
    content: str | None
    ended_by: int | None = None
    at: datetime = NOT_YET


@dataclass
class Lineage:
    versions: list[Written] = field(default_factory=list)
    deleted: bool = False

    def put(self, policy: str, content: str, based_on: int | None) -> bool:
        """Whether the new version stands beside others. Raises an error if it is refused."""
        if self.deleted:
            raise NotFound("deleted")
        newest = len(self.versions)
        if based_on is not None and not 1 <= based_on <= newest:
            raise InvalidInput("no such version")
        beside = policy == "manual" and based_on not in (None, newest)
        if not self.says(content, beside=beside):
            self._append(content, ends=not beside)
        return beside

    def says(self, content: str, *, beside: bool) -> bool:
        """Whether a put need not be written, because it resolves no conflict and a head has that content already."""
        heads = [version for version in self.versions if not version.ended_by]
        return (beside or len(heads) == 1) and content in [head.content for head in heads]

    def delete(self) -> None:
        if not self.deleted:
            self._append(None, ends=True)
            self.deleted = True

    def _append(self, content: str | None, *, ends: bool) -> None:
        if ends:
            for version in self.versions:
                version.ended_by = version.ended_by or len(self.versions) + 1
        self.versions.append(Written(content))

    def conflicts(self, number: int) -> list[int]:
        """The other heads, newest first."""
        if self.deleted or self.versions[number - 1].ended_by:
            return []
        return [n for n in range(len(self.versions), 0, -1) if n != number and not self.versions[n - 1].ended_by]


STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 2), st.sampled_from([None, 0, 1, 1, 2, 3, 9])),
    st.tuples(st.just("put"), st.integers(0, 2), st.sampled_from([None, 1, 2])),
    st.tuples(st.sampled_from(["same", "other"]), st.integers(0, 2), st.sampled_from([None, 1, 2])),
    st.tuples(st.just("new"), st.none(), st.none()),
    st.tuples(st.just("delete"), st.integers(0, 2), st.none()),
)


@pytest.mark.proves("memgraph: model")
@examples(25)
@given(policy=st.sampled_from(["lww", "manual"]), steps=st.lists(STEPS, min_size=3, max_size=14))
async def test_lineages_match_the_model(
    replaying: Agent, policy: str, steps: list[tuple[str, int | None, int | None]]
) -> None:
    agent = await in_new_graph(replaying, policy)
    model = {(await put_one(agent, "first")).node_id: Lineage([Written("first")])}
    await _note_time(agent, model)
    for nth, (verb, place, based_on) in enumerate(steps):
        node_id = list(model)[-1 - (place or 0) % len(model)]
        await _do(agent, policy, model, verb, node_id, f"content {nth}", based_on)
        await _note_time(agent, model)
    for node_id, lineage in model.items():
        await _assert_as_modelled(agent, node_id, lineage)
    await assert_laws(agent)


async def _do(
    agent: Agent,
    policy: str,
    model: dict[UUID, Lineage],
    verb: str,
    node_id: UUID,
    content: str,
    based_on: int | None,
) -> None:
    lineage = model[node_id]
    match verb:
        case "new":
            model[(await put_one(agent, content)).node_id] = Lineage([Written(content)])
        case "delete":
            lineage.delete()
            async with agent.writing() as (tx, revision):
                await relations.delete_nodes(tx, revision, [node_id])
        case "put" | "same" | "other":
            content = content if verb == "put" else verb
            before = len(lineage.versions)
            try:
                beside = lineage.put(policy, content, based_on)
            except RecollectError as refusal:
                with pytest.raises(type(refusal)):
                    await put_one(agent, content, node_id, based_on)
            else:
                number, heads = len(lineage.versions), len(lineage.conflicts(len(lineage.versions))) + 1
                unchanged = number == before
                conflict = heads > 1 if unchanged else beside
                expected = PutOutcome(node_id, number, created=False, conflict=conflict, unchanged=unchanged)
                assert await put_one(agent, content, node_id, based_on) == expected


async def _note_time(agent: Agent, model: dict[UUID, Lineage]) -> None:
    at = (await agent.head()).at
    for lineage in model.values():
        for version in lineage.versions:
            version.at = at if version.at == NOT_YET else version.at


async def _assert_as_modelled(agent: Agent, node_id: UUID, lineage: Lineage) -> None:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, agent.graph or "default")
        history = await lineages.history(tx, graph, node_id)
        assert [v.version for v in history] == list(range(len(lineage.versions), 0, -1))
        numbers = {version.id: version.version for version in history}
        for version in history:
            expected = lineage.versions[version.version - 1]
            assert numbers.get(version.superseded_by or version.id, 0) == (expected.ended_by or version.version)
            assert [numbers[other] for other in version.conflicts] == lineage.conflicts(version.version)
            assert version.is_current == (not expected.ended_by and not version.deleted)
            assert version.deleted == (expected.content is None)
            assert version.content == (expected.content or lineage.versions[version.version - 2].content)
            assert await lineages.get_numbered(tx, graph, node_id, version.version) == version
            assert await lineages.get_version(tx, graph, version.id) == version
            if version.deleted:
                with pytest.raises(NotFound):
                    await lineages.get_past_version(
                        GraphView(tx, graph, await moments.moment_at(tx, graph, expected.at)), node_id
                    )
            else:
                assert (
                    await lineages.get_past_version(
                        GraphView(tx, graph, await moments.moment_at(tx, graph, expected.at)), node_id
                    )
                    == version
                )
        with pytest.raises(NotFound):
            await lineages.get_node(
                GraphView(
                    tx, graph, await moments.moment_at(tx, graph, lineage.versions[0].at - timedelta(microseconds=1))
                ),
                node_id,
            )
        for number in (0, len(history) + 1):
            with pytest.raises(NotFound):
                await lineages.get_numbered(tx, graph, node_id, number)
        current = [version for version in history if version.version == len(history) and not version.deleted]
        assert await lineages.get_nodes(GraphView(tx, graph), [node_id]) == current


@pytest.mark.proves("memgraph: concurrent-writers")
async def test_concurrent_writers_of_one_version_lose_nothing(agent: Agent) -> None:
    for policy in ("lww", "manual"):
        here = await in_new_graph(agent, policy)
        node_id = (await put_one(here, "read by all")).node_id
        puts = await asyncio.gather(*(put_one(here, f"from {n}", node_id, 1) for n in range(10)))
        assert sorted(p.version for p in puts) == list(range(2, 12))
        assert sum(p.conflict for p in puts) == (9 if policy == "manual" else 0)
        head = await get_node(here, node_id)
        assert len(head.conflicts) == (9 if policy == "manual" else 0)
        await put_one(here, "settled", node_id, head.version)
        assert (await get_node(here, node_id)).conflicts == ()
        async with here.db.transaction(here.caller, read_only=True) as tx:
            graph = await graphs.get_graph(tx, here.graph or "")
            contents = {version.content for version in await lineages.history(tx, graph, node_id)}
        assert contents == {"read by all", "settled", *(f"from {n}" for n in range(10))}
        await assert_laws(here)


async def test_a_batch_with_failed_items_is_one_revision(agent: Agent) -> None:
    first = (await put_one(agent, "first")).node_id
    outcomes = await put(
        agent,
        Draft(NodeFields(content="second"), first),
        Draft(NodeFields(content="third"), first),
        Draft(NodeFields(content="nowhere"), uuid4()),
        Draft(NodeFields(name="Ada")),
        Draft(NodeFields(name="Ada")),
        Draft(NodeFields(content="never"), first, 7),
    )
    assert [type(outcome) for outcome in outcomes] == [
        PutOutcome,
        PutOutcome,
        NotFound,
        PutOutcome,
        Conflict,
        InvalidInput,
    ]
    assert (await agent.head()).revision == 2


async def test_a_placeholder_becomes_the_node_that_is_put_under_its_name(agent: Agent) -> None:
    await agent.relate(("Ada", "Babbage", "knows"))
    outcome, other = await put(agent, Draft(NodeFields(name="Babbage", kind="person")), Draft(NodeFields(content="x")))
    assert isinstance(outcome, PutOutcome)
    assert isinstance(other, PutOutcome)
    assert (outcome.created, outcome.version, other.version) == (True, 2, 1)
    head = await agent.head()
    assert (head.entities, head.placeholders, head.facts) == (1, 1, 1)
    assert triples(await agent.open("Babbage")) == [("Ada", "Babbage", "knows")]
    assert await agent.recalled("Babbage") == ["Babbage"]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        assert [v.version for v in await lineages.history(tx, graph, outcome.node_id)] == [2]


async def test_a_node_cannot_take_the_name_of_a_placeholder(agent: Agent) -> None:
    await agent.relate(("Ada", "Babbage", "knows"))
    node_id = (await put_one(agent, "designed an engine")).node_id
    (outcome,) = await put(agent, Draft(NodeFields(name="Babbage"), node_id))
    assert isinstance(outcome, Conflict)


async def test_a_placeholder_has_no_history(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.relate(("Ada", "Babbage", "knows"))
    node_id = await owner.fetchval("SELECT id FROM nodes WHERE tenant_id = $1 LIMIT 1", agent.caller.tenant_id)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        for reading in (
            lineages.history(tx, graph, node_id),
            lineages.get_node(GraphView(tx, graph), node_id),
            lineages.get_numbered(tx, graph, node_id, 1),
        ):
            with pytest.raises(NotFound):
                await reading


async def test_the_name_of_an_expired_node_is_free(agent: Agent) -> None:
    """For any kind of write. The expired node is found by nobody, and stays in history."""
    past = datetime.now(UTC) - timedelta(hours=1)
    ended = []
    for name in ("created", "put", "related", "renamed"):
        (outcome,) = await put(agent, Draft(NodeFields(name=name, kind="old", expires_at=past)))
        assert isinstance(outcome, PutOutcome)
        ended.append(outcome.node_id)
    assert await agent.create(NewEntity("created", "new", ("is new",))) == ["created"]
    (again,) = await put(agent, Draft(NodeFields(name="put", kind="new")))
    assert isinstance(again, PutOutcome)
    assert (again.created, again.node_id in ended) == (True, False)
    await agent.relate(("related", "put", "knows"))
    await put(agent, Draft(NodeFields(name="renamed", kind="new"), again.node_id))
    assert [(e.name, e.kind) for e in (await agent.read()).entities] == [("created", "new"), ("renamed", "new")]
    assert triples(await agent.read()) == [("related", "renamed", "knows")]
    for node_id in ended:
        with pytest.raises(NotFound):
            await put_one(agent, "from the dead", node_id)


async def test_a_whitelist_applies_to_put_nodes(agent: Agent) -> None:
    here = await in_new_graph(agent, "lww", kind_whitelist=("person",))
    for fields in (NodeFields(content="no kind"), NodeFields(name="Tom", kind="cat")):
        (outcome,) = await put(here, Draft(fields))
        assert isinstance(outcome, InvalidInput)
    assert (await here.head()).revision == 0


async def test_a_lineage_of_another_graph_or_tenant_cannot_be_read_or_written(
    agent: Agent, new_tenant: NewTenant
) -> None:
    node_id = (await put_one(agent, "mine")).node_id
    version_id = (await get_node(agent, node_id)).id
    elsewhere = await in_new_graph(agent, "lww")
    async with at_work(agent.db, operator_caller(await new_tenant())) as stranger:
        for other in (elsewhere, await in_new_graph(stranger, "lww")):
            with pytest.raises(NotFound):
                await put_one(other, "yours", node_id)
            async with other.db.transaction(other.caller, read_only=True) as tx:
                graph = await graphs.get_graph(tx, other.graph or "")
                for reading in (
                    lineages.history(tx, graph, node_id),
                    lineages.get_version(tx, graph, version_id),
                    lineages.get_past_version(
                        GraphView(tx, graph, await moments.moment_at(tx, graph, datetime.now(UTC))), node_id
                    ),
                ):
                    with pytest.raises(NotFound):
                        await reading


@pytest.mark.proves("memgraph: put-subgraph-order")
@pytest.mark.parametrize("policy", ["lww", "manual"])
async def test_two_puts_of_one_node_in_one_call_make_two_versions_in_order(agent: Agent, policy: str) -> None:
    agent = await in_new_graph(agent, policy)
    node_id = (await put_one(agent, "one")).node_id
    drafts = [Draft(NodeFields(content=said), node_id, based_on) for said, based_on in (("two", 1), ("three", 1))]
    second, third = await put(agent, *drafts)
    assert second == PutOutcome(node_id, 2, created=False, conflict=False)
    assert third == PutOutcome(node_id, 3, created=False, conflict=policy == "manual")
    node = await get_node(agent, node_id)
    assert (node.version, node.content, len(node.conflicts)) == (3, "three", int(policy == "manual"))
    await assert_laws(agent)
