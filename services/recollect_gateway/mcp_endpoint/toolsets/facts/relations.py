"""Handlers of relations and triplets, and of what lies around a node or between two."""

from recollect.errors import NotFound
from recollect.memory import facts
from recollect.relations.model import NewEdge, NewRelation, RelationFilter
from recollect_gateway.mcp_endpoint.tool import Call, Reply
from recollect_gateway.mcp_endpoint.toolsets.facts.arguments import (
    CreateRelation,
    CreateTriplet,
    DeleteRelation,
    GetContext,
    GetStats,
    GetTrace,
    SearchTriplets,
    checked_metadata,
    graph_of,
    node_id,
)
from recollect_gateway.mcp_endpoint.toolsets.facts.results import (
    Context,
    GraphCounts,
    GraphStats,
    OneTriplet,
    RelationType,
    Succeeded,
    Trace,
    Triplets,
    edges_out,
    node_out,
    paths_out,
    triplet_out,
)


async def create_triplet(call: Call, arguments: CreateTriplet) -> Reply:
    """Relate two entities by name."""
    graph = graph_of(arguments)
    metadata = checked_metadata(arguments.metadata, "metadata", call.settings)
    triplet = NewRelation(arguments.subject, arguments.object_value, arguments.predicate, metadata)
    fact_id = None if arguments.fact_id is None else node_id(arguments.fact_id)
    async with call.writing(graph) as (tx, revision):
        edge = await facts.create_triplet(tx, revision, triplet, fact_id)
    said = None if fact_id is None else str(fact_id)
    return Reply(OneTriplet(True, triplet_out(edge, triplet.source, triplet.target, call.graph_name(graph), said)))


async def search_triplets(call: Call, arguments: SearchTriplets) -> Reply:
    """Find relations between names."""
    graph = graph_of(arguments)
    only = RelationFilter(arguments.subject, arguments.object_value, arguments.predicate)
    offset, limit = arguments.offset, arguments.limit
    async with call.transaction() as tx:
        found, more = await facts.search_triplets(tx, graph, only, offset=offset, limit=limit, as_of=arguments.as_of)
    triplets = [triplet_out(edge, named.source, named.target, call.graph_name(graph)) for named, edge in found]
    return Reply(Triplets(True, triplets, offset + limit if more else None))


async def create_relation(call: Call, arguments: CreateRelation) -> Reply:
    """Relate two nodes by id."""
    metadata = checked_metadata(arguments.properties, "properties", call.settings)
    edge = NewEdge(node_id(arguments.from_id), node_id(arguments.to_id), arguments.relation_type, metadata=metadata)
    async with call.writing(graph_of(arguments)) as (tx, revision):
        made = await facts.relate(tx, revision, edge)
    return Reply(RelationType(True, made.type))


async def delete_relation(call: Call, arguments: DeleteRelation) -> Reply:
    """Take relations between two nodes away; what is not there is passed over."""
    graph = graph_of(arguments)
    try:
        ends = node_id(arguments.from_id), node_id(arguments.to_id)
    except NotFound:
        return Reply(Succeeded(True))
    async with call.writing(graph) as (tx, revision):
        await facts.unrelate(tx, revision, *ends, arguments.relation_type)
    return Reply(Succeeded(True))


async def get_context(call: Call, arguments: GetContext) -> Reply:
    """Show what lies around a node; around none lies nothing."""
    graph = graph_of(arguments)
    if not arguments.node_id:
        return Reply(Context(True, [], []))
    async with call.transaction() as tx:
        found = await facts.surroundings(
            tx,
            graph,
            node_id(arguments.node_id),
            depth=arguments.depth,
            max_nodes=arguments.max_nodes,
            as_of=arguments.as_of,
        )
    nodes = [node_out(node, call.graph_name(graph)) for node in found.nodes]
    return Reply(Context(True, nodes, edges_out(found.edges), found.cut))


async def get_trace(call: Call, arguments: GetTrace) -> Reply:
    """Show the paths between two nodes."""
    graph = graph_of(arguments)
    ends = node_id(arguments.from_id), node_id(arguments.to_id)
    async with call.transaction() as tx:
        found = await facts.trace(tx, graph, *ends, max_paths=arguments.max_paths, as_of=arguments.as_of)
    return Reply(Trace(True, paths_out(found, call.graph_name(graph)), found.cut))


async def get_stats(call: Call, arguments: GetStats) -> Reply:
    """Count what a graph holds."""
    graph = graph_of(arguments)
    async with call.transaction() as tx:
        found = await facts.graph_stats(tx, graph)
    head = found.head
    counts = GraphCounts(
        owner_id=call.graph_name(graph),
        total_nodes=head.facts + head.entities if head else 0,
        facts=head.facts if head else 0,
        entities=head.entities if head else 0,
        observations=head.observations if head else 0,
        relations=head.relations if head else 0,
        entity_types=dict(found.kinds),
        relation_types=dict(found.types),
        waiting=found.waiting,
        revision=head.revision if head else 0,
    )
    return Reply(GraphStats(True, counts))
