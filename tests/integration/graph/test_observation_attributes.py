"""Attributes of an observation: stored, filtered by, versioned, moved along, undone and erased."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange, Reason, UndoPlan
from recollect.errors import InvalidInput
from recollect.fairness.computing import finish
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph
from recollect.graph.nodes import indexing
from recollect.graph.nodes import service as nodes
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import Observation
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, MemoryRef, NewMemory, RememberOutcome, Revised
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.retention.compaction import service as retention
from recollect.retention.erasure import service as erasure
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from recollect.transfer import exports
from recollect.transfer import service as transfer
from recollect.transfer.batches import read_small
from recollect.transfer.model import Strategy
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work, embedded_questions

TEA = NewMemory(
    "drinks tea", about=("Ada",), kind="habit", tags=("Secret",), importance=8, source="diary", metadata={"p": 1}
)


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent, whole=False)


async def observations_of(agent: Agent, *ids: UUID) -> list[Observation]:
    """Live observations by id, in the given order."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await observations.observations_by_id(tx, await _graph(agent, tx), ids)
    return [found[i] for i in ids]


async def revise(agent: Agent, target: UUID, **amendment: Any) -> Revised:
    async with agent.writing() as (tx, revision):
        return await revising.revise(tx, revision, MemoryRef(id=target), MemoryPatch(**amendment))


async def forget(agent: Agent, *ids: UUID, reason: str | None = None, delete: bool = False) -> list[UUID]:
    async with agent.writing() as (tx, revision):
        forgotten = await revising.forget(tx, revision, [MemoryRef(id=i) for i in ids], reason=reason, delete=delete)
    return forgotten.ids


async def all_observations(agent: Agent) -> list[tuple[str, str, str | None]]:
    """All observations of Ada, outdated ones included: text, status and reason, oldest first."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        [ada] = (await agent.open("Ada")).entities
        return [(o.content, o.status, o.reason) for o in await observations.list_observations(tx, [ada.id])]


async def undo(agent: Agent, since: int, until: int | None = None) -> UndoPlan:
    async with agent.db.transaction(agent.caller) as tx:
        return await undoing.undo_changes(tx, None, "undo_changes", ChangeRange(since, until), dry_run=False)


async def recalled_at(agent: Agent, text: str, as_of: int, **only: Any) -> list[tuple[str, tuple[str, ...], bool]]:
    """What recall returned at a past revision: texts, their own tags, and whether each was outdated."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await recall.recall(
            await graphs.view(tx, None, str(as_of)),
            await embedded_questions(text),
            RecallFilter(**only),
            limit=10,
            token_budget=1_500,
            described=True,
        )
    return [(hit.text, found.attributes[hit.memory_id].tags, hit.outdated) for hit in found.hits]


async def observed(agent: Agent, name: str = "Ada") -> tuple[str, ...]:
    [entity] = (await agent.open(name)).entities
    return entity.observations


async def _graph(agent: Agent, tx: Any) -> Graph:
    return await graphs.get_graph(tx, agent.graph or agent.caller.default_graph)


