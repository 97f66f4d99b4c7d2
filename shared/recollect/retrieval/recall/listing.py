"""Lists of memories, instead of searches: for a filter alone, and for questions that ask for everything."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recollect.errors import InvalidInput
from recollect.graph.graphs.view import GraphView
from recollect.retrieval.recall import store
from recollect.retrieval.recall.model import Listed, Question, QuestionWords, Recalled, RecallFilter, SearchScope
from recollect.retrieval.recall.overviews import Overview, overview_of
from recollect.retrieval.recall.pages import Holdings, MemoryPage, Order


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A page of memories to list: those of the entities with the names `subjects` or, if it is empty, all.

    `is_sure`: all are listed, too, if none of these entities exists; otherwise, the question is searched for.
    """

    page: MemoryPage
    subjects: tuple[str, ...] = ()
    is_sure: bool = True


def listing_of(
    questions: Sequence[Question], words: Sequence[QuestionWords], filters: RecallFilter, page: MemoryPage
) -> ListRequest | None:
    """The list that answers these questions, or a filter without a question; None if they must be searched for.

    `words`: those of each question, with the entities that it names.
    """
    if not questions:
        return ListRequest(_in_order(page, None))
    overviews = [_overview(question.text, filters) for question in questions]
    first = overviews[0]
    if first is None or any(overview is None or overview.subjects != first.subjects for overview in overviews):
        return None
    page, names_any = _in_order(page, first.order), any(each.entity_ids for each in words)
    if not names_any:
        return ListRequest(page) if first.is_sure else None
    if first.subjects:
        return ListRequest(page, first.subjects, first.is_sure)
    return ListRequest(page) if filters.narrows else None  # What is named "Summary" is searched for.


async def list_memories(scope: SearchScope, listing: ListRequest, *, limit: int) -> list[Listed] | None:
    """The memories to list, and one more if there are more; None if the question must be searched for after all."""
    found = await store.list_memories(scope, listing.page, listing.subjects, limit=limit + 1)
    if found or not listing.subjects or listing.page.after is not None:
        return found
    return await store.list_memories(scope, listing.page, (), limit=limit + 1) if listing.is_sure else None


def require_first_page(page: MemoryPage | None) -> None:
    """Raise InvalidInput for any other page than the first. Called for searches, since only lists have pages."""
    if page is not None and page.after is not None:
        raise InvalidInput("This question is searched for, and only lists have pages: raise limit", path="cursor")


async def with_holdings(view: GraphView, recalled: Recalled) -> Recalled:
    """Add to an empty result what the graph holds, unless the view is of the past."""
    if not view.is_there:
        return replace(recalled, holdings=Holdings(is_graph=False))
    if view.at is not None:
        return recalled
    return replace(recalled, holdings=await store.find_holdings(view.tx, view.graph))


def _overview(question: str, filters: RecallFilter) -> Overview | None:
    values = (*filters.kinds, *filters.tags, *filters.about, *filter(None, (filters.under, filters.thread)))
    return overview_of(question, filtered=filters.narrows, values=values)


def _in_order(page: MemoryPage, order: Order | None) -> MemoryPage:
    return replace(page, order=page.order or order or Order.NEWEST)
