"""`find_similar` with `as_of` finds what was similar at that revision, whatever was written since."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import InvalidInput, NotFound
from recollect.graph.graphs import service as graphs
from recollect.graph.lineages.model import Version
from recollect.graph.nodes.model import NewFact
from recollect.graph.relations.model import NewEdge
from recollect.memory import relating, revising, searching, writing
from recollect.memory.revising import NodePatch
from recollect.memory.searching import SimilarFact
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.gateway import revision_of
from tests.support.memories import Agent, at_work

SOFA, COUCH, RUG = "the cat sleeps on the sofa", "the cat is sleeping on the couch", "a cat slept on the rug"


async def fact(agent: Agent, text: str, **fields: Any) -> UUID:
    async with agent.writing() as (tx, revision):
        made: Version = (await writing.create_fact(tx, revision, NewFact(text, **fields), (), auto_link=False)).node
    await agent.embed()
    return made.node_id


async def change(agent: Agent, node_id: UUID, **wanted: Any) -> None:
    async with agent.writing() as (tx, revision):
        await revising.change(tx, revision, node_id, NodePatch(**wanted))
    await agent.embed()


async def similar(agent: Agent, node_id: UUID, as_of: str | None = None, threshold: float = 0.3) -> list[SimilarFact]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await searching.find_similar(
            await graphs.view(tx, None, as_of), node_id, threshold=threshold, limit=9, edges=True
        )


def compared(found: list[SimilarFact]) -> list[Any]:
    """The properties to compare, without those that a later revision changes."""
    return [
        (one.node.node_id, one.node.content, one.node.version, round(one.score, 6), [edge.type for edge in one.edges])
        for one in found
    ]


@pytest.mark.proves("rules: reads-of-the-past")
async def test_each_past_revision_finds_what_was_similar_then(agent: Agent, db: Database, caller: Caller) -> None:
    seen: dict[str, list[Any]] = {}
    sofa = await fact(agent, SOFA)

    async def look() -> None:
        seen[str(await revision_of(db, caller))] = compared(await similar(agent, sofa))

    await look()
    couch = await fact(agent, COUCH)
    await look()
    rug = await fact(agent, RUG)
    await look()
    async with agent.writing() as (tx, revision):
        await relating.relate(tx, revision, NewEdge(sofa, couch, "SIMILAR_TO"))
    await look()
    await change(agent, couch, text="interest rates rose in March")
    await look()
    await change(agent, rug, status="outdated")
    await look()
    await change(agent, couch, text=COUCH)
    await change(agent, rug, status="active")
    await look()
    await change(agent, sofa, text="rates of interest went up in March")
    await look()
    async with agent.writing() as (tx, revision):
        await revising.delete(tx, revision, couch)
    await look()
    assert len({str(found) for found in seen.values()}) >= 6, "the states differ"
    assert {len(found) for found in seen.values()} == {0, 1, 2}
    assert {then: compared(await similar(agent, sofa, as_of=then)) for then in seen} == seen
    assert compared(await similar(agent, sofa, as_of=datetime.now(UTC).isoformat())) == compared(
        await similar(agent, sofa)
    )


async def test_expiry_is_judged_at_the_moment_that_is_read(agent: Agent) -> None:
    now = datetime.now(UTC)
    sofa = await fact(agent, SOFA)
    await fact(agent, COUCH, expires_at=now + timedelta(days=1))
    then = datetime.now(UTC)
    assert [one.node.content for one in await similar(agent, sofa, as_of=then.isoformat())] == [COUCH]
    later = (now + timedelta(days=2)).isoformat()
    assert await similar(agent, sofa, as_of=later) == []


async def test_threshold_and_limit_apply_in_the_past(agent: Agent) -> None:
    sofa = await fact(agent, SOFA)
    for text in (COUCH, RUG, "interest rates rose in March"):
        await fact(agent, text)
    [best, *_] = found = await similar(agent, sofa, as_of="4")
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert [one.node.content for one in await similar(agent, sofa, as_of="4", threshold=best.score - 1e-9)] == [
        best.node.content
    ]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        [first] = await searching.find_similar(
            await graphs.view(tx, None, "4"), sofa, threshold=0.3, limit=1, edges=False
        )
    assert first.node == best.node


async def test_a_fact_is_not_found_before_its_creation(agent: Agent) -> None:
    await fact(agent, COUCH)
    sofa = await fact(agent, SOFA)
    with pytest.raises(NotFound):
        await similar(agent, sofa, as_of="1")
    with pytest.raises(InvalidInput):
        await similar(agent, sofa, as_of="99")


async def test_another_tenants_facts_are_not_similar_in_the_past(
    agent: Agent, db: Database, new_tenant: NewTenant
) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as other:
        foreign = await fact(other, COUCH)
        sofa = await fact(agent, SOFA)
        assert await similar(agent, sofa, as_of="1", threshold=0) == []
        with pytest.raises(NotFound):
            await similar(agent, foreign, as_of="1")
