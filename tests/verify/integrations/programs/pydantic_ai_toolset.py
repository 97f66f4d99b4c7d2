"""The toolset of Pydantic AI: its page, and each of its tools."""

import asyncio
from typing import Any

from page import run_page
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from recollect_client import AsyncRecollect
from recollect_client.integrations.pydantic_ai import INSTRUCTIONS, memory_toolset


def remembering(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that remembers statements, recalls for questions, and says what the tool answered."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(last.content).partition(" [")[0])])
    assert isinstance(last, UserPromptPart)
    asked = str(last.content)
    call = (
        ToolCallPart("recall", {"query": asked}) if asked.endswith("?") else ToolCallPart("remember", {"text": asked})
    )
    return ModelResponse(parts=[call])


async def call(client: AsyncRecollect, tool: str, **arguments: Any) -> str:
    """What a tool answers when a model calls it."""
    told = list[str]()

    def calling(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            told.append(str(last.content))
            return ModelResponse(parts=[TextPart("done")])
        assert {each.name for each in info.function_tools} == {
            "remember",
            "recall",
            "relate",
            "revise",
            "forget",
            "explore",
        }
        assert INSTRUCTIONS in str(info.instructions)
        return ModelResponse(parts=[ToolCallPart(tool, arguments)])

    await Agent(FunctionModel(calling), toolsets=[memory_toolset(client)]).run("Go on.")
    return told[0]


async def test_every_tool(client: AsyncRecollect) -> None:
    stored = await call(client, "remember", text="Ada works at Acme.", about=["Ada"])
    memory_id = stored.partition("[")[2].partition("]")[0]
    assert stored == f"new [{memory_id}]"
    assert await call(client, "recall", query="Where does Ada work?") == f"- Ada works at Acme. [{memory_id}]"
    assert await call(client, "relate", subject="Ada", predicate="works at", object="Acme") == "new"
    assert "Ada works at Acme" in await call(client, "explore", start="Ada")
    assert await call(client, "revise", id=memory_id, text="Ada works at Apex.") == "revised: Ada works at Apex."
    assert await call(client, "forget", id=memory_id) == "forgotten"
    assert memory_id not in await call(client, "recall", query="Where does Ada work?")


async def main() -> None:
    async with AsyncRecollect(graph="tools") as client:
        await test_every_tool(client)


if __name__ == "__main__":
    run_page(model=FunctionModel(remembering))
    asyncio.run(main())
