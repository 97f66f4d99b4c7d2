"""`remember` with `supersedes`: older memories become outdated in the same revision, or nothing is written at all."""

from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import ErrorCode, InvalidInput, NotFound, RecollectError
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.observations import service as observations
from recollect.memory import reading
from recollect.memory.model import NewMemory, RememberOutcome
from recollect.postgres.database import Database
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work

OSLO, BERGEN = "Ada lives in Oslo", "Ada lives in Bergen"


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


async def told(agent: Agent, *memories: NewMemory | str) -> list[UUID]:
    return [one.id for one in await agent.remember(*memories)]


@pytest.mark.parametrize("about", [(), ("Ada",)], ids=["fact", "observation"])
async def test_what_is_superseded_is_outdated_in_the_same_revision(agent: Agent, about: tuple[str, ...]) -> None:
    [old] = await told(agent, NewMemory(OSLO, about=about))
    before = await agent.head()
    [new] = await told(agent, NewMemory(BERGEN, about=about, supersedes=(old,)))
    after = await agent.head()
    assert after.revision == before.revision + 1
    assert await agent.recalled("Where does Ada live?") == [BERGEN]
    found = (await agent.recall("Where does Ada live?", include_outdated=True)).hits
    assert {hit.text: hit.outdated for hit in found} == {OSLO: True, BERGEN: False}
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        memory = await reading.find_memory(GraphView(tx, await graphs.get_graph(tx, "default")), old)
        assert memory is not None
        of_it = memory.observation or memory.node
        assert (of_it.status, of_it.reason) == ("outdated", f"Superseded by {new}")


async def test_the_former_version_is_kept(agent: Agent) -> None:
    fact, observation = await told(agent, OSLO, NewMemory(OSLO, about=("Ada",)))
    revision = str((await agent.head()).revision)
    await told(agent, NewMemory(BERGEN, supersedes=(fact, observation)))
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, None, revision)
        [then] = await lineages.get_nodes(view, [fact])
        [now] = await lineages.get_nodes(await graphs.view(tx, None), [fact])
        assert [(v.version, v.status) for v in (then, now)] == [(1, "active"), (2, "outdated")]
        found = await observations.observations_by_id(tx, view.graph, [observation])
        assert found[observation].version == 2


@pytest.mark.parametrize("about", [(), ("Ada",)], ids=["fact", "observation"])
async def test_it_can_be_repeated_and_undone(agent: Agent, about: tuple[str, ...]) -> None:
    [old] = await told(agent, NewMemory(OSLO, about=about))
    since = (await agent.head()).revision
    superseding = NewMemory(BERGEN, about=about, supersedes=(old,))
    await told(agent, superseding)
    once = await agent.head()
    [again] = await agent.remember(superseding)
    assert again.outcome is RememberOutcome.KNOWN
    assert await agent.head() == once, "nothing was written"
    async with agent.db.transaction(agent.caller) as tx:
        assert (await undoing.undo_changes(tx, None, "undo", ChangeRange(since), dry_run=False)).skipped == []
    assert await agent.recalled("Where does Ada live?") == [OSLO]


async def test_several_items_supersede_what_is_theirs(agent: Agent) -> None:
    first, second, third, kept = await told(agent, "tea at four", "tea at five", "milk at six", "bread at seven")
    new, other = await agent.remember(
        NewMemory("tea at eight", supersedes=(first, second)), NewMemory("milk at nine", supersedes=(third, first))
    )
    assert sorted(await agent.recalled("tea", "milk", "bread")) == ["bread at seven", "milk at nine", "tea at eight"]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        nodes = await lineages.get_nodes(await graphs.view(tx, None), [first, second, third, kept])
    assert [node.reason for node in nodes] == [
        f"Superseded by {new.id}",
        f"Superseded by {new.id}",
        f"Superseded by {other.id}",
        None,
    ]


async def test_a_memory_in_a_thread_and_of_another_entity_may_be_superseded(agent: Agent) -> None:
    [old] = await told(agent, NewMemory(OSLO, about=("Ada", "Eve"), thread="talk"))
    await told(agent, NewMemory(BERGEN, about=("Bob",), supersedes=(old,)))
    found = (await agent.recall("Where does Ada live?")).hits
    assert {(hit.name, hit.text) for hit in found} == {("Bob", BERGEN), ("Eve", OSLO), ("Ada", "Ada")}


async def test_faults_name_their_place_and_nothing_is_written(agent: Agent, subtests: pytest.Subtests) -> None:
    fact, observation = await told(agent, OSLO, NewMemory(OSLO, about=("Ada",)))
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        entity = (await observations.observations_by_id(tx, await graphs.get_graph(tx, "default"), [observation]))[
            observation
        ].node_id
    head = await agent.head()
    new = NewMemory("Zuse built the Z3", about=("Zuse",))
    cases: dict[str, tuple[list[NewMemory], type[RecollectError], str]] = {
        "unknown": ([new, replace(new, text="x", supersedes=(fact, uuid4()))], NotFound, "items.1.supersedes.1"),
        "an entity": ([replace(new, supersedes=(entity,))], InvalidInput, "items.0.supersedes.0"),
        "the fact itself": ([NewMemory(OSLO, supersedes=(fact,))], InvalidInput, "items.0.supersedes.0"),
        "a fact of the same call": ([replace(new, supersedes=(fact,)), NewMemory(OSLO)], InvalidInput, "items.0"),
        "the observation itself": (
            [NewMemory(OSLO, about=("Eve", "Ada"), supersedes=(observation,))],
            InvalidInput,
            "items.0.supersedes.0",
        ),
    }
    for name, (items, error, path) in cases.items():
        with subtests.test(name):
            with pytest.raises(error) as refused:
                await agent.remember(*items)
            assert refused.value.path is not None
            assert refused.value.path.startswith(path)
            assert await agent.head() == head
    assert sorted((await agent.recall("Where does Ada live?")).hits, key=str) != []


async def test_what_was_deleted_or_expired_is_unknown(agent: Agent) -> None:
    [deleted] = await told(agent, NewMemory(OSLO, about=("Ada",)))
    async with agent.writing() as (tx, revision):
        await observations.remove_observations_by_id(tx, revision, [deleted])
    with pytest.raises(NotFound) as missing:
        await agent.remember(NewMemory(BERGEN, supersedes=(deleted,)))
    assert (missing.value.code, missing.value.path) == (ErrorCode.NODE_NOT_FOUND, "items.0.supersedes.0")


async def test_a_close_memory_is_marked_where_the_new_one_probably_replaces_it(agent: Agent) -> None:
    [theme, port] = await told(
        agent, "The preferred editor theme of the user is dark", "The staging API server listens on the port 8080"
    )
    await agent.embed()
    light = "The preferred editor theme of the user is light"
    changed, production = await agent.remember(light, "The production API server listens on the port 9090")
    close = {older.memory_id: older.superseded for older in (*changed.close, *production.close)}
    assert close == {theme: True, port: False}
    [in_talk] = await agent.remember(NewMemory(light, thread="talk"))
    assert [older.superseded for older in in_talk.close] == [False]
    [told_of] = await agent.remember(NewMemory(light.replace("light", "green"), supersedes=(theme,)))
    assert told_of.close == []
