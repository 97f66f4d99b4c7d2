"""The tools of toolset `openai`: what ChatGPT and OpenAI's deep research ask of a server.

`search` is a dialect of the tool of that name in `facts`, whose shape it has wherever `facts` is selected, too.
"""

from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import openai

SEARCH = ToolSpec(
    name="search",
    title="Search",
    description="Find memories by words and by meaning. Returns their ids and titles, for fetch.",
    toolsets=frozenset({"openai"}),
    arguments=openai.Search,
    result=openai.FoundDocuments,
    handler=openai.search,
    read_only=True,
    idempotent=True,
)

OPENAI: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="fetch",
        title="Fetch",
        description="Get the whole text of a memory that search found.",
        toolsets=frozenset({"openai"}),
        arguments=openai.Fetch,
        result=openai.Document,
        handler=openai.fetch,
        read_only=True,
        idempotent=True,
    ),
)
