"""No call compares all rows with each other, whatever statistics PostgreSQL has when it plans.

Without statistics, or with statistics in which a tenant does not occur yet, the planner assumes that a tenant has next
to nothing and that all indexes are equally good. This is so in the first minute of an installation, of a new tenant or
of an import.

The tests assert how many rows each statement looks at, and never how long that takes.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from recollect.curation.archiving import service as archiving
from recollect.curation.archiving.model import ArchiveCriteria
from recollect.curation.duplicates import deduplication
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.curation.validation import service as validation
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.hierarchy.model import PageRequest
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from recollect.graph.nodes.model import NewFact
from recollect.graph.passages import reembedding
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import FailedPassage
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import RelationFilter
from recollect.graph.traversal import service as traversal
from recollect.memory import links, reading, writing
from recollect.memory.model import NewMemory
from recollect.postgres.sql import Query, QueryPlan
from recollect.retention.compaction import service as retention
from recollect.retention.erasure import service as erasure
from recollect.retention.expiry import service as expiry
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import (
    BooleanQuery,
    DateQuery,
    FuzzyQuery,
    LabelQuery,
    RankedQuery,
    SubstringQuery,
)
from recollect.retrieval.similarity import service as similarity
from recollect.retrieval.similarity import store
from recollect.transfer import exports
from recollect.transfer import service as transfer
from recollect.transfer.formats.decoding import ParsedRecord as Imported
from recollect.transfer.model import Strategy
from recollect.transfer.records import EntityRecord, RelationRecord
from recollect.words.analysis import AskedWord
from tests.support.column_statistics import BATCH, Work, entities_of, turn
from tests.support.memories import embedded_passages, embedded_questions, embedder, found_duplicates, found_path

FEW = 50
"""Items that are embedded while there are two thousand others."""

CLAIMED = 8
"""Passages that are claimed of three thousand that wait."""

PER_ITEM = 400
"""Rows per item: the vector of each compared passage, sixty in one test, is looked up separately."""

PER_LOOKED_UP = 40
"""Rows per item that is looked up by its id, without neighbours. An index of all rows of the tenant would give sixty.
"""

EMBEDDING = {
    "passages.claim_pending",
    "passages.lock_claimed_graphs",
    "passages.record_failures",
    "passages.lock_indexes",
    "passages.insert_embeddings",
    "passages.find_windows",
    "passages.settle",
    "passages.release_claimed_passages",
}
"""The statements that embed a batch."""

PER_EMBEDDED = 1_500
"""A thousand passages are settled at once, each with up to thirty of its neighbours, in a dozen steps."""

PER_COMPACTED = 2_000
"""The rows that are deleted at once are compared with their entities, two thousand at most."""

PER_LINKED = 2_000
"""A tenth as many facts are each compared with every vector, of up to eight thousand: so small a graph has no index."""


async def test_many_embedded_passages(work: Work, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    for first in range(0, 4 * BATCH, BATCH):
        await work.agent.remember(*(turn(number) for number in range(first, first + BATCH)))
    await work.agent.embed()
    with subtests.test("embedding a few beside them looks at few rows"):
        await work.agent.remember(*(turn(number) for number in range(4 * BATCH, 4 * BATCH + FEW)))
        work.watch.clear()
        assert await work.agent.embed() == FEW
        assert {name: rows / FEW for name, rows in work.watch.rows.items() if rows / FEW > PER_ITEM} == {}
    with subtests.test("those without a vector are listed page by page"):
        await passages_without_a_vector_are_listed_page_by_page(work, monkeypatch)


async def passages_without_a_vector_are_listed_page_by_page(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if there are none, as after a change of model that is taken back."""
    monkeypatch.setattr(reembedding, "LOOKED_AT_ONCE", FEW)
    await work.owner.execute("ANALYZE")
    work.watch.clear()
    async with work.agent.db.transaction(work.agent.caller, read_only=True) as tx:
        graph, model = await graphs.get_graph(tx, "default"), embedder().model
        page, more = await reembedding.list_without_vectors(tx, graph.id, model=model, after=None, limit=FEW)
        assert ([passage.text for passage in page], more) == ([None] * FEW, True)
        page, more = await reembedding.list_without_vectors(
            tx, graph.id, model="another", after=page[-1].id, limit=FEW // 2
        )
        assert (len([passage for passage in page if passage.text]), len(page), more) == (FEW // 2, FEW // 2, True)
    assert work.watch.rows["passages.list_without_vectors"] <= 20 * FEW


async def test_a_long_queue(work: Work, subtests: pytest.Subtests) -> None:
    for first in range(0, 6 * BATCH, BATCH):
        await work.agent.remember(*(turn(number, thread=str(number)) for number in range(first, first + BATCH)))
    with subtests.test("a batch of it is embedded by ids"):
        await a_batch_is_embedded_by_ids(work)
    with subtests.test("a claim looks at few rows"):
        await a_claim_looks_at_few_rows(work)


async def a_batch_is_embedded_by_ids(work: Work) -> None:
    """Passages that are claimed, stored, set aside or released are looked up by id, whatever else waits."""
    model = embedder().model
    work.watch.clear()
    async with work.agent.db.transaction(work.agent.caller, plan=QueryPlan.ONCE) as tx:
        claimed = await passages.claim_pending(tx, model=model, limit=FEW, lease_seconds=60)
    *taken, refused, failed, back = claimed
    made = await embedded_passages(taken)
    reasons = [FailedPassage(refused.id, "refused", certain=True), FailedPassage(failed.id, "failed", certain=False)]
    async with work.agent.db.transaction(work.agent.caller, plan=QueryPlan.ONCE) as tx:
        assert await passages.lock_claimed_graphs(tx, claimed, model=model) == set()
        assert await passages.record_failures(tx, reasons, claimed) == {refused.id}
        assert await passages.settle(tx, taken, model=model, **made) == len(taken)
        await passages.release_claimed_passages(tx, [back])
    assert {name for name in work.watch.rows if name.startswith("passages.")} == EMBEDDING
    assert {name: rows for name, rows in work.watch.rows.items() if rows > PER_LOOKED_UP * FEW} == {}


async def a_claim_looks_at_few_rows(work: Work) -> None:
    """Both ways of claiming read as much as they claim and not the whole queue, even after the tenant's rows were
    analysed."""
    await work.agent.remember(*(NewMemory(f"said {number}", thread="talk") for number in range(3)))
    for statement in ("SELECT 1", "ANALYZE passages"):
        await work.owner.execute(statement)
        for small_only in (False, True):
            work.watch.clear()
            async with work.agent.db.transaction(work.agent.caller, plan=QueryPlan.ONCE) as tx:
                await passages.claim_pending(
                    tx, model=embedder().model, limit=CLAIMED, lease_seconds=600, small_only=small_only
                )
            assert 0 < work.watch.rows["passages.claim_pending"] < 100 * CLAIMED, (statement, small_only)


async def test_names_are_hidden_by_their_ids(work: Work) -> None:
    """Of many entities without observations, and of one of them."""
    for first in (0, BATCH):
        await work.agent.create(*(f"entity {n}" for n in range(first, first + BATCH)))
    found = [entity.id for entity in (await work.agent.open(*(f"entity {n}" for n in range(BATCH)))).entities]
    for wanted in (found, found[:1]):
        work.watch.clear()
        async with work.agent.writing() as (tx, revision):
            await passages.hide_names(tx, revision, wanted)
        assert 0 < work.watch.rows["passages.remove_names"] < 20 * len(wanted)


@pytest.mark.parametrize("work", ["none"], indirect=True)
@pytest.mark.parametrize("about", [(), ("entity",)], ids=["nothing", "an entity"])
async def test_a_new_memory_is_compared_with_few_others(
    work: Work, about: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although many passages share a word with it or belong to the same entity, and PostgreSQL has statistics of
    them.
    """
    monkeypatch.setattr(store, "MAX_COMPARED_WITH_NEW", 10)
    for first in range(0, 6 * BATCH, BATCH):
        items = (replace(turn(number), about=about) for number in range(first, first + BATCH))
        await work.agent.remember(*items)
    await work.agent.embed()
    await work.owner.execute("ANALYZE")
    work.watch.clear()
    told = (turn(number) for number in range(FEW))
    await work.agent.remember(*(NewMemory(f"{turn.text} again", about=about) for turn in told))
    assert work.watch.rows["similarity.find_near_duplicates"] > 0
    assert {name: rows / FEW for name, rows in work.watch.rows.items() if rows / FEW > PER_ITEM} == {}


async def test_waiting_passages_are_counted_in_their_own_graph_only(work: Work) -> None:
    """The count looks neither at the queues of the tenant's other graphs nor at the graph's embedded passages."""
    small = replace(work.agent, graph="small")
    await work.agent.remember(*(turn(number) for number in range(2 * BATCH)))
    await work.agent.embed()
    await small.remember(*(turn(number) for number in range(FEW)))
    await replace(work.agent, graph="queue").remember(*(turn(number) for number in range(2 * BATCH)))
    for agent, waiting in ((small, FEW), (work.agent, 0)):
        work.watch.clear()
        assert (await agent.recall("What is turn 7 about?")).waiting == waiting
        assert work.watch.rows["passages.count_waiting"] <= 4 * FEW


async def test_placeholders_of_a_deleted_hub_are_looked_up_by_their_edges(work: Work) -> None:
    """The edges of each name are read, and not all that the tenant has."""
    names = [f"name {n}" for n in range(BATCH)]
    await work.agent.create(NewEntity("hub", "thing"), NewEntity("other", "thing"))
    await work.agent.relate(*(("hub", name, "to") for name in names))
    await work.agent.relate(*(("other", name, "to") for name in names[:FEW]))
    await work.agent.relate(*((name, "other", "to") for name in names[FEW : 2 * FEW]))
    for first in range(0, 4 * BATCH, BATCH):
        await work.agent.relate(*(("other", f"another {n}", "to") for n in range(first, first + BATCH)))
    work.watch.clear()
    await work.agent.delete("hub")
    left = "SELECT count(*) FROM nodes WHERE tenant_id = $1 AND name LIKE 'name %' AND removed_revision IS NULL"
    assert await work.owner.fetchval(left, work.agent.caller.tenant_id) == 2 * FEW
    assert 0 < work.watch.rows["relations.find_orphaned_placeholders"] <= PER_LOOKED_UP * BATCH


PAST = 6
"""A revision at which all calls that create, relate, observe and remember have been made."""

NAMES = [f"entity {n}" for n in range(BATCH)]
EDGES = [("entity 0", name, "to") for name in NAMES[1:]]
ELSEWHERE = [(f"from {n}", f"to {n}", "to") for n in range(BATCH)]
STATEMENTS = [f"says {n}" for n in range(BATCH)]
IMPORTED: list[Imported] = [
    Imported(f"item {n}", EntityRecord(name=f"entity {n} of a file", entity_type="thing", observations=["is new"]))
    for n in range(BATCH)
] + [
    Imported(f"tie {n}", RelationRecord(from_="entity 0 of a file", to=f"entity {n} of a file", relation_type="to"))
    for n in range(1, BATCH)
]


@dataclass(frozen=True)
class Calls:
    """Calls of a batch each, by name, in an order in which each finds something to do."""

    work: Work

    def in_order(self) -> dict[str, Callable[[], Awaitable[object]]]:
        return self.writes() | self.reads() | self.reads_of_the_past() | self.long_work() | self.removals()

    def writes(self) -> dict[str, Callable[[], Awaitable[object]]]:
        agent = self.work.agent
        return {
            "create": lambda: agent.create(*entities_of("entity", BATCH)),
            "create again": lambda: agent.create(*entities_of("entity", BATCH)),
            "relate": lambda: agent.relate(*EDGES),
            "relate again": lambda: agent.relate(*EDGES),
            "relate what is not there yet": lambda: agent.relate(*ELSEWHERE),
            "observe": lambda: agent.observe("entity 1", *STATEMENTS),
            "observe again": lambda: agent.observe("entity 1", *STATEMENTS),
            "remember": lambda: agent.remember(
                *(NewMemory(f"fact {n} of {NAMES[n]}", thread="talk") for n in range(20))
            ),
            "remember about": lambda: agent.remember(*(NewMemory(f"It is {n}", about=(NAMES[n],)) for n in range(20))),
            "create facts": self.create_facts,
            "embed": agent.embed,
            "link facts": self.link_facts,
            "count words again": self.recount,
        }

    def reads(self) -> dict[str, Callable[[], Awaitable[object]]]:
        agent, asking = self.work.agent, self.asking
        find, any_relation = relations.find_relations, RelationFilter()
        return {
            "read": agent.read,
            "open": lambda: agent.open(*NAMES),
            "search": lambda: agent.found("tea"),
            "recall": lambda: agent.recall("Who likes tea 7?"),
            "find the similar": self.find_similar,
            "search relations": lambda: asking(find, any_relation, offset=0, limit=BATCH),
            "find a path": lambda: asking(found_path, NAMES[7], NAMES[8]),
            "extract": lambda: asking(traversal.extract_subgraph, NAMES[:1], depth=1, max_nodes=BATCH),
            "list roots": lambda: asking(hierarchy.get_roots, PageRequest()),
            "find duplicates": lambda: asking(found_duplicates, threshold=0.9),
            "look at an undo": lambda: self.trying(undoing.undo_changes, "undo", ChangeRange(1, 5), dry_run=True),
        }

    def reads_of_the_past(self) -> dict[str, Callable[[], Awaitable[object]]]:
        """At a moment at which everything existed and was embedded."""
        asking, page = partial(self.asking, as_of=str(PAST)), PageRequest(limit=BATCH)
        return {
            "read the past": lambda: asking(reading.read_graph, max_items=10_000),
            "open the past": lambda: asking(reading.open_nodes, NAMES),
            "list past nodes": lambda: asking(lineages.list_nodes, VersionFilter(limit=BATCH)),
            "list past tags": lambda: asking(lineages.list_tags),
            "search the past": lambda: asking(search.search_nodes, SubstringQuery("tea")),
            "search the past by rank": lambda: asking(search.search_ranked, RankedQuery("tea wine")),
            "search the past by boolean": lambda: asking(search.search_boolean, BooleanQuery("tea AND wine")),
            "search the past fuzzily": lambda: asking(search.search_fuzzy, FuzzyQuery("likes tea 7")),
            "search the past by date": lambda: asking(search.search_dates, DateQuery()),
            "match past labels": lambda: asking(
                search.match_labels, LabelQuery((AskedWord(("tag",)), AskedWord(("tea",))), 0.5)
            ),
            "recall the past": lambda: self.recall_the_past(RecallFilter()),
            "recall the past of few": lambda: self.recall_the_past(RecallFilter(about=tuple(NAMES[:3]))),
            "find the similar of the past": lambda: self.find_similar(str(PAST)),
            "search past relations": lambda: asking(relations.find_relations, RelationFilter(), offset=0, limit=BATCH),
            "find a past path": lambda: asking(found_path, NAMES[7], NAMES[8]),
            "extract the past": lambda: asking(traversal.extract_subgraph, NAMES[:1], depth=1, max_nodes=BATCH),
            "list past roots": lambda: asking(hierarchy.get_roots, page),
            "list past children": lambda: asking(hierarchy.get_descendants, NAMES[0], page),
            "find past duplicates": lambda: asking(found_duplicates, threshold=0.9),
            "validate the past": lambda: asking(validation.validate_graph),
        }

    def long_work(self) -> dict[str, Callable[[], Awaitable[object]]]:
        nobody = ArchiveCriteria(tags=("nobody",))
        return {
            "import": lambda: self.writing(transfer.import_batch, "default", IMPORTED, Strategy.SKIP),
            "import again": lambda: self.writing(transfer.import_batch, "default", IMPORTED, Strategy.MERGE),
            "export": self.export,
            "compare": self.compare,
            "archive": lambda: self.trying(archiving.archive_entities, "archive", nobody, dry_run=True),
            "purge": self.purge,
            "validate": lambda: self.asking(validation.validate_graph),
        }

    def removals(self) -> dict[str, Callable[[], Awaitable[object]]]:
        agent = self.work.agent
        return {
            "unobserve": lambda: agent.unobserve(*((name, "and wine") for name in NAMES)),
            "unrelate": lambda: agent.unrelate(*EDGES),
            "merge": lambda: agent.merge(NAMES[1:11]),
            "delete": lambda: agent.delete(*NAMES[:1], *NAMES[11:]),
            "compact": self.compact,
            "erase somebody": lambda: self.writing(erasure.erase_person, "default", "from 7"),
            "erase": lambda: self.writing(erasure.erase_graph, "default"),
        }

    async def asking(
        self, use_case: Callable[..., Awaitable[object]], *arguments: object, as_of: str | None = None, **named: object
    ) -> None:
        async with self.work.agent.db.transaction(self.work.agent.caller, read_only=True) as tx:
            await use_case(await graphs.view(tx, None, as_of), *arguments, **named)

    async def recall_the_past(self, only: RecallFilter) -> None:
        questions = await embedded_questions("Who likes tea 7?")
        await self.asking(recall.recall, questions, only, limit=10, token_budget=1_500, as_of=str(PAST))

    async def find_similar(self, as_of: str | None = None) -> None:
        fact = await self.work.owner.fetchval(
            "SELECT id FROM nodes WHERE tenant_id = $1 AND name IS NULL ORDER BY id LIMIT 1",
            self.work.agent.caller.tenant_id,
        )
        await self.asking(similarity.find_similar, fact, min_score=0.5, limit=10, as_of=as_of)

    async def trying(self, use_case: Callable[..., Awaitable[object]], *arguments: object, **named: object) -> None:
        async with self.work.agent.db.transaction(self.work.agent.caller, read_only=True) as tx:
            await use_case(tx, None, *arguments, **named)

    async def writing(self, use_case: Callable[..., Awaitable[object]], *arguments: object) -> None:
        async with self.work.agent.db.transaction(self.work.agent.caller) as tx:
            await use_case(tx, *arguments)

    async def create_facts(self) -> None:
        async with self.work.agent.writing() as (tx, revision):
            for number in range(FEW):
                await writing.create_fact(tx, revision, NewFact(f"likes tea {number}, too"), threshold=0.5)

    async def link_facts(self) -> None:
        async with self.work.agent.writing() as (tx, revision):
            assert await links.link_similar(tx, revision, limit=FEW) == FEW

    async def export(self) -> None:
        async with self.work.agent.db.transaction(self.work.agent.caller, read_only=True) as tx:
            assert await exports.export_whole(
                tx, await exports.open_export(tx, "default", "json"), max_bytes=10_000_000, max_pages=1_000
            )

    async def compare(self) -> None:
        db, caller = self.work.agent.db, self.work.agent.caller
        async with db.transaction(caller, read_only=True) as tx:
            graph = await graphs.get_graph(tx, "default")
        done = await deduplication.deduplicate(db, caller, graph.id, mode="propose", threshold=0.9)
        async with db.transaction(caller) as tx:
            await deduplication.settle(tx, *done)

    async def purge(self) -> None:
        async with self.work.agent.db.transaction(self.work.agent.caller, commit=False) as tx:
            graph = await graphs.get_graph(tx, "default")
            passed = "UPDATE nodes SET expires_at = now() - interval '1 hour', status = 'archived'"
            await tx.execute(Query.compile(f"{passed} WHERE tenant_id = :tenant_id AND name <> 'entity 0'"))
            await expiry.graphs_with_purgeable(tx, retention=timedelta())
            await expiry.purge_expired(tx, graph.id, retention=timedelta())

    async def compact(self) -> None:
        async with self.work.agent.db.transaction(self.work.agent.caller) as tx:
            graph = await graphs.get_graph(tx, "default")
            await retention.compact(tx, graph.id, before=datetime.now(UTC))

    async def recount(self) -> None:
        await self.work.owner.execute("UPDATE graph_indexes SET passages_counted = 0, memories_counted = 0")
        await self.work.agent.embed()


async def test_no_call_compares_all_rows_with_each_other(work: Work) -> None:
    assert await _looked_at_by_item(work) == {}


@pytest.mark.parametrize("work", ["beside less"], indirect=True)
async def test_rows_are_looked_up_even_if_the_primary_key_has_fewer_levels(work: Work) -> None:
    """If PostgreSQL expects one row, these two statements are exceptions: they are planned with their values."""
    much = await _looked_at_by_item(work)
    assert much.keys() <= {"search the past by rank: search.search_ranked", "compact: compaction.compact_nodes"}


async def _looked_at_by_item(work: Work) -> dict[str, float]:
    """Rows that statements of these calls look at for each item of a batch, if they are more than PER_ITEM.

    The three statements that look at more everywhere have limits of their own.
    """
    found: dict[str, float] = {}
    for name, call in Calls(work).in_order().items():
        work.watch.clear()
        await call()
        assert work.watch.rows
        found |= {f"{name}: {query}": rows / BATCH for query, rows in work.watch.rows.items()}
    much = {name: per_item for name, per_item in found.items() if per_item > PER_ITEM}
    assert much.pop("embed: passages.find_windows") <= PER_EMBEDDED
    assert much.pop("embed: passages.settle", 0) <= PER_EMBEDDED
    assert much.pop("link facts: similarity.find_similar_entities") <= PER_LINKED
    assert much.pop("compact: compaction.compact_observations", 0) <= PER_COMPACTED
    return much


@pytest.mark.parametrize("work", ["others"], indirect=True)
async def test_a_recall_looks_at_no_more_expiring_rows_than_it_returns(work: Work) -> None:
    agent, looked_at = work.agent, work.watch.rows
    await agent.create(*entities_of("new", BATCH))
    await agent.embed()
    await work.owner.execute("UPDATE nodes SET expires_at = now() + interval '1 day' WHERE name LIKE 'new %'")
    work.watch.clear()
    [question] = await embedded_questions("who likes tea 7?")
    async with agent.db.transaction(agent.caller, read_only=True, plan=QueryPlan.ONCE) as tx:
        view = await graphs.view(tx, None)
        assert (await recall.recall(view, [question], RecallFilter(), limit=10, token_budget=1_000)).hits
    for statement in ("is_node_shown", "has_unusual_nodes"):  # One row each, by several steps of a plan.
        assert looked_at[f"recall.{statement}"] < 10, statement


@pytest.mark.parametrize("work", ["others"], indirect=True)
async def test_remembering_looks_at_no_more_expiring_rows_than_it_compares(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_COMPARED_WITH_NEW", 10)
    agent, looked_at = work.agent, work.watch.rows
    await agent.remember(*(replace(turn(number), ttl_days=1) for number in range(BATCH)))
    await agent.embed()
    await work.owner.execute("ANALYZE")
    work.watch.clear()
    [new] = await agent.remember(f"{turn(7).text} again")
    assert turn(7).text in [close.text for close in new.close]
    for statement in ("similarity.find_near_duplicates", "recall.has_unusual_nodes"):
        assert 0 < looked_at[statement] < BATCH / 4, statement
