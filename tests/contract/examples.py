"""A valid call of every tool of the catalogue with every argument, in an order in which each finds what it needs."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

_NOW = "2099-01-01T00:00:00Z"
"""Later than every revision: the newest state."""

FACT = "00000000-0000-7000-8000-0000000000f1"
SUMMARY = "00000000-0000-7000-8000-0000000000f2"
SUBJECT = "00000000-0000-7000-8000-0000000000f3"
OBJECT = "00000000-0000-7000-8000-0000000000f4"
LINEAGE = "00000000-0000-7000-8000-0000000000e1"
OTHER_LINEAGE = "00000000-0000-7000-8000-0000000000e2"
VERSION = "00000000-0000-7000-8000-0000000000e3"
EDGE = "00000000-0000-7000-8000-0000000000e4"
JOB = "00000000-0000-7000-8000-0000000000a1"

ANSWERED: dict[str, tuple[str, ...]] = {
    FACT: ("create_node", "node", "id"),
    SUMMARY: ("create_summary_fact", "node", "id"),
    SUBJECT: ("create_triplet", "triplet", "subject_id"),
    OBJECT: ("create_triplet", "triplet", "object_id"),
    LINEAGE: ("put_subgraph", "nodes", "0", "lineage_id"),
    OTHER_LINEAGE: ("put_subgraph", "nodes", "1", "lineage_id"),
    VERSION: ("put_node", "node", "id"),
    EDGE: ("put_edge", "edge", "id"),
    JOB: ("reindex", "id"),
}
"""Placeholders for ids in the answer of an earlier example: its tool, and their place in the structured content."""

OF_ANOTHER_GRAPH = frozenset({"create_graph", "delete_graph"})
"""Tools that create or delete a graph: they do not change the revision of the graph of the examples."""

OF_NO_GRAPH = frozenset({"reindex", "reembed", "start_export", "propose_duplicates", "cancel_job", "compact"})
"""Tools that start and end jobs, or remove history: the memories do not change."""


class Played:
    """The ids from the answers of the examples that were played so far."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}

    def fill(self, value: Any) -> Any:
        """Replace the ids of the examples in the arguments by those that were answered."""
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        return self.ids.get(value, value) if isinstance(value, str) else value

    def keep(self, tool: str, result: dict[str, Any]) -> None:
        """Keep the ids in this result of a tool."""
        for stand_in, (answering, *place) in ANSWERED.items():
            if answering == tool and not result["isError"]:
                # An odd call may be answered without what a good one has in that place.
                with suppress(LookupError):
                    self.ids[stand_in] = _found(result["structuredContent"], place)


def _found(value: Any, place: Sequence[str]) -> str:
    for key in place:
        value = value[int(key) if isinstance(value, list) else key]
    return str(value)


_WORKS_AT = {"from": "Alice", "to": "Acme", "relationType": "works_at"}

