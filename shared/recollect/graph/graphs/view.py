"""The view that a call reads: a graph in the call's transaction, as it is or as it was at a past moment."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg

from recollect.graph.graphs.model import Graph, Moment, as_of_parameters
from recollect.postgres.sql import Query
from recollect.postgres.transactions import STREAMED, Transaction

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class GraphView:
    """A graph to read, now or (`at`) at a past moment. If there is no such graph, nothing is found in it.

    The view adds the graph and the moment to the parameters of a query. A view of the past replaces a query by its twin
    for the past, if there is one: that of the same name with `_at` at its end.
    """

    tx: Transaction
    graph: Graph
    at: Moment | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is such a graph."""
        return self.graph.is_there

    async def fetch(self, query: Query, **parameters: Any) -> list[asyncpg.Record]:
        """All rows."""
        query = self._query(query)
        return await self.tx.fetch(query, **self._parameters(query, parameters))

    async def fetch_as(self, query: Query, make: Callable[[asyncpg.Record], A], /, **parameters: Any) -> list[A]:
        """What `make` makes of each row."""
        query = self._query(query)
        return await self.tx.fetch_as(query, make, **self._parameters(query, parameters))

    async def fetch_objects(self, query: Query, made: Callable[..., A], /, **parameters: Any) -> list[A]:
        """All rows as objects that have the columns as fields."""
        return [made(**row) for row in await self.fetch(query, **parameters)]

    async def fetch_column(self, query: Query, column: str, /, **parameters: Any) -> list[Any]:
        """The values of one column."""
        return [row[column] for row in await self.fetch(query, **parameters)]

    async def stream(
        self, query: Query, *, prefetch: int = STREAMED, **parameters: Any
    ) -> AsyncIterator[asyncpg.Record]:
        """All rows, of which `prefetch` are held at a time."""
        query = self._query(query)
        async for row in self.tx.stream(query, prefetch=prefetch, **self._parameters(query, parameters)):
            yield row

    async def fetchval(self, query: Query, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        query = self._query(query)
        return await self.tx.fetchval(query, **self._parameters(query, parameters))

    def _query(self, query: Query) -> Query:
        return query if self.at is None or query.past is None else query.past

    def _parameters(self, query: Query, own_parameters: dict[str, Any]) -> dict[str, Any]:
        view_parameters = {
            "graph_id": self.graph.id,
            "reachable_graphs": self.tx.caller.graphs,
            **as_of_parameters(self.at),
        }
        return {name: value for name, value in view_parameters.items() if name in query.parameters} | own_parameters
