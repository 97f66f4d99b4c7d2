"""Explore what surrounds a node, by tool or by route."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct, field

from recollect.graph.relations.model import Direction, Walk
from recollect.memory import exploring
from recollect.memory.model import Explored, MemoryRef, NeighbourNode
from recollect_gateway.calls import Call
from recollect_http.requests.argument_types import AsOf, RelationType, as_text, hidden_status

MAX_NODES = 30
"""The maximum number of nodes of an exploration, if the caller gives none."""

MAX_EXCERPT = 300
"""The maximum length of the excerpt of a node's text, in characters."""


class ExploreBody(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The node at which to begin, and how far to go.

    The graph is named apart: by an argument of the tool, or in the path of the route.
    """

    start: Annotated[str, Meta(min_length=1, max_length=512, description="Id or name")]
    to: (
        Annotated[str, Meta(min_length=1, max_length=512, description="Show the paths to this id or name instead")]
        | None
    ) = None
    depth: Annotated[int, Meta(ge=1, le=6)] = 1
    direction: Literal["outgoing", "incoming", "both"] = "both"
    predicates: Annotated[list[RelationType], Meta(max_length=50)] = []
    max_nodes: Annotated[int, Meta(ge=1, le=200, extra_json_schema={"default": MAX_NODES})] | None = None
    raw_as_of: AsOf | None = field(default=None, name="as_of")

    @property
    def as_of(self) -> str | None:
        """The revision or time to read at; None for now."""
        return as_text(self.raw_as_of)

    @property
    def limit_or_default(self) -> int:
        """The maximum number of nodes that are returned."""
        return MAX_NODES if self.max_nodes is None else self.max_nodes


class ExploredNode(Struct, frozen=True, omit_defaults=True):
    """A node, with an excerpt of its texts, the newest first.

    `status`: outdated or archived, where it no longer holds. `version`: the number of its newest version, on which to
    base a revision.
    """

    id: str
    version: int
    name: str | None = None
    kind: str | None = None
    text: str | None = None
    status: str | None = None


class ExploredEdge(Struct, frozen=True):
    """A relation between two of the nodes, which it names by name or id, and when it was made."""

    subject: str
    predicate: str
    object: str
    created_at: datetime


class ExploredGraph(Struct, frozen=True):
    """Result of `explore`. `paths` name the nodes from start to end; `cut` says what bound ended the search early."""

    nodes: list[ExploredNode]
    relations: list[ExploredEdge]
    paths: list[list[str]]
    cut: str


async def explore(call: Call, graph: str | None, body: ExploreBody) -> Explored:
    """Find the neighbourhood of a node, or the paths from it to another node."""
    start, walk = target_of(body.start), Walk(Direction(body.direction), tuple(body.predicates))
    if body.to is not None:
        return await _paths(call, graph, body, start, target_of(body.to), walk)
    async with call.reading(graph, body.as_of) as view:
        return await exploring.explore(view, start, walk, depth=body.depth, max_nodes=body.limit_or_default)


def explored_body(found: Explored, nodes: Sequence[NeighbourNode], cut: str | None) -> ExploredGraph:
    """The answer with the first nodes only, and without the relations of the others."""
    left_out = {node.id for node in found.nodes[len(nodes) :]}
    return ExploredGraph(
        [
            ExploredNode(str(node.id), node.version, node.name, node.kind, _excerpt(node), hidden_status(node.status))
            for node in nodes
        ],
        [
            ExploredEdge(found.labels[edge.from_node], edge.type, found.labels[edge.to_node], edge.created_at)
            for edge in found.edges
            if edge.from_node in found.labels
            and edge.to_node in found.labels
            and not left_out & {edge.from_node, edge.to_node}
        ],
        [[found.labels[node] for node in path] for path in found.paths],
        cut or "",
    )


async def _paths(
    call: Call, graph: str | None, body: ExploreBody, start: MemoryRef, to: MemoryRef, walk: Walk
) -> Explored:
    async with call.reading(graph, body.as_of) as view:
        search = await exploring.open_paths(view, start, to, walk, depth=body.depth)
    paths = await call.compute(search.all_paths(), advice="Narrow predicates or depth.")
    async with call.looking_up() as tx:
        return await exploring.explored_paths(tx, search, paths)


def target_of(text: str) -> MemoryRef:
    """The memory or node that a text names, by its id if the text is one, or else by its name."""
    try:
        return MemoryRef(id=UUID(text))
    except ValueError:
        return MemoryRef(name=text)


def _excerpt(node: NeighbourNode) -> str | None:
    """An excerpt of a node's texts: its own text, then its observations, the newest first."""
    texts = node.observations[::-1]
    own = _shortened(node.content or "", MAX_EXCERPT // 2 if texts else MAX_EXCERPT)
    return _shortened("; ".join([*([own] if own else []), *texts]), MAX_EXCERPT) or None


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
