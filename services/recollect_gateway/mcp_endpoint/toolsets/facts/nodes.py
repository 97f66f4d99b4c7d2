"""Handlers of facts and entities by id: make, read, change, delete and find them."""

from recollect.errors import InvalidInput
from recollect.lineages.model import Version
from recollect.memory import facts
from recollect.memory.facts import Change
from recollect.memory.links import Link
from recollect.nodes.model import NewFact, NodeFields
from recollect.search.model import RecallFilter
from recollect_gateway.mcp_endpoint.tool import Call, Reply
from recollect_gateway.mcp_endpoint.toolsets.facts.arguments import (
    CreateNode,
    CreateSummaryFact,
    DeleteNode,
    FindSimilar,
    GetNode,
    GetNodeChangeHistory,
    MarkOutdated,
    Search,
    UpdateNode,
    checked_metadata,
    checked_ttl,
    from_milliseconds,
    graph_of,
    node_id,
    required_text,
)
from recollect_gateway.mcp_endpoint.toolsets.facts.results import (
    DEFAULT_SOURCE,
    OneNode,
    SimilarNodes,
    Succeeded,
    Versions,
    found_out,
    node_out,
    similar_out,
    split,
    version_out,
)

DEFAULT_LIMIT = 10


async def create_node(call: Call, arguments: CreateNode) -> Reply:
    """Make a fact or an entity."""
    graph = graph_of(arguments)
    text = required_text(arguments.text, "text", call.settings)
    given = [Link(node_id(one.node_id), one.relation_type, one.node_type == "Entity") for one in arguments.links or []]
    fields = _fields(call, arguments)
    if arguments.node_type == "Fact" and arguments.entity_type is not None:
        raise InvalidInput("A fact has no entity type", path="entity_type")
    async with call.writing(graph) as (tx, revision):
        if arguments.node_type == "Entity":
            made = await facts.create_entity(tx, revision, text, fields, given)
        else:
            made = await facts.create_fact(tx, revision, _fact(text, fields), given, auto_link=arguments.auto_link)
    return _one(call, graph, made)


async def get_node(call: Call, arguments: GetNode) -> Reply:
    """Read a fact or an entity."""
    graph = graph_of(arguments)
    wanted = node_id(arguments.node_id)
    async with call.transaction() as tx:
        node = await facts.get_node(tx, graph, wanted, as_of=arguments.as_of)
    return _one(call, graph, node)


async def update_node(call: Call, arguments: UpdateNode) -> Reply:
    """Change a fact or an entity; the new version's number only where versioning is asked for."""
    graph = graph_of(arguments)
    metadata = arguments.metadata
    wanted = Change(
        text=None if arguments.text is None else required_text(arguments.text, "text", call.settings),
        kind=arguments.entity_type,
        metadata=None if metadata is None else checked_metadata(metadata, "metadata", call.settings),
        status=arguments.status,
        source=arguments.source,
        ttl_days=checked_ttl(arguments.ttl_days, call.settings),
        expires_at=from_milliseconds(arguments.expires_at),
    )
    async with call.writing(graph) as (tx, revision):
        node = await facts.change(tx, revision, node_id(arguments.node_id), wanted)
    return _one(call, graph, node, versioned=arguments.versioning)


async def delete_node(call: Call, arguments: DeleteNode) -> Reply:
    """Delete a fact or an entity."""
    async with call.writing(graph_of(arguments)) as (tx, revision):
        await facts.delete(tx, revision, node_id(arguments.node_id))
    return Reply(Succeeded(True))


async def get_node_change_history(call: Call, arguments: GetNodeChangeHistory) -> Reply:
    """List a node's versions."""
    offset, limit = arguments.offset, arguments.limit
    async with call.transaction() as tx:
        wanted = node_id(arguments.node_id)
        found, more = await facts.history(tx, graph_of(arguments), wanted, offset=offset, limit=limit)
    return Reply(Versions(True, [version_out(version) for version in found], offset + limit if more else None))


async def search(call: Call, arguments: Search) -> Reply:
    """Find facts and entities by words, meaning and name."""
    graph = graph_of(arguments)
    types = set(arguments.node_types or ())
    only = RecallFilter(
        status=arguments.status,
        include_outdated=arguments.include_outdated,
        named=None if len(types) != 1 else types == {"Entity"},
    )
    (question,) = await call.questions([arguments.query])
    async with call.transaction() as tx:
        found = await facts.find(
            tx,
            graph,
            question,
            only,
            limit=arguments.limit or DEFAULT_LIMIT,
            threshold=arguments.similarity_threshold,
        )
    return Reply(split([found_out(one, call.graph_name(graph)) for one in found]))


async def find_similar(call: Call, arguments: FindSimilar) -> Reply:
    """Find facts that mean nearly the same."""
    graph = graph_of(arguments)
    async with call.transaction() as tx:
        found = await facts.find_similar(
            tx,
            graph,
            node_id(arguments.fact_id),
            threshold=arguments.threshold,
            limit=arguments.limit,
            edges=arguments.include_relations,
        )
    return Reply(SimilarNodes(True, [similar_out(one, call.graph_name(graph)) for one in found]))


async def mark_outdated(call: Call, arguments: MarkOutdated) -> Reply:
    """Say that a fact no longer holds."""
    graph = graph_of(arguments)
    outdated = Change(status="outdated", reason=arguments.reason)
    async with call.writing(graph) as (tx, revision):
        node = await facts.change(tx, revision, node_id(arguments.fact_id), outdated)
    return _one(call, graph, node)


async def create_summary_fact(call: Call, arguments: CreateSummaryFact) -> Reply:
    """Make a fact that sums up others."""
    graph = graph_of(arguments)
    text = required_text(arguments.summary_text, "summary_text", call.settings)
    summed = [node_id(one) for one in arguments.fact_ids]
    async with call.writing(graph) as (tx, revision):
        made = await facts.summarize(tx, revision, summed, NewFact(text, source=DEFAULT_SOURCE))
    return _one(call, graph, made)


def _one(call: Call, graph: str | None, node: Version, *, versioned: bool = False) -> Reply:
    return Reply(OneNode(True, node_out(node, call.graph_name(graph), versioned=versioned)))


def _fields(call: Call, arguments: CreateNode) -> NodeFields:
    return NodeFields(
        kind=arguments.entity_type,
        metadata=checked_metadata(arguments.metadata, "metadata", call.settings),
        status=arguments.status or "active",
        source=arguments.source,
        ttl_days=checked_ttl(arguments.ttl_days, call.settings),
        expires_at=from_milliseconds(arguments.expires_at),
    )


def _fact(text: str, fields: NodeFields) -> NewFact:
    return NewFact(
        text,
        metadata=fields.metadata,
        source=fields.source,
        ttl_days=fields.ttl_days,
        expires_at=fields.expires_at,
        status=fields.status,
    )
