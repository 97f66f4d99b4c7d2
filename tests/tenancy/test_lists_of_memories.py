"""Lists of memories, what a graph is said to hold, and superseded memories: none crosses from one tenant to another."""

from uuid import uuid4

import asyncpg
import pytest

from recollect.errors import ErrorCode, NotFound
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.memory.model import NewMemory
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.listing import with_holdings
from recollect.retrieval.recall.model import Recalled, RecallFilter
from recollect.retrieval.recall.pages import ListPosition, MemoryPage, Order
from tests.support.memories import Agent, embedded_questions
from tests.tenancy.conftest import Neighbour, contents

Neighbours = tuple[Neighbour, Neighbour]


async def listed(agent: Agent, *questions: str, page: MemoryPage, **only: object) -> Recalled:
    """A page of what is listed, or what the graph holds."""
    filters = RecallFilter(**only)  # type: ignore[arg-type]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, None)
        asked = await embedded_questions(*questions) if questions else []
        recalled = await recall.recall(view, asked, filters, limit=100, token_budget=9_999, page=page)
        return recalled if recalled.hits else await with_holdings(view, recalled)


@pytest.mark.proves("security: searches-of-one-tenant")
async def test_a_list_has_the_tenants_own_memories_only(neighbours: Neighbours) -> None:
    mine, theirs = neighbours
    [known] = await mine.remember(NewMemory("my platypus", about=("Zuse",), tags=("mine",), kind="pet"))
    for order in Order:
        for questions, only in (
            (("everything",), {}),
            (("What do you know about Zuse?",), {}),
            ((), {"tags": ("mine",)}),
            ((), {"about": ("Zuse",)}),
            ((), {"not_kinds": ("x",)}),
        ):
            own = await listed(mine, *questions, page=MemoryPage(order), **only)
            assert known.id in {hit.memory_id for hit in own.hits}
            others = await listed(theirs, *questions, page=MemoryPage(order), **only)
            assert "my platypus" not in {hit.text for hit in others.hits}


async def test_a_place_in_the_list_of_another_tenant_is_a_time_like_any(neighbours: Neighbours) -> None:
    mine, theirs = neighbours
    own = await listed(mine, "everything", page=MemoryPage())
    last = own.positions[own.hits[-1].key]
    for place in (last, ListPosition(last.importance, last.at, uuid4())):
        found = await listed(theirs, "everything", page=MemoryPage(after=place))
        assert {hit.memory_id for hit in found.hits}.isdisjoint(hit.memory_id for hit in own.hits)


@pytest.mark.proves("rules: no-foreign-ids")
async def test_the_graph_of_another_tenant_is_empty(neighbours: Neighbours) -> None:
    """Even if its id were known: row-level security hides it, and what it holds is not told."""
    mine, theirs = neighbours
    await theirs.remember(NewMemory("a secret platypus", about=("Secret Agent",)))
    async with theirs.db.transaction(theirs.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        holdings = (await with_holdings(GraphView(tx, graph), Recalled([], more=False, waiting=0))).holdings
        assert holdings is not None
        assert (holdings.memories, holdings.subjects) == (0, ())


@pytest.mark.proves("security: searches-of-one-tenant")
async def test_what_a_graph_holds_names_the_tenants_own_subjects(neighbours: Neighbours) -> None:
    mine, theirs = neighbours
    await theirs.remember(NewMemory("a secret platypus", about=("Secret Agent",)))
    found = await listed(mine, page=MemoryPage(), tags=("nothing has it",))
    assert found.holdings is not None
    assert "Secret Agent" not in found.holdings.subjects
    assert found.holdings.subjects == ("Ada",)


@pytest.mark.proves("security: searches-of-one-tenant")
@pytest.mark.proves("rules: no-foreign-ids")
async def test_a_memory_of_another_tenant_cannot_be_superseded(
    neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    """Its id looks like one that nobody has, and nothing of either tenant changes."""
    mine, theirs = neighbours
    remembered = await theirs.remember("a fact", NewMemory("an observation", about=("Ada",)))
    before = [await contents(owner, one) for one in neighbours]
    refusals = set()
    for foreign in (*(one.id for one in remembered), uuid4()):
        with pytest.raises(NotFound) as refused:
            await mine.remember(NewMemory("mine", supersedes=(foreign,)))
        refusals.add((str(refused.value), refused.value.code))
    assert refusals == {("items.0.supersedes.0: There is no memory with this id", ErrorCode.NODE_NOT_FOUND)}
    assert [await contents(owner, one) for one in neighbours] == before
