"""Tools of other toolsets in the enhanced server's dialect, for requests that select `organize` and not `memory`.

They are dialects of tools in the other catalogues, under the same names: the official server's nine are in that of
`memory`. The selected toolsets decide the shapes, and the listed schema is the one that answers follow.
"""

from recollect_gateway.mcp_endpoint import confirmation
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory import entities as official_entities
from recollect_gateway.mcp_endpoint.tools.memory import graph, observations, relations, shapes
from recollect_gateway.mcp_endpoint.tools.organize import curation, entities, search
from recollect_gateway.mcp_endpoint.tools.organize.shapes import organize_error

_ALONE = frozenset({"organize"})

_ALL: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="create_entities",
        title="Create Entities",
        description="Create entities with their observations, tags, importance and parent. Existing names are skipped.",
        toolsets=_ALONE,
        arguments=entities.CreateOrganizedEntities,
        result=entities.CreatedEntities,
        handler=entities.create_entities,
        idempotent=True,
        render_error=organize_error,
    ),
    ToolSpec(
        name="create_relations",
        title="Create Relations",
        description="Create relations between entities, which need not exist yet. Existing relations are skipped.",
        toolsets=_ALONE,
        arguments=relations.CreateRelations,
        result=entities.CreatedRelations,
        handler=entities.create_relations,
        idempotent=True,
        render_error=organize_error,
    ),
    ToolSpec(
        name="add_observations",
        title="Add Observations",
        description="Add observations to existing entities. Existing observations are skipped.",
        toolsets=_ALONE,
        arguments=observations.AddObservations,
        result=observations.Results,
        handler=observations.add_observations,
        idempotent=True,
        render_error=organize_error,
    ),
    ToolSpec(
        name="delete_entities",
        title="Delete Entities",
        description="Delete entities and their relations.",
        toolsets=_ALONE,
        arguments=official_entities.DeleteEntities,
        result=shapes.Done,
        handler=official_entities.delete_entities,
        ask=confirmation.DELETE_ENTITIES,
        destructive=True,
        idempotent=True,
        render_error=organize_error,
    ),
    ToolSpec(
        name="delete_observations",
        title="Delete Observations",
        description="Delete observations from entities.",
        toolsets=_ALONE,
        arguments=observations.DeleteObservations,
        result=shapes.Done,
        handler=observations.delete_observations,
        destructive=True,
        idempotent=True,
        render_error=organize_error,
    ),
    ToolSpec(
        name="delete_relations",
        title="Delete Relations",
        description="Delete relations.",
        toolsets=_ALONE,
        arguments=relations.DeleteRelations,
        result=shapes.Done,
        handler=relations.delete_relations,
        destructive=True,
        idempotent=True,
        render_error=organize_error,
    ),
    ToolSpec(
        name="read_graph",
        title="Read Graph",
        description="Read the graph, or a page of it, without archived entities.",
        toolsets=_ALONE,
        arguments=graph.ReadGraph,
        result=search.FoundGraph,
        handler=search.read_graph,
        read_only=True,
        large=True,
        idempotent=True,
        render_error=organize_error,
    ),
    ToolSpec(
        name="search_nodes",
        title="Search Nodes",
        description="Find entities by text in their names, types or observations. Archived entities are left out.",
        toolsets=_ALONE,
        arguments=search.SearchOrganizedNodes,
        result=search.FoundGraph,
        handler=search.search_nodes,
        read_only=True,
        idempotent=True,
        render_error=organize_error,
    ),
    ToolSpec(
        name="open_nodes",
        title="Open Nodes",
        description="Open entities by name. Archived entities are included, and marked as archived.",
        toolsets=_ALONE,
        arguments=graph.OpenNodes,
        result=search.FoundGraph,
        handler=search.open_nodes,
        read_only=True,
        large=True,
        idempotent=True,
        render_error=organize_error,
    ),
    ToolSpec(
        name="merge_entities",
        title="Merge Entities",
        description="Merge entities into one, which takes over their observations, tags and relations. The others "
        "stay in history.",
        toolsets=_ALONE,
        arguments=curation.MergeEntities,
        result=curation.MergedEntities,
        handler=curation.merge_entities,
        ask=confirmation.MERGE_ENTITIES,
        destructive=True,
        idempotent=True,
        render_error=organize_error,
    ),
)

ORGANIZED = {tool.name: tool for tool in _ALL}
"""By name."""
