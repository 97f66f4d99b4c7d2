"""A conversation of the OpenAI Agents SDK: `Runner.run(agent, "…", session=RecollectSession("chat", client))`."""

from datetime import UTC, datetime, timedelta
from typing import Any

from agents.items import TResponseInputItem
from agents.memory import SessionSettings

from recollect_client import AsyncRecollect, Memory, RecalledMemory
from recollect_client.integrations.scopes import MAX_BATCH, MAX_TEXT, scope_tag

KIND = "openai-agents"


class RecollectSession:
    """A session whose items are memories of one thread, so that other sessions and agents recall what was said.

    Each memory's text begins with who says it, and its number in the session: the same words said twice are two items.
    """

    def __init__(
        self, session_id: str, client: AsyncRecollect, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self.client = client
        self._tag = scope_tag(KIND, session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items of the session, or the last ones, oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        found = await self._newest(limit)
        return [memory.metadata[KIND]["item"] for memory in reversed(found)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items."""
        last, now = await self._newest(1), datetime.now(UTC)
        first = last[0].metadata[KIND]["number"] + 1 if last else 1
        memories = [
            self._memory(dict(item), first + index, now + timedelta(microseconds=index))
            for index, item in enumerate(items)
        ]
        for start in range(0, len(memories), MAX_BATCH):
            await self.client.remember(memories[start : start + MAX_BATCH])

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item, and return it."""
        last = await self._newest(1)
        if not last:
            return None
        await self.client.forget(last[0].id, mode="delete")
        item: TResponseInputItem = last[0].metadata[KIND]["item"]
        return item

    async def clear_session(self) -> None:
        """Remove every item."""
        ids = [memory.id for memory in await self._newest(None)]
        for start in range(0, len(ids), MAX_BATCH):
            await self.client.forget(ids[start : start + MAX_BATCH], mode="delete")

    async def _newest(self, limit: int | None) -> list[RecalledMemory]:
        """The last items, the newest first."""
        found = list[RecalledMemory]()
        if limit is not None and limit <= 0:
            return found
        async for memory in self.client.memories(tags=self._tag, order="newest"):
            found.append(memory)
            if len(found) == limit:
                break
        return found

    def _memory(self, item: dict[str, Any], number: int, at: datetime) -> Memory:
        return Memory(
            text=f"{item.get('role') or item.get('type')} ({number}): {_said(item)}"[:MAX_TEXT],
            thread=self.session_id,
            at=at,
            tags=[self._tag],
            source=KIND,
            metadata={KIND: {"number": number, "item": item}},
        )


def _said(item: dict[str, Any]) -> str:
    """The words of an item: of a message, or of a call of a tool and its result."""
    content = item.get("content")
    if isinstance(content, list):
        return " ".join(str(part["text"]) for part in content if part.get("text"))
    call = " ".join(str(item[name]) for name in ("name", "arguments", "output") if item.get(name))
    return str(content or call)
