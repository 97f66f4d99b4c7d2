"""The catalogue: every tool, once, as data. What is listed and what may be called both follow from it."""

from recollect_gateway.mcp_endpoint.catalogue.agent import AGENT
from recollect_gateway.mcp_endpoint.catalogue.memory import MEMORY
from recollect_gateway.mcp_endpoint.tool import ToolSpec

DEFAULT_TOOLSETS = frozenset({"agent"})

CATALOGUE: tuple[ToolSpec, ...] = (*AGENT, *MEMORY)

TOOLS = {tool.name: tool for tool in CATALOGUE}
TOOLSETS = frozenset().union(*(tool.toolsets for tool in CATALOGUE))
