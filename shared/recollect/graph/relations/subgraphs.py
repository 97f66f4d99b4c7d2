"""Subgraphs as answers: entities with their relations, and edges, of which those come that fit a reply."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from math import inf
from typing import TypeVar
from uuid import UUID

from recollect.graph.entities.model import Entity
from recollect.graph.graphs.view import GraphView
from recollect.graph.json_values import encoded_sizes
from recollect.graph.relations import store
from recollect.graph.relations.model import Edge, Subgraph

E = TypeVar("E", bound=Edge)


EDGE_BYTES = 250
"""Bytes that an edge takes in a reply besides its metadata, at least: its ids, its times, and names of fields."""


EDGES_SHARE = Fraction(1, 2)
"""The part of a reply that edges with metadata may take: nodes and their metadata need room beside them."""


MAX_RELATIONS = 10_000
"""Edges in one answer, at most."""


RELATIONS_CUT = "relations"
"""The bound that left relations out of a subgraph."""


ITEM_BYTES = 200
"""Bytes that an entity or a relation takes in a reply besides its texts, at most: names of fields, and times."""


FILLED = Fraction(9, 10)
"""The part of a reply that its items may fill: notes and commas need room beside them."""


async def edges_within_reply(view: GraphView, edges: Sequence[E], times: Mapping[UUID, int] | None = None) -> list[E]:
    """The first of these edges, with their metadata, as far as they fit a reply; the very first in any case.

    `times`: how many times the reply tells an edge (default: once).
    """
    if not edges:
        return []
    by_id = {edge.id: edge for edge in edges}
    left = inf if view.tx.reply_bytes is None else int(view.tx.reply_bytes * EDGES_SHARE)
    listed: list[E] = []
    async with aclosing(store.metadata_of_edges(view, list(by_id))) as found:
        async for edge_id, metadata, size in found:
            left -= (size + EDGE_BYTES) * (1 if times is None else times.get(edge_id, 1))
            if left < 0 and listed:
                break
            listed.append(replace(by_id[edge_id], metadata=metadata))
    return listed


async def subgraph_of(view: GraphView, entities: list[Entity], *, next_offset: int | None = None) -> Subgraph:
    """These entities with every relation at any of them, the oldest of which come where not all fit a reply."""
    return await within_reply(view, await _subgraph_of(view, entities, next_offset=next_offset))


async def described(view: GraphView, entity: Entity) -> Subgraph:
    """An entity with its relations, for a reply that counts all and lists some: of very many, the oldest."""
    found = await _subgraph_of(view, [entity])
    return replace(found, relations=found.relations[:MAX_RELATIONS], cut=_cut_of(found))


async def subgraph_within(view: GraphView, entities: list[Entity], *, next_offset: int | None = None) -> Subgraph:
    """These entities with the relations between them, the oldest of which come where not all fit a reply."""
    ids = [entity.id for entity in entities]
    found = await store.relations_between(view, ids, limit=MAX_RELATIONS + 1)
    return await within_reply(view, Subgraph(entities, found, next_offset))


async def within_reply(view: GraphView, found: Subgraph) -> Subgraph:
    """The subgraph with the first MAX_RELATIONS of its relations, or those of them that fit a reply beside entities."""
    listed = found.relations[:MAX_RELATIONS]
    names = [(relation.source, relation.target, relation.type) for relation in listed]
    if sum(map(_most_bytes, names)) > _smallest_remaining(view):  # Mostly they fit, whatever entities take.
        taken = sum(size + ITEM_BYTES for size in await encoded_sizes(found.entities))
        listed = listed[: await count_fitting(view, names, taken=taken)]
    return found if len(listed) == len(found.relations) else replace(found, relations=listed, cut=RELATIONS_CUT)


async def count_fitting(view: GraphView, names: Sequence[tuple[str, str, str]], *, taken: int) -> int:
    """How many of these relations, given by the names of ends and type, fit a reply whose other parts take bytes."""
    if view.tx.reply_bytes is None:
        return len(names)
    sizes = (size + ITEM_BYTES for size in await encoded_sizes(names))
    left = max(int(view.tx.reply_bytes * FILLED) - taken, _smallest_remaining(view))
    return bisect_right(list(accumulate(sizes)), left)


def _smallest_remaining(view: GraphView) -> float:
    """Bytes of a reply that its relations may take, whatever its other parts take."""
    return inf if view.tx.reply_bytes is None else int(view.tx.reply_bytes * (1 - FILLED))


def _most_bytes(named: tuple[str, str, str]) -> int:
    """Bytes that a relation takes in a reply, at most: each character of a name may be escaped."""
    return 6 * sum(map(len, named)) + ITEM_BYTES


async def _subgraph_of(view: GraphView, entities: list[Entity], *, next_offset: int | None = None) -> Subgraph:
    """These entities with the relations at any of them, one more than an answer may have at most."""
    ids = [entity.id for entity in entities]
    return Subgraph(entities, await store.relations_touching(view, ids, limit=MAX_RELATIONS + 1), next_offset)


def _cut_of(found: Subgraph) -> str | None:
    return RELATIONS_CUT if len(found.relations) > MAX_RELATIONS else None
