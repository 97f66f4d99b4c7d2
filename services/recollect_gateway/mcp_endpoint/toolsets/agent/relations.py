"""Relate entities, and explore what lies around them."""

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from recollect.memory import service as memory
from recollect.memory.model import Explored, Neighbour, Target
from recollect.relations import service as relations
from recollect.relations.model import Direction, NewRelation, Walk
from recollect_gateway.mcp_endpoint.tool import Arguments, Call, Reading, Reply
from recollect_gateway.mcp_endpoint.toolsets.agent.shapes import MAX_ITEMS
from recollect_gateway.mcp_endpoint.toolsets.memory.shapes import Name, RelationType
from recollect_gateway.shapes import check_metadata

MAX_GIST = 300
"""Characters of what is told of a node that was met on the way."""


class Triple(Struct, forbid_unknown_fields=True, frozen=True):
    """Subject, predicate and object, by name."""

    subject: Name
    predicate: RelationType
    object: Name
    metadata: dict[str, Any] = {}


class Relate(Arguments, frozen=True, rename=None):
    """Arguments of `relate`."""

    triples: Annotated[list[Triple], Meta(min_length=1, max_length=MAX_ITEMS)]


class Explore(Reading, frozen=True, rename=None):
    """Arguments of `explore`."""

    start: Annotated[str, Meta(min_length=1, max_length=512, description="Id or name")]
    to: Annotated[str, Meta(min_length=1, max_length=512, description="Paths to this id or name instead")] | None = None
    depth: Annotated[int, Meta(ge=1, le=6)] = 1
    direction: Literal["outgoing", "incoming", "both"] = "both"
    predicates: Annotated[list[RelationType], Meta(max_length=50)] = []
    max_nodes: Annotated[int, Meta(ge=1, le=200)] = 30


class RelatedTriple(Struct, frozen=True):
    """What became of one triple."""

    subject: str
    predicate: str
    object: str
    status: str


class RelatedTriples(Struct, frozen=True):
    """Result of `relate`, one entry a triple, in order."""

    relations: list[RelatedTriple]


class ExploredNode(Struct, frozen=True, omit_defaults=True):
    """A node, and what is known of it, shortened."""

    id: str
    name: str | None = None
    kind: str | None = None
    text: str | None = None


class ExploredEdge(Struct, frozen=True):
    """A relation between two of the nodes, which it names by name or id."""

    subject: str
    predicate: str
    object: str


class ExploredGraph(Struct, frozen=True):
    """Result of `explore`. `paths` name the nodes from start to end; `cut` says what bound ended the search early."""

    nodes: list[ExploredNode]
    relations: list[ExploredEdge]
    paths: list[list[str]]
    cut: str


async def relate(call: Call, arguments: Relate) -> Reply:
    """Keep relations; answer which were new."""
    for place, triple in enumerate(arguments.triples):
        check_metadata(triple.metadata, f"triples.{place}.metadata", call.settings.max_metadata_size)
    wanted = [NewRelation(t.subject, t.object, t.predicate, t.metadata) for t in arguments.triples]
    async with call.writing(arguments.graph) as (tx, revision):
        made = {relation.triple for relation in await relations.create_relations(tx, revision, wanted)}
    answer = [RelatedTriple(r.source, r.type, r.target, "new" if r.triple in made else "known") for r in wanted]
    lines = "\n".join(f"{one.status} {one.subject} -{one.predicate}-> {one.object}" for one in answer)
    return Reply(RelatedTriples(answer), lines)


async def explore(call: Call, arguments: Explore) -> Reply:
    """Show what lies around a node, or the paths to another."""
    async with call.transaction() as tx:
        found = await memory.explore(
            tx,
            arguments.graph,
            _target(arguments.start),
            Walk(Direction(arguments.direction), tuple(arguments.predicates)),
            to=None if arguments.to is None else _target(arguments.to),
            depth=arguments.depth,
            max_nodes=arguments.max_nodes,
            as_of=arguments.as_of,
        )
    answer = _explored(found)
    return Reply(answer, _explored_text(answer))


def _target(text: str) -> Target:
    """An id where the text is one, else a name."""
    try:
        return Target(id=UUID(text))
    except ValueError:
        return Target(name=text)


def _explored(found: Explored) -> ExploredGraph:
    names = {node.id: node.name or str(node.id) for node in found.nodes} | found.labels
    return ExploredGraph(
        [ExploredNode(str(node.id), node.name, node.kind, _gist(node)) for node in found.nodes],
        [
            ExploredEdge(names[edge.from_node], edge.type, names[edge.to_node])
            for edge in found.edges
            if edge.from_node in names and edge.to_node in names
        ],
        [[names[node] for node in path] for path in found.paths if all(node in names for node in path)],
        found.cut or "",
    )


def _gist(node: Neighbour) -> str | None:
    text = "; ".join([*([node.content] if node.content else []), *node.observations])
    return (text if len(text) <= MAX_GIST else f"{text[: MAX_GIST - 1]}…") or None


def _explored_text(found: ExploredGraph) -> str:
    lines = [" → ".join(path) for path in found.paths]
    lines += [f"{edge.subject} -{edge.predicate}-> {edge.object}" for edge in found.relations]
    lines += [
        f"- {node.name or node.id}{f' ({node.kind})' if node.kind else ''}: {node.text or ''}" for node in found.nodes
    ]
    if found.cut:
        lines.append(f"Not everything: the bound on {found.cut} was reached. Narrow predicates or depth.")
    return "\n".join(lines) or "Nothing found."
