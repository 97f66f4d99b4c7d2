"""The tool `search`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.openai.documents import title_of, url_of
from recollect_gateway.operations.recall import Query, RecallBody, recall

MAX_FOUND, MAX_TOKENS = 20, 20_000
"""The maximum number of memories that one search returns, and of tokens of their texts."""


class Search(Struct, forbid_unknown_fields=True, frozen=True):
    """Arguments of `search`."""

    query: Annotated[Query, Meta(description="A question or a few words")]


class FoundDocument(Struct, frozen=True):
    """A memory that was found."""

    id: str
    title: str
    url: str


class FoundDocuments(Struct, frozen=True):
    """Result of `search`, best first."""

    results: list[FoundDocument]


async def search(call: Call, arguments: Search) -> PagedReply:
    """Find memories by words and meaning, in the credential's graph."""
    recalled = await recall(call, None, RecallBody(query=arguments.query, limit=MAX_FOUND, token_budget=MAX_TOKENS))
    found = [
        FoundDocument(str(hit.memory_id), title_of(hit.name, hit.text), url_of(call, hit.node_id, hit.memory_id))
        for hit in recalled.hits
    ]
    return PagedReply(len(found), lambda count: Reply(FoundDocuments(found[:count])))


SEARCH_IN_OPENAI = ToolSpec(
    description="Find memories by words and by meaning. Returns their ids and titles, for fetch.",
    toolsets=frozenset({"openai"}),
    result=FoundDocuments,
    handler=search,
    read_only=True,
)
