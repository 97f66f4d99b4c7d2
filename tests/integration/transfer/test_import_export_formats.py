"""Exports in each format and imports of them: on a real database, of any content, with every strategy."""

import itertools
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.curation.labels import service as labels
from recollect.curation.labels.model import TagChange
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.fairness import computing
from recollect.graph.aliases import service as aliases
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite
from recollect.memory import revising
from recollect.memory.model import MemoryRef, NewMemory
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.transfer import batches, exports
from recollect.transfer import service as transfer
from recollect.transfer.batches import read_batches
from recollect.transfer.dry_run import SeenRecords, dry_run_items
from recollect.transfer.formats import FORMATS, IMPORTED
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.formats.writer import Stage
from recollect.transfer.model import ExportSelection, ImportProblem, ImportResult, Strategy
from recollect.transfer.records import (
    AnyRecord,
    EntityRecord,
    FactKey,
    FactRecord,
    ObservationRecord,
    Placement,
    RelationRecord,
)
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.histories import HISTORIES, written
from tests.support.invariants import assert_laws
from tests.support.memories import Agent

LOSSLESS = [name for name in IMPORTED if name != "jsonl"]


async def create_graph(agent: Agent) -> Agent:
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph(str(agent.graph)))
    return agent


async def exported(
    agent: Agent,
    format_name: str = "json",
    *,
    selection: ExportSelection | None = None,
    as_of: str | None = None,
    page_items: int = 3,
) -> bytes:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        export = await exports.open_export(tx, agent.graph or "default", format_name, selection=selection, as_of=as_of)
    return b"".join([c async for c in exports.export_chunks(agent.db, agent.caller, export, page_items=page_items)])


async def imported(
    agent: Agent, file: bytes, format_name: str = "json", strategy: Strategy = Strategy.SKIP, *, keep: bool = True
) -> ImportResult:
    said = ImportResult()
    for batch in read_batches(format_name, [file[i : i + 100] for i in range(0, len(file), 100)]):
        said += ImportResult(problems=batch.problems)
        async with agent.db.transaction(agent.caller, commit=keep) as tx:
            said += await transfer.import_batch(tx, agent.graph or "default", batch.items, strategy)
    return said


async def import_records(agent: Agent, *records: AnyRecord, strategy: Strategy = Strategy.SKIP) -> ImportResult:
    items = [ParsedRecord(f"item {number}", record) for number, record in enumerate(records)]
    async with agent.db.transaction(agent.caller) as tx:
        return await transfer.import_batch(tx, agent.graph or "default", items, strategy)


def entity(name: str, *said: str, **fields: Any) -> EntityRecord:
    return EntityRecord(**{"name": name, "entity_type": "thing", "observations": list(said), **fields})


def relation(source: str | FactKey, target: str | FactKey, **fields: Any) -> RelationRecord:
    return RelationRecord(**{"from_": source, "to": target, "relation_type": "knows", **fields})


def comparable(file: bytes) -> dict[str, Any]:
    """The content of a JSON export without the times at which it was written here, and with equal facts and
    relations once.

    Facts of one moment have no order among themselves.
    """
    said: dict[str, Any] = json.loads(file)
    for part in ("entities", "facts"):
        for item in said[part]:
            item.pop("lastModified")
    facts = {json.dumps([f["text"], f.get("thread"), f.get("status")]): f for f in reversed(said["facts"])}
    said["facts"] = sorted(facts.values(), key=lambda f: (f["createdAt"], f["text"], f.get("thread") or ""))
    edges = {json.dumps([r["from"], r["to"], r["relationType"]]): r for r in reversed(said["relations"])}
    for edge in edges.values():
        edge.pop("lastModified")
    said["relations"] = list(reversed(edges.values()))
    return said


async def transfer_one_entity(first: Agent, second: Agent, format_name: str) -> list[str]:
    """Import a graph with one entity into another graph that is empty; return the status of each observation."""
    await imported(second, await exported(first, format_name), format_name)
    assert comparable(await exported(second)) == comparable(await exported(first))
    [one] = json.loads(await exported(second))["entities"]
    return [said.get("status", "active") for said in one.get("said", [{}])]


RICH: Sequence[AnyRecord] = (
    entity(
        "Ada",
        "writes notes",
        "writes notes",
        "=HYPERLINK(1)",
        "-1 degrees",
        entity_type="person",
        tags=["VIP", "old; new"],
        importance=7.25,
        created_at=datetime(2020, 2, 3, 4, 5, 6, 789012, UTC),
        aliases=["Countess", "A. L."],
        said=[
            ObservationRecord(thread="one", at=datetime(1840, 1, 2, tzinfo=UTC)),
            ObservationRecord(thread="two", at=datetime(1841, 1, 2, tzinfo=UTC)),
            ObservationRecord(at=datetime(1842, 1, 2, 3, 4, 5, 6, UTC), expires_at=datetime(2999, 1, 1, tzinfo=UTC)),
            ObservationRecord(at=datetime(1843, 1, 2, tzinfo=UTC)),
        ],
        text="A mathematician",
        summary="in short",
        metadata={"a": [1, {"b": None}], "=x": "\x01"},
        source="a book",
        freshness_at=datetime(2998, 1, 1, tzinfo=UTC),
        ttl_days=3.5,
        expires_at=datetime(2997, 1, 1, tzinfo=UTC),
    ),
    entity("Lab", parent_id="Ada", status="outdated"),
    entity("Loft", parent_id="Lab"),
    FactRecord(
        text="Rain is expected",
        kind="weather",
        thread="one",
        at=datetime(1840, 5, 6, tzinfo=UTC),
        tags=["Sky"],
        importance=1.0,
        created_at=datetime(2021, 2, 3, tzinfo=UTC),
        metadata={"p": 0.5},
        source="window",
    ),
    FactRecord(
        text="Rain is expected", at=datetime(1840, 5, 7, tzinfo=UTC), created_at=datetime(2021, 2, 4, tzinfo=UTC)
    ),
    relation(
        *("Ada", "Lab"),
        metadata={"since": 1840, "x": ["y"]},
        ordinal=3,
        created_at=datetime(1999, 1, 2, 3, 4, 5, 6, UTC),
    ),
    relation("Ada", "nobody yet", relation_type="waits for"),
    relation(FactKey(text="Rain is expected", thread="one"), "Ada", relation_type="MENTIONS"),
    relation(FactKey(text="Rain is expected"), FactKey(text="Rain is expected", thread="one"), relation_type="repeats"),
)