EXAMPLES: dict[str, dict[str, Any]] = {
    "create_entities": {
        "graph": "default",
        "entities": [
            {
                "name": "Alice",
                "entityType": "person",
                "observations": ["likes tea", "lives in Oslo"],
                "tags": ["vip"],
                "importance": 7.5,
                "content": "Alice is the keeper of the pier",
            },
            {"name": "Acme", "entityType": "company", "observations": []},
        ],
    },
    "create_relations": {"graph": "default", "relations": [_WORKS_AT]},
    "add_observations": {
        "graph": "default",
        "observations": [{"entityName": "Alice", "contents": ["plays chess"]}],
    },
    "remember": {
        "graph": "default",
        "time_zone": "Europe/Berlin",
        "items": [
            {
                "text": "Alice leads the anvil project",
                "about": ["Alice"],
                "name": "Anvils",
                "thread": "standup",
                "at": "2026-01-31T09:00:00+01:00",
                "kind": "person",
                "tags": ["work"],
                "importance": 5,
                "ttl_days": 30,
                "source": "chat",
                "metadata": {"page": 3, "sure": True, "by": {"names": ["Bob", None]}},
                "supersedes": [],
            },
            {"text": "Bees make honey"},
        ],
        "conversation": None,
    },
    "recall": {
        "graph": "default",
        "time_zone": "Europe/Berlin",
        "query": "Who leads the anvil project?",
        "queries": ["anvil project lead"],
        "limit": 5,
        "token_budget": 500,
        "kinds": ["person"],
        "not_kinds": ["dog"],
        "tags": ["vip"],
        "all_tags": True,
        "not_tags": ["draft"],
        "about": ["Alice"],
        "under": "Alice",
        "thread": None,
        "min_importance": 1,
        "since": "2026-01-01T00:00:00Z",
        "until": "2027-01-01T00:00:00Z",
        "fresh_only": False,
        "include_outdated": True,
        "explain": True,
        "order": None,
        "cursor": None,
        "as_of": _NOW,
    },
    "relate": {
        "graph": "default",
        "triples": [{"subject": "Alice", "predicate": "leads", "object": "Anvils", "metadata": {"since": 2026}}],
    },
    "explore": {
        "graph": "default",
        "start": "Alice",
        "to": "Anvils",
        "depth": 2,
        "direction": "outgoing",
        "predicates": ["leads"],
        "max_nodes": 10,
        "as_of": _NOW,
    },
    "revise": {
        "graph": "default",
        "id": None,
        "name": "Acme",
        "text": "Makes anvils",
        "tags": ["maker"],
        "importance": 3,
        "status": "active",
        "ttl_days": 0,
        "reason": "seen on their page",
        "based_on_version": 1,
    },
    "forget": {"graph": "default", "ids": [], "names": ["Anvils"], "reason": "done", "mode": "outdated"},
    "read_graph": {"graph": "default", "entityType": "person", "offset": 0, "limit": 1, "as_of": _NOW},
    "search_nodes": {
        "graph": "default",
        "query": "tea",
        "entityType": "person",
        "tags": ["vip"],
        "minImportance": 1,
        "maxImportance": 9,
        "offset": 0,
        "limit": 10,
        "as_of": _NOW,
    },
    "open_nodes": {"graph": "default", "names": ["Acme", "Alice"], "observationsOffset": 0, "as_of": _NOW},
    # The rest of toolset memory, and toolset organize.
    "upsert_entities": {
        "graph": "default",
        "entities": [
            {"name": "Alicia", "entityType": "person", "observations": ["likes jazz"]},
            {"name": "Alice", "entityType": "person", "observations": ["likes jazz"]},
            {"name": "North pier", "entityType": "place", "observations": ["is made of oak"]},
            {"name": "North piers", "entityType": "place", "observations": ["is made of oak"]},
        ],
    },
    "get_entity": {"graph": "default", "name": "Alice", "observationsOffset": 0, "as_of": _NOW},
    "batch_get_entities": {"graph": "default", "names": ["Alice", "Nobody"], "as_of": _NOW},
    "graph_stats": {"graph": "default"},
    "search_relations": {
        "graph": "default",
        "from": "Alice",
        "to": "Acme",
        "relationType": "works_at",
        "offset": 0,
        "limit": 10,
        "as_of": _NOW,
    },
    "find_path": {"graph": "default", "from": "Acme", "to": "Alice", "as_of": _NOW},
    "find_all_paths": {
        "graph": "default",
        "from": "Acme",
        "to": "Alice",
        "maxDepth": 3,
        "maxPaths": 2,
        "as_of": _NOW,
    },
    "extract_subgraph": {"graph": "default", "names": ["Acme"], "depth": 2, "limit": 10, "as_of": _NOW},
    "get_neighbors": {
        "graph": "default",
        "name": "Alice",
        "direction": "both",
        "relationTypes": ["works_at"],
        "offset": 0,
        "limit": 10,
        "as_of": _NOW,
    },
    "describe_entity": {"graph": "default", "name": "Alice", "as_of": _NOW},
    "list_entity_types": {"graph": "default", "offset": 0, "limit": 10, "as_of": _NOW},
    "list_relation_types": {"graph": "default", "offset": 0, "limit": 10, "as_of": _NOW},
    "set_entity_parent": {"graph": "default", "entityName": "Acme", "parentName": "Alice"},
    "get_parent": {"graph": "default", "entityName": "Acme", "as_of": _NOW},
    "get_children": {"graph": "default", "entityName": "Alice", "offset": 0, "limit": 10, "as_of": _NOW},
    "get_ancestors": {"graph": "default", "entityName": "Acme", "offset": 0, "limit": 10, "as_of": _NOW},
    "get_descendants": {"graph": "default", "entityName": "Alice", "offset": 0, "limit": 10, "as_of": _NOW},
    "get_root_entities": {"graph": "default", "offset": 0, "limit": 10, "as_of": _NOW},
    "get_subtree": {"graph": "default", "entityName": "Alice", "offset": 0, "limit": 10, "as_of": _NOW},
    "add_tags": {"graph": "default", "entityName": "Alice", "tags": ["VIP", "Friend"]},
    "set_importance": {"graph": "default", "entityName": "Alice", "importance": 9},
    "remove_tags": {"graph": "default", "entityName": "Alice", "tags": ["vip"]},
    "merge_entities": {
        "graph": "default",
        "source": None,
        "target": None,
        "entityNames": ["Alice", "Alicia"],
        "targetName": "Alice",
    },
    "delete_observations": {
        "graph": "default",
        "deletions": [{"entityName": "Alice", "observations": ["likes tea"]}],
    },
    "delete_relations": {"graph": "default", "relations": [_WORKS_AT]},
    "delete_entities": {"graph": "default", "entityNames": ["Acme"]},
}

