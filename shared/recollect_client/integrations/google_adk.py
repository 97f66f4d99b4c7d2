"""Memory for Google's Agent Development Kit: `Runner(…, memory_service=RecollectMemoryService(client))`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

from recollect_client import AsyncRecollect, Memory, RecalledMemory
from recollect_client.integrations.scopes import MAX_BATCH, MAX_TEXT, scope_tag

KIND = "google-adk"


class RecollectMemoryService(BaseMemoryService):
    """Keeps what was said in sessions, by application and user; a session that is added again adds what is new."""

    def __init__(self, client: AsyncRecollect, limit: int = 10) -> None:
        self.client = client
        self.limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember what was said in a session."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember what was said in these events."""
        memories = [
            Memory(
                text=text,
                thread=session_id,
                at=datetime.fromtimestamp(event.timestamp, UTC),
                metadata={KIND: {**(custom_metadata or {}), "author": event.author}},
            )
            for event in events
            if (text := _text_of(event.content))
        ]
        await self._remember(memories, app_name, user_id)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember these memories as they are."""
        common = custom_metadata or {}
        events = [
            Memory(
                text=text,
                at=datetime.fromisoformat(entry.timestamp).astimezone(UTC) if entry.timestamp else None,
                metadata={KIND: {**common, **entry.custom_metadata, "author": entry.author}},
            )
            for entry in memories
            if (text := _text_of(entry.content))
        ]
        await self._remember(events, app_name, user_id)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What is known of the user by words and by meaning, best first."""
        found = await self.client.recall(query, tags=scope_tag(KIND, app_name, user_id), limit=self.limit)
        return SearchMemoryResponse(memories=[_entry(memory) for memory in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory of the user, by the id that a search gave."""
        async for memory in self.client.memories(tags=scope_tag(KIND, app_name, user_id)):
            if memory.id == memory_id:
                await self.client.forget(memory.id, mode="delete")
                break

    async def _remember(self, memories: Sequence[Memory], app_name: str, user_id: str) -> None:
        tag = scope_tag(KIND, app_name, user_id)
        for start in range(0, len(memories), MAX_BATCH):
            await self.client.remember(memories[start : start + MAX_BATCH], tags=tag, source=KIND)


def _text_of(content: Content | None) -> str:
    parts = content.parts or [] if content else []
    return " ".join(part.text for part in parts if part.text and not part.thought)[:MAX_TEXT].strip()


def _entry(memory: RecalledMemory) -> MemoryEntry:
    metadata: dict[str, Any] = dict(memory.metadata.get(KIND, {}))
    return MemoryEntry(
        id=memory.id,
        content=Content(role="user", parts=[Part(text=memory.text)]),
        author=metadata.pop("author", None),
        timestamp=memory.at.isoformat() if memory.at else None,
        custom_metadata=metadata,
    )
