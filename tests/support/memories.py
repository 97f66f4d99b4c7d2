"""An agent at work below the transports: one call, one transaction, as the gateway does it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from recollect.caller import Caller
from recollect.curation.duplicates import service as duplicates
from recollect.curation.merging import service as merging
from recollect.curation.merging.model import MergedEntity
from recollect.embedding import Embedder, create_embedder, embed_passages
from recollect.fairness.computing import finish
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphHead, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.graph.passage_words import service as passage_words
from recollect.graph.passages import service as passages
from recollect.graph.passages.evidence import evidence_of
from recollect.graph.passages.model import PendingPassage
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewRelation, Subgraph
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import NamedPaths
from recollect.memory import reading, remembering, writing
from recollect.memory.model import NewMemory, Remembered
from recollect.postgres.database import Database
from recollect.postgres.sql import Query, QueryPlan
from recollect.postgres.transactions import Transaction
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import Question, Recalled, RecallFilter
from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import SubstringQuery
from recollect.settings import Settings
from tests.support.quick_embedder import QUICK_EMBEDDER

Triple = tuple[str, str, str]


@cache
def embedder() -> Embedder:
    """The embedder of the tests' settings, loaded once per run."""
    return create_embedder(Settings(embedder=QUICK_EMBEDDER))


async def found_path(view: GraphView, source: str, target: str) -> NamedPaths:
    """A shortest path between two names, as find_path returns it."""
    searched = await traversal.open_path_between(view, source, target)
    return await traversal.name_paths(view.tx, searched, finish(searched.shortest_path()))


async def found_duplicates(view: GraphView, *, threshold: float) -> list[list[str]]:
    """The names of similar entities, as find_duplicates returns them."""
    searched = await duplicates.open_search(view, threshold=threshold)
    return (await duplicates.list_groups(view.tx, searched, finish(searched.groups()), offset=0, limit=10)).groups


