"""The catalogue: every tool, once, as data. It decides both which tools are listed and which may be called.

A tool's module has its arguments, its result, its handler and its specification. The order of the catalogue is that of
lists and pages.
"""

from collections.abc import Sequence

from recollect.errors import InvalidInput
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools.admin.cancel_job import CANCEL_JOB
from recollect_gateway.mcp_endpoint.tools.admin.compact import COMPACT
from recollect_gateway.mcp_endpoint.tools.admin.get_job import GET_JOB
from recollect_gateway.mcp_endpoint.tools.admin.list_jobs import LIST_JOBS
from recollect_gateway.mcp_endpoint.tools.admin.recent_changes import RECENT_CHANGES
from recollect_gateway.mcp_endpoint.tools.admin.reembed import REEMBED
from recollect_gateway.mcp_endpoint.tools.admin.reindex import REINDEX
from recollect_gateway.mcp_endpoint.tools.admin.undo_changes import UNDO_CHANGES
from recollect_gateway.mcp_endpoint.tools.admin.usage import USAGE
from recollect_gateway.mcp_endpoint.tools.agent.explore import EXPLORE
from recollect_gateway.mcp_endpoint.tools.agent.forget import FORGET
from recollect_gateway.mcp_endpoint.tools.agent.recall import RECALL
from recollect_gateway.mcp_endpoint.tools.agent.relate import RELATE
from recollect_gateway.mcp_endpoint.tools.agent.remember import REMEMBER
from recollect_gateway.mcp_endpoint.tools.agent.revise import REVISE
from recollect_gateway.mcp_endpoint.tools.facts.create_node import CREATE_NODE
from recollect_gateway.mcp_endpoint.tools.facts.create_relation import CREATE_RELATION
from recollect_gateway.mcp_endpoint.tools.facts.create_summary_fact import CREATE_SUMMARY_FACT
from recollect_gateway.mcp_endpoint.tools.facts.create_triplet import CREATE_TRIPLET
from recollect_gateway.mcp_endpoint.tools.facts.delete_node import DELETE_NODE
from recollect_gateway.mcp_endpoint.tools.facts.delete_relation import DELETE_RELATION
from recollect_gateway.mcp_endpoint.tools.facts.find_similar import FIND_SIMILAR
from recollect_gateway.mcp_endpoint.tools.facts.get_context import GET_CONTEXT
from recollect_gateway.mcp_endpoint.tools.facts.get_node import GET_NODE
from recollect_gateway.mcp_endpoint.tools.facts.get_node_change_history import GET_NODE_CHANGE_HISTORY
from recollect_gateway.mcp_endpoint.tools.facts.get_stats import GET_STATS
from recollect_gateway.mcp_endpoint.tools.facts.get_trace import GET_TRACE
from recollect_gateway.mcp_endpoint.tools.facts.health_check import HEALTH_CHECK, TEST_CONNECTION
from recollect_gateway.mcp_endpoint.tools.facts.mark_outdated import MARK_OUTDATED
from recollect_gateway.mcp_endpoint.tools.facts.search import SEARCH
from recollect_gateway.mcp_endpoint.tools.facts.search_triplets import SEARCH_TRIPLETS
from recollect_gateway.mcp_endpoint.tools.facts.update_node import UPDATE_NODE
from recollect_gateway.mcp_endpoint.tools.lineage.adjacent_edges import INCOMING, OUTGOING
from recollect_gateway.mcp_endpoint.tools.lineage.batch_search import BATCH_SEARCH
from recollect_gateway.mcp_endpoint.tools.lineage.create_graph import CREATE_GRAPH
from recollect_gateway.mcp_endpoint.tools.lineage.delete_edge import DELETE_EDGE
from recollect_gateway.mcp_endpoint.tools.lineage.delete_graph import DELETE_GRAPH
from recollect_gateway.mcp_endpoint.tools.lineage.describe_schema import DESCRIBE_SCHEMA, LIST_TAGS
from recollect_gateway.mcp_endpoint.tools.lineage.get_graph import GET_GRAPH
from recollect_gateway.mcp_endpoint.tools.lineage.get_node import GET_NODE_BY_ID, GET_NODE_BY_LINEAGE
from recollect_gateway.mcp_endpoint.tools.lineage.history import HISTORY
from recollect_gateway.mcp_endpoint.tools.lineage.list_graphs import LIST_GRAPHS
from recollect_gateway.mcp_endpoint.tools.lineage.list_nodes import LIST_NODES
from recollect_gateway.mcp_endpoint.tools.lineage.put_edge import PUT_EDGE
from recollect_gateway.mcp_endpoint.tools.lineage.put_node import PUT_NODE
from recollect_gateway.mcp_endpoint.tools.lineage.put_subgraph import PUT_SUBGRAPH
from recollect_gateway.mcp_endpoint.tools.lineage.search_graph import SEARCH_GRAPH
from recollect_gateway.mcp_endpoint.tools.lineage.symlink_manifest import SYMLINK_MANIFEST
from recollect_gateway.mcp_endpoint.tools.lineage.traverse import TRAVERSE
from recollect_gateway.mcp_endpoint.tools.lineage.update_graph_config import UPDATE_GRAPH_CONFIG
from recollect_gateway.mcp_endpoint.tools.memory.add_observations import ADD_OBSERVATIONS
from recollect_gateway.mcp_endpoint.tools.memory.create_entities import CREATE_ENTITIES
from recollect_gateway.mcp_endpoint.tools.memory.create_relations import CREATE_RELATIONS
from recollect_gateway.mcp_endpoint.tools.memory.delete_entities import DELETE_ENTITIES
from recollect_gateway.mcp_endpoint.tools.memory.delete_observations import DELETE_OBSERVATIONS
from recollect_gateway.mcp_endpoint.tools.memory.delete_relations import DELETE_RELATIONS
from recollect_gateway.mcp_endpoint.tools.memory.describe_entity import DESCRIBE_ENTITY
from recollect_gateway.mcp_endpoint.tools.memory.extract_subgraph import EXTRACT_SUBGRAPH
from recollect_gateway.mcp_endpoint.tools.memory.find_path import FIND_ALL_PATHS, FIND_PATH
from recollect_gateway.mcp_endpoint.tools.memory.get_entity import BATCH_GET_ENTITIES, GET_ENTITY
from recollect_gateway.mcp_endpoint.tools.memory.get_neighbors import GET_NEIGHBORS
from recollect_gateway.mcp_endpoint.tools.memory.graph_stats import GRAPH_STATS
from recollect_gateway.mcp_endpoint.tools.memory.list_types import LIST_ENTITY_TYPES, LIST_RELATION_TYPES
from recollect_gateway.mcp_endpoint.tools.memory.open_nodes import OPEN_NODES
from recollect_gateway.mcp_endpoint.tools.memory.read_graph import READ_GRAPH
from recollect_gateway.mcp_endpoint.tools.memory.search_nodes import SEARCH_NODES
from recollect_gateway.mcp_endpoint.tools.memory.search_relations import SEARCH_RELATIONS
from recollect_gateway.mcp_endpoint.tools.memory.upsert_entities import UPSERT_ENTITIES
from recollect_gateway.mcp_endpoint.tools.openai.fetch import FETCH
from recollect_gateway.mcp_endpoint.tools.organize.archive_entities import ARCHIVE_ENTITIES
from recollect_gateway.mcp_endpoint.tools.organize.boolean_search import BOOLEAN_SEARCH
from recollect_gateway.mcp_endpoint.tools.organize.change_tags import ADD_TAGS, REMOVE_TAGS
from recollect_gateway.mcp_endpoint.tools.organize.compress_graph import COMPRESS_GRAPH
from recollect_gateway.mcp_endpoint.tools.organize.export_graph import EXPORT_GRAPH, START_EXPORT
from recollect_gateway.mcp_endpoint.tools.organize.find_duplicates import FIND_DUPLICATES
from recollect_gateway.mcp_endpoint.tools.organize.fuzzy_search import FUZZY_SEARCH
from recollect_gateway.mcp_endpoint.tools.organize.get_parent import GET_PARENT
from recollect_gateway.mcp_endpoint.tools.organize.hierarchy import (
    GET_ANCESTORS,
    GET_CHILDREN,
    GET_DESCENDANTS,
    GET_ROOT_ENTITIES,
    GET_SUBTREE,
)
from recollect_gateway.mcp_endpoint.tools.organize.import_graph import IMPORT_GRAPH
from recollect_gateway.mcp_endpoint.tools.organize.merge_entities import MERGE_ENTITIES
from recollect_gateway.mcp_endpoint.tools.organize.propose_duplicates import PROPOSE_DUPLICATES
from recollect_gateway.mcp_endpoint.tools.organize.search_by_date_range import SEARCH_BY_DATE_RANGE
from recollect_gateway.mcp_endpoint.tools.organize.search_nodes_ranked import SEARCH_NODES_RANKED
from recollect_gateway.mcp_endpoint.tools.organize.set_entity_parent import SET_ENTITY_PARENT
from recollect_gateway.mcp_endpoint.tools.organize.set_importance import SET_IMPORTANCE
from recollect_gateway.mcp_endpoint.tools.organize.validate_graph import VALIDATE_GRAPH

