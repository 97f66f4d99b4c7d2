"""One call, by either transport: its caller, and its access to the memory."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from recollect.accounts.usage.model import Counts
from recollect.accounts.usage.tally import UsageTally
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.embedding import PreparedTexts
from recollect.fairness.computing import Slices, compute
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.graph_cache import GraphCache
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.replicas import replicated
from recollect.graph.graphs.view import GraphView
from recollect.graph.relations.counted import EdgeCounts
from recollect.jobs.model import EMBED_PASSAGES
from recollect.postgres.replicas import ReplicaFailed
from recollect.postgres.sql import QueryPlan
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import ExpectedGraph, GraphChanged, Transaction
from recollect.retrieval.recall.cache import Lookup, RecallCache, cached_lookup
from recollect.retrieval.recall.model import Question, RecallFilter
from recollect.retrieval.recall.questions import Named, QuestionEncoder
from recollect.settings import Settings
from recollect.telemetry.metrics import record_embedded

T = TypeVar("T")

MAX_LOCK_TIMEOUTS = 2
"""The longest time for which a call may lock a graph to write it, as a multiple of the statement timeout."""


@dataclass(frozen=True, slots=True)
class Services:
    """The services that every call may use. Made once by the composition root; caches that are off are None."""

    databases: Databases
    encoder: QuestionEncoder
    settings: Settings
    recall_cache: RecallCache | None = None
    tally: UsageTally | None = None
    graph_cache: GraphCache = field(default_factory=GraphCache)
    edge_counts: EdgeCounts = field(default_factory=EdgeCounts)


Progress = Callable[[float, float | None], Awaitable[None]]
"""A function that reports to the client how much is done, and of how much. It does nothing unless the client asked."""


async def _no_progress(_: float, __: float | None) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, of a tool or a route: its caller, and its access to the memory.

    `operation`: its name in the logs of graphs. `read_only`: its transaction cannot write.
    `by_replica`: it may read graphs from a replica (`read_by_replica`).
    """

    caller: Caller
    services: Services
    operation: str
    read_only: bool = False
    progress: Progress = _no_progress
    by_replica: bool = False

    @property
    def settings(self) -> Settings:
        """The service's settings."""
        return self.services.settings

    @property
    def db(self) -> TenantDatabase:
        """The database of the caller's tenant."""
        return self.services.databases.of(self.caller.tenant_id)

    def transaction(
        self,
        *,
        commit: bool = True,
        expected_graph: ExpectedGraph | None = None,
        plan: QueryPlan = QueryPlan.WITH_VALUES,
    ) -> AbstractAsyncContextManager[Transaction]:
        """The call's one transaction. `commit` False: a dry run, rolled back. The others: as in `Database`."""
        return self.db.transaction(
            self.caller,
            read_only=self.read_only,
            commit=commit,
            reply_bytes=self.settings.max_reply_bytes,
            expected_graph=expected_graph,
            plan=plan,
        )

    def looking_up(self) -> AbstractAsyncContextManager[Transaction]:
        """The call's one transaction, to look up by their ids the nodes or relations that a computation found."""
        return self.transaction(plan=QueryPlan.ONCE)

    async def compute(self, slices: Slices[T], *, advice: str) -> T:
        """Run a computation and return its result. Call it outside of any transaction.

        Raises TooLarge (too_costly), with the advice, if it takes too long.
        """
        seconds = self.settings.compute_seconds
        return await compute(self.caller.tenant_id, slices, seconds=seconds, advice=advice)

    def graph_name(self, graph: str | None) -> str:
        """The name or id of the call's graph: the one that was given, else the credential's default."""
        return graph or self.caller.default_graph

    def reading(self, graph: str | None, as_of: str | datetime | None = None) -> AbstractAsyncContextManager[GraphView]:
        """The call's one transaction, as a view of a graph as it is or (`as_of`, a revision or a time) as it was.

        Its queries look rows up by names and ids, except those that say that they search. If there is no such graph,
        the view is empty. It begins on the primary. With `by_replica`, it continues on a replica that has the graph at
        the same revision.
        """
        return self._reading(graph, as_of, QueryPlan.ONCE)

    def searching(
        self, graph: str | None, as_of: str | datetime | None = None
    ) -> AbstractAsyncContextManager[GraphView]:
        """A view as by `reading`, for calls that search, list or count."""
        return self._reading(graph, as_of, QueryPlan.WITH_VALUES)

    @asynccontextmanager
    async def _reading(
        self, graph: str | None, as_of: str | datetime | None, plan: QueryPlan
    ) -> AsyncIterator[GraphView]:
        async with AsyncExitStack() as primary, AsyncExitStack() as replica:
            view = await self._view(primary, graph, as_of, plan)
            if self.by_replica and (replica_view := await replicated(view, replica)) is not None:
                await primary.aclose()
                view = replica_view
            yield view

    async def _view(
        self, stack: AsyncExitStack, graph: str | None, as_of: str | datetime | None, plan: QueryPlan
    ) -> GraphView:
        """Open a view of a graph in a transaction that the stack closes. A known graph is confirmed, not looked up."""
        graph_cache, tenant_id, name = self.services.graph_cache, self.caller.tenant_id, self.graph_name(graph)
        known = graph_cache.find(tenant_id, name)
        if known is not None:
            try:
                tx = await stack.enter_async_context(self.transaction(expected_graph=known.expected, plan=plan))
            except GraphChanged:
                graph_cache.note(tenant_id, name, None)
            else:
                return await graphs.view_of(tx, known, graph, as_of)
        tx = await stack.enter_async_context(self.transaction(plan=plan))
        found = await graphs.find_known(tx, graph)
        graph_cache.note(tenant_id, name, found)
        return await graphs.view_of(tx, found, graph, as_of)

    def changing(
        self,
        graph: str | None,
        *,
        commit: bool = True,
        plan: QueryPlan = QueryPlan.WITH_VALUES,
        unbounded: bool = False,
    ) -> AbstractAsyncContextManager[Transaction]:
        """The call's one transaction, in which a use case takes the graph's write lock.

        `commit` and `plan` as in `transaction`. Other writers of the graph wait for it, so it is rolled back after
        MAX_LOCK_TIMEOUTS statement timeouts, unless it is `unbounded`.
        """
        return self.db.writing(
            self.caller,
            self.graph_name(graph),
            commit=commit,
            reply_bytes=self.settings.max_reply_bytes,
            plan=plan,
            within_seconds=None if unbounded else MAX_LOCK_TIMEOUTS * self.settings.statement_timeout_seconds,
        )

    @asynccontextmanager
    async def writing(
        self, graph: str | None, *, commit: bool = True, prepared: PreparedTexts | None = None
    ) -> AsyncIterator[tuple[Transaction, Revision]]:
        """The call's one transaction, with the graph's write lock and its next revision.

        `commit` as in `transaction`. `prepared`: the vectors of its texts.
        """
        async with (
            self.changing(graph, commit=commit, plan=QueryPlan.ONCE) as tx,
            graphs.write_graph(tx, graph, self.operation) as revision,
        ):
            tx.prepared = prepared
            yield tx, revision
        if tx.embedded and commit:
            self._count_embedded(tx.embedded)

    def _count_embedded(self, passages: int) -> None:
        """Count passages that were stored with their vectors, as the worker counts those that it embeds."""
        record_embedded(passages, [0.0] * passages)
        if self.services.tally is not None:
            self.services.tally.count(self.caller.tenant_id, "work", EMBED_PASSAGES, Counts(calls=1, passages=passages))

    @asynccontextmanager
    async def recalling(
        self, graph: str | None, questions: Sequence[Question], filters: RecallFilter, *, as_of: str | None = None
    ) -> AsyncIterator[tuple[GraphView, Lookup | None]]:
        """The view that a recall reads, and the entries of the search cache for these questions, if there is a cache.

        The entries are fetched before the transaction begins.
        """
        name, cache = self.graph_name(graph), self.services.recall_cache if questions else None
        async with (
            cached_lookup(cache, self.caller, name, questions, filters) as lookup,
            self.reading(graph, as_of) as view,
        ):
            yield view, lookup

    async def time_zone(self, graph: str | None) -> str | None:
        """The time zone of days in a call that names none: the graph's, or else its tenant's, or else UTC (None).

        It takes a transaction of its own, so call it only for a day without an offset.
        """
        async with self.looking_up() as tx:
            return await graphs.time_zone_of(tx, graph)

    async def questions(self, texts: Sequence[str], *, time_zone: str | None = None) -> list[Question]:
        """Make questions of texts, with vectors, in a time zone (None: the graph's). Call it before a transaction."""
        return await self.services.encoder.questions(self.caller, texts, time_zone=time_zone)

    async def embed_new_memories(
        self, texts: Sequence[str], memories: Iterable[Named] = ()
    ) -> tuple[list[Question], PreparedTexts]:
        """Make questions that find the near duplicates of texts, and all vectors for `writing`. Call it before that."""
        return await self.services.encoder.embed_new_memories(self.caller, texts, memories)

    async def prepare(self, memories: Iterable[Named]) -> PreparedTexts:
        """Make the vectors of new memories, for `writing`. Call it before that."""
        return await self.services.encoder.prepare(memories)


async def read_by_replica(call: Call, read: Callable[[Call], Awaitable[T]]) -> T:
    """Run `read` on a replica, if the call only reads, and again on the primary if the replica fails.

    Since it may run twice, `read` must change nothing, and send no answer before it ends.
    """
    try:
        return await read(replace(call, by_replica=call.read_only))
    except ReplicaFailed:
        return await read(call)