class TestRemember:
    @pytest.mark.proves("agent-toolset: attributes-of-memories")
    async def test_attributes_belong_to_the_observation_and_not_to_its_entity(self, agent: Agent) -> None:
        await agent.create(NewEntity("Ada", "person", ("walks to work",), ("known",), 3))
        tea, coffee = await agent.remember(
            TEA, NewMemory("drinks coffee", about=("Bob",), kind="person", tags=("Secret",))
        )
        [told] = await observations_of(agent, tea.id)
        assert (told.kind, told.tags, told.importance, told.source, told.metadata) == (
            *("habit", ("Secret",), 8, "diary", {"p": 1}),
        )
        ada, bob = (await agent.open("Ada", "Bob")).entities
        assert (ada.kind, ada.tags, ada.importance) == ("person", ("known",), 3)
        assert (bob.kind, bob.tags, bob.importance) == ("person", (), None)
        assert [tea.outcome, coffee.outcome] == [RememberOutcome.NEW, RememberOutcome.NEW]

    async def test_a_tag_of_one_observation_does_not_match_another(self, agent: Agent) -> None:
        await agent.remember(TEA, NewMemory("drinks water", about=("Ada",)))
        assert await agent.recalled("what does Ada drink?", tags=("secret",)) == ["drinks tea"]

    @pytest.mark.proves("agent-toolset: attributes-of-memories")
    async def test_filters_use_the_observations_attributes_and_else_the_entitys(self, agent: Agent) -> None:
        await agent.create(NewEntity("Ada", "person", (), ("known",), 5))
        await agent.remember(TEA, NewMemory("drinks water", about=("Ada",)))
        question = "what does Ada drink?"
        for only in ({"tags": ("SECRET",)}, {"kinds": ("habit",)}, {"min_importance": 7}):
            assert await agent.recalled(question, **only) == ["drinks tea"], only
        for only in ({"tags": ("known",)}, {"kinds": ("person",)}):
            assert await agent.recalled(question, **only) == ["drinks water"], only
        assert set(await agent.recalled(question, min_importance=5)) == {"drinks tea", "drinks water"}

    @pytest.mark.proves("agent: remember", "agent-toolset: known-memories-gain-details")
    async def test_new_attributes_of_a_known_memory_are_stored(self, agent: Agent) -> None:
        first, rain = await agent.remember(
            NewMemory("drinks tea", about=("Ada",), source="diary"), NewMemory("it rained")
        )
        again, wet = await agent.remember(
            NewMemory("drinks tea", about=("Ada",), tags=("Secret",), ttl_days=3), NewMemory("it rained", importance=4)
        )
        assert (again.id, again.outcome, wet.id, wet.outcome) == (
            first.id,
            RememberOutcome.UPDATED,
            rain.id,
            RememberOutcome.UPDATED,
        )
        [told] = await observations_of(agent, first.id)
        assert (told.tags, told.source) == (("Secret",), "diary")
        assert told.expires_at is not None
        assert await agent.recalled("rain", min_importance=4) == ["it rained"]
        same = await agent.remember(NewMemory("drinks tea", about=("Ada",), tags=("Secret",)), NewMemory("it rained"))
        assert [one.outcome for one in same] == [RememberOutcome.KNOWN, RememberOutcome.KNOWN]
        await agent.remember(NewMemory("drinks tea", about=("Ada",), ttl_days=0))
        assert (await observations_of(agent, first.id))[0].expires_at is None
        assert await observed(agent) == ("drinks tea",)

    @pytest.mark.parametrize(("before", "after"), [(1, True), (True, 1), ({"of": [0]}, {"of": [False]})])
    async def test_true_and_one_are_different_values(self, agent: Agent, before: Any, after: Any) -> None:
        for about in ((), ("Ada",)):
            await agent.remember(NewMemory("the door is open", about=about, metadata={"k": before}))
            (told,) = await agent.remember(NewMemory("the door is open", about=about, metadata={"k": after}))
            (again,) = await agent.remember(NewMemory("the door is open", about=about, metadata={"k": after}))
            assert (told.outcome, again.outcome) == (RememberOutcome.UPDATED, RememberOutcome.KNOWN)

    async def test_a_memory_that_occurs_twice_in_a_call_gets_the_attributes_of_both(self, agent: Agent) -> None:
        memories = await agent.remember(TEA, NewMemory("drinks tea", about=("Ada",), importance=2))
        assert [one.outcome for one in memories] == [RememberOutcome.NEW, RememberOutcome.KNOWN]
        [told] = await observations_of(agent, memories[0].id)
        assert (told.tags, told.importance) == (("Secret",), 2)

    async def test_a_kind_that_is_not_allowed_is_refused_with_its_path(self, agent: Agent) -> None:
        await agent.create(NewEntity("Ada", "person"))
        async with agent.db.transaction(agent.caller) as tx:
            await tx.execute(Query.compile("UPDATE graphs SET kind_whitelist = '{person}'"))
        with pytest.raises(InvalidInput) as refused:
            await agent.remember(NewMemory("walks", about=("Ada",)), TEA)
        assert refused.value.path == "items.1.kind"
        assert await observed(agent) == ()


