"""Tools as data: what one is, and what its handler is handed."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import structlog
from mcp_types import CallToolResult
from msgspec import Meta

from recollect.caller import Caller, Scope
from recollect.errors import TooLarge, Unavailable
from recollect.graphs import service as graphs
from recollect.graphs.model import Revision
from recollect.platform.db import Database, Transaction
from recollect.platform.embedding import Embedder
from recollect.platform.embedding_cache import CachedEmbedder
from recollect.recall.asking import speaks_of_self
from recollect.recall.cache import Lookup, RecallCache
from recollect.recall.model import Question, RecallFilter
from recollect.settings import Settings
from recollect.usage.tally import Tally
from recollect_gateway.mcp_endpoint.errors import tool_error
from recollect_gateway.shapes import GraphName

log = structlog.get_logger(__name__)


GraphChoice = Annotated[GraphName, Meta(description="Graph to use; default: the credential's")]
AsOf = Annotated[
    str, Meta(max_length=40, description="Read as it was: a revision, or a time like 2027-01-31T12:00:00Z")
]


class Arguments(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Base of a tool's arguments; unknown ones are told rather than ignored."""

    graph: GraphChoice | None = None


class Reading(Arguments, kw_only=True, frozen=True):
    """Base of the arguments of a tool that can read the past."""

    as_of: AsOf | None = msgspec.field(default=None, name="as_of")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answers: structured content, and the text beside it (default: the structured content as JSON).

    `note` is a second text, so that the first stays what clients parse: what was left out, and how to get it.
    """

    structured: msgspec.Struct
    text: str | None = None
    note: str | None = None


def bounded(structured: msgspec.Struct, max_bytes: int | None) -> bytes:
    """What is answered as JSON; raises TooLarge for more than one reply may take, None being no bound."""
    encoded = msgspec.json.encode(structured)
    if max_bytes is not None and len(encoded) > max_bytes:
        raise TooLarge(
            f"The answer takes {len(encoded)} bytes, more than one reply may ({max_bytes}). Ask for less: limit"
        )
    return encoded


@dataclass(frozen=True, slots=True)
class Services:
    """What every call may use. Made once by the composition root; caches that are switched off are None."""

    db: Database
    embedder: Embedder
    settings: Settings
    cached_embedder: CachedEmbedder | None = None
    recall_cache: RecallCache | None = None
    previous_embedder: Embedder | None = None
    tally: Tally | None = None


Progress = Callable[[float, float | None], Awaitable[None]]
"""Tells the client how much of how much is done, if it asked to be told; else does nothing."""


async def _untold(_: float, __: float | None) -> None:
    """The progress that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: who calls, and the ways to the memory."""

    caller: Caller
    services: Services
    tool: "ToolSpec"
    progress: Progress = _untold

    @property
    def settings(self) -> Settings:
        """The service's settings."""
        return self.services.settings

    def transaction(self, *, keep: bool = True) -> AbstractAsyncContextManager[Transaction]:
        """The call's one transaction; a read-only tool's cannot write. `keep` False: a dry run, rolled back."""
        return self.services.db.transaction(self.caller, read_only=self.tool.read_only, keep=keep)

    def graph_name(self, graph: str | None) -> str:
        """The graph that is meant: the named one, else the credential's default."""
        return graph or self.caller.default_graph

    @asynccontextmanager
    async def writing(self, graph: str | None, *, keep: bool = True) -> AsyncIterator[tuple[Transaction, Revision]]:
        """The call's one transaction, with the graph's write lock and its next revision. `keep` as in `transaction`."""
        async with self.transaction(keep=keep) as tx, graphs.write_graph(tx, graph, self.tool.name) as revision:
            yield tx, revision

    @asynccontextmanager
    async def recalling(
        self, graph: str | None, questions: Sequence[Question], only: RecallFilter
    ) -> AsyncIterator[tuple[Transaction, Lookup | None]]:
        """The call's one transaction, and what the search cache, asked before it, knows of these questions."""
        cache = self.services.recall_cache
        name = self.graph_name(graph)
        lookup = None if cache is None else await cache.look_up(self.caller, name, questions, only)
        async with self.transaction() as tx:
            yield tx, lookup
        if cache is not None:
            cache.keep(lookup)

    async def questions(self, texts: Sequence[str]) -> list[Question]:
        """Texts to ask for, with their vectors, which are remembered for the next time; see `statements`."""
        return await self._embedded(self.services.cached_embedder or self.services.embedder, texts)

    async def statements(self, texts: Sequence[str]) -> list[Question]:
        """Texts to store, with their vectors; without, where the embedder is away: words alone must do then.

        Call it before the transaction: the embedder may be across a network.
        """
        return await self._embedded(self.services.embedder, texts)

    async def _embedded(self, embedder: Embedder, texts: Sequence[str]) -> list[Question]:
        asked = await self._embedded_by(embedder, texts)
        if self.services.previous_embedder is None:
            return asked
        older = await self._embedded_by(self.services.previous_embedder, texts)
        return [replace(one, older=other) for one, other in zip(asked, older, strict=True)]

    async def _embedded_by(self, embedder: Embedder, texts: Sequence[str]) -> list[Question]:
        try:
            vectors = await embedder.embed(texts)
        except Unavailable as error:
            log.warning("going on without vectors", reason=str(error))
            return [Question(text, None, embedder.model, self._asker(text), embedder.floors) for text in texts]
        # The zero vector of a text without words has no direction: it is near to nothing.
        return [
            Question(text, vector if vector.any() else None, embedder.model, self._asker(text), embedder.floors)
            for text, vector in zip(texts, vectors, strict=True)
        ]

    def _asker(self, text: str) -> str | None:
        return self.caller.subject if speaks_of_self(text) else None


Handler = Callable[[Call, Any], Awaitable[Reply]]
ErrorRenderer = Callable[[Exception], CallToolResult]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool of the catalogue. Its scope follows from whether it writes; `terse`: listed with schemas kept short.

    `render_error` is how the dialect of its toolset tells errors.
    """

    name: str
    title: str
    description: str
    toolsets: frozenset[str]
    arguments: type[msgspec.Struct]
    result: type[msgspec.Struct]
    handler: Handler
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    terse: bool = False
    render_error: ErrorRenderer = tool_error

    @property
    def scope(self) -> Scope:
        """The scope that a credential needs for it."""
        return Scope.MEMORY_READ if self.read_only else Scope.MEMORY_WRITE


@dataclass(frozen=True, slots=True)
class Selection:
    """What one request is offered: toolsets by name, and whether only tools that read."""

    toolsets: frozenset[str]
    read_only: bool = False

    def offers(self, tool: ToolSpec, caller: Caller) -> bool:
        """Whether the tool is listed for this caller, and may be called: one filter decides both."""
        chosen = self.toolsets if caller.toolsets is None else self.toolsets & caller.toolsets
        return bool(tool.toolsets & chosen) and caller.may(tool.scope) and (tool.read_only or not self.read_only)
