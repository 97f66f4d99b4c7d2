"""The tool `fetch`."""

from itertools import accumulate
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import ErrorCode, NotFound
from recollect.graph.entities.model import ListedObservations
from recollect.graph.graphs.model import spelled_id
from recollect.graph.lineages.model import Version
from recollect.graph.observations.model import Observation
from recollect.memory import reading
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.openai.documents import title_of, url_of

MAX_PAGE = 60_000
"""The maximum number of characters of observations in one document, unless one observation is longer. Further documents
have the rest."""

PAGE_MARK, MAX_DIGITS = "@", 8
"""The sign between a memory's id and the number of observations that earlier documents had, and the maximum number of
digits of that number."""


class Fetch(Struct, forbid_unknown_fields=True, frozen=True):
    """Arguments of `fetch`."""

    id: Annotated[str, Meta(max_length=256, description="The id of a search result, or `next` of a document")]


class FetchedDocument(Struct, frozen=True):
    """Result of `fetch`. `metadata`: the memory's attributes, as texts; its `next`: the id of the next document."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


async def fetch(call: Call, arguments: Fetch) -> Reply:
    """Return a memory whole. An entity is shown with its observations; raises NotFound."""
    memory_id, skipped = _memory_and_offset(arguments.id)
    if memory_id is None:
        raise _unknown(arguments.id)
    async with call.reading(None) as view:
        found = await reading.find_memory(view, memory_id, skipped=skipped)
    if found is None:
        raise _unknown(arguments.id)
    node, observation, listed = found.node, found.observation, _page(found.listed)
    further = f"{memory_id}{PAGE_MARK}{skipped + len(listed.texts)}" if listed.omitted else None
    text = observation.content if observation else _text_of_node(node, listed, further, is_first=not skipped)
    title = title_of(node.name, text)
    metadata = _metadata(node, observation) | ({"next": further} if further else {})
    document_id = f"{memory_id}{PAGE_MARK}{skipped}" if skipped else str(memory_id)
    return Reply(FetchedDocument(document_id, title, text or title, url_of(call, node.node_id, memory_id), metadata))


FETCH = ToolSpec(
    description="Get the whole text of a memory that search found.",
    toolsets=frozenset({"openai"}),
    result=FetchedDocument,
    handler=fetch,
    read_only=True,
)


def _memory_and_offset(text: str) -> tuple[UUID | None, int]:
    """The id of a memory, and how many of its newest observations were shown before; no id where it is none."""
    memory_id, mark, skipped = text.partition(PAGE_MARK)
    if mark and not (skipped.isascii() and skipped.isdigit() and len(skipped) <= MAX_DIGITS):
        return None, 0
    return spelled_id(memory_id), int(skipped or "0")


def _page(listed: ListedObservations) -> ListedObservations:
    """The newest of these observations that fit a page of text, and the very newest in any case."""
    sizes = accumulate(len(text) + 1 for text in reversed(listed.texts))
    count = max(sum(size <= MAX_PAGE for size in sizes), 1)
    return ListedObservations(listed.texts[-count:], listed.omitted + max(len(listed.texts) - count, 0))


def _text_of_node(node: Version, listed: ListedObservations, further: str | None, *, is_first: bool) -> str:
    """What is known of a node; where that is too much for an answer, the newest of it, and what tells the rest."""
    own = node.content if is_first else None
    omitted = f"({listed.omitted} older observations are left out: fetch {further} tells them.)" if further else None
    return "\n".join([*filter(None, [own, omitted]), *listed.texts])


def _unknown(memory_id: str) -> NotFound:
    return NotFound(f"There is no memory {memory_id}. Give an id that search returned.", code=ErrorCode.NODE_NOT_FOUND)


def _metadata(node: Version, observation: Observation | None) -> dict[str, str]:
    """What is known of a memory beside its text, without what is not known."""
    own = observation or node
    is_hidden = node.status != "active"
    known = {
        "entity": node.name,
        "kind": own.kind or node.kind,
        "tags": ", ".join(own.tags or node.tags),
        "said_at": own.said_at.isoformat() if own.said_at else None,
        "source": own.source or node.source,
        "thread": own.thread,
        "status": node.status if is_hidden else own.status,
    }
    return {key: value for key, value in known.items() if value}
