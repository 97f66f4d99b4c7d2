"""Prompts are offered with the tools that they name, and filled in with the given arguments."""

import re
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, TextContent

from recollect.caller import Caller, Scope
from recollect_gateway.mcp_endpoint.prompts_and_resources.prompts import PROMPTS
from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.support.gateway import NewApiKey, RunningGateway

FILLED = {"question": "Who likes tea?", "topic": "tea", "graph": "kitchen"}


async def text(client: Client, name: str, **arguments: str) -> str:
    [message] = (await client.get_prompt(name, arguments)).messages
    assert message.role == "user"
    assert isinstance(message.content, TextContent)
    return message.content.text


@pytest.mark.proves("rules: prompts")
async def test_each_prompt_is_listed_and_can_be_read(client: Client) -> None:
    listed = (await client.list_prompts()).prompts
    assert [prompt.name for prompt in listed] == ["recall_before_answering", "end_of_session", "curate_memory"]
    for prompt in listed:
        names = [argument.name for argument in prompt.arguments or ()]
        told = await text(client, prompt.name, **{name: FILLED[name] for name in names})
        assert all(FILLED[name] in told for name in names)


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_names_only_its_tools(name: str) -> None:
    told = set(re.findall(r"`(\w+)`", str(PROMPTS[name].text(FILLED))))
    arguments = {field for tool in PROMPTS[name].tools for field in TOOLS[tool].arguments.__struct_encode_fields__}
    assert told - arguments - {"about"} == PROMPTS[name].tools


async def test_an_empty_argument_counts_as_absent(client: Client) -> None:
    assert await text(client, "curate_memory", topic=" ", graph="") == await text(client, "curate_memory")


@pytest.mark.parametrize(
    ("name", "arguments", "reported"),
    [
        ("recall_before_answering", {}, "question"),
        ("recall_before_answering", {"question": "x" * 4_001}, "question"),
        ("recall_before_answering", {"question": "a\x00"}, "question"),
        ("end_of_session", {"graph": "no graph's name"}, "graph"),
        ("end_of_session", {"question": "why?"}, "question"),
        ("nothing", {}, "Unknown prompt"),
    ],
)
async def test_a_missing_or_invalid_argument_is_reported(
    client: Client, name: str, arguments: dict[str, Any], reported: str
) -> None:
    with pytest.raises(MCPError, match=reported) as error:
        await client.get_prompt(name, arguments)
    assert error.value.error.code == INVALID_PARAMS


async def test_prompts_are_offered_only_with_their_tools(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, key: str
) -> None:
    async with gateway.client(key, "/mcp") as client:
        assert len((await client.list_prompts()).prompts) == 3
    async with gateway.client(key, "/mcp/x/memory") as client:
        assert (await client.list_prompts()).prompts == []
        with pytest.raises(MCPError, match="Unknown prompt: end_of_session"):
            await client.get_prompt("end_of_session", {})
    reader = (await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))).secret
    async with gateway.client(reader, "/mcp") as client:
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["recall_before_answering"]
