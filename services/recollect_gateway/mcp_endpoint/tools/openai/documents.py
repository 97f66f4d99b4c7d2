"""Makes the titles and addresses of memories for the answers of `search` and `fetch`."""

from urllib.parse import quote
from uuid import UUID

from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tools.agent.lines import in_one_line

MAX_TITLE = 100
"""The maximum length of a title, in characters."""


def title_of(name: str | None, text: str) -> str:
    """The beginning of a memory in one line, with the name of the entity that it is about."""
    line = in_one_line(text)
    title = line if name is None or line.startswith(name) else f"{name}: {line}" if line else name
    return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"


def url_of(call: Call, node_id: UUID, memory_id: UUID) -> str:
    """The address of a memory's node under /v1, with the id of an observation as its fragment."""
    graph = quote(call.graph_name(None), safe="")
    fragment = "" if memory_id == node_id else f"#{memory_id}"
    return f"{call.settings.base_url}/v1/graphs/{graph}/nodes/{node_id}{fragment}"