@dataclass(frozen=True)
class Agent:
    """A caller on one graph; None is the credential's default. Each method is one call."""

    db: Database
    caller: Caller
    graph: str | None = None

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[tuple[Transaction, Revision]]:
        async with (
            self.db.transaction(self.caller, plan=QueryPlan.ONCE) as tx,
            graphs.write_graph(tx, self.graph, "test") as revision,
        ):
            yield tx, revision

    async def create(self, *given: NewEntity | str) -> list[str]:
        """Create entities, and return the names of the new ones."""
        wanted = [NewEntity(entity, "thing") if isinstance(entity, str) else entity for entity in given]
        async with self.writing() as (tx, revision):
            return [entity.name for _, entity in await entities.create_entities(tx, revision, wanted)]

    async def observe(self, entity: str, *contents: str) -> list[str]:
        """Add observations, and return the new ones."""
        wanted = [NewObservation(entity, content) for content in contents]
        async with self.writing() as (tx, revision):
            return [observation.content for observation in await observations.add_observations(tx, revision, wanted)]

    async def unobserve(self, *statements: tuple[str, str]) -> None:
        """Delete observations, given as (entity, content)."""
        async with self.writing() as (tx, revision):
            await observations.remove_observations(tx, revision, statements)

    async def relate(self, *triples: Triple) -> list[Triple]:
        """Create relations, and return the new ones."""
        async with self.writing() as (tx, revision):
            made = await relations.create_relations(tx, revision, [NewRelation(*triple) for triple in triples])
            return [relation.triple for relation in made]

    async def unrelate(self, *triples: Triple) -> None:
        async with self.writing() as (tx, revision):
            await relations.delete_relations(tx, revision, triples)

    async def delete(self, *names: str) -> None:
        async with self.writing() as (tx, revision):
            await writing.delete_entities(tx, revision, names)

    async def let_go(self, name: str, status: str = "outdated") -> None:
        """Give an entity a status by which it is no longer current."""
        async with self.writing() as (tx, revision):
            head = (await nodes.require_entity_heads(tx, revision.graph, [name]))[name]
            await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, status=status, reason="was wrong"))])

    async def merge(self, names: Sequence[str], target: str | None = None) -> MergedEntity:
        """Make several entities one."""
        async with self.writing() as (tx, revision):
            return await merging.merge_entities(tx, revision, names, target)

    async def remember(self, *items: NewMemory | str) -> list[Remembered]:
        wanted = [NewMemory(item) if isinstance(item, str) else item for item in items]
        questions = await embedded_questions(*(item.text for item in wanted))
        async with self.writing() as (tx, revision):
            return await remembering.remember(tx, revision, wanted, questions)

    async def recall(self, *texts: str, limit: int = 10, token_budget: int = 1500, **only: Any) -> Recalled:
        questions = await embedded_questions(*texts)
        async with self.db.transaction(self.caller, read_only=True) as tx:
            return await recall.recall(
                await graphs.view(tx, self.graph),
                questions,
                RecallFilter(**only),
                limit=limit,
                token_budget=token_budget,
            )

    async def recalled(self, *texts: str, **only: Any) -> list[str]:
        """The texts that recall finds, best first."""
        return [hit.text for hit in (await self.recall(*texts, **only)).hits]

    async def found(self, text: str, **only: Any) -> list[str]:
        """The names that search_nodes finds, best first."""
        async with self.db.transaction(self.caller, read_only=True) as tx:
            found = await search.search_nodes(await graphs.view(tx, self.graph), SubstringQuery(text, **only))
            return [entity.name for entity in found.entities]

    async def open(self, *names: str) -> Subgraph:
        async with self.db.transaction(self.caller, read_only=True) as tx:
            return await reading.open_nodes(await graphs.view(tx, self.graph), names)

    async def read(self) -> Subgraph:
        async with self.db.transaction(self.caller, read_only=True) as tx:
            return await reading.read_graph(
                await graphs.view(tx, self.graph), kind=None, offset=0, limit=None, max_items=10_000
            )

    async def head(self) -> GraphHead:
        async with self.db.transaction(self.caller, read_only=True) as tx:
            view = await graphs.view(tx, self.graph)
            graphs.require_there(view)
            return await graphs.head_of(view)

    async def embed(self, by: Embedder | None = None) -> int:
        """Embed every pending passage of the tenant as the worker does, and return their number."""
        by = by or embedder()
        model, embedded = by.model, 0
        while True:
            async with self.db.transaction(self.caller, plan=QueryPlan.ONCE) as tx:
                claimed = await passages.claim_pending(tx, model=model, limit=1_000, lease_seconds=60)
            if not claimed:
                break
            made = await embedded_passages(claimed, by)
            async with self.db.transaction(self.caller, plan=QueryPlan.ONCE) as tx:
                await passages.lock_claimed_graphs(tx, claimed, model=model)
                embedded += await passages.settle(tx, claimed, model=model, **made)
        async with self.db.transaction(self.caller) as tx:
            await count_words(tx)
        return embedded


async def embedded_passages(claimed: Sequence[PendingPassage], by: Embedder | None = None) -> dict[str, Any]:
    """The arguments of `passages.settle` for claimed passages with a text, as the worker computes them."""
    bare = [passage for passage in claimed if passage.text is not None]
    embedded = await embed_passages(by or embedder(), [passage.text or "" for passage in bare])
    evidence = await evidence_of(bare, embedded.tokens)
    return {"ids": [passage.id for passage in bare], "vectors": embedded.vectors, "evidence": evidence}


@asynccontextmanager
async def at_work(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    """An agent whose passages are deleted at the end: a worker of other tests would embed them first."""
    try:
        yield Agent(db, caller)
    finally:
        async with db.transaction(caller) as tx:
            await tx.execute(Query.compile("DELETE FROM passages"))


async def count_words(tx: Transaction) -> None:
    """Count the words of the tenant's graphs that have changed much, as the worker does."""
    for graph_id in await passage_words.graphs_to_count(tx, limit=100):
        await passage_words.recount_terms(tx, graph_id)


async def embedded_questions(*texts: str) -> list[Question]:
    """Texts with their vectors."""
    vectors = await embedder().embed(texts)
    model, similarity_thresholds = embedder().model, embedder().similarity_thresholds
    return [
        Question(text, vector, model, similarity_thresholds=similarity_thresholds)
        for text, vector in zip(texts, vectors, strict=True)
    ]


def triples(graph: Subgraph) -> list[Triple]:
    """The relations of the result, oldest first."""
    return [(relation.source, relation.target, relation.type) for relation in graph.relations]


def names(graph: Subgraph) -> Sequence[str]:
    """The names of the entities of the result, oldest first."""
    return [entity.name for entity in graph.entities]
