"""The catalogue: every tool, once, as data. What is listed and what may be called both follow from it."""

from recollect_gateway.mcp_endpoint.catalogue.agent import AGENT
from recollect_gateway.mcp_endpoint.catalogue.facts import FACTS
from recollect_gateway.mcp_endpoint.catalogue.lineage import LINEAGE
from recollect_gateway.mcp_endpoint.catalogue.memory import MEMORY
from recollect_gateway.mcp_endpoint.catalogue.organize import ORGANIZE
from recollect_gateway.mcp_endpoint.tool import ToolSpec

DEFAULT_TOOLSETS = frozenset({"agent"})

CATALOGUE: tuple[ToolSpec, ...] = (*AGENT, *MEMORY, *ORGANIZE, *FACTS, *LINEAGE)

TOOLS = {tool.name: tool for tool in CATALOGUE}
TOOLSETS = frozenset().union(*(tool.toolsets for tool in CATALOGUE))
