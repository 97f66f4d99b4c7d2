"""Pages: how much a list answers where its caller does not say how many, whichever tool it is.

A model pays for every reply, and most clients cut or refuse a long one. So a page ends with the last row that fits, and
tells where the next begins. Whoever gives a limit gets so many rows, up to the bound on any reply.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from recollect.graph.relations.model import Relation, Subgraph
from recollect_gateway.mcp_endpoint.tool import Listing, Reply

PAGE_BYTES = 16_000
"""Of a page, at most, of its text and of its structured content: about 4,000 tokens."""

PAGE_ROWS = 100
"""Rows of it, at most."""

CUT = "size"
"""What `cut` says where a page had no room for what was found."""

Row = TypeVar("Row")


def paged(
    rows: Sequence[Row],
    reply: Callable[[list[Row], int | None], Reply],
    *,
    limit: int | None,
    offset: int = 0,
    next_offset: int | None = None,
) -> Listing:
    """As many of these rows as fill a page, or all of them where a limit was given.

    `reply` makes an answer of some rows and of where the next page begins: `next_offset` after the last of them.
    """

    def first(count: int) -> Reply:
        return reply(list(rows[:count]), next_offset if count == len(rows) else offset + count)

    return Listing(len(rows), first, pages=_pages(limit))


def cut_short(
    rows: Sequence[Row],
    reply: Callable[[list[Row], str | None], Reply],
    *,
    limit: int | None,
    cut: str | None = None,
    related_items: int = 0,
) -> Listing:
    """As many of what was found, nearest or best first, as fill a page, or all of it where a number was given.

    For what is not read in pages. `reply` makes an answer of some, and of what left others out: `cut` of all of them.
    `related_items`: how many relations or the like come with all of them.
    """

    def first(count: int) -> Reply:
        return reply(list(rows[:count]), cut if count == len(rows) else CUT)

    return Listing(len(rows), first, pages=_pages(limit), related_items=related_items)


def paged_graph(
    found: Subgraph,
    reply: Callable[[Subgraph, str | None], Reply],
    *,
    limit: int | None,
    offset: int = 0,
    within: bool = False,
) -> Listing:
    """The same of entities with the relations of each: those that touch one, or (`within`) those between two of them.

    An entity that hundreds touch may fill a page alone: then the oldest of its relations are told, and that they are
    cut.
    """

    def shown(count: int) -> Subgraph:
        if count == len(found.entities):
            return found
        names = {entity.name for entity in found.entities[:count]}
        told = [relation for relation in found.relations if _is_of(relation, names, within)]
        return Subgraph(found.entities[:count], told, offset + count)

    alone = shown(min(1, len(found.entities)))
    return Listing(
        len(found.entities),
        lambda count: reply(shown(count), None),
        len(alone.relations),
        lambda count: reply(replace(alone, relations=alone.relations[:count]), "relations"),
        _pages(limit),
        len(found.relations),
    )


def fitted(listing: Listing, size: Callable[[Reply], int]) -> Reply:
    """The reply with as many rows as fit, the first of them in any case; `size` tells what a reply takes, in bytes."""
    if listing.pages is None:
        return listing.first(listing.rows)
    room = PAGE_BYTES * listing.pages
    count = _most(listing.rows, lambda count: size(listing.first(count)) <= room)
    if count == 0 < listing.rows:
        count = 1
        if listing.attached and listing.clipped is not None:
            clipped = listing.clipped
            return clipped(_most(listing.attached, lambda attached: size(clipped(attached)) <= room))
    return listing.first(count)


def _pages(limit: int | None) -> int | None:
    """How many pages are filled: one, or as many as it takes where a limit was given."""
    return 1 if limit is None else None


def _is_of(relation: Relation, names: set[str], within: bool) -> bool:
    ends = (relation.source in names, relation.target in names)
    return all(ends) if within else any(ends)


def _most(count: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `count` that fits, 0 where 1 does not. It tries none of twice that size or more."""
    if count == 0:
        return 0
    least, beyond = 0, 1
    while beyond < count and fits(beyond):
        least, beyond = beyond, beyond * 2
    if beyond >= count:
        if fits(count):
            return count
        beyond = count
    while beyond - least > 1:
        middle = (least + beyond) // 2
        least, beyond = (middle, beyond) if fits(middle) else (least, middle)
    return least
