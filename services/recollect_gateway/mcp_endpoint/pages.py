"""Cuts the lists that tools answer into pages, where the caller gives no limit.

A model pays for every reply, and most clients cut or refuse a long one. So a page ends with the last row that fits, and
says where the next begins. A caller that gives a limit gets that many rows, up to the bound on any reply.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from recollect.graph.relations.model import Relation, Subgraph
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply

PAGE_BYTES = 16_000
"""The maximum size of a page's text, and of its structured content, in bytes: about 4,000 tokens."""

PAGE_ROWS = 100
"""The maximum number of rows of a page."""

CUT = "size"
"""The value of `cut` where a page had no room for all that was found."""

Row = TypeVar("Row")


def paged(
    rows: Sequence[Row],
    reply: Callable[[list[Row], int | None], Reply],
    *,
    limit: int | None,
    offset: int = 0,
    next_offset: int | None = None,
    related_items: int = 0,
) -> PagedReply:
    """List the rows that fit a page, or all of them where a limit was given.

    `reply` renders some rows and the offset of the next page, which is `next_offset` after the last of all rows.
    `related_items`: how many relations or the like come with all rows.
    """

    def render(count: int) -> Reply:
        return reply(list(rows[:count]), next_offset if count == len(rows) else offset + count)

    return PagedReply(len(rows), render, pages=_pages(limit), related_items=related_items)


def cut_short(
    rows: Sequence[Row],
    reply: Callable[[list[Row], str | None], Reply],
    *,
    limit: int | None,
    cut: str | None = None,
    related_items: int = 0,
) -> PagedReply:
    """List the rows, nearest or best first, that fit a page, or all of them where a limit was given.

    For lists without further pages. `reply` renders some rows and the bound that left others out: CUT, or `cut` where
    all rows fit. `related_items`: how many relations or the like come with all rows.
    """

    def render(count: int) -> Reply:
        return reply(list(rows[:count]), cut if count == len(rows) else CUT)

    return PagedReply(len(rows), render, pages=_pages(limit), related_items=related_items)


def paged_graph(
    found: Subgraph,
    reply: Callable[[Subgraph, str | None], Reply],
    *,
    limit: int | None,
    offset: int = 0,
    within: bool = False,
) -> PagedReply:
    """List the entities that fit a page, with the relations that touch one, or (`within`) that join two of them.

    An entity with hundreds of relations may fill a page alone: then the page holds the oldest of them, and `cut` says
    so.
    """

    def first_entities(count: int) -> Subgraph:
        if count == len(found.entities):
            return found
        names = {entity.name for entity in found.entities[:count]}
        relations = [relation for relation in found.relations if _is_of(relation, names, within)]
        return Subgraph(found.entities[:count], relations, offset + count, found.cut)

    first = first_entities(min(1, len(found.entities)))
    return PagedReply(
        len(found.entities),
        lambda count: reply(first_entities(count), found.cut),
        len(first.relations),
        lambda count: reply(replace(first, relations=first.relations[:count]), "relations"),
        _pages(limit),
        len(found.relations),
    )


def fit_page(reply: PagedReply, size: Callable[[Reply], int]) -> Reply:
    """The reply with as many rows as fit its pages, and at least one; `size` returns the size of a reply in bytes."""
    if reply.pages is None:
        return reply.render(reply.row_count)
    max_bytes = PAGE_BYTES * reply.pages
    count = _largest(reply.row_count, lambda count: size(reply.render(count)) <= max_bytes)
    if count == 0 < reply.row_count:
        count = 1
        if reply.attached_count and reply.render_first_row is not None:
            render = reply.render_first_row
            return render(_largest(reply.attached_count, lambda attached: size(render(attached)) <= max_bytes))
    return reply.render(count)


def _pages(limit: int | None) -> int | None:
    """The number of pages that a reply may fill: one, or any number (None) where a limit was given."""
    return 1 if limit is None else None


def _is_of(relation: Relation, names: set[str], within: bool) -> bool:
    ends = (relation.source in names, relation.target in names)
    return all(ends) if within else any(ends)


def _largest(count: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `count` that fits, 0 if 1 does not. It tries no number above twice the result."""
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
