"""The memory block of LlamaIndex: its page, and what a block promises."""

import asyncio
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.memory import Memory
from page import run_page

from recollect_client import AsyncRecollect
from recollect_client.integrations.llama_index import RecollectMemoryBlock


class Repeating(CustomLLM):
    """A model that says what the system told it."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=prompt.partition("system:")[2].partition("user: What")[0].strip())

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:
        raise NotImplementedError


async def test_a_block(client: AsyncRecollect) -> None:
    ada, grace = RecollectMemoryBlock(client=client, scope="Ada"), RecollectMemoryBlock(client=client, scope="ada")
    memory = Memory.from_defaults(
        session_id="s", memory_blocks=[ada], token_limit=60, token_flush_size=20, chat_history_token_ratio=0.5
    )
    for number in range(12):
        await memory.aput(ChatMessage(f"Bee number {number} makes honey of clover."))
    asked = [ChatMessage("Which bee makes honey?")]
    assert "user: Bee number 0 makes honey" in await ada.aget(asked), "the first left the short-term memory"
    assert await grace.aget(asked) == ""
    assert await ada.aget([]) == ""
    everything = RecollectMemoryBlock(client=client)
    await client.remember("Wasps build nests.")
    assert await everything.aget([ChatMessage("What do wasps build?")]) == "- Wasps build nests."
    assert await everything.atruncate("- one\n- two two two\n- three", 3) == "- one"
    assert await everything.atruncate("- one", 100) is None


async def main() -> None:
    async with AsyncRecollect(graph="blocks") as client:
        await test_a_block(client)


if __name__ == "__main__":
    run_page(llm=Repeating())
    asyncio.run(main())
