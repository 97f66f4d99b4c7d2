"""The session of the OpenAI Agents SDK: its page, and what a session promises."""

import asyncio
from typing import Any

from agents import ModelResponse, Usage
from agents.memory import Session, SessionSettings
from agents.models.interface import Model
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from page import run_page

from recollect_client import AsyncRecollect
from recollect_client.integrations.openai_agents import RecollectSession


class Repeating(Model):
    """A model that says what the user said."""

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        said = " / ".join(item["content"] for item in input if item.get("role") == "user")
        text = ResponseOutputText(annotations=[], text=f"You said: {said}", type="output_text")
        message = ResponseOutputMessage(
            id="message", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def test_a_session(client: AsyncRecollect) -> None:
    session, other = RecollectSession("one", client), RecollectSession("ONE", client)
    assert isinstance(session, Session)
    assert await session.pop_item() is None
    call: Any = {"type": "function_call", "call_id": "1", "name": "add", "arguments": '{"a": 1}'}
    yes: list[Any] = [{"role": "user", "content": "yes"}, {"role": "user", "content": "yes"}, call]
    await session.add_items(yes)
    await session.add_items([])
    await session.add_items([{"role": "user", "content": "yes"}])
    assert await session.get_items() == [*yes, yes[0]]
    assert await session.get_items(2) == [call, yes[0]]
    assert await session.get_items(0) == []
    assert await RecollectSession("one", client, SessionSettings(limit=1)).get_items() == [yes[0]]
    assert await session.pop_item() == yes[0]
    assert await session.get_items() == yes
    await other.add_items([{"role": "user", "content": f"Line {number}"} for number in range(130)])
    assert [item["content"] for item in await other.get_items()] == [f"Line {number}" for number in range(130)]  # type: ignore[typeddict-item]
    await other.clear_session()
    assert await other.get_items() == []
    assert await session.get_items() == yes


async def main() -> None:
    async with AsyncRecollect(graph="sessions") as client:
        await test_a_session(client)


if __name__ == "__main__":
    run_page(model=Repeating())
    asyncio.run(main())
