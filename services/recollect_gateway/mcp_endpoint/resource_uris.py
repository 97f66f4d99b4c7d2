"""The addresses of resources: written, and read, in one place.

What a person chose stands in them percent-encoded (RFC 3986), so that a name may hold any character.
"""

from dataclasses import dataclass
from urllib.parse import quote, unquote

KNOWLEDGE_GRAPH = "memory://knowledge-graph"
"""Where the official memory server has the whole graph."""

GRAPHS = "recollect://graphs"
GRAPH_TEMPLATE = "recollect://graphs/{graph}"
NODE_TEMPLATE = "recollect://graphs/{graph}/nodes/{name_or_id}"
TOOL_TEMPLATE = "recollect://tools/{tool}"
"""RFC 6570, as clients fill them in."""

MAX_CHARACTERS = 8_192
"""Of one address: a name of 512 characters, each of four bytes in UTF-8, each byte written in three characters."""

_NODES = "/nodes/"


@dataclass(frozen=True, slots=True)
class GraphAddress:
    """What an address under `recollect://graphs/` names: a graph, and a node of it where it names one."""

    graph: str
    node: str | None = None


def graph_uri(graph: str) -> str:
    """The address of a graph, by its name or id."""
    return f"{GRAPHS}/{quote(graph, safe='')}"


def node_uri(graph: str, node: str) -> str:
    """The address of a node, by its name or id."""
    return f"{graph_uri(graph)}{_NODES}{quote(node, safe='')}"


def parse_uri(uri: str) -> GraphAddress | None:
    """The graph or node that an address names; None for any other address.

    A `/` in a node's name is read whether or not it is encoded: some clients fill templates in by plain substitution.
    """
    if len(uri) > MAX_CHARACTERS or not uri.startswith(f"{GRAPHS}/"):
        return None
    graph, nodes, node = uri.removeprefix(f"{GRAPHS}/").partition(_NODES)
    try:
        named = GraphAddress(_decoded(graph), _decoded(node) if nodes else None)
    except UnicodeDecodeError:
        return None
    return None if not named.graph or "/" in graph or named.node == "" else named


def _decoded(text: str) -> str:
    """Raises UnicodeDecodeError for bytes that are no UTF-8."""
    return unquote(text, errors="strict")
