"""Relations in answers of `/v1` and in MCP resources."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct

from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import naming
from recollect.memory.model import NamedEdge


class RelationEndBody(Struct, frozen=True):
    """One end of a relation. `name` null: a fact, or deleted. `graph` null: deleted, or not for this credential."""

    id: str
    name: str | None
    graph: str | None


class RelationBody(Struct, frozen=True, kw_only=True):
    """A relation, as seen from the node that was asked about. `dangling`: its target was deleted."""

    id: str
    type: str
    direction: Literal["outgoing", "incoming"]
    source: RelationEndBody
    target: RelationEndBody
    metadata: dict[str, Any]
    ordinal: int | None
    dangling: bool
    created_at: datetime
    created_by: str
    updated_at: datetime


async def relation_bodies_of(view: GraphView, node_id: UUID, links: Sequence[NamedEdge]) -> list[RelationBody]:
    """The relations that start or end at a node, with the names of both ends."""
    node_ids = {end for link in links for end in (link.edge.from_node, link.edge.to_node)}
    names = await naming.names_of(view, list(node_ids))
    return [_relation_body(link, node_id, names) for link in links]


def _relation_body(link: NamedEdge, node_id: UUID, names: dict[UUID, str]) -> RelationBody:
    edge = link.edge
    return RelationBody(
        id=str(edge.id),
        type=edge.type,
        direction="outgoing" if edge.from_node == node_id else "incoming",
        source=RelationEndBody(str(edge.from_node), names.get(edge.from_node), link.graph),
        target=RelationEndBody(str(edge.to_node), names.get(edge.to_node), link.to_graph),
        metadata=edge.metadata,
        ordinal=edge.ordinal,
        dangling=link.dangling,
        created_at=edge.created_at,
        created_by=edge.created_by,
        updated_at=edge.updated_at,
    )
