"""The addresses of resources, formatted and parsed in one place.

Names stand in them percent-encoded (RFC 3986), so that a name may hold any character. For subscriptions, the address of
a graph may end in `?kind=…&tag=…`, each repeatable: the nodes of such a kind or with such a tag.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode

KNOWLEDGE_GRAPH = "memory://knowledge-graph"
"""The address of the whole graph on the official memory server."""

GRAPHS = "recollect://graphs"
GRAPH_TEMPLATE = "recollect://graphs/{graph}"
NODE_TEMPLATE = "recollect://graphs/{graph}/nodes/{name_or_id}"
TOOL_TEMPLATE = "recollect://tools/{tool}"
"""URI templates (RFC 6570), which clients fill in."""

GRAPH_VIEW = "ui://recollect/graph"
"""The page that draws what `explore` found."""

MAX_LENGTH = 8_192
"""The maximum length of an address, in characters: a name may have 512 characters of four bytes, each byte written as
three characters."""

MAX_CHOICES = 50
"""The maximum number of kinds and tags in an address."""

_ADDRESS = re.compile(r"recollect://graphs(?:/(?P<graph>[^/?#]+)(?:/nodes/(?P<node>[^?#]+)|(?:\?(?P<query>[^#]*))?))?")
"""A `/` in a node's name may be encoded or not: some clients fill in templates by plain substitution."""
_BROKEN = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class ResourceAddress:
    """What an address names: the list of graphs (`graph` None), a graph or a part of it, or one of its nodes."""

    graph: str | None = None
    node: str | None = None
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def is_part(self) -> bool:
        """Whether it names a part of a graph: the nodes of some kinds or tags."""
        return bool(self.kinds or self.tags)

    @property
    def uri(self) -> str:
        """The address as a text."""
        if self.graph is None:
            return GRAPHS
        graph = f"{GRAPHS}/{quote(self.graph, safe='')}"
        if self.node is not None:
            return f"{graph}/nodes/{quote(self.node, safe='')}"
        choices = [("kind", kind) for kind in self.kinds] + [("tag", tag) for tag in self.tags]
        return f"{graph}?{urlencode(choices)}" if choices else graph


def graph_uri(graph: str) -> str:
    """The address of a graph, by its name or id."""
    return ResourceAddress(graph).uri


def node_uri(graph: str, node: str) -> str:
    """The address of a node, by its name or id."""
    return ResourceAddress(graph, node).uri


def parse_address(uri: str) -> ResourceAddress | None:
    """Parse an address; None for one of another kind, or a malformed one."""
    match = _ADDRESS.fullmatch(uri) if len(uri) <= MAX_LENGTH and not _BROKEN.search(uri) else None
    if match is None:
        return None
    try:
        graph, node = _decode(match["graph"]), _decode(match["node"])
        choices = parse_qsl(match["query"] or "", strict_parsing=bool(match["query"]), errors="strict")
    except ValueError:
        return None
    if len(choices) > MAX_CHOICES or any(name not in ("kind", "tag") or "\0" in value for name, value in choices):
        return None
    if "\0" in f"{graph}{node}":
        return None
    return ResourceAddress(graph, node, _values("kind", choices), _values("tag", choices))


def _decode(part: str | None) -> str | None:
    return None if part is None else unquote(part, errors="strict")


def _values(name: str, choices: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(value for key, value in choices if key == name)
