"""One good call of every tool of the catalogue, with every argument, in an order in which each finds what it needs."""

from typing import Any

_NOW = "2099-01-01T00:00:00Z"
"""Later than every revision: the newest state."""

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
            },
            {"text": "Bees make honey"},
        ],
    },
    "recall": {
        "graph": "default",
        "query": "Who leads the anvil project?",
        "queries": ["anvil project lead"],
        "limit": 5,
        "token_budget": 500,
        "kinds": ["person"],
        "tags": ["vip"],
        "about": ["Alice"],
        "min_importance": 1,
        "since": "2026-01-01T00:00:00Z",
        "until": "2027-01-01T00:00:00Z",
        "fresh_only": False,
        "include_outdated": True,
        "explain": True,
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
    "open_nodes": {"graph": "default", "names": ["Acme", "Alice"], "as_of": _NOW},
    "delete_observations": {
        "graph": "default",
        "deletions": [{"entityName": "Alice", "observations": ["likes tea"]}],
    },
    "delete_relations": {"graph": "default", "relations": [_WORKS_AT]},
    "delete_entities": {"graph": "default", "entityNames": ["Acme"]},
}
