"""A memory block for LlamaIndex: `Memory.from_defaults(…, memory_blocks=[RecollectMemoryBlock(client=client)])`."""

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock

from recollect_client import AsyncRecollect, Memory
from recollect_client.integrations.scopes import MAX_BATCH, MAX_TEXT, scope_tag

KIND = "llama-index"
CHARACTERS_PER_TOKEN = 4
MAX_QUERY = 8_000
"""Characters of a question, at most."""


class RecollectMemoryBlock(BaseMemoryBlock[str]):
    """Keeps messages that leave the short-term memory, and returns those that fit the current message.

    `scope`: whose memories they are, such as a user's; None: all of the graph are recalled, whoever stored them.
    """

    name: str = Field(default="recollect", description="The name of the memory block.")
    priority: int = Field(default=1, description="It may be cut before the messages are.")
    client: AsyncRecollect = Field(exclude=True, description="The client, with its graph.")
    scope: str | None = Field(default=None, description="Whose memories they are.")
    token_budget: int = Field(default=1_500, description="Tokens of what is recalled, at most.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = [message.content for message in messages or [] if message.role == MessageRole.USER and message.content]
        if not asked:
            return ""
        found = await self.client.recall(asked[-1][:MAX_QUERY], tags=self._tag(), token_budget=self.token_budget)
        return "\n".join(f"- {memory.text}" for memory in found)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        memories = [
            Memory(
                text=f"{message.role.value}: {message.content}"[:MAX_TEXT],
                thread=message.additional_kwargs.get("session_id"),
                tags=self._tag() or [],
            )
            for message in messages
            if message.content
        ]
        for start in range(0, len(memories), MAX_BATCH):
            await self.client.remember(memories[start : start + MAX_BATCH], source=KIND)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The content without its last lines, which fit least."""
        length = len(content) - tokens_to_truncate * CHARACTERS_PER_TOKEN
        truncated = content[: max(length, 0)].rpartition("\n")[0]
        return truncated or None

    def _tag(self) -> list[str] | None:
        return None if self.scope is None else [scope_tag(KIND, self.scope)]
