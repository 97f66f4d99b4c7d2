"""The official memory server over stdio, and Recollect's toolset `memory`, each with the official client."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from tests.support.gateway import RunningGateway
from tests.verify.node import node, script

Step = tuple[str, dict[str, Any]]
"""A tool and its arguments."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool: its text, or the message of a protocol error, and the structured content of a success."""

    text: str
    structured: Any

    @property
    def gist(self) -> Any:
        """The structured content of a success, the text of an error."""
        return self.text if self.structured is None else self.structured

    @property
    def with_deletions_untold(self) -> "ToolAnswer":
        """The answer without what was not deleted: its newest release on npm does not tell that yet (servers#4740)."""
        match = re.match(r"Deleted \d+ of \d+ (entities|observations|relations)\.", self.text)
        if match is None:
            return self
        message = f"{match[1].capitalize()} deleted successfully"
        return ToolAnswer(message, self.structured | {"message": message})

    @property
    def without_close_names(self) -> "ToolAnswer":
        """The answer without the names that look like a new one, which Recollect tells beside what was created."""
        if not isinstance(self.structured, dict):
            return self
        return ToolAnswer(self.text, {name: value for name, value in self.structured.items() if name != "close"})

    @property
    def with_entities_in_any_order(self) -> "ToolAnswer":
        """The answer with its entities sorted by name, after a check that the text equals the structured content."""
        if not isinstance(self.structured, dict) or "relations" not in self.structured:
            return self
        assert self.text == as_text(self.structured)
        entities = sorted(self.structured["entities"], key=lambda entity: str(entity["name"]))
        return ToolAnswer("", self.structured | {"entities": entities})


@dataclass(frozen=True, slots=True)
class Pair:
    """Two servers, and a client to each."""

    official: Client
    recollect: Client

    async def ask(self, step: Step) -> tuple[ToolAnswer, ToolAnswer]:
        """The official server's answer, and Recollect's."""
        return await _ask(self.official, step), await _ask(self.recollect, step)


@asynccontextmanager
async def side_by_side(gateway: RunningGateway, key: str, folder: Path, revision: str) -> AsyncIterator[Pair]:
    """An empty official memory server, and the default graph of the key's tenant, at that wire revision."""
    server = StdioServerParameters(
        command=node(),
        args=[script("@modelcontextprotocol/server-memory")],
        env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
        cwd=folder,
    )
    with (folder / "memory-server.log").open("w") as log:
        async with (
            Client(stdio_client(server, errlog=log), mode="legacy") as official,
            gateway.client(key, "/mcp/x/memory", revision=revision) as recollect,
        ):
            yield Pair(official, recollect)


def as_text(value: Any) -> str:
    """JSON as the official server writes it: JSON.stringify(value, null, 2)."""
    return json.dumps(value, indent=2, ensure_ascii=False)


async def _ask(client: Client, step: Step) -> ToolAnswer:
    try:
        result = await client.call_tool(*step)
    except MCPError as error:
        return ToolAnswer(error.error.message, None)
    content, *_ = result.content  # A note that there is more may follow.
    assert isinstance(content, TextContent)
    assert result.is_error == (result.structured_content is None), step
    return ToolAnswer(_indented(content.text), result.structured_content)


def _indented(text: str) -> str:
    """A text of JSON as the official server writes it: ours are not indented, and clients parse either. Others stay."""
    try:
        return as_text(json.loads(text))
    except ValueError:
        return text
