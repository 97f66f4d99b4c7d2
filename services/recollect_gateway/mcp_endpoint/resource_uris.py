"""The addresses of resources: written, and read, in one place.

What a person chose stands in them percent-encoded (RFC 3986), so that a name may hold any character. The address of a
graph may end in `?kind=…&tag=…`, each repeatable: what is of such a kind or has such a tag, for who listens to that.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode

KNOWLEDGE_GRAPH = "memory://knowledge-graph"
"""Where the official memory server has the whole graph."""

GRAPHS = "recollect://graphs"
GRAPH_TEMPLATE = "recollect://graphs/{graph}"
NODE_TEMPLATE = "recollect://graphs/{graph}/nodes/{name_or_id}"
TOOL_TEMPLATE = "recollect://tools/{tool}"
"""RFC 6570, as clients fill them in."""

GRAPH_VIEW = "ui://recollect/graph"
"""The page that draws what `explore` found."""

MAX_LENGTH = 8_192
"""Characters of an address, at most: a name of 512 characters, of four bytes each, each written in three characters."""

MAX_CHOICES = 50
"""Kinds and tags of an address, at most."""

_ADDRESS = re.compile(r"recollect://graphs(?:/(?P<graph>[^/?#]+)(?:/nodes/(?P<node>[^?#]+)|(?:\?(?P<query>[^#]*))?))?")
"""A `/` in a node's name is read encoded or not: some clients fill templates in by plain substitution."""
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
        """Whether it names what is of some kinds and tags only."""
        return bool(self.kinds or self.tags)

    @property
    def uri(self) -> str:
        """How it is written."""
        if self.graph is None:
            return GRAPHS
        graph = f"{GRAPHS}/{quote(self.graph, safe='')}"
        if self.node is not None:
            return f"{graph}/nodes/{quote(self.node, safe='')}"
        chosen = [("kind", kind) for kind in self.kinds] + [("tag", tag) for tag in self.tags]
        return f"{graph}?{urlencode(chosen)}" if chosen else graph


def graph_uri(graph: str) -> str:
    """The address of a graph, by its name or id."""
    return ResourceAddress(graph).uri


def node_uri(graph: str, node: str) -> str:
    """The address of a node, by its name or id."""
    return ResourceAddress(graph, node).uri


def parse_address(uri: str) -> ResourceAddress | None:
    """What an address names; None for one that is not ours, or not well-formed."""
    match = _ADDRESS.fullmatch(uri) if len(uri) <= MAX_LENGTH and not _BROKEN.search(uri) else None
    if match is None:
        return None
    try:
        graph, node = _decoded(match["graph"]), _decoded(match["node"])
        chosen = parse_qsl(match["query"] or "", strict_parsing=bool(match["query"]), errors="strict")
    except ValueError:
        return None
    if len(chosen) > MAX_CHOICES or any(name not in ("kind", "tag") or "\0" in value for name, value in chosen):
        return None
    if "\0" in f"{graph}{node}":
        return None
    return ResourceAddress(graph, node, _named("kind", chosen), _named("tag", chosen))


def _decoded(part: str | None) -> str | None:
    return None if part is None else unquote(part, errors="strict")


def _named(wanted: str, chosen: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(value for name, value in chosen if name == wanted)
