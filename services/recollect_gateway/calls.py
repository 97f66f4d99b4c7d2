"""One call, by whichever transport it came: who calls, and the ways to the memory."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from recollect.accounts.usage.tally import UsageTally
from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.known import KnownGraphs
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.replicas import replicated
from recollect.graph.graphs.view import GraphView
from recollect.graph.relations.counted import EdgeCounts
from recollect.platform.computing import Slices, compute
from recollect.platform.db import Database
from recollect.platform.replicas import ReplicaFailed
from recollect.platform.transactions import ExpectedGraph, GraphChanged, Transaction
from recollect.retrieval.recall.cache import Lookup, RecallCache, looked_up
from recollect.retrieval.recall.model import Question, RecallFilter
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Services:
    """What every call may use. Made once by the composition root; caches that are switched off are None."""

    db: Database
    encoder: QuestionEncoder
    settings: Settings
    recall_cache: RecallCache | None = None
    tally: UsageTally | None = None
    known_graphs: KnownGraphs = field(default_factory=KnownGraphs)
    edge_counts: EdgeCounts = field(default_factory=EdgeCounts)


Progress = Callable[[float, float | None], Awaitable[None]]
"""Tells the client how much of how much is done, if it asked to be told; else does nothing."""


async def _no_progress(_: float, __: float | None) -> None:
    """The progress that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, of a tool or a route: who calls, and the ways to the memory.

    `operation`: its name, as the log of a graph tells what was done. `read_only`: its transaction cannot write.
    `by_replica`: what it reads of graphs a replica may tell (`read_by_replica`).
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

    def transaction(
        self, *, keep: bool = True, expects: ExpectedGraph | None = None, keyed: bool = False
    ) -> AbstractAsyncContextManager[Transaction]:
        """The call's one transaction. `keep` False: a dry run, rolled back. `expects`, `keyed`: as of the database."""
        reply_bytes = self.settings.max_reply_bytes if self.read_only else None
        return self.services.db.transaction(
            self.caller, read_only=self.read_only, keep=keep, reply_bytes=reply_bytes, expects=expects, keyed=keyed
        )

    async def compute(self, slices: Slices[T], *, advice: str) -> T:
        """The result of a computation, which the caller waits for outside any transaction.

        Raises TooLarge (too_costly) with the advice for one that takes too long.
        """
        seconds = self.settings.compute_seconds
        return await compute(self.caller.tenant_id, slices, seconds=seconds, advice=advice)

    def graph_name(self, graph: str | None) -> str:
        """The graph that is meant, by name or id as it was given; else the credential's default."""
        return graph or self.caller.default_graph

    @asynccontextmanager
    async def reading(
        self, graph: str | None, as_of: str | datetime | None = None, *, keyed: bool = False
    ) -> AsyncIterator[GraphView]:
        """The call's one transaction, and in it a graph, as it is or (`as_of`, a revision or a time) as it was.

        `keyed`: all that is asked of it is looked up by keys. Where it is not there, nothing is found in it.
        It begins on the primary and, `by_replica`, goes on at a replica that has of the graph what the primary has.
        """
        async with AsyncExitStack() as primary, AsyncExitStack() as replica:
            view = await self._view(primary, graph, as_of, keyed)
            if self.by_replica and (there := await replicated(view, replica)) is not None:
                await primary.aclose()
                view = there
            yield view

    async def _view(
        self, stack: AsyncExitStack, graph: str | None, as_of: str | datetime | None, keyed: bool
    ) -> GraphView:
        """A graph in a transaction that the stack then holds; one that is known is not asked for, but confirmed."""
        known_graphs, tenant_id, name = self.services.known_graphs, self.caller.tenant_id, self.graph_name(graph)
        known = known_graphs.find(tenant_id, name)
        if known is not None:
            try:
                tx = await stack.enter_async_context(self.transaction(expects=known.expected, keyed=keyed))
            except GraphChanged:
                known_graphs.note(tenant_id, name, None)
            else:
                return await graphs.view_of(tx, known, graph, as_of)
        tx = await stack.enter_async_context(self.transaction(keyed=keyed))
        found = await graphs.find_known(tx, graph)
        known_graphs.note(tenant_id, name, found)
        return await graphs.view_of(tx, found, graph, as_of)

    def changing(
        self, graph: str | None, *, keep: bool = True, keyed: bool = False
    ) -> AbstractAsyncContextManager[Transaction]:
        """The call's one transaction, in which a use case takes the graph's write lock.

        `keep` and `keyed` as in `transaction`.
        """
        return self.services.db.writing(self.caller, self.graph_name(graph), keep=keep, keyed=keyed)

    @asynccontextmanager
    async def writing(self, graph: str | None, *, keep: bool = True) -> AsyncIterator[tuple[Transaction, Revision]]:
        """The call's one transaction, with the graph's write lock and its next revision.

        `keep` as in `transaction`. What is written is looked up by keys; what is searched for says so.
        """
        async with (
            self.changing(graph, keep=keep, keyed=True) as tx,
            graphs.write_graph(tx, graph, self.operation) as revision,
        ):
            yield tx, revision

    @asynccontextmanager
    async def recalling(
        self, graph: str | None, questions: Sequence[Question], only: RecallFilter, *, as_of: str | None = None
    ) -> AsyncIterator[tuple[GraphView, Lookup | None]]:
        """The same for a recall, with what the search cache, asked before the transaction, knows of these questions.

        It looks up by keys until the recall searches otherwise.
        """
        name = self.graph_name(graph)
        async with (
            looked_up(self.services.recall_cache, self.caller, name, questions, only) as lookup,
            self.reading(graph, as_of, keyed=True) as view,
        ):
            yield view, lookup

    async def questions(self, texts: Sequence[str]) -> list[Question]:
        """Texts to ask for, with their vectors. Call it before the transaction."""
        return await self.services.encoder.questions(self.caller, texts)

    async def statements(self, texts: Sequence[str]) -> list[Question]:
        """Texts to store, with their vectors. Call it before the transaction."""
        return await self.services.encoder.statements(self.caller, texts)


async def read_by_replica(call: Call, read: Callable[[Call], Awaitable[T]]) -> T:
    """What `read` answers of a call that only reads, by a replica where one may tell; where that fails, by the primary.

    `read` may be done twice: it changes nothing, and has answered nobody before it ends.
    """
    try:
        return await read(replace(call, by_replica=call.read_only))
    except ReplicaFailed:
        return await read(call)
