"""Pairs that somebody said are different: nothing takes them for duplicates, until that is taken back."""

from uuid import UUID

import pytest

from recollect.caller import Caller
from recollect.curation.dismissals import service as dismissals
from recollect.curation.duplicates import deduplication
from recollect.curation.duplicates import service as duplicates
from recollect.curation.duplicates.model import Mode, ScanCursor
from recollect.curation.merging import service as merging
from recollect.errors import Conflict, NotFound
from recollect.fairness.computing import finish
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from tests.support.dismissals import different, dismiss, dismissed, ids_of, proposed, take_back
from tests.support.memories import Agent, found_duplicates, names

ALIKE = ("Acme Inc", "Acme Inc.", "ACME INC", "Acme Inc!")


@pytest.fixture
async def agent(db: Database, caller: Caller) -> Agent:
    agent = Agent(db, caller)
    await agent.create(*(NewEntity(name, "company", ("makes anvils", "is in Oslo")) for name in ALIKE))
    return agent


@pytest.fixture
async def ids(agent: Agent) -> dict[str, UUID]:
    """The ids of the entities by name."""
    return await ids_of(agent)


async def run(agent: Agent, mode: Mode, *, threshold: float = 0.8) -> None:
    """A whole pass over all entities."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
    cursor: ScanCursor | None = None
    while True:
        done = await deduplication.deduplicate(agent.db, agent.caller, graph.id, cursor, mode=mode, threshold=threshold)
        async with agent.db.transaction(agent.caller) as tx:
            cursor = (await deduplication.settle(tx, *done)).cursor
        if cursor is None:
            return


async def proposed_names(agent: Agent) -> set[frozenset[str | None]]:
    return {frozenset((pair.name, pair.other)) for pair in await proposed(agent)}


async def groups(agent: Agent) -> list[list[str]]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await found_duplicates(await graphs.view(tx, "default"), threshold=0.8)


async def test_a_dismissed_pair_is_neither_proposed_nor_found_until_that_is_taken_back(
    agent: Agent, ids: dict[str, UUID]
) -> None:
    first, second, third, fourth = ALIKE
    await run(agent, "propose")
    assert frozenset((first, second)) in await proposed_names(agent)
    assert await groups(agent) == [list(ALIKE)]
    await dismiss(agent, ids[second], ids[first])
    await dismiss(agent, ids[third], ids[fourth])
    await dismiss(agent, ids[first], ids[second])
    assert frozenset((first, second)) not in await proposed_names(agent)
    await run(agent, "propose")
    left = await proposed_names(agent)
    assert not left & {frozenset((first, second)), frozenset((third, fourth))}
    assert {frozenset((first, third)), frozenset((second, fourth))} <= left
    assert await groups(agent) == [[first, third], [second, fourth]]
    pairs = frozenset((first, second)), frozenset((third, fourth))
    assert await different(agent) == dict.fromkeys(pairs, agent.caller.subject)
    await take_back(agent, ids[first], ids[second])
    with pytest.raises(NotFound):
        await take_back(agent, ids[first], ids[second])
    assert frozenset((first, second)) in await proposed_names(agent), "it is proposed as before"
    assert await groups(agent) == [[first, second, third]], "what is different from a third is in no group with it"


async def test_merges_keep_what_is_different_apart_also_from_what_it_was_merged_into(
    agent: Agent, ids: dict[str, UUID]
) -> None:
    first, second, third, fourth = ALIKE
    await dismiss(agent, ids[second], ids[third])
    await run(agent, "merge")
    assert set(names(await agent.read())) == {first, third}
    await run(agent, "merge")
    assert set(names(await agent.read())) == {first, third}, (
        "the first is different from the third, since the second is"
    )
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        search = await duplicates.open_search(await graphs.view(tx, "default"), threshold=0.8)
        assert finish(search.groups()) == []
    pairs = {frozenset((each.node_id, each.other_id)) for each in await dismissed(agent)}
    assert pairs == {frozenset((ids[second], ids[third])), frozenset((ids[first], ids[third]))}
    async with agent.writing() as (tx, revision):
        await merging.merge_nodes(tx, revision, ids[first], [ids[third]])
    assert names(await agent.read()) == [first], "whoever asks for a merge by name gets it"
    assert fourth not in names(await agent.read())


async def test_dismissed_pairs_of_a_graph_are_bounded_and_of_entities_that_are_there(
    agent: Agent, ids: dict[str, UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third, fourth = ALIKE
    monkeypatch.setattr(dismissals, "MAX_DISMISSALS", 2)
    await dismiss(agent, ids[second], ids[third])
    await dismiss(agent, ids[first], ids[fourth])
    with pytest.raises(Conflict, match="take one back"):
        await dismiss(agent, ids[first], ids[second])
    await dismiss(agent, ids[first], ids[fourth])
    async with agent.writing() as (tx, revision):
        await merging.merge_nodes(tx, revision, ids[first], [ids[second]])
    assert len(await dismissed(agent)) == 2
    await take_back(agent, ids[first], ids[fourth])
    with pytest.raises(NotFound):
        await dismiss(agent, ids[second], ids[fourth])
    with pytest.raises(NotFound):
        await dismiss(agent, ids[third], ids[third])
