"""A page of a tool has as many rows as fit, at least one, and says where the next page begins."""

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, json

from recollect.graph.entities.model import Entity
from recollect.graph.relations.model import Relation, Subgraph
from recollect_gateway.mcp_endpoint.pages import CUT, PAGE_BYTES, cut_short, fit_page, paged, paged_graph
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply

NOW = datetime(2027, 1, 31, tzinfo=UTC)
SIZES = st.lists(st.integers(1, 2 * PAGE_BYTES) | st.integers(1, 900), max_size=60)


class Rows(Struct):
    """A reply that lists rows."""

    rows: list[str]
    next_offset: int | None = None
    cut: str | None = None


def size(reply: Reply) -> int:
    return len(json.encode(reply.structured))


def answer(given: Reply | PagedReply) -> Rows:
    """The rows of the reply; where no limit was given, as many as fit."""
    reply = fit_page(given, size) if isinstance(given, PagedReply) else given
    assert isinstance(reply.structured, Rows)
    return reply.structured


def of_rows(rows: list[str], following: int | None) -> Reply:
    return Reply(Rows(rows, following))


def of_found(rows: list[str], cut: str | None) -> Reply:
    return Reply(Rows(rows, cut=cut))


@given(SIZES, st.integers(0, 100), st.none() | st.just(1_000))
def test_a_page_holds_the_rows_that_fit_and_no_fewer(sizes: list[int], offset: int, behind: int | None) -> None:
    rows = ["x" * characters for characters in sizes]
    page = answer(paged(rows, of_rows, limit=None, offset=offset, next_offset=behind))
    count = len(page.rows)
    assert page.rows == rows[:count]
    assert size(Reply(page)) <= PAGE_BYTES or count == 1
    assert page.next_offset == (behind if count == len(rows) else offset + count)
    if count < len(rows):
        one_more = of_rows(rows[: count + 1], behind if count + 1 == len(rows) else offset + count + 1)
        assert count >= 1
        assert size(one_more) > PAGE_BYTES


def test_a_page_has_as_many_rows_as_the_limit_asks_for_however_large() -> None:
    rows = ["x" * PAGE_BYTES] * 5
    assert answer(paged(rows, of_rows, limit=5, next_offset=5)) == Rows(rows, 5)


def test_a_reply_that_is_no_list_says_when_it_is_cut() -> None:
    rows = ["x" * 1_000] * 30
    rows_of_reply = answer(cut_short(rows, of_found, limit=None, cut="nodes"))
    assert (len(rows_of_reply.rows), rows_of_reply.cut) == (15, CUT)
    assert answer(cut_short(rows[:3], of_found, limit=None, cut="nodes")) == Rows(rows[:3], cut="nodes")


def test_a_listing_may_fill_several_pages() -> None:
    rows = ["x" * 1_000] * 60
    found = PagedReply(len(rows), lambda count: of_rows(rows[:count], None), pages=3)
    assert PAGE_BYTES * 3 - 2_000 < size(Reply(answer(found))) <= PAGE_BYTES * 3


def graph(relations: list[tuple[str, str]], *names: str) -> Subgraph:
    return Subgraph(
        [Entity(UUID(int=n), name, None, None, (), (), None, NOW, NOW, None) for n, name in enumerate(names)],
        [Relation(UUID(int=n), source, target, "knows", NOW, NOW) for n, (source, target) in enumerate(relations)],
        next_offset=99,
    )


def of_graph(found: Subgraph, cut: str | None) -> Reply:
    names = [entity.name for entity in found.entities]
    return Reply(Rows([*names, *(f"{one.source}-{one.target}" for one in found.relations)], found.next_offset, cut))


def test_an_entity_comes_with_its_own_relations_only() -> None:
    long = "b" * PAGE_BYTES
    found = graph([("a", "z"), (long, "z"), ("y", "a")], "a", long)
    assert answer(paged_graph(found, of_graph, limit=None, offset=7)) == Rows(["a", "a-z", "y-a"], 8)
    assert answer(paged_graph(found, of_graph, limit=None, offset=7, within=True)) == Rows(["a"], 8)
    assert answer(paged_graph(found, of_graph, limit=2)) == Rows(["a", long, "a-z", f"{long}-z", "y-a"], 99)


def test_an_entity_with_many_relations_fills_a_page_with_the_oldest() -> None:
    others = [f"{n:0100}" for n in range(1_000)]
    page = answer(paged_graph(graph([("a", other) for other in others], "a", "b"), of_graph, limit=None))
    assert (page.rows[0], page.cut, page.next_offset) == ("a", "relations", 1)
    assert page.rows[1:] == [f"a-{other}" for other in others[: len(page.rows) - 1]]
    assert PAGE_BYTES - 200 < size(Reply(page)) <= PAGE_BYTES


def test_an_empty_result_is_one_empty_page() -> None:
    assert answer(paged([], of_rows, limit=None)) == Rows([])
    assert answer(paged_graph(Subgraph([], []), of_graph, limit=None)) == Rows([])
