"""Deduplication passes: the result does not depend on the steps, only changed entities are compared again, and each
merge can be undone alone.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.curation.duplicates import deduplication, store
from recollect.curation.duplicates import service as duplicates
from recollect.curation.duplicates.model import Deduplication, DedupStep, Mode, RequestedPass, ScanCursor
from recollect.curation.merging import service as merging
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import InvalidInput, TooLarge
from recollect.fairness import computing
from recollect.fairness.computing import Slices
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.postgres.database import Database
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work, found_duplicates, names, triples

ALIKE = (
    NewEntity("Acme Inc", "company", ("makes anvils", "is in Oslo")),
    NewEntity("Acme Inc.", "company", ("makes anvils", "is in Oslo")),
    NewEntity("ACME INC", "company", ("makes anvils", "is in Oslo")),
    NewEntity("Bolt Ltd", "company", ("makes bolts",)),
    NewEntity("Bolts Ltd", "company", ("makes bolts",)),
    NewEntity("Acme Inc!", "cat", ("makes anvils", "is in Oslo")),
    NewEntity("Ada", "person", ("writes",)),
)
ACME, BOLT = ["Acme Inc", "Acme Inc.", "ACME INC"], ["Bolt Ltd", "Bolts Ltd"]


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        agent = replace(agent, graph="companies")
        yield agent
        await assert_laws(agent)


async def create_companies(agent: Agent, **dedup: Any) -> None:
    """Create the graph, with its configuration, and its entities."""
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("companies", metadata={"dedup": {"threshold": 0.8, **dedup}}))
    await agent.create(*ALIKE)


async def configure(owner: asyncpg.Connection, agent: Agent, threshold: float) -> None:
    """Set another threshold in the metadata, without a revision, which `assert_laws` allows for a configuration."""
    await owner.execute(
        "UPDATE graphs SET metadata = jsonb_set(metadata, '{dedup,threshold}', to_jsonb($2::float)) "
        "WHERE tenant_id = $1",
        agent.caller.tenant_id,
        threshold,
    )


async def step(agent: Agent, cursor: ScanCursor | None, limit: int, asked: RequestedPass | None = None) -> DedupStep:
    wanted: dict[str, Any] = {} if asked is None else asdict(asked)
    done = await deduplication.deduplicate(agent.db, agent.caller, await graph_id(agent), cursor, limit=limit, **wanted)
    async with agent.db.transaction(agent.caller) as tx:
        return await deduplication.settle(tx, *done)


async def graph_id(agent: Agent) -> UUID:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return (await graphs.get_graph(tx, "companies")).id


async def run(
    agent: Agent, limit: int = 5_000, *, asked: RequestedPass | None = None, cursor: ScanCursor | None = None
) -> list[DedupStep]:
    """A whole pass, or the rest of one from a cursor."""
    steps = list[DedupStep]()
    while not steps or cursor is not None:
        steps.append(await step(agent, cursor, limit, asked))
        cursor = steps[-1].cursor
        assert len(steps) < 50
    return steps


async def proposed(agent: Agent) -> set[frozenset[str]]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await store.list_duplicates(tx, await graphs.get_graph(tx, "companies"), least=0, offset=0, limit=100)
    assert all(0.8 <= pair.likeness <= 1 for pair in found)
    return {frozenset((pair.name, pair.other)) for pair in found}


def pairs(*group: str) -> set[frozenset[str]]:
    return {frozenset((one, other)) for one in group for other in group if one < other}


def compared(steps: list[DedupStep]) -> int:
    return sum(step.compared for step in steps)


@pytest.mark.parametrize("limit", [1, 2, 5_000])
async def test_a_pass_proposes_duplicates_for_any_size_of_steps(agent: Agent, limit: int) -> None:
    await create_companies(agent, mode="propose")
    steps = await run(agent, limit)
    assert compared(steps) == len(ALIKE)
    assert all(step.compared <= limit for step in steps)
    assert await proposed(agent) == pairs(*ACME) | pairs(*BOLT)
    assert len(names(await agent.read())) == len(ALIKE)
    assert (await agent.head()).revision == 1, "proposals are no change of the graph"


async def test_only_changed_entities_are_compared_again(agent: Agent) -> None:
    await create_companies(agent, mode="propose")
    await run(agent)
    assert compared(await run(agent)) == 0
    await agent.observe("Bolts Ltd", "sells nuts", "sells screws", "is in Bergen")
    await agent.create(NewEntity("Ada.", "person", ("writes",)))
    assert compared(await run(agent)) == 2
    assert await proposed(agent) == pairs(*ACME) | pairs("Ada", "Ada.")
    await agent.unobserve(*(("Bolts Ltd", text) for text in ("sells nuts", "sells screws", "is in Bergen")))
    assert compared(await run(agent)) == 1
    assert await proposed(agent) == pairs(*ACME) | pairs(*BOLT) | pairs("Ada", "Ada.")
    await agent.delete("Ada.")
    assert await proposed(agent) == pairs(*ACME) | pairs(*BOLT)


async def test_an_entity_changed_during_a_pass_is_compared_in_the_next(agent: Agent) -> None:
    await create_companies(agent, mode="propose")
    first = await step(agent, None, 1)
    await agent.observe("Ada", "rides")
    cursor = first.cursor
    while cursor is not None:
        cursor = (await step(agent, cursor, 5_000)).cursor
    assert compared(await run(agent)) == 1


async def test_duplicates_are_related_if_similar_to_is_configured(agent: Agent) -> None:
    await create_companies(agent, mode="propose", similar_to=True)
    await run(agent)
    assert sorted(triples(await agent.read())) == [
        ("ACME INC", "Acme Inc", "SIMILAR_TO"),
        ("ACME INC", "Acme Inc.", "SIMILAR_TO"),
        ("Acme Inc.", "Acme Inc", "SIMILAR_TO"),
        ("Bolts Ltd", "Bolt Ltd", "SIMILAR_TO"),
    ]
    assert (await agent.head()).revision > 1
    revision = (await agent.head()).revision
    await run(agent)
    assert (await agent.head()).revision == revision


async def test_an_entity_deleted_during_comparison_is_not_proposed(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_companies(agent, mode="propose", similar_to=True)
    compare = computing.compute

    async def deleted_meanwhile(tenant_id: UUID, slices: Slices[Any], **bounds: Any) -> Any:
        await agent.delete(ACME[2])
        return await compare(tenant_id, slices, **bounds)

    monkeypatch.setattr(computing, "compute", deleted_meanwhile)
    assert sum(step.proposed for step in await run(agent)) == 2
    assert await proposed(agent) == pairs(*ACME[:2]) | pairs(*BOLT)
    assert len(triples(await agent.read())) == 2


@pytest.mark.parametrize("status", ["outdated", "archived"])
async def test_inactive_entities_are_not_compared(agent: Agent, status: str) -> None:
    await create_companies(agent, mode="propose")
    await run(agent)
    await agent.let_go("Acme Inc", status)
    assert await proposed(agent) == pairs(*ACME[1:]) | pairs(*BOLT)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        now = await graphs.view(tx, "companies")
        assert await found_duplicates(now, threshold=0.8) == [ACME[1:], BOLT]
        then = await graphs.view(tx, "companies", str((await agent.head()).revision))
        assert await found_duplicates(then, threshold=0.8) == [ACME[1:], BOLT]
    await run(agent, asked=RequestedPass("merge", 0.8))
    left = {entity.name: entity.status for entity in (await agent.read()).entities}
    assert left == {"Acme Inc": status} | dict.fromkeys(("Acme Inc!", "Acme Inc.", "Ada", "Bolt Ltd"), "active")
    assert "makes anvils" in await agent.recalled("makes anvils")


async def test_an_entity_that_becomes_inactive_during_comparison_is_not_proposed(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_companies(agent, mode="propose", similar_to=True)
    compare = computing.compute

    async def let_go_meanwhile(tenant_id: UUID, slices: Slices[Any], **bounds: Any) -> Any:
        await agent.let_go(ACME[2])
        return await compare(tenant_id, slices, **bounds)

    monkeypatch.setattr(computing, "compute", let_go_meanwhile)
    await run(agent)
    assert sorted(triples(await agent.read())) == [
        ("Acme Inc.", "Acme Inc", "SIMILAR_TO"),
        ("Bolts Ltd", "Bolt Ltd", "SIMILAR_TO"),
    ]


@pytest.mark.parametrize("limit", [1, 5_000])
async def test_a_merge_keeps_the_oldest_of_each_group(agent: Agent, limit: int) -> None:
    await create_companies(agent, mode="merge")
    steps = await run(agent, limit)
    assert sum(step.merged for step in steps) == 3
    assert sorted(names(await agent.read())) == ["Acme Inc", "Acme Inc!", "Ada", "Bolt Ltd"]
    assert await proposed(agent) == set()
    assert compared(await run(agent)) == 2, "those that took others over"


async def test_each_merge_can_be_undone_alone(agent: Agent) -> None:
    await create_companies(agent, mode="merge")
    await run(agent)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        changes, _ = await graphs.recent_changes(tx, "companies", since=1, limit=10)
    assert [change.operation for change in changes] == ["deduplicate", "deduplicate"]
    async with agent.db.transaction(agent.caller) as tx:
        span = ChangeRange(changes[1].revision - 1, changes[1].revision)
        await undoing.undo_changes(tx, "companies", "undo", span, dry_run=False)
    assert sorted(names(await agent.read())) == ["Acme Inc", "Acme Inc!", "Ada", *BOLT]


async def test_groups_beyond_the_limit_are_merged_in_further_steps(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplication, "MAX_MERGED", 1)
    await create_companies(agent, mode="merge")
    steps = await run(agent)
    assert [step.merged for step in steps if step.merged] == [2, 1]


@pytest.mark.parametrize("limit", [3, 5_000])
async def test_groups_beyond_the_limit_are_merged_after_all_entities_were_compared(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    await create_companies(agent)
    await agent.create(*(NewEntity(name, "city", ("lies here",)) for name in ("Oslo A", "Oslo B", "Rome A", "Rome B")))
    await run(agent, asked=RequestedPass("propose", 0.3))
    monkeypatch.setattr(deduplication, "MAX_MERGED", 1)
    steps = await run(agent, limit, asked=RequestedPass("merge", 0.8))
    assert sorted(step.merged for step in steps if step.merged) == [1, 1, 1, 2], "a group each, whatever is left of it"
    left = ["Acme Inc", "Acme Inc!", "Ada", "Bolt Ltd", "Oslo A", "Rome A"]
    assert sorted(names(await agent.read())) == left
    assert await proposed(agent) == set()


async def test_concurrent_passes_merge_each_group_once(agent: Agent) -> None:
    await create_companies(agent, mode="merge")
    passes = await asyncio.gather(*(run(agent) for _ in range(5)))
    assert sum(one.merged for steps in passes for one in steps) == 3
    assert sorted(names(await agent.read())) == ["Acme Inc", "Acme Inc!", "Ada", "Bolt Ltd"]


async def test_a_failed_step_is_repeated(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    await create_companies(agent, mode="merge")

    async def fail(*_: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as broken:
        broken.setattr(entities, "mark_compared", fail)
        with pytest.raises(RuntimeError):
            await step(agent, None, 5_000)
    assert len(names(await agent.read())) == len(ALIKE)
    assert sum(one.merged for one in await run(agent)) == 3


async def test_a_graph_without_configuration_is_not_deduplicated(agent: Agent) -> None:
    await create_companies(agent)
    assert await run(agent) == [DedupStep(0, 0, 0, None)]


@pytest.mark.parametrize(
    ("dedup", "path"),
    [
        ("merge", ""),
        (["merge"], ""),
        ({"mode": "always"}, ".mode"),
        ({"mode": "merge", "threshold": 0.1}, ".threshold"),
        ({"threshold": "high"}, ".threshold"),
        ({"mode": "merge", "every_hours": 0}, ".every_hours"),
        ({"mode": "merge", "every_hours": 1e9}, ".every_hours"),
    ],
)
async def test_an_invalid_configuration_is_reported(agent: Agent, dedup: Any, path: str) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("companies", metadata={"dedup": dedup}))
    with pytest.raises(InvalidInput) as refused:
        await step(agent, None, 10)
    assert refused.value.path == f"metadata.dedup{path}"
    assert "$" not in str(refused.value)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert await deduplication.graphs_with_deduplication_due(tx) == []


def test_a_configuration_has_defaults() -> None:
    assert deduplication.deduplication_of({"dedup": {"mode": "propose"}}) == Deduplication("propose", 0.9, 24, False)
    assert deduplication.deduplication_of({"for": "anything else"}) == Deduplication()


async def test_a_graph_is_due_as_often_as_configured(agent: Agent, owner: asyncpg.Connection) -> None:
    await create_companies(agent, mode="propose", every_hours=2)

    async def due() -> bool:
        tenants = await deduplication.tenants_with_deduplication_due(agent.db)
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            found = await deduplication.graphs_with_deduplication_due(tx)
            graph = await graphs.get_graph(tx, "companies")
        assert (agent.caller.tenant_id in tenants) is (found == [graph.id])
        return bool(found)

    assert await due()
    await run(agent)
    assert not await due()
    for hours, expected in ((1, False), (3, True)):
        await owner.execute(
            "UPDATE deduplications SET finished_at = now() - make_interval(hours => $2) WHERE tenant_id = $1",
            agent.caller.tenant_id,
            hours,
        )
        assert await due() is expected


async def test_duplicates_of_a_large_graph_are_those_proposed_by_a_pass(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "MAX_COMPARED", 3)
    await create_companies(agent, mode="propose")
    with pytest.raises(TooLarge, match="dedup"):
        await found_groups(agent)
    await run(agent)
    assert await found_groups(agent) == [ACME, BOLT]
    await amend(agent, ACME[0], status="archived")
    await amend(agent, BOLT[1], kind="other")
    assert await found_groups(agent) == [ACME[1:]], "none is alike with what is in use no longer, or of another type"


async def found_groups(agent: Agent, threshold: float = 0.8, as_of: str | None = None) -> list[list[str]]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await found_duplicates(await graphs.view(tx, "companies", as_of), threshold=threshold)


@pytest.mark.parametrize(("mode", "left"), [("propose", [[ACME[0], ACME[2]]]), ("merge", [])])
async def test_a_large_graph_needs_a_pass_with_a_threshold_that_is_low_enough(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, mode: Mode, left: list[list[str]]
) -> None:
    monkeypatch.setattr(duplicates, "MAX_COMPARED", 3)
    await create_companies(agent)
    await run(agent, asked=RequestedPass("propose", 0.3))
    assert await found_groups(agent) == [ACME, BOLT]
    assert await found_groups(agent, 0.1) == [[*ACME, *BOLT]], "of one type, nothing is less alike than 0.3"
    begun = await step(agent, None, 1, RequestedPass(mode, 0.88))
    with pytest.raises(TooLarge, match='"threshold": 0\\.8'):
        await found_groups(agent)
    await run(agent, asked=RequestedPass(mode, 0.88), cursor=begun.cursor)
    with pytest.raises(TooLarge):
        await found_groups(agent)
    assert await found_groups(agent, 0.88) == left
    await run(agent, asked=RequestedPass("propose", 0.8))
    assert [group[0] for group in await found_groups(agent)] == [ACME[0], BOLT[0]]


async def test_a_requested_pass_does_not_replace_the_configured_one(agent: Agent) -> None:
    await create_companies(agent, mode="propose")
    await run(agent)
    await run(agent, asked=RequestedPass("propose", 0.88))
    assert await proposed(agent) == pairs(ACME[0], ACME[2])
    assert compared(await run(agent)) == len(ALIKE)
    assert await proposed(agent) == pairs(*ACME) | pairs(*BOLT)
    await run(agent, asked=RequestedPass("propose", 0.5))
    assert compared(await run(agent)) == 0, "all that is as alike is proposed"


async def test_a_lowered_threshold_applies_to_existing_entities(
    agent: Agent, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "MAX_COMPARED", 3)
    await create_companies(agent, mode="propose", threshold=0.88)
    await run(agent)
    await configure(owner, agent, 0.8)
    assert compared(await run(agent)) == len(ALIKE)
    assert await proposed(agent) == pairs(*ACME) | pairs(*BOLT)
    await configure(owner, agent, 0.88)
    assert compared(await run(agent)) == 0
    assert await found_groups(agent) == [ACME, BOLT], "nothing was taken back"
    await agent.observe("Ada", "rides")
    assert compared(await run(agent)) == 1
    with pytest.raises(TooLarge):
        await found_groups(agent)
    await configure(owner, agent, 0.8)
    assert compared(await run(agent)) == len(ALIKE)


async def test_earlier_proposals_are_merged_by_a_later_merging_pass(agent: Agent) -> None:
    await create_companies(agent, mode="merge")
    await run(agent, asked=RequestedPass("propose", 0.5))
    assert sum(step.merged for step in await run(agent)) == 3
    await run(agent)
    assert compared(await run(agent)) == 0, "what is less alike stays"


async def test_a_threshold_lowered_during_a_pass_applies_from_the_next(agent: Agent, owner: asyncpg.Connection) -> None:
    await create_companies(agent, mode="propose", threshold=0.88)
    begun = await step(agent, None, 5)
    await configure(owner, agent, 0.8)
    await run(agent, cursor=begun.cursor)
    assert compared(await run(agent)) == len(ALIKE)
    assert await proposed(agent) == pairs(*ACME) | pairs(*BOLT)


async def test_a_graph_without_a_recorded_threshold_is_compared_again(agent: Agent, owner: asyncpg.Connection) -> None:
    await create_companies(agent, mode="propose")
    await run(agent)
    await owner.execute("UPDATE deduplications SET threshold = NULL WHERE tenant_id = $1", agent.caller.tenant_id)
    assert compared(await run(agent)) == len(ALIKE)
    assert compared(await run(agent)) == 0


async def test_groups_of_a_large_graph_are_ordered_by_age_of_entities(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_companies(agent, mode="propose")
    async with agent.writing() as (tx, revision):
        fields = NodeFields(name="Bolt Ltd.", kind="company")
        await nodes.create_nodes(tx, revision, [fields], began=[datetime(2020, 1, 1, tzinfo=UTC)])
        await observations.add_observations(tx, revision, [NewObservation("Bolt Ltd.", "makes bolts")])
    await run(agent)

    small = await found_groups(agent)
    assert small == [["Bolt Ltd.", *BOLT], ACME]
    monkeypatch.setattr(duplicates, "MAX_COMPARED", 3)
    assert await found_groups(agent) == small
    with pytest.raises(TooLarge, match="leave as_of out") as refused:
        await found_groups(agent, as_of="2")
    assert refused.value.path == "as_of"


async def amend(agent: Agent, name: str, **fields: Any) -> None:
    async with agent.writing() as (tx, revision):
        node = (await naming.require_entities(tx, revision.graph, [name]))[name]
        head = (await nodes.read_heads(tx, revision.graph, [node.id]))[node.id]
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, **fields))])


async def test_too_many_entities_of_one_type_are_refused(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deduplication, "MAX_PROFILES", 2)
    await create_companies(agent, mode="propose")
    with pytest.raises(TooLarge):
        await run(agent)
    await amend(agent, ACME[0], status="archived")
    await amend(agent, ACME[1], expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    await amend(agent, ACME[2], status="archived")
    assert compared(await run(agent)) == len(ALIKE) - len(ACME), "what is in use no longer is not held"


async def test_a_group_that_is_too_large_to_merge_stays_apart(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass goes on with the others; each of this group has two observations."""
    await create_companies(agent, mode="merge")
    await agent.relate(*((name, f"another {name}", "is like") for name in ACME))
    monkeypatch.setattr(merging, "MAX_MOVED", {**merging.MAX_MOVED, "relations": 0})
    assert sum(one.merged for one in await run(agent)) == 1
    assert set(ACME) < set(names(await agent.read()))