class TestHistory:
    async def test_a_revision_keeps_id_order_and_history(self, agent: Agent) -> None:
        tea, _ = await agent.remember(TEA, NewMemory("drinks water", about=("Ada",)))
        before = (await agent.head()).revision
        revised = await revise(agent, tea.id, text="drinks green tea", tags=("open",), importance=1, ttl_days=9)
        assert revised.id == tea.id
        assert await observed(agent) == ("drinks green tea", "drinks water")
        [told] = await observations_of(agent, tea.id)
        assert (told.content, told.kind, told.tags, told.importance) == ("drinks green tea", "habit", ("open",), 1)
        assert told.expires_at is not None
        assert await recalled_at(agent, "tea", before, tags=("secret",)) == [("drinks tea", ("Secret",), False)]
        assert await recalled_at(agent, "tea", before, tags=("open",)) == []
        assert await agent.recalled("tea", tags=("open",)) == ["drinks green tea"]

    async def test_a_revision_without_a_change_writes_nothing(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        head = await agent.head()
        await revise(agent, tea.id, tags=("Secret",), status="active")
        assert await agent.head() == head

    async def test_an_unchanged_text_keeps_its_vector(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        await agent.embed()
        await revise(agent, tea.id, tags=("open",))
        assert (await agent.recall("what is drunk?", tags=("open",))).waiting == 0
        assert await agent.embed() == 0

    async def test_a_revision_to_the_text_of_another_observation_merges_them(self, agent: Agent) -> None:
        tea, water = await agent.remember(TEA, NewMemory("drinks water", about=("Ada",), source="letter"))
        assert (await revise(agent, tea.id, text="drinks water", tags=("new",))).id == water.id
        [told] = await observations_of(agent, water.id)
        assert (told.tags, told.importance, told.source) == (("new",), 8, "diary")
        assert await observed(agent) == ("drinks water",)

    async def test_undo_restores_the_attributes(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        before, was = (await agent.head()).revision, await observations_of(agent, tea.id)
        await revise(agent, tea.id, tags=("open",), text="drinks beer")
        await forget(agent, tea.id, reason="gave it up")
        await undo(agent, before)
        assert await observations_of(agent, tea.id) == was
        assert await observed(agent) == ("drinks tea",)
        assert await agent.recalled("tea", tags=("secret",)) == ["drinks tea"]

    async def test_undo_skips_and_reports_later_changes_of_others(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        first = (await agent.head()).revision
        await revise(agent, tea.id, importance=1)
        await revise(agent, tea.id, importance=2)
        undone = await undo(agent, first, first + 1)
        assert [(one.id, one.reason) for one in undone.skipped] == [(tea.id, Reason.CHANGED_LATER)]
        assert [one.importance for one in await observations_of(agent, tea.id)] == [2]

    async def test_undo_restores_a_deleted_observation_under_its_id(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        before, was = (await agent.head()).revision, await observations_of(agent, tea.id)
        await forget(agent, tea.id, delete=True)
        await undo(agent, before)
        assert await observations_of(agent, tea.id) == was

    async def test_compaction_deletes_old_versions_and_keeps_the_newest(
        self, agent: Agent, owner: asyncpg.Connection
    ) -> None:
        [tea] = await agent.remember(TEA)
        await revise(agent, tea.id, importance=1)
        await revise(agent, tea.id, importance=2)
        now = (await agent.head()).at
        async with agent.db.transaction(agent.caller) as tx:
            done = await retention.compact(tx, (await _graph(agent, tx)).id, before=now)
        assert done.freed.observations == 2
        assert await owner.fetchval("SELECT count(*) FROM observations WHERE id = $1", tea.id) == 1
        assert [one.importance for one in await observations_of(agent, tea.id)] == [2]


class TestOutdated:
    @pytest.mark.proves("agent-toolset: outdated-is-kept")
    async def test_an_outdated_observation_is_hidden_found_on_request_and_can_be_reactivated(
        self, agent: Agent
    ) -> None:
        tea, _ = await agent.remember(TEA, NewMemory("drinks water", about=("Ada",)))
        before = (await agent.head()).revision
        assert await forget(agent, tea.id, reason="gave it up") == [tea.id]
        assert await observed(agent) == ("drinks water",)
        assert (await agent.head()).observations == 1
        assert await agent.found("tea") == []
        assert await agent.recalled("drinks tea") == ["drinks water"]
        found = (await agent.recall("drinks tea", include_outdated=True)).hits
        assert {(hit.text, hit.memory_id, hit.outdated) for hit in found} >= {("drinks tea", tea.id, True)}
        [kept] = await observations_of(agent, tea.id)
        assert (kept.status, kept.reason, kept.metadata) == ("outdated", "gave it up", {"p": 1})
        assert ("drinks tea", ("Secret",), False) in await recalled_at(agent, "drinks tea", before)
        await revise(agent, tea.id, status="active")
        assert await observed(agent) == ("drinks tea", "drinks water")
        assert [one.reason for one in await observations_of(agent, tea.id)] == [None]
        assert set(await agent.recalled("drinks tea")) == {"drinks tea", "drinks water"}

    async def test_an_entity_with_only_outdated_observations_is_found_by_its_name(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        await forget(agent, tea.id)
        assert await agent.recalled("Ada") == ["Ada"]
        await revise(agent, tea.id, status="active")
        assert await agent.recalled("Ada") == ["drinks tea"]

    async def test_remembering_an_outdated_text_again_makes_a_new_observation(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        await forget(agent, tea.id)
        [again] = await agent.remember(NewMemory("drinks tea", about=("Ada",)))
        assert (again.outcome, again.id != tea.id) == (RememberOutcome.NEW, True)
        assert (await revise(agent, tea.id, status="active")).id == again.id
        assert await observed(agent) == ("drinks tea",)
        assert [one.tags for one in await observations_of(agent, again.id)] == [("Secret",)]

    async def test_a_newly_outdated_observation_replaces_an_older_one_with_the_same_text(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        await forget(agent, tea.id, reason="gave it up")
        [again] = await agent.remember(NewMemory("drinks tea", about=("Ada",)))
        since = (await agent.head()).revision
        was = await observations_of(agent, tea.id, again.id)
        assert await forget(agent, tea.id, again.id, reason="gave it up again") == [tea.id, again.id]
        assert (await agent.head()).observations == 0
        assert await all_observations(agent) == [("drinks tea", "outdated", "gave it up again")]
        assert (await revise(agent, again.id, status="active")).id == again.id
        await undo(agent, since)
        assert await observations_of(agent, tea.id, again.id) == was

    async def test_a_revision_to_the_text_of_an_outdated_observation_replaces_it(self, agent: Agent) -> None:
        tea, water = await agent.remember(TEA, NewMemory("drinks water", about=("Ada",)))
        elsewhere, _ = await agent.remember(NewMemory("drinks tea", about=("Ada",), thread="t"), "drinks tea")
        await forget(agent, tea.id, elsewhere.id)
        assert (await revise(agent, water.id, text="drinks tea")).id == water.id
        assert await all_observations(agent) == [
            ("drinks tea", status, None) for status in ("outdated", "active", "outdated")
        ]
        assert (await revise(agent, water.id, status="outdated")).id == water.id
        assert [one.thread for one in await observations_of(agent, water.id, elsewhere.id)] == [None, "t"]
        assert await all_observations(agent) == [("drinks tea", "outdated", None)] * 2

    async def test_deletion_removes_an_outdated_observation(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        await forget(agent, tea.id)
        assert await forget(agent, tea.id, delete=True) == [tea.id]
        assert await agent.recalled("tea", include_outdated=True) == []

    async def test_an_outdated_observation_goes_with_its_entity_and_counters_stay_exact(self, agent: Agent) -> None:
        tea, _ = await agent.remember(TEA, NewMemory("drinks water", about=("Ada",)))
        await forget(agent, tea.id)
        await agent.delete("Ada")
        assert (await agent.head()).observations == 0


class TestPreservation:
    async def test_a_merge_keeps_and_combines_attributes(self, agent: Agent) -> None:
        gone, _, _ = await agent.remember(
            NewMemory("drinks gin", about=("Bob",), tags=("old",)),
            NewMemory("drinks tea", about=("Bob",), tags=("Open",), importance=9),
            TEA,
        )
        await forget(agent, gone.id, reason="no more")
        await agent.merge(["Ada", "Bob"], "Ada")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            [ada] = (await agent.open("Ada")).entities
            kept = {o.content: o for o in await observations.list_observations(tx, [ada.id])}
        assert ada.observations == ("drinks tea",)
        assert (kept["drinks tea"].tags, kept["drinks tea"].importance) == (("Secret", "Open"), 9)
        assert (kept["drinks gin"].tags, kept["drinks gin"].status, kept["drinks gin"].reason) == (
            *(("old",), "outdated", "no more"),
        )

    async def test_rebuilt_passages_keep_attributes(self, agent: Agent) -> None:
        tea, _ = await agent.remember(TEA, NewMemory("drinks water", about=("Ada",)))
        await forget(agent, tea.id)
        [ada] = (await agent.open("Ada")).entities
        async with agent.writing() as (tx, revision):
            await indexing.reindex(tx, revision, [ada.id])
            await indexing.reindex_page(tx, revision, after=UUID(int=0), limit=10)
            await nodes.touch_nodes(tx, revision, [ada.id])
        assert await agent.recalled("drinks tea", include_outdated=True, tags=("secret",)) == ["drinks tea"]
        assert await agent.recalled("drinks tea", tags=("secret",)) == []

    @pytest.mark.parametrize("format_name", ["json", "csv", "graphml"])
    async def test_export_and_import_preserve_all_attributes(self, agent: Agent, format_name: str) -> None:
        _, water = await agent.remember(TEA, NewMemory("drinks water", about=("Ada",)))
        await forget(agent, water.id, reason="had enough")
        was = await _told_of(agent, "Ada")
        file = await _export(agent, format_name)
        await agent.delete("Ada")
        await _import(agent, format_name, file)
        assert await _told_of(agent, "Ada") == was
        assert await _export(agent, format_name) != ""
        assert await agent.recalled("tea", tags=("secret",)) == ["drinks tea"]

    async def test_a_jsonl_export_omits_outdated_observations(self, agent: Agent) -> None:
        tea, _ = await agent.remember(TEA, NewMemory("drinks water", about=("Ada",)))
        await forget(agent, tea.id)
        assert "tea" not in await _export(agent, "jsonl")

    @pytest.mark.parametrize(("strategy", "tags"), [("merge", ("mine", "Secret")), ("replace", ("Secret",))])
    async def test_an_import_adds_attributes_to_an_existing_observation(
        self, agent: Agent, strategy: str, tags: tuple[str, ...]
    ) -> None:
        [tea] = await agent.remember(TEA)
        file = await _export(agent, "json")
        await revise(agent, tea.id, tags=("mine",))
        await _import(agent, "json", file, strategy)
        assert [one.tags for one in await observations_of(agent, tea.id)] == [tags]

    async def test_duplicate_tags_are_stored_once_and_importing_them_again_changes_nothing(self, agent: Agent) -> None:
        [tea] = await agent.remember(TEA)
        await revise(agent, tea.id, tags=("New", "new", "old", "New"))
        assert [one.tags for one in await observations_of(agent, tea.id)] == [("New", "old")]
        head, file = await agent.head(), await _export(agent, "json")
        await _import(agent, "json", file, "merge")
        assert await agent.head() == head


class TestErasure:
    async def test_erasing_a_person_erases_attributes_that_name_them(
        self, agent: Agent, owner: asyncpg.Connection
    ) -> None:
        await agent.create("Zebulon")
        _, once, free = await agent.remember(
            NewMemory("walks", about=("Ada",), tags=("with Zebulon",)),
            NewMemory("runs with Zebulon", about=("Ada",)),
            NewMemory("reads", about=("Ada",), metadata={"seen": ["by Zebulon"]}),
        )
        await revise(agent, once.id, text="runs alone")
        await revise(agent, free.id, status="outdated", reason="says Zebulon")
        async with agent.db.transaction(agent.caller) as tx:
            receipt = await erasure.erase_person(tx, agent.caller.default_graph, "Zebulon")
        assert receipt.kept == {}
        assert receipt.erased["observations"] >= 4
        assert await observed(agent) == ("runs alone",)
        assert [one.id for one in await observations_of(agent, once.id)] == [once.id]
        for table in ("observations", "passages"):
            rows = f"SELECT count(*) FROM {table} t WHERE to_jsonb(t)::text LIKE '%Zebulon%' AND tenant_id = $1"
            assert await owner.fetchval(rows, agent.caller.tenant_id) == 0, table
        assert await agent.recalled("alone") == ["runs alone"]


async def _told_of(agent: Agent, name: str) -> list[tuple[Any, ...]]:
    [entity] = (await agent.open(name)).entities
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await observations.list_observations(tx, [entity.id])
    return [(o.content, o.attributes, o.status, o.reason, o.thread, o.said_at) for o in found]


async def _export(agent: Agent, format_name: str) -> str:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        export = await exports.open_export(tx, agent.caller.default_graph, format_name)
        file = await exports.export_whole(tx, export, max_bytes=100_000, max_pages=10)
    assert file is not None
    return file


async def _import(agent: Agent, format_name: str, file: str, strategy: str = "skip") -> None:
    items, problems = finish(read_small(format_name, [file.encode()], max_items=100, max_observations=100))
    assert problems == []
    async with agent.writing() as (tx, revision):
        imported = await transfer.import_items(tx, revision, items, Strategy(strategy))
    assert imported.problems == ()
