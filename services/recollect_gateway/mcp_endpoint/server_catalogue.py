"""The tools, prompts and resources of an MCP endpoint, as one value that the composition root passes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from recollect_gateway.mcp_endpoint.apps import GRAPH_APP
from recollect_gateway.mcp_endpoint.prompts_and_resources.prompts import PROMPTS, PromptSpec
from recollect_gateway.mcp_endpoint.prompts_and_resources.resources import ResourceSpec
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import DEFAULT_TOOLSETS, TOOLS


@dataclass(frozen=True)
class ServerCatalogue:
    """Tools and prompts by name, and resources beside those of graphs.

    `default_toolsets`: those offered to a request that names none.
    """

    tools: Mapping[str, ToolSpec]
    prompts: Mapping[str, PromptSpec]
    resources: tuple[ResourceSpec, ...]
    default_toolsets: frozenset[str]

    @cached_property
    def toolsets(self) -> frozenset[str]:
        """Every toolset that has a tool."""
        return frozenset().union(*(tool.toolsets for tool in self.tools.values()))


RECOLLECT = ServerCatalogue(tools=TOOLS, prompts=PROMPTS, resources=(GRAPH_APP,), default_toolsets=DEFAULT_TOOLSETS)
"""The catalogue of Recollect itself."""