CATALOGUE: tuple[ToolSpec, ...] = (
    # agent
    REMEMBER,
    RECALL,
    RELATE,
    REVISE,
    FORGET,
    EXPLORE,
    # memory
    CREATE_ENTITIES,
    CREATE_RELATIONS,
    ADD_OBSERVATIONS,
    DELETE_ENTITIES,
    DELETE_OBSERVATIONS,
    DELETE_RELATIONS,
    READ_GRAPH,
    SEARCH_NODES,
    OPEN_NODES,
    UPSERT_ENTITIES,
    GET_ENTITY,
    BATCH_GET_ENTITIES,
    GRAPH_STATS,
    SEARCH_RELATIONS,
    FIND_PATH,
    FIND_ALL_PATHS,
    EXTRACT_SUBGRAPH,
    GET_NEIGHBORS,
    DESCRIBE_ENTITY,
    LIST_ENTITY_TYPES,
    LIST_RELATION_TYPES,
    # organize
    SEARCH_NODES_RANKED,
    BOOLEAN_SEARCH,
    FUZZY_SEARCH,
    SEARCH_BY_DATE_RANGE,
    SET_ENTITY_PARENT,
    GET_PARENT,
    GET_CHILDREN,
    GET_ANCESTORS,
    GET_DESCENDANTS,
    GET_ROOT_ENTITIES,
    GET_SUBTREE,
    ADD_TAGS,
    REMOVE_TAGS,
    SET_IMPORTANCE,
    MERGE_ENTITIES,
    FIND_DUPLICATES,
    PROPOSE_DUPLICATES,
    COMPRESS_GRAPH,
    ARCHIVE_ENTITIES,
    VALIDATE_GRAPH,
    EXPORT_GRAPH,
    START_EXPORT,
    IMPORT_GRAPH,
    # facts
    CREATE_NODE,
    GET_NODE,
    UPDATE_NODE,
    DELETE_NODE,
    GET_NODE_CHANGE_HISTORY,
    SEARCH,
    FIND_SIMILAR,
    MARK_OUTDATED,
    CREATE_TRIPLET,
    SEARCH_TRIPLETS,
    CREATE_RELATION,
    DELETE_RELATION,
    GET_CONTEXT,
    GET_TRACE,
    CREATE_SUMMARY_FACT,
    TEST_CONNECTION,
    GET_STATS,
    HEALTH_CHECK,
    # lineage
    LIST_GRAPHS,
    GET_GRAPH,
    CREATE_GRAPH,
    UPDATE_GRAPH_CONFIG,
    PUT_NODE,
    GET_NODE_BY_ID,
    GET_NODE_BY_LINEAGE,
    HISTORY,
    LIST_NODES,
    PUT_EDGE,
    PUT_SUBGRAPH,
    OUTGOING,
    INCOMING,
    TRAVERSE,
    SEARCH_GRAPH,
    BATCH_SEARCH,
    DESCRIBE_SCHEMA,
    LIST_TAGS,
    SYMLINK_MANIFEST,
    DELETE_EDGE,
    DELETE_GRAPH,
    # openai
    FETCH,
    # admin
    REINDEX,
    REEMBED,
    LIST_JOBS,
    GET_JOB,
    CANCEL_JOB,
    COMPACT,
    RECENT_CHANGES,
    UNDO_CHANGES,
    USAGE,
)

DEFAULT_TOOLSETS = frozenset({"agent"})

TOOLS = {tool.name: tool for tool in CATALOGUE}
TOOLSETS = frozenset().union(*(tool.toolsets for tool in CATALOGUE))


def known_toolsets(names: Sequence[str]) -> tuple[str, ...]:
    """The named toolsets, without repetitions; raises InvalidInput for one that does not exist."""
    for index, name in enumerate(names):
        if name not in TOOLSETS:
            known = ", ".join(sorted(TOOLSETS))
            raise InvalidInput(f"Unknown toolset {name!r}; the toolsets are: {known}", path=f"toolsets.{index}")
    return tuple(dict.fromkeys(names))