EXAMPLES |= {  # transfer
    "export_graph": {
        "graph": "default",
        "format": "mermaid",
        "filter": {
            "startDate": "2026-01-01T00:00:00Z",
            "endDate": _NOW,
            "entityType": "person",
            "tags": ["friend"],
        },
        "as_of": _NOW,
    },
    "start_export": {
        "graph": "default",
        "format": "json",
        "filter": {"startDate": None, "endDate": None, "entityType": None, "tags": []},
        "as_of": "1",
    },
    "import_graph": {
        "graph": "default",
        "format": "csv",
        "data": "name,entityType,observations,tags\nGrace,person,wrote a compiler; served in the navy,vip\n",
        "mergeStrategy": "merge",
        "dryRun": False,
    },
}

_OWNED = {"graph": "default", "owner_id": "default"}

EXAMPLES |= {  # facts
    "create_triplet": {
        **_OWNED,
        "subject": "Alice",
        "predicate": "repairs",
        "object_value": "Lighthouse clock",
        "subject_type": "person",
        "object_type": "thing",
        "metadata": {"since": 2026},
        "fact_id": None,
    },
    "create_node": {
        **_OWNED,
        "text": "Alice repairs the lighthouse clock",
        "node_type": "Fact",
        "entity_type": None,
        "kind": "note",
        "source": "chat",
        "metadata": {"page": 3},
        "status": "active",
        "ttl_days": 30,
        "expires_at": 4_000_000_000_000,
        "auto_link": True,
        "semantic_threshold": 0.8,
        "links": [{"node_id": SUBJECT, "node_type": "Entity", "relation_type": "DESCRIBES"}],
        "thread": "standup",
        "at": 1_769_850_000_000,
    },
    "create_summary_fact": {**_OWNED, "fact_ids": [FACT], "summary_text": "Clocks are repaired", "kind": "summary"},
    "create_relation": {
        **_OWNED,
        "from_id": SUMMARY,
        "to_id": FACT,
        "relation_type": "FOLLOWS_FROM",
        "properties": {"sure": True},
    },
    "get_node": {**_OWNED, "node_id": SUMMARY, "observations_offset": 0, "as_of": _NOW},
    "update_node": {
        **_OWNED,
        "node_id": FACT,
        "text": "Alice repaired the lighthouse clock",
        "source": "note",
        "metadata": {"page": 4},
        "status": "active",
        "ttl_days": 60,
        "expires_at": None,
        "entity_type": None,
        "kind": "note",
        "versioning": True,
    },
    "get_node_change_history": {**_OWNED, "node_id": FACT, "offset": 0, "limit": 10},
    "search": {
        **_OWNED,
        "query": "Who repaired the clock?",
        "offset": 0,
        "limit": 5,
        "node_types": ["Fact", "Entity"],
        "status": "active",
        "similarity_threshold": 0,
        "include_outdated": True,
        "as_of": _NOW,
    },
    "fetch": {"id": FACT},
    "find_similar": {
        **_OWNED,
        "fact_id": FACT,
        "threshold": 0.5,
        "offset": 0,
        "limit": 5,
        "include_relations": True,
        "as_of": None,
    },
    "mark_outdated": {**_OWNED, "fact_id": FACT, "reason": "the clock was sold"},
    "search_triplets": {
        **_OWNED,
        "subject": "Alice",
        "predicate": "repairs",
        "object_value": "Lighthouse clock",
        "offset": 0,
        "limit": 10,
        "as_of": _NOW,
    },
    "get_context": {**_OWNED, "node_id": SUBJECT, "depth": 2, "max_nodes": 10, "as_of": _NOW},
    "get_trace": {**_OWNED, "from_id": SUBJECT, "to_id": OBJECT, "max_paths": 3, "as_of": _NOW},
    "test_connection": {"graph": "default"},
    "get_stats": {**_OWNED},
    "health_check": {"graph": "default"},
    "delete_relation": {**_OWNED, "from_id": SUMMARY, "to_id": FACT, "relation_type": "FOLLOWS_FROM"},
    "delete_node": {**_OWNED, "node_id": FACT},
}

