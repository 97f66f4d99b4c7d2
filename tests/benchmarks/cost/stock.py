"""What calls need from the filled graph: ids, and memories to change or delete."""

from typing import Any

import asyncpg

from tests.benchmarks.corpus import Corpus
from tests.benchmarks.memory import MeasuredMemory
from tests.benchmarks.wire import McpConnection

_AT_ONCE = 100
_IDS = 500


class Stock:
    """`ids` are those of entities that stay; a memory that a call changes or deletes is used once."""

    def __init__(self, corpus: Corpus) -> None:
        self.ids: list[str] = []
        self._corpus = corpus
        self._ready: list[str] = []

    async def look_up(self, superuser: asyncpg.Connection, memory: MeasuredMemory) -> None:
        """Look up the ids of some entities of the filled graph."""
        rows = await superuser.fetch(
            "SELECT id FROM recollect.nodes WHERE tenant_id = $1 AND name = ANY ($2) ORDER BY id",
            memory.caller.tenant_id,
            [self._corpus.name(number) for number in range(min(_IDS, memory.entities))],
        )
        self.ids = [str(row["id"]) for row in rows]

    async def fill(self, connection: McpConnection, tool: str, count: int) -> None:
        """Create so many memories for a tool that changes or deletes them; most tools need none."""
        match tool:
            case "revise" | "forget":
                self._ready = await self._remember(connection, count, about=True)
            case "update_node":
                self._ready = await self._remember(connection, count, about=False)
            case "delete_entities":
                entities = [self._corpus.new_entity() for _ in range(count)]
                (await connection.call("create_entities", {"entities": entities})).result()
                self._ready = [str(entity["name"]) for entity in entities]

    def take(self) -> str:
        """Take the id or the name of one of these memories."""
        return self._ready.pop()

    async def _remember(self, connection: McpConnection, count: int, *, about: bool) -> list[str]:
        items: list[dict[str, Any]] = [{"text": self._corpus.new_sentence()} for _ in range(count)]
        if about:
            items = [{**item, "about": [self._corpus.name(number % _IDS)]} for number, item in enumerate(items)]
        ids = list[str]()
        for start in range(0, count, _AT_ONCE):
            reply = (await connection.call("remember", {"items": items[start : start + _AT_ONCE]})).result()
            ids += [memory["id"] for memory in reply["structuredContent"]["memories"]]
        return ids
