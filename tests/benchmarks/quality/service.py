"""The real service, which is measured: it remembers conversations and answers questions through MCP."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.progress import Progress

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect_local.server import Server
from tests.benchmarks.quality.conversations import Conversation, Labelled, Turn
from tests.benchmarks.settling import settle
from tests.benchmarks.wire import LEGACY, Exchange, McpConnection

BATCH = 100
"""The number of items per call of `remember`, which is its limit."""

LIMIT = 20
"""The number of memories per answer, because MRR considers more ranks than recall@10."""

ABOUT = "about"
PREFIXED = "prefixed"

Item = dict[str, Any]
Call = TypeVar("Call")
Result = TypeVar("Result")

SHAPES: dict[str, Callable[[Turn], Item]] = {
    ABOUT: lambda turn: {"text": turn.text, "about": [turn.speaker]},
    PREFIXED: lambda turn: {"text": f"{turn.speaker}: {turn.text}"},
}
"""How turns are remembered: as facts about the speaker, or as texts that name the speaker."""


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """The result of a question: memories, best first, as `recall` returns them, and the seconds that it took.

    `by_default`: the result without a given limit or budget.
    """

    question: Labelled
    memories: Sequence[dict[str, Any]]
    seconds: float
    by_default: Sequence[dict[str, Any]]

    @property
    def ids(self) -> list[str]:
        """The ids of the memories."""
        return [memory["id"] for memory in self.memories]


@dataclass(frozen=True, slots=True)
class Service:
    """A gateway and a worker; `key` is that of our tenant, which `caller` reaches in the database."""

    port: int
    key: str
    worker: Server
    db: Database
    caller: Caller

    async def remember(self, conversation: Conversation, graph: str, shape: str) -> list[str]:
        """Remember all turns; returns the id of the memory of each turn. Equal turns of a session share one memory."""
        return await self.remember_calls([[_item(turn, conversation.id, shape) for turn in conversation.turns]], graph)

    async def remember_calls(self, calls: Sequence[Sequence[Item]], graph: str) -> list[str]:
        """Remember the items of each call, in more calls if they are too many; returns the id of each memory."""
        ids: list[str] = []
        async with self._connection() as connection:
            for batch in (batch for items in calls for batch in _batches(items)):
                exchange = await connection.call("remember", {"graph": graph, "items": batch})
                ids += [memory["id"] for memory in exchange.result()["structuredContent"]["memories"]]
        return ids

    async def settle(self, progress: Progress, title: str) -> None:
        """Wait until the worker has caught up, so that results are reproducible; raises RuntimeError if it ended."""
        await settle(self.db, self.caller, self.worker, progress, title)

    async def ask(
        self, questions: Sequence[Labelled], graph: str, *, concurrency: int, explain: bool = False
    ) -> list[RecallAnswer]:
        """The answers to all questions, in order, with `concurrency` calls at a time."""

        async def ask(connection: McpConnection, question: Labelled) -> RecallAnswer:
            return await _ask(connection, question, graph, explain)

        return await self._each(questions, ask, concurrency)

    async def call(self, tool: str, graph: str, arguments: Mapping[str, Any]) -> Exchange:
        """Call a tool once, on a graph."""
        async with self._connection() as connection:
            return await connection.call(tool, {"graph": graph, **arguments})

    async def recall_each(
        self, calls: Sequence[Mapping[str, Any]], graph: str, *, concurrency: int
    ) -> list[list[str] | None]:
        """The ids that `recall` returns to each call, best first; None if it is refused as invalid."""

        async def recall(connection: McpConnection, arguments: Mapping[str, Any]) -> list[str] | None:
            exchange = await connection.call("recall", {"graph": graph, **arguments})
            return None if exchange.is_refused() else [memory["id"] for memory in _memories(exchange)]

        return await self._each(calls, recall, concurrency)

    async def _each(
        self, calls: Sequence[Call], ask: Callable[[McpConnection, Call], Awaitable[Result]], concurrency: int
    ) -> list[Result]:
        """The results of all calls, in order, on so many connections."""
        results: dict[int, Result] = {}
        waiting = iter(enumerate(calls))

        async def ask_in_turn() -> None:
            async with self._connection() as connection:
                for index, call in waiting:
                    results[index] = await ask(connection, call)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(concurrency):
                tasks.create_task(ask_in_turn())
        return [results[index] for index in range(len(calls))]

    def _connection(self) -> McpConnection:
        return McpConnection(self.port, "/mcp/x/agent", LEGACY, self.key)


async def _ask(connection: McpConnection, question: Labelled, graph: str, explain: bool) -> RecallAnswer:
    arguments = {"graph": graph, "query": question.text, "limit": LIMIT, "token_budget": 10_000, "explain": explain}
    exchange = await connection.call("recall", arguments)
    default = await connection.call("recall", {"graph": graph, "query": question.text})
    return RecallAnswer(question, _memories(exchange), exchange.seconds, _memories(default))


def _memories(exchange: Exchange) -> list[dict[str, Any]]:
    memories: list[dict[str, Any]] = exchange.result()["structuredContent"]["memories"]
    return memories


def _item(turn: Turn, conversation_id: str, shape: str) -> Item:
    return SHAPES[shape](turn) | {"thread": f"{conversation_id}/{turn.session}", "at": turn.at.isoformat()}


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