def numbered(drawn: str) -> str:
    """A drawing with a number for each id, in order: a drawing that is made in one go has these."""
    for number, mark in enumerate(dict.fromkeys(re.findall(r"\bn[0-9a-f]{32}\b", drawn))):
        drawn = drawn.replace(mark, f"n{number}")
    return drawn


class TestRoundTrips:
    @pytest.mark.parametrize("format_name", LOSSLESS)
    async def test_more_tags_and_names_than_a_call_can_add_are_preserved(
        self, new_graph: Callable[[], Agent], format_name: str
    ) -> None:
        first, second = await create_graph(new_graph()), await create_graph(new_graph())
        await first.create("Ada")
        tags = [f"tag {number}" for number in range(1_001)]
        former = [f"Ada {number}" for number in range(1_001)]
        async with first.writing() as (tx, revision):
            await labels.retag(tx, revision, [TagChange("Ada", add=tuple(tags))])
            (ada,) = (await naming.find_named(GraphView(tx, revision.graph), ["Ada"])).values()
            await aliases.alias(tx, revision, {ada.id: former})
        done = await imported(second, await exported(first, format_name), format_name)
        assert (done.entities_created, done.problems) == (1, ())
        (found,) = json.loads(await exported(second))["entities"]
        assert (found["tags"], sorted(found["aliases"])) == (tags, sorted(former))

    async def test_more_tags_than_a_text_search_vector_holds_are_imported(self, agent: Agent) -> None:
        many = entity("Ada", tags=[f"{'w' * 100}{number}" for number in range(12_000)])
        await import_records(agent, many)
        [stored] = json.loads(await exported(agent))["entities"]
        assert len(stored["tags"]) == 12_000

    @pytest.mark.parametrize("format_name", IMPORTED)
    async def test_a_content_that_a_merge_made_an_observation_is_preserved(
        self, new_graph: Callable[[], Agent], format_name: str
    ) -> None:
        first, second = await create_graph(new_graph()), await create_graph(new_graph())
        long = ("words and words " * 6_250)[:100_000]
        await first.create(NewEntity("Ada", "person", content="short"), NewEntity("A.L.", "person", content=long))
        await first.merge(["Ada", "A.L."])
        done = await imported(second, await exported(first, format_name), format_name)
        assert (done.observations_added, done.problems) == (1, ())
        assert json.loads(await exported(second))["entities"][0]["observations"] == [long]

    @pytest.mark.parametrize("format_name", LOSSLESS)
    async def test_outdated_and_repeated_observations_are_preserved(
        self, new_graph: Callable[[], Agent], format_name: str
    ) -> None:
        first = await create_graph(new_graph())
        seen = []
        for _ in range(2):
            [tea] = await first.remember(NewMemory("likes tea", about=("Ada",)))
            seen.append(await transfer_one_entity(first, await create_graph(new_graph()), format_name))
            async with first.writing() as (tx, revision):
                await revising.forget(tx, revision, [MemoryRef(id=tea.id)], reason="was wrong")
            seen.append(await transfer_one_entity(first, await create_graph(new_graph()), format_name))
        assert seen == [["active"], ["outdated"], ["outdated", "active"], ["outdated"]]

    @pytest.mark.proves("enhanced-server: transfer-keeps-relation-times")
    @pytest.mark.parametrize("format_name", LOSSLESS)
    async def test_everything_is_preserved(self, new_graph: Callable[[], Agent], format_name: str) -> None:
        first, second = new_graph(), new_graph()
        said = await import_records(first, *RICH)
        assert said == ImportResult(entities_created=3, observations_added=4, facts_created=2, relations_created=4)
        before = json.loads(await exported(first))
        assert [e["said"][0].get("thread") for e in before["entities"][:1]] == ["one"]
        assert before["entities"][0]["createdAt"] == "2020-02-03T04:05:06.789012Z"
        assert before["entities"][2]["parentId"] == "Lab"
        assert before["relations"][0]["createdAt"] == "1999-01-02T03:04:05.000006Z"
        again = await imported(second, await exported(first, format_name), format_name)
        assert again == said
        assert comparable(await exported(second)) == comparable(await exported(first))
        await assert_laws(second)

    @pytest.mark.proves("enhanced-server: formats-and-strategies")
    @pytest.mark.parametrize("format_name", LOSSLESS)
    @given(history=HISTORIES)
    @examples(15)
    async def test_any_history_is_preserved(
        self, new_graph: Callable[[], Agent], format_name: str, history: Any
    ) -> None:
        first, second = await create_graph(new_graph()), await create_graph(new_graph())
        for step in history:
            await written(first, step)
        out = await exported(first, format_name)
        assert (await imported(second, out, format_name)).problems == ()
        assert comparable(await exported(second)) == comparable(await exported(first))
        await assert_laws(second)
        # Of equal facts, the first was imported: merging adds the others to it, once; replacing takes the last.
        for strategy in (Strategy.SKIP, Strategy.MERGE, Strategy.REPLACE):
            before = await second.head()
            again = await imported(second, out, format_name, strategy)
            assert again.entities_created == again.facts_created == again.relations_created == 0
            assert again.problems == ()
            if strategy is Strategy.MERGE and again.facts_updated:
                before = await second.head()
                await imported(second, out, format_name, strategy)
            if strategy is not Strategy.REPLACE:
                assert await second.head() == before, strategy
        await assert_laws(second)

    @given(history=HISTORIES)
    @examples(10)
    async def test_an_export_of_the_past_is_what_was_exported_then(
        self, new_graph: Callable[[], Agent], history: Any
    ) -> None:
        agent = await create_graph(new_graph())
        seen: dict[int, bytes] = {}
        for step in history:
            if await written(agent, step):
                seen[(await agent.head()).revision] = await exported(agent)
        for revision, then in seen.items():
            assert json.loads(await exported(agent, as_of=str(revision))) == json.loads(then)

    @given(history=HISTORIES, later=HISTORIES)
    @examples(10)
    async def test_later_writes_do_not_show_in_a_running_export(
        self, new_graph: Callable[[], Agent], history: Any, later: Any
    ) -> None:
        agent, steps = await create_graph(new_graph()), iter(later)
        for step in history:
            await written(agent, step)
        before = await exported(agent)
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            export = await exports.open_export(tx, str(agent.graph), "json")
        found = b""
        async for chunk in exports.export_chunks(agent.db, agent.caller, export, page_items=1):
            found += chunk
            for step in itertools.islice(steps, 2):
                await written(agent, step)
        assert json.loads(found) == json.loads(before)

    async def test_an_export_of_the_past_has_entities_that_lost_their_names_since(self, agent: Agent) -> None:
        await agent.create(NewEntity("Ada", "person", ("writes",)))
        before = await exported(agent, "jsonl")
        async with agent.writing() as (tx, revision):
            ids = [node.id for node in (await naming.find_named(GraphView(tx, revision.graph), ["Ada"])).values()]
            [head] = (await nodes.read_heads(tx, revision.graph, ids)).values()
            await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name=None, content="was Ada"))])
        assert await exported(agent, "jsonl") == b""
        assert await exported(agent, "jsonl", as_of="1") == before

    @pytest.mark.parametrize("format_name", FORMATS)
    async def test_page_size_does_not_change_an_export(
        self, new_graph: Callable[[], Agent], format_name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = new_graph()
        await import_records(agent, *RICH)
        whole = await exported(agent, format_name, page_items=500)
        assert [await exported(agent, format_name, page_items=n) for n in (1, 2, 5)] == [whole] * 3
        # Nor does an interruption in the middle of a page.
        monkeypatch.setattr(exports, "ITEMS_PER_YIELD", 2)
        monkeypatch.setattr(computing, "MAX_BLOCKING_SECONDS", 0.0)
        assert await exported(agent, format_name, page_items=500) == whole
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            export = await exports.open_export(tx, str(agent.graph), format_name)
            text = numbered(whole.decode()) if format_name in ("dot", "mermaid") else whole.decode()
            assert await exports.export_whole(tx, export, max_bytes=1_000_000, max_pages=6) == text
            assert await exports.export_whole(tx, export, max_bytes=50, max_pages=6) is None
            assert await exports.export_whole(tx, export, max_bytes=1_000_000, max_pages=2) is None
        assert export.facts_left_out == (0 if FORMATS[format_name].writer.writes_facts else 2)

    @pytest.mark.parametrize("stage", Stage)
    async def test_size_of_a_step_counts_all_its_content(self, agent: Agent, stage: Stage) -> None:
        long = ["".join(map(chr, random.Random(n).choices(range(0x4E00, 0x9FFF), k=300))) for n in range(24)]
        kinds: Sequence[Sequence[AnyRecord]] = (
            [entity(f"e{n}", text=long[n]) for n in range(6)],
            [entity(f"e{n}", summary=long[n]) for n in range(6, 12)],
            [entity(f"e{n}", metadata={"a": long[n]}) for n in range(12, 18)],
            [entity(f"e{n}", long[n]) for n in range(18, 24)],
            [FactRecord(text=text) for text in long[:8]],
            [FactRecord(text=text[:20], metadata={"a": text}) for text in long[8:16]],
            [relation("e1", "e2", relation_type=f"r{n}", metadata={"a": long[n]}) for n in range(8)],
            [relation(FactKey(text=long[n]), f"e{n}") for n in range(8)],
            [relation(f"e{n}", FactKey(text=long[n])) for n in range(8)],
        )
        for records in kinds:
            await import_records(agent, *records)
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            export, found = await exports.open_export(tx, "default", "json"), []
            cursor: exports.Cursor | None = exports.Cursor(stage)
            while cursor is not None and cursor.stage is stage:
                found.append(await exports.export_step(tx, export, cursor, page_bytes=3_000))
                cursor = found[-1].next
        assert sum(step.items for step in found) == {"entities": 24, "facts": 16, "relations": 24}[stage]
        assert max(step.items for step in found) == 3
        assert max(len(step.text.encode()) for step in found) < 4_000

    @pytest.mark.parametrize("format_name", FORMATS)
    async def test_an_export_continues_from_its_stored_state(
        self, new_graph: Callable[[], Agent], format_name: str
    ) -> None:
        """A job stores it in a row, so that any process can do the next step."""
        agent = new_graph()
        await import_records(agent, *RICH)
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            export = await exports.open_export(
                tx, str(agent.graph), format_name, selection=ExportSelection(tags=("vip", "sky"))
            )
        row, text = msgspec.json.encode([export, exports.START]), ""
        while row:
            export, cursor = msgspec.json.decode(row, type=tuple[exports.Export, exports.Cursor])
            async with agent.db.transaction(agent.caller, read_only=True) as tx:
                step = await exports.export_step(tx, export, cursor, page_items=1)
            text += step.text
            row = msgspec.json.encode([export, step.next]) if step.next else b""
        assert text.encode() == await exported(
            agent, format_name, selection=ExportSelection(tags=("vip", "sky")), page_items=500
        )

    async def test_an_interrupted_import_continues_with_the_next_batch(self, new_graph: Callable[[], Agent]) -> None:
        first, whole, broken_off = new_graph(), new_graph(), new_graph()
        await import_records(
            first, *[entity(f"e{n}", f"says {n}", parent_id=f"e{n * 7 % 1_300}") for n in range(1_300)]
        )
        out = await exported(first, "csv", page_items=500)
        said = await imported(whole, out, "csv")
        done = ImportResult()
        for batch in itertools.islice(read_batches("csv", [out]), 2):  # then it is killed
            async with first.db.transaction(first.caller) as tx:
                done += await transfer.import_batch(tx, str(broken_off.graph), batch.items, Strategy.FAIL)
        for batch in read_batches("csv", [out]):
            if batch.number >= 2:
                async with first.db.transaction(first.caller) as tx:
                    done += await transfer.import_batch(tx, str(broken_off.graph), batch.items, Strategy.FAIL)
        assert done == said
        assert comparable(await exported(broken_off, page_items=500)) == comparable(
            await exported(whole, page_items=500)
        )

    async def test_drawings_refer_to_nodes_by_id(self, agent: Agent) -> None:
        await agent.create("Alice", "Bob")
        await agent.relate(("Alice", "Bob", "knows"), ("Bob", "Carol", "knows"))
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            found = await tx.fetch(Query.compile("SELECT id FROM nodes WHERE tenant_id = :tenant_id ORDER BY name"))
        alice, bob, carol = (f"n{row['id'].hex}" for row in found)
        assert (await exported(agent, "mermaid")).decode() == (
            f'graph LR\n  {alice}["Alice"]\n  {bob}["Bob"]\n  {carol}["Carol"]\n'
            f"  {alice} -->|knows| {bob}\n  {bob} -->|knows| {carol}\n"
        )
        assert (await exported(agent, "dot")).decode().splitlines()[4] == f'  {alice} -> {bob} [label="knows"];'


class TestStrategies:
    """For Ada, an existing thing with an observation, a tag, an importance and an alias."""

    @pytest.fixture
    async def there(self, agent: Agent) -> Agent:
        ada = entity(
            "Ada", "old", tags=["Old"], importance=5.0, aliases=["A"], metadata={"k": 1, "l": 1}, source="first"
        )
        fact = FactRecord(text="fact", tags=["Old"], metadata={"k": 1})
        await import_records(agent, ada, entity("Top"), fact, relation("Ada", "Top", metadata={"k": 1}))
        return agent

    NEW: Sequence[AnyRecord] = (
        entity(
            *("Ada", "old", "new"),
            entity_type="person",
            tags=["OLD", "New"],
            importance=3.0,
            aliases=["B"],
            metadata={"k": 2, "m": 2},
            text="text",
            parent_id="Top",
        ),
        entity("Bob"),
        FactRecord(text="fact", tags=["New"], metadata={"k": 2}),
        FactRecord(text="other"),
        relation("Ada", "Top", metadata={"k": 2, "m": 2}),
        relation("Ada", "Bob"),
    )

    async def ada(self, agent: Agent) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(await exported(agent))
        return {
            "ada": next(e for e in said["entities"] if e["name"] == "Ada"),
            "fact": next(f for f in said["facts"] if f["text"] == "fact"),
            "edge": next(r for r in said["relations"] if r["to"] == "Top"),
        }

    @pytest.mark.proves("enhanced-server: formats-and-strategies")
    async def test_skip_leaves_existing_items_unchanged(self, there: Agent) -> None:
        before = await self.ada(there)
        said = await import_records(there, *self.NEW)
        assert said == ImportResult(
            entities_created=1,
            entities_skipped=1,
            facts_created=1,
            facts_skipped=1,
            relations_created=1,
            relations_skipped=1,
        )
        assert await self.ada(there) == before
        await assert_laws(there)

    @pytest.mark.proves("enhanced-server: formats-and-strategies")
    async def test_merge_adds_missing_properties(self, there: Agent) -> None:
        said = await import_records(there, *self.NEW, strategy=Strategy.MERGE)
        assert said == ImportResult(
            entities_created=1,
            entities_updated=1,
            facts_created=1,
            facts_updated=1,
            relations_created=1,
            relations_updated=1,
            observations_added=1,
        )
        found = await self.ada(there)
        ada = found["ada"]
        assert (ada["entityType"], ada["observations"], ada["tags"]) == ("thing", ["old", "new"], ["Old", "New"])
        assert (ada["importance"], ada["aliases"], ada["parentId"]) == (5, ["A", "B"], "Top")
        assert (ada["metadata"], ada["text"], ada["source"]) == ({"k": 1, "l": 1, "m": 2}, "text", "first")
        assert (found["fact"]["tags"], found["fact"]["metadata"]) == (["Old", "New"], {"k": 1})
        assert found["edge"]["metadata"] == {"k": 1, "m": 2}
        await assert_laws(there)

    @pytest.mark.proves("enhanced-server: formats-and-strategies")
    async def test_replace_sets_the_properties_of_the_file(self, there: Agent) -> None:
        said = await import_records(there, *self.NEW, strategy=Strategy.REPLACE)
        assert (said.entities_updated, said.facts_updated, said.relations_updated) == (1, 1, 1)
        found = await self.ada(there)
        ada = found["ada"]
        assert (ada["entityType"], ada["observations"], ada["tags"]) == ("person", ["old", "new"], ["OLD", "New"])
        assert (ada["importance"], ada["aliases"], ada["parentId"]) == (3, ["B"], "Top")
        assert (ada["metadata"], ada["text"], ada.get("source")) == ({"k": 2, "m": 2}, "text", None)
        assert (found["fact"]["tags"], found["fact"]["metadata"]) == (["New"], {"k": 2})
        assert found["edge"]["metadata"] == {"k": 2, "m": 2}
        await assert_laws(there)
        await import_records(there, entity("Ada"), strategy=Strategy.REPLACE)
        bare = (await self.ada(there))["ada"]
        assert set(bare) == {"name", "entityType", "observations", "createdAt", "lastModified"}
        assert bare["observations"] == []
        await assert_laws(there)

    @pytest.mark.parametrize(("before", "after"), [(1, True), (True, 1), (0, False), ([{"k": 0}], [{"k": False}])])
    async def test_replace_distinguishes_true_from_one(self, agent: Agent, before: Any, after: Any) -> None:
        for value in (before, after):
            said = [ObservationRecord(metadata={"k": value})]
            records = (
                entity("Ada", metadata={"k": value}),
                entity("Bob", "said", said=said),
                FactRecord(text="fact", metadata={"k": value}),
                relation("Ada", "Bob", metadata={"k": value}),
            )
            done = await import_records(agent, *records, strategy=Strategy.REPLACE)
        assert (done.entities_updated, done.facts_updated, done.relations_updated) == (2, 1, 1)
        file = json.loads(await exported(agent))
        ada, bob = file["entities"]
        found = [ada, bob["said"][0], file["facts"][0], file["relations"][0]]
        assert json.dumps([one["metadata"] for one in found]) == json.dumps([{"k": after}] * 4)

    @pytest.mark.proves("enhanced-server: formats-and-strategies")
    async def test_fail_writes_nothing_if_anything_exists(self, there: Agent) -> None:
        before = await there.head()
        for place, records in ((0, self.NEW), (1, [entity("new"), self.NEW[2]]), (1, [entity("x"), entity("x")])):
            with pytest.raises(Conflict) as refused:
                await import_records(there, *records, strategy=Strategy.FAIL)
            assert refused.value.path == f"item {place}"
        assert await there.head() == before
        said = await import_records(there, entity("new"), relation("Ada", "Top"), strategy=Strategy.FAIL)
        assert (said.entities_created, said.relations_skipped) == (1, 1)

    @pytest.mark.proves("enhanced-server: formats-and-strategies")
    @pytest.mark.parametrize("strategy", Strategy)
    async def test_a_dry_run_reports_the_same_and_writes_nothing(self, there: Agent, strategy: Strategy) -> None:
        items = [
            ParsedRecord("x", record) for record in (self.NEW if strategy is not Strategy.FAIL else [entity("new")])
        ]
        before = await there.head(), await exported(there)
        said = []
        for keep in (False, True):
            async with there.db.transaction(there.caller, commit=keep) as tx:
                said.append(await transfer.import_batch(tx, "default", items, strategy))
            if not keep:
                assert (await there.head(), await exported(there)) == before
        assert said[0] == said[1]
        assert said[0].entities_created > 0
        assert (await there.head()).revision == before[0].revision + 1

    async def test_a_repeated_name_is_merged_or_skipped(self, agent: Agent) -> None:
        twice = [entity("Ada", "1", tags=["a"]), entity("Ada", "2", tags=["b"], importance=3.0), entity("Ada", "1")]
        said = await import_records(agent, *twice)
        assert (said.entities_created, said.entities_skipped, said.observations_added) == (1, 2, 1)
        merging = Agent(agent.db, agent.caller, "merging")
        said = await import_records(merging, *twice, strategy=Strategy.MERGE)
        assert (said.entities_created, said.entities_updated, said.entities_skipped) == (1, 1, 1)
        [ada] = json.loads(await exported(merging))["entities"]
        assert (ada["observations"], ada["tags"], ada["importance"]) == (["1", "2"], ["a", "b"], 3)

    async def test_a_repeated_fact_is_treated_the_same_in_one_batch_and_in_two(self, agent: Agent) -> None:
        first = FactRecord(text="fact", tags=["a"], importance=2.0, metadata={"k": 1})
        second = FactRecord(
            text="fact",
            kind="note",
            tags=["A", "b"],
            importance=3.0,
            metadata={"k": 2, "m": 2},
            summary="s",
            source="x",
        )
        one, two = Agent(agent.db, agent.caller, "one"), Agent(agent.db, agent.caller, "two")
        said = await import_records(one, first, second, strategy=Strategy.MERGE)
        assert (said.facts_created, said.facts_skipped) == (1, 1)
        for record in (first, second):
            await import_records(two, record, strategy=Strategy.MERGE)
        [at_once], [in_turn] = [comparable(await exported(each))["facts"] for each in (one, two)]
        for fact in (at_once, in_turn):
            fact.pop("createdAt")
        assert at_once == in_turn
        assert (in_turn["tags"], in_turn["metadata"], in_turn["importance"]) == (["a", "b"], {"k": 1, "m": 2}, 3)
        assert (in_turn["kind"], in_turn["summary"], in_turn["source"]) == ("note", "s", "x")


class TestImportProblems:
    async def test_disallowed_kinds_are_reported(self, agent: Agent) -> None:
        async with agent.db.transaction(agent.caller) as tx:
            await graphs.create_graph(tx, NewGraph("people", kind_whitelist=("person",)))
        people = Agent(agent.db, agent.caller, "people")
        said = await import_records(people, entity("a"), entity("b", entity_type="person"), FactRecord(text="c"))
        assert [problem.where for problem in said.problems] == ["item 0", "item 2"]
        assert said.entities_created == 1

    async def test_an_observation_of_a_disallowed_kind_is_left_out_alone(self, agent: Agent) -> None:
        async with agent.db.transaction(agent.caller) as tx:
            await graphs.create_graph(tx, NewGraph("people", kind_whitelist=("person",)))
        people = Agent(agent.db, agent.caller, "people")
        said = [ObservationRecord(kind="rumour"), ObservationRecord(), ObservationRecord(kind="person")]
        result = await import_records(
            people, entity("b", entity_type="person", observations=["x", "y", "z"], said=said)
        )
        assert [problem.where for problem in result.problems] == ["item 0.observations.0"]
        assert (result.entities_created, result.observations_added) == (1, 2)

    @pytest.mark.parametrize("format_name", LOSSLESS)
    async def test_an_empty_thread_is_the_same_as_none(self, new_graph: Callable[[], Agent], format_name: str) -> None:
        first, second = await create_graph(new_graph()), await create_graph(new_graph())
        fact = {"text": "rain", "thread": "", "source": ""}
        said = [{"thread": "", "source": ""}]
        ada = {"name": "Ada", "entityType": "", "observations": ["sings"], "said": said, "thread": "", "source": ""}
        edge = {"from": {"text": "rain", "thread": ""}, "to": "Ada", "relationType": "knows"}
        await imported(first, json.dumps({"entities": [ada], "facts": [fact], "relations": [edge]}).encode())
        done = await imported(second, await exported(first, format_name), format_name)
        assert (done.facts_created, done.relations_created, done.problems) == (1, 1, ())
        file = json.loads(await exported(second))
        assert not {"thread", "source"} & {key for part in file.values() for item in part for key in item}
        assert not {"thread", "source"} & file["entities"][0]["said"][0].keys()

    async def test_relations_of_unknown_facts_are_reported(self, agent: Agent) -> None:
        await import_records(agent, FactRecord(text="said", thread="one"))
        said = await import_records(
            agent,
            relation(FactKey(text="said"), "Ada"),
            relation("Ada", FactKey(text="said", thread="one")),
            relation(FactKey(text="said", thread="one", status="outdated"), "Bob"),
        )
        assert said == ImportResult(
            relations_created=1,
            problems=(ImportProblem("item 0", "no fact says this"), ImportProblem("item 2", "no fact says this")),
        )
        assert (await agent.head()).placeholders == 1

    async def test_missing_parents_and_cycles_are_reported(self, agent: Agent) -> None:
        circle = [entity("a", parent_id="c"), entity("b", parent_id="a"), entity("c", parent_id="b")]
        file = json.dumps({"entities": [json.loads(_json(e)) for e in [*circle, entity("d", parent_id="e")]]}).encode()
        said = await imported(agent, file)
        assert said.entities_created == 4
        assert set(said.problems) == {
            ImportProblem("entities.3.parentId", "no entity has this name"),
            ImportProblem("entities.0.parentId", "it would be below itself in the hierarchy", of_part=True),
        }
        parents = {e["name"]: e.get("parentId") for e in json.loads(await exported(agent))["entities"]}
        assert parents == {"a": None, "b": "a", "c": "b", "d": None}
        await assert_laws(agent)
        both = [entity("x", parent_id="y"), entity("y", parent_id="x"), entity("z", parent_id="z")]
        said = await import_records(agent, *both)
        assert len(said.problems) == 2
        await assert_laws(agent)

    async def test_a_placement_applies_only_to_entities_without_a_parent_unless_replacing(self, agent: Agent) -> None:
        await import_records(agent, entity("top"), entity("other"), entity("a", parent_id="top"), entity("b"))
        moves = [Placement(name=name, parent_id="other") for name in ("a", "b")]
        for strategy, parents in ((Strategy.SKIP, ["top", "other"]), (Strategy.REPLACE, ["other", "other"])):
            assert (await import_records(agent, *moves, strategy=strategy)).problems == ()
            said = json.loads(await exported(agent))["entities"]
            assert [e.get("parentId") for e in said if e["name"] in "ab"] == parents

    async def test_a_parent_may_come_later_in_a_long_file(self, agent: Agent) -> None:
        chain = [entity(f"e{n}", parent_id=f"e{n + 1}") for n in range(1_200)] + [entity("e1200")]
        raw = json.dumps({"entities": [json.loads(_json(e)) for e in chain]}).encode()
        said = await imported(agent, raw)
        assert (said.entities_created, said.problems) == (1_201, ())
        parents = {e["name"]: e.get("parentId") for e in json.loads(await exported(agent, page_items=500))["entities"]}
        assert parents == {f"e{n}": f"e{n + 1}" if n < 1_200 else None for n in range(1_201)}

    @pytest.mark.parametrize("strategy", Strategy)
    async def test_expired_items_are_skipped(self, agent: Agent, strategy: Strategy) -> None:
        past = datetime.now(UTC) - timedelta(days=1)
        gone = entity("gone", "x", expires_at=past)
        said = await import_records(
            agent,
            *(
                gone,
                entity("Ada", "1", "2", said=[ObservationRecord(expires_at=past), ObservationRecord()]),
                FactRecord(text="f", expires_at=past),
            ),
            *(relation("Ada", "gone"), relation(FactKey(text="f"), "Ada")),
            strategy=strategy,
        )
        assert (said.entities_created, said.entities_skipped, said.facts_skipped) == (1, 1, 1)
        assert (said.relations_created, said.relations_skipped, said.problems) == (1, 1, ())
        found = json.loads(await exported(agent))
        assert [(e["name"], e["observations"]) for e in found["entities"]] == [("Ada", ["2"])]
        await assert_laws(agent)

    @pytest.mark.parametrize("at_once", [1, 500])
    @pytest.mark.parametrize("later_parents", [False, True])
    async def test_references_to_expired_items_are_no_problems(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch, at_once: int, later_parents: bool
    ) -> None:
        monkeypatch.setattr(batches, "BATCH_ITEMS", at_once)
        past = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
        gone = {"name": "gone", "entityType": "", "observations": [], "expiresAt": past}
        child = {"name": "child", "entityType": "", "observations": [], "parentId": "gone"}
        orphan = {"name": "orphan", "entityType": "", "observations": [], "parentId": "nobody"}
        file = {
            "entities": [child, gone, orphan] if later_parents else [gone, child, orphan],
            "facts": [{"text": "over", "expiresAt": past}],
            "relations": [
                {"from": {"text": "over"}, "to": "child", "relationType": "knows"},
                {"from": {"text": "never said"}, "to": "child", "relationType": "knows"},
            ],
        }
        chunks, tried, seen = [json.dumps(file).encode()], ImportResult(), SeenRecords()
        for batch in read_batches("json", chunks):
            async with agent.db.transaction(agent.caller) as tx:
                tried += await dry_run_items(tx, None, batch.items, Strategy.MERGE, seen)
            seen.note(batch.items)
        done = await imported(agent, chunks[0])
        assert (done.entities_created, done.entities_skipped, done.facts_skipped) == (2, 1, 1)
        assert (done.relations_created, done.relations_skipped) == (0, 1)
        broken = [("entities.2.parentId", "no entity has this name"), ("relations.1", "no fact says this")]
        assert sorted((problem.where, problem.reason) for problem in done.problems) == broken
        assert (tried.relations_created, tried.relations_skipped, len(tried.problems)) == (0, 1, 2)
        assert [e["name"] for e in json.loads(await exported(agent))["entities"] if "parentId" in e] == []

    async def test_a_future_creation_time_becomes_now(self, agent: Agent) -> None:
        await import_records(agent, entity("a", created_at=datetime.now(UTC) + timedelta(days=5)))
        [a] = json.loads(await exported(agent))["entities"]
        assert a["createdAt"] == a["lastModified"]


class TestCreationTimesOfRelations:
    LONG_AGO = datetime(1999, 1, 2, 3, 4, 5, 6, UTC)

    async def made(self, agent: Agent) -> list[str]:
        return [edge["createdAt"] for edge in json.loads(await exported(agent))["relations"]]

    async def test_a_creation_time_is_imported_and_the_past_stays_unchanged(self, agent: Agent) -> None:
        await agent.create("a", "b")
        before = (await agent.head()).revision
        await import_records(agent, relation("a", "b", created_at=self.LONG_AGO))
        [edge] = json.loads(await exported(agent))["relations"]
        assert edge["createdAt"] == "1999-01-02T03:04:05.000006Z"
        assert edge["lastModified"] == edge["createdAt"]
        past = json.loads(await exported(agent, as_of=str(before)))
        assert past["relations"] == []
        [imported_edge] = (await agent.open("a")).relations
        assert (imported_edge.source, imported_edge.target) == ("a", "b")

    @pytest.mark.parametrize("strategy", Strategy)
    async def test_an_existing_relation_keeps_its_creation_time(self, agent: Agent, strategy: Strategy) -> None:
        await import_records(agent, relation("a", "b", created_at=self.LONG_AGO))
        new = relation("a", "b", metadata={"p": 1}, created_at=datetime(2011, 1, 1, tzinfo=UTC))
        await import_records(agent, new, strategy=strategy)
        assert await self.made(agent) == ["1999-01-02T03:04:05.000006Z"]

    async def test_a_future_creation_time_becomes_now(self, agent: Agent) -> None:
        await import_records(agent, relation("a", "b", created_at=datetime.now(UTC) + timedelta(days=5)))
        [edge] = json.loads(await exported(agent))["relations"]
        assert edge["createdAt"] == edge["lastModified"]

    async def test_a_merged_entitys_relation_keeps_its_creation_time(self, agent: Agent) -> None:
        await import_records(agent, entity("a"), entity("A."), relation("A.", "b", created_at=self.LONG_AGO))
        await agent.merge(["a", "A."])
        assert await self.made(agent) == ["1999-01-02T03:04:05.000006Z"]

    @pytest.mark.proves("enhanced-server: transfer-keeps-relation-times")
    async def test_a_relation_of_the_reference_server_is_imported(self, agent: Agent) -> None:
        edge = {"from": "a", "to": "b", "relationType": "knows"}
        edge |= {"createdAt": "2026-01-01T00:00:00.000Z", "lastModified": "2026-01-02T00:00:00.000Z"}
        said = await imported(agent, json.dumps({"entities": [], "relations": [edge]}).encode())
        assert said == ImportResult(relations_created=1)
        assert await self.made(agent) == ["2026-01-01T00:00:00Z"]


class TestFilter:
    @pytest.fixture
    async def agent(self, db: Database, caller: Caller) -> Agent:
        agent = Agent(db, caller)
        await agent.create(NewEntity("old", "thing", ("x",), ("Red",)))
        await import_records(
            agent,
            entity("Ada", entity_type="person", tags=["VIP"]),
            entity("Bob", entity_type="person"),
            FactRecord(text="vip fact", tags=["vip"]),
            *[relation(a, b) for a, b in itertools.permutations(["old", "Ada", "Bob", "nobody"], 2)],
        )
        return agent

    async def names(self, agent: Agent, selection: ExportSelection) -> tuple[list[str], list[str], int]:
        said = json.loads(await exported(agent, selection=selection))
        names = [e["name"] for e in said["entities"]]
        assert all(r["from"] in names and r["to"] in names for r in said["relations"])
        return names, [f["text"] for f in said["facts"]], len(said["relations"])

    async def test_an_export_is_filtered_by_kind_tags_and_times(self, agent: Agent) -> None:
        assert await self.names(agent, ExportSelection(kind="person")) == (["Ada", "Bob"], [], 2)
        assert await self.names(agent, ExportSelection(tags=("vip",))) == (["Ada"], ["vip fact"], 0)
        assert await self.names(agent, ExportSelection(tags=("vip", "red"))) == (["old", "Ada"], ["vip fact"], 2)
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            at = await tx.fetchval(
                Query.compile("SELECT at FROM changes WHERE tenant_id = :tenant_id AND revision = 2")
            )
        assert await self.names(agent, ExportSelection(since=at)) == (["Ada", "Bob"], ["vip fact"], 2)
        assert await self.names(agent, ExportSelection(until=at - timedelta(microseconds=1))) == (["old"], [], 0)
        await agent.observe("old", "changed")
        assert await self.names(agent, ExportSelection(since=at)) == (["old", "Ada", "Bob"], ["vip fact"], 6)
        assert b"nobody" not in await exported(agent, "dot", selection=ExportSelection(kind="person"))


class TestTenants:
    async def test_another_tenants_graph_does_not_exist(
        self, new_graph: Callable[[], Agent], new_tenant: NewTenant
    ) -> None:
        agent = new_graph()
        stranger = Agent(agent.db, operator_caller(await new_tenant()), agent.graph)
        await import_records(agent, *RICH)
        for format_name in FORMATS:
            with pytest.raises(NotFound):
                await exported(stranger, format_name)
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            leaked = await exports.open_export(tx, str(agent.graph), "json")
        chunks = [c async for c in exports.export_chunks(agent.db, stranger.caller, leaked)]
        assert json.loads(b"".join(chunks)) == {"entities": [], "facts": [], "relations": []}
        before = await agent.head(), await exported(agent)
        for strategy in (Strategy.SKIP, Strategy.MERGE, Strategy.REPLACE):
            await import_records(
                stranger, entity("Ada"), relation(FactKey(text="Rain is expected"), "Ada"), strategy=strategy
            )
        assert (await agent.head(), await exported(agent)) == before
        assert (await stranger.head()).relations == 0


async def test_an_unknown_format_is_refused(agent: Agent) -> None:
    await agent.create("a")
    with pytest.raises(InvalidInput, match="Must be one of json, jsonl, csv"):
        await exported(agent, "pdf")


def _json(record: AnyRecord) -> bytes:
    return msgspec.json.encode(record)
