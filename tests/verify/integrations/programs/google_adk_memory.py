"""The memory service of Google ADK: its page, and what a memory service promises."""

import asyncio
from collections.abc import AsyncGenerator

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.session import Session
from google.genai.types import Content, Part
from page import run_page

from recollect_client import AsyncRecollect
from recollect_client.integrations.google_adk import RecollectMemoryService


class Repeating(BaseLlm):
    """A model that says which line of its instructions speaks of a dog."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        told = [str(llm_request.config.system_instruction)]
        for content in llm_request.contents[:-1]:
            told += [part.text or "" for part in content.parts or []]
        known = [line.strip() for text in told for line in text.splitlines() if "dog" in line]
        text = f"I know: {known[0].removeprefix('user: ')}" if known else "I know nothing."
        yield LlmResponse(content=Content(role="model", parts=[Part(text=text)]))


def said(author: str, text: str) -> Event:
    return Event(author=author, content=Content(role="user", parts=[Part(text=text)]), timestamp=1_700_000_000.0)


async def test_a_service(client: AsyncRecollect) -> None:
    service = RecollectMemoryService(client, limit=3)
    events = [said("user", "Bees make honey."), said("assistant", "And wax."), Event(author="user")]
    session = Session(id="s", app_name="app", user_id="ada", events=events)
    for _ in range(2):  # The second time nothing is new.
        await service.add_session_to_memory(session)
    [found] = (await service.search_memory(app_name="app", user_id="ada", query="honey")).memories
    assert (found.content.parts or [])[0].text == "Bees make honey."
    assert (found.author, str(found.timestamp)[:10]) == ("user", "2023-11-14")
    for app, user in (("app", "Ada"), ("App", "ada"), ("app", "grace")):
        assert (await service.search_memory(app_name=app, user_id=user, query="honey")).memories == []
    entry = MemoryEntry(content=Content(parts=[Part(text="Wasps build nests.")]), custom_metadata={"by": "hand"})
    await service.add_memory(app_name="app", user_id="ada", memories=[entry])
    [wasps] = (await service.search_memory(app_name="app", user_id="ada", query="nests")).memories
    assert wasps.custom_metadata == {"by": "hand"}
    await service.delete_memory(app_name="app", user_id="grace", memory_id=wasps.id)
    assert (await service.search_memory(app_name="app", user_id="ada", query="nests")).memories
    await service.delete_memory(app_name="app", user_id="ada", memory_id=wasps.id)
    assert (await service.search_memory(app_name="app", user_id="ada", query="nests")).memories == []


async def main() -> None:
    async with AsyncRecollect(graph="service") as client:
        await test_a_service(client)


if __name__ == "__main__":
    run_page(model=Repeating(model="repeating"))
    asyncio.run(main())
