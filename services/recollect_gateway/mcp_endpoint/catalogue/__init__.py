"""The catalogue: every tool, once, as data. It decides both which tools are listed and which may be called."""

from collections.abc import Sequence

from recollect.errors import InvalidInput
from recollect_gateway.mcp_endpoint.catalogue.admin import ADMIN
from recollect_gateway.mcp_endpoint.catalogue.agent import AGENT
from recollect_gateway.mcp_endpoint.catalogue.facts import FACTS
from recollect_gateway.mcp_endpoint.catalogue.lineage import LINEAGE
from recollect_gateway.mcp_endpoint.catalogue.memory import MEMORY
from recollect_gateway.mcp_endpoint.catalogue.openai import OPENAI
from recollect_gateway.mcp_endpoint.catalogue.organize import ORGANIZE
from recollect_gateway.mcp_endpoint.tool import ToolSpec

DEFAULT_TOOLSETS = frozenset({"agent"})

CATALOGUE: tuple[ToolSpec, ...] = (*AGENT, *MEMORY, *ORGANIZE, *FACTS, *LINEAGE, *OPENAI, *ADMIN)

TOOLS = {tool.name: tool for tool in CATALOGUE}
TOOLSETS = frozenset().union(*(tool.toolsets for tool in CATALOGUE))


def known_toolsets(names: Sequence[str]) -> tuple[str, ...]:
    """The named toolsets, without repetitions; raises InvalidInput for one that does not exist."""
    for place, name in enumerate(names):
        if name not in TOOLSETS:
            known = ", ".join(sorted(TOOLSETS))
            raise InvalidInput(f"Unknown toolset {name!r}; the toolsets are: {known}", path=f"toolsets.{place}")
    return tuple(dict.fromkeys(names))
