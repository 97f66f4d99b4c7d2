"""Relate entities, and explore what lies around them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Direction, EdgeUpsert, NewRelation, Walk
from recollect.memory import exploring
from recollect.memory.model import Explored, NeighbourNode, Target
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import CUT, cut_short
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.toolsets.agent.lines import in_one_line
from recollect_gateway.shapes import MAX_ITEMS, Name, RelationType, check_metadata, hidden_status

MAX_NODES = 30
"""Nodes of an exploration, at most, if the caller does not say how many."""

MAX_EXCERPT = 300
"""Characters of the excerpt of a node's text, at most."""


class Triple(Struct, forbid_unknown_fields=True, frozen=True):
    """Subject, predicate and object, by name."""

    subject: Name
    predicate: RelationType
    object: Name
    metadata: dict[str, Any] | None = None


class Relate(Arguments, frozen=True, rename=None):
    """Arguments of `relate`."""

    triples: Annotated[list[Triple], Meta(min_length=1, max_length=MAX_ITEMS)]


class Explore(ReadArguments, frozen=True, rename=None):
    """Arguments of `explore`."""

    start: Annotated[str, Meta(min_length=1, max_length=512, description="Id or name")]
    to: (
        Annotated[str, Meta(min_length=1, max_length=512, description="Show the paths to this id or name instead")]
        | None
    ) = None
    depth: Annotated[int, Meta(ge=1, le=6)] = 1
    direction: Literal["outgoing", "incoming", "both"] = "both"
    predicates: Annotated[list[RelationType], Meta(max_length=50)] = []
    max_nodes: Annotated[int, Meta(ge=1, le=200, extra_json_schema={"default": MAX_NODES})] | None = None


class RelatedTriple(Struct, frozen=True):
    """What became of one triple: `new`, `updated` (it had other metadata) or `known`."""

    subject: str
    predicate: str
    object: str
    status: str


class RelatedTriples(Struct, frozen=True):
    """Result of `relate`, one entry a triple, in order."""

    relations: list[RelatedTriple]


class ExploredNode(Struct, frozen=True, omit_defaults=True):
    """A node, and what is known of it, shortened, the newest first.

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


async def relate(call: Call, arguments: Relate) -> Reply:
    """Keep relations; answer which are new, and whose metadata has changed."""
    for place, triple in enumerate(arguments.triples):
        check_metadata(triple.metadata, f"triples.{place}.metadata", call.settings.max_metadata_size)
    new_relations = [NewRelation(t.subject, t.object, t.predicate, t.metadata) for t in arguments.triples]
    async with call.writing(arguments.graph) as (tx, revision):
        upserts = await relations.upsert_relations(tx, revision, new_relations)
    triples = [
        RelatedTriple(relation.source, relation.type, relation.target, _status(upsert))
        for relation, upsert in zip(new_relations, upserts, strict=True)
    ]
    lines = (f"{triple.status} {triple.subject} -{triple.predicate}-> {triple.object}" for triple in triples)
    return Reply(RelatedTriples(triples), "\n".join(map(in_one_line, lines)))


async def explore(call: Call, arguments: Explore) -> Reply | Listing:
    """Show what lies around a node, or the paths to another."""
    start, walk = _target(arguments.start), Walk(Direction(arguments.direction), tuple(arguments.predicates))
    if arguments.to is not None:
        found = await _paths(call, arguments, start, _target(arguments.to), walk)
    else:
        async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
            max_nodes = arguments.max_nodes or MAX_NODES
            found = await exploring.explore(view, start, walk, depth=arguments.depth, max_nodes=max_nodes)

    def reply(nodes: list[NeighbourNode], cut: str | None) -> Reply:
        explored = _explored_graph(found, nodes, cut)
        return Reply(explored, _explored_text(explored))

    return cut_short(found.nodes, reply, limit=arguments.max_nodes, cut=found.cut, related_items=len(found.edges))


async def _paths(call: Call, arguments: Explore, start: Target, to: Target, walk: Walk) -> Explored:
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        search = await exploring.open_paths(view, start, to, walk, depth=arguments.depth)
    paths = await call.compute(search.all_paths(), advice="Narrow predicates or depth.")
    async with call.transaction(keyed=True) as tx:
        return await exploring.explored_paths(tx, search, paths)


def _status(upsert: EdgeUpsert) -> str:
    if upsert.created:
        return "new"
    return "updated" if upsert.updated else "known"


def _target(text: str) -> Target:
    """An id where the text is one, else a name."""
    try:
        return Target(id=UUID(text))
    except ValueError:
        return Target(name=text)


def _explored_graph(found: Explored, nodes: Sequence[NeighbourNode], cut: str | None) -> ExploredGraph:
    """The first nodes of what was found, with the relations that touch none of the nodes left out."""
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


def _excerpt(node: NeighbourNode) -> str | None:
    """The beginning of what is known of a node: its own text, then what was said of it, the newest first."""
    said = node.observations[::-1]
    own = _shortened(node.content or "", MAX_EXCERPT // 2 if said else MAX_EXCERPT)
    return _shortened("; ".join([*([own] if own else []), *said]), MAX_EXCERPT) or None


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _notes(node: ExploredNode) -> str:
    notes = ", ".join(note for note in (node.kind, node.status) if note)
    return f" ({notes})" if notes else ""


def _explored_text(explored: ExploredGraph) -> str:
    lines = [" → ".join(path) for path in explored.paths]
    lines += [
        f"{edge.subject} -{edge.predicate}-> {edge.object} ({edge.created_at:%Y-%m-%d})" for edge in explored.relations
    ]
    lines += [f"- {node.name or node.id}{_notes(node)}: {node.text or ''}" for node in explored.nodes]
    lines = [in_one_line(line) for line in lines]
    if explored.cut == CUT:
        lines.append(
            "Not everything is shown: a page is full. Narrow predicates, start farther out, or give max_nodes."
        )
    elif explored.cut:
        lines.append(f"Not everything is shown: the limit on {explored.cut} was reached. Narrow predicates or depth.")
    return "\n".join(lines) or "Nothing found."