EXAMPLES |= {  # lineage
    "create_graph": {
        "graph": "scratch",
        "name": "scratch",
        "conflict_policy": "manual",
        "kind_whitelist": ["note"],
        "time_zone": "Europe/Berlin",
        "metadata": {"for": "drafts"},
    },
    "update_graph_config": {
        "graph": "default",
        "name": "default",
        "conflict_policy": "lww",
        "kind_whitelist": [],
        "time_zone": "Asia/Tokyo",
        "metadata": {"for": "everything"},
    },
    "list_graphs": {"graph": None, "limit": 10, "after": ""},
    "get_graph": {"graph": "default"},
    "put_subgraph": {
        "graph": "default",
        "nodes": [
            {
                "ref": "tea",
                "lineage_id": None,
                "based_on_version": None,
                "kind": "note",
                "content": "Tea is made of leaves",
                "summary": "tea",
                "tags": ["topic:tea"],
                "metadata": {"page": 1},
                "freshness_at": "2098-01-01T00:00:00Z",
                "created_by": "a colleague",
                "thread": "kitchen",
                "at": "2026-01-31T09:00:00+01:00",
            },
            {"kind": "note", "content": "Leaves grow on bushes"},
        ],
        "edges": [
            {
                "from_ref": "tea",
                "from_lineage": None,
                "to_ref": "tea",
                "to_lineage": None,
                "to_graph": "default",
                "kind": "about",
                "metadata": {},
                "ordinal": 1,
                "created_by": "a colleague",
            }
        ],
    },
    "put_node": {
        "graph": "default",
        "lineage_id": LINEAGE,
        "kind": "note",
        "content": "Tea is made of leaves and water",
        "summary": "tea",
        "tags": ["topic:tea", "drinks"],
        "metadata": {"page": 2},
        "freshness_at": "2098-01-01T00:00:00Z",
        "created_by": "a colleague",
        "based_on_version": 1,
        "thread": "kitchen",
        "at": "2026-01-31T09:00:00+01:00",
    },
    "get_node_by_id": {"graph": "default", "id": VERSION},
    "get_node_by_lineage": {
        "graph": "default",
        "lineage_id": LINEAGE,
        "at_version": 1,
        "at_time": None,
        "observations_offset": 0,
    },
    "history": {"graph": "default", "lineage_id": LINEAGE, "limit": 10, "offset": 0},
    "list_nodes": {
        "graph": "default",
        "kinds": ["note"],
        "tags": ["Drinks"],
        "compact": True,
        "limit": 10,
        "offset": 0,
        "as_of": _NOW,
    },
    "put_edge": {
        "graph": "default",
        "from_lineage": LINEAGE,
        "to_lineage": OTHER_LINEAGE,
        "to_graph": "default",
        "kind": "needs",
        "metadata": {"why": "leaves"},
        "ordinal": 2,
        "created_by": "a colleague",
    },
    "outgoing": {
        "graph": "default",
        "lineage_id": LINEAGE,
        "edge_kinds": ["needs"],
        "limit": 10,
        "offset": 0,
        "as_of": _NOW,
    },
    "incoming": {
        "graph": "default",
        "lineage_id": OTHER_LINEAGE,
        "edge_kinds": ["needs"],
        "limit": 10,
        "offset": 0,
        "as_of": _NOW,
    },
    "traverse": {
        "graph": "default",
        "lineage_id": LINEAGE,
        "max_depth": 2,
        "edge_kinds": ["needs"],
        "direction": "both",
        "follow_symlinks": False,
        "max_nodes": 10,
        "as_of": _NOW,
    },
    "search_graph": {
        "graph": "default",
        "text": "What is tea made of?",
        "kinds": ["note"],
        "tags": ["drinks"],
        "fresh_only": True,
        "limit": 10,
        "offset": 0,
        "as_of": _NOW,
    },
    "describe_schema": {"graph": "default", "as_of": _NOW},
    "list_tags": {"graph": "default", "prefix": "Topic:", "limit": 10, "offset": 0, "as_of": _NOW},
    "symlink_manifest": {"graph": "default", "limit": 10, "offset": 0},
    "delete_edge": {"graph": "default", "id": EDGE},
    "delete_graph": {"graph": "scratch"},
}

