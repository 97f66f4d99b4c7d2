"""One view for reading: a graph in a call's transaction, as it is or as it was."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import asyncpg

from recollect.graph.graphs.model import Graph, Moment, as_of_parameters
from recollect.platform.sql import Query
from recollect.platform.transactions import STREAMED, Transaction


@dataclass(frozen=True, slots=True)
class GraphView:
    """What a call reads: a graph, now or (`at`) at a past moment. Where there is no such graph, nothing is found in it.

    Its queries are told which graph and which moment by the view. A query that has a twin for the past, whose name ends
    in `_at`, is asked in that form where the view is of the past.
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
        asked = self._query(query)
        return await self.tx.fetch(asked, **self._parameters(asked, parameters))

    async def stream(
        self, query: Query, *, prefetch: int = STREAMED, **parameters: Any
    ) -> AsyncIterator[asyncpg.Record]:
        """All rows, of which `prefetch` are held at a time."""
        asked = self._query(query)
        async for row in self.tx.stream(asked, prefetch=prefetch, **self._parameters(asked, parameters)):
            yield row

    async def fetchval(self, query: Query, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        asked = self._query(query)
        return await self.tx.fetchval(asked, **self._parameters(asked, parameters))

    def _query(self, query: Query) -> Query:
        return query if self.at is None or query.past is None else query.past

    def _parameters(self, query: Query, given: dict[str, Any]) -> dict[str, Any]:
        known = {
            "graph_id": self.graph.id,
            "reachable_graphs": self.tx.caller.graphs,
            **as_of_parameters(self.at),
        }
        return {name: value for name, value in known.items() if name in query.parameters} | given
