"""The tools `describe_schema` and `list_tags`."""

from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import TagUse
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short, paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import Offset

MAX_TAGS = 100
"""The maximum number of tags in a list, as in the memgraph package."""

Observations = Annotated[int, Meta(description="Observations that have it themselves; their entity need not")]


class DescribeSchema(ReadArguments, frozen=True, rename=None):
    """Arguments of `describe_schema`."""


class ListTags(ReadArguments, frozen=True, rename=None):
    """Arguments of `list_tags`."""

    prefix: Annotated[str, Meta(max_length=128, description="Only tags with this prefix, ignoring case")] = ""
    limit: Annotated[int, Meta(ge=1, description="Maximum number of tags; never more than 100")] | None = None
    offset: Offset = 0


class KindFreq(Struct, frozen=True, omit_defaults=True):
    """A kind, how many nodes and observations have it, and short texts of some."""

    kind: str
    count: Annotated[int, Meta(description="Nodes that have it")]
    examples: list[str]
    observations: Observations = 0


class TagPrefixFreq(Struct, frozen=True, omit_defaults=True):
    """The prefix of tags `prefix:value`, how often nodes and observations use it, and values of it."""

    prefix: str
    count: Annotated[int, Meta(description="Uses by nodes")]
    values: list[str]
    observations: Annotated[int, Meta(description="Uses by observations")] = 0


class TagFreq(Struct, frozen=True, omit_defaults=True):
    """A tag, and how many nodes and observations have it."""

    tag: str
    count: Annotated[int, Meta(description="Nodes that have it")]
    observations: Observations = 0


class DescribedSchema(Struct, frozen=True):
    """Result of `describe_schema`, most used first. `more`: a list was cut."""

    graph: str
    graph_id: str
    node_count: int
    kinds: list[KindFreq]
    tag_prefixes: list[TagPrefixFreq]
    tags: list[TagFreq]
    more: bool


class TagList(Struct, frozen=True, omit_defaults=True):
    """Result of `list_tags`, most used first; `next_offset` where there are `more`."""

    tags: list[TagFreq]
    more: bool
    next_offset: int | None = None


async def describe_schema(call: Call, arguments: DescribeSchema) -> Reply | PagedReply:
    """Show the kinds and tags that a graph uses, as many as a page takes."""
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found = await graph_schema(view)

    def reply(page: list[int], cut: str | None) -> Reply:
        count = len(page)
        kinds, prefixes, tags = found.kinds[:count], found.tag_prefixes[:count], found.tags[:count]
        more = found.more or cut is not None
        return Reply(structs.replace(found, kinds=kinds, tag_prefixes=prefixes, tags=tags, more=more))

    return cut_short(range(max(len(found.kinds), len(found.tag_prefixes), len(found.tags))), reply, limit=None)


DESCRIBE_SCHEMA = ToolSpec(
    title="Describe the vocabulary",
    description="Show which kinds and tags the nodes and observations of a graph have. Call it before you write, "
    "and reuse existing kinds and tags.",
    toolsets=frozenset({"lineage"}),
    result=DescribedSchema,
    handler=describe_schema,
    read_only=True,
)


async def graph_schema(view: GraphView) -> DescribedSchema:
    """The kinds and tags that a graph uses; none for a graph that does not exist."""
    found = await lineages.describe_schema(view)
    return DescribedSchema(
        view.graph.name,
        str(view.graph.id) if view.is_there else "",
        found.node_count,
        [KindFreq(use.kind, use.count, list(use.examples), use.observations) for use in found.kinds],
        [TagPrefixFreq(use.prefix, use.count, list(use.values), use.observations) for use in found.tag_prefixes],
        _tags(found.tags),
        found.more,
    )


async def list_tags(call: Call, arguments: ListTags) -> Reply | PagedReply:
    """List the tags in use."""
    offset, limit = arguments.offset, min(arguments.limit or MAX_TAGS, MAX_TAGS)
    async with call.searching(arguments.graph, arguments.as_of) as view:
        found, more = await lineages.list_tags(view, arguments.prefix, offset=offset, limit=limit)
    return paged(
        _tags(found),
        lambda rows, next_offset: Reply(TagList(rows, next_offset is not None, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if more else None,
    )


LIST_TAGS = ToolSpec(
    title="List tags",
    description="List the tags of nodes and observations, most used first.",
    toolsets=frozenset({"lineage"}),
    result=TagList,
    handler=list_tags,
    read_only=True,
)


def _tags(found: Any) -> list[TagFreq]:
    uses: list[TagUse] = list(found)
    return [TagFreq(use.tag, use.count, use.observations) for use in uses]