EXAMPLES |= {  # classic searches
    "search_nodes_ranked": {
        "graph": "default",
        "query": "chess tea",
        "tags": ["friend"],
        "minImportance": 1,
        "maxImportance": 10,
        "offset": 0,
        "limit": 10,
        "as_of": _NOW,
    },
    "boolean_search": {
        "graph": "default",
        "query": 'name:Alice AND (type:person OR observation:"plays chess") NOT tag:former',
        "tags": ["friend"],
        "minImportance": 1,
        "maxImportance": 10,
        "offset": 0,
        "limit": 10,
        "as_of": _NOW,
    },
    "fuzzy_search": {
        "graph": "default",
        "query": "Alcie",
        "threshold": 0.6,
        "tags": ["friend"],
        "minImportance": 1,
        "maxImportance": 10,
        "offset": 0,
        "limit": 10,
        "as_of": _NOW,
    },
    "search_by_date_range": {
        "graph": "default",
        "startDate": "2026-01-01",
        "endDate": "2098-12-31T12:00:00Z",
        "entityType": "person",
        "tags": ["friend"],
        "offset": 0,
        "limit": 10,
        "as_of": _NOW,
    },
    "batch_search": {
        "graph": "default",
        "queries": [
            {"text": "What is tea made of?", "kinds": ["note"], "tags": ["drinks"], "fresh_only": True, "limit": 5},
            {"text": "leaves"},
        ],
        "offset": 0,
        "limit": 10,
        "as_of": _NOW,
    },
}

EXAMPLES |= {  # admin: jobs
    "reindex": {"graph": "default"},
    "reembed": {"graph": "default", "model": "minilm/all-MiniLM-L6-v2_int8", "drop_old": False},
    "list_jobs": {"graph": "default", "status": "queued", "kind": "reindex_passages", "limit": 10, "before": None},
    "get_job": {"graph": "default", "id": JOB, "wait_seconds": 0.01, "output_offset": 0, "output_limit": 1_000},
    "cancel_job": {"graph": "default", "id": JOB},
}

EXAMPLES |= {  # retention
    "compact": {"graph": "default", "dry_run": False},
}

EXAMPLES |= {  # upkeep, and what operators look back with
    "find_duplicates": {"graph": "default", "threshold": 0.8, "offset": 0, "limit": 10, "as_of": _NOW},
    "propose_duplicates": {"graph": "default", "threshold": 0.8},
    "validate_graph": {"graph": "default", "offset": 0, "limit": 10, "as_of": _NOW},
    "compress_graph": {"graph": "default", "threshold": 0.8, "dryRun": False},
    "archive_entities": {
        "graph": "default",
        "olderThan": _NOW,
        "importanceBelow": 9.5,
        "tags": ["Friend"],
        "dryRun": False,
    },
    "recent_changes": {"graph": "default", "since_revision": 1, "limit": 10},
    "undo_changes": {
        "graph": "default",
        "since_revision": 1,
        "until_revision": None,
        "actor": None,
        "dry_run": False,
    },
    "usage": {
        "graph": "default",
        "from": "2020-01-01T00:00:00Z",
        "to": "2020-02-01T00:00:00Z",
        "per": "day",
        "limit": 10,
        "cursor": "2020-01-01T00:00:00+00:00 2020-01-02T00:00:00+00:00 2020-01-01T00:00:00+00:00 tool recall",
    },
}
