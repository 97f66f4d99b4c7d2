"""A write does not look at more rows as the graph grows, whatever statistics PostgreSQL has when it plans.

Each tool that writes is called about an entity or a memory with few observations and relations, in a graph with many
others.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from recollect.cells.databases import Databases
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from recollect_gateway.calls import Call, Services
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from tests.support.column_statistics import BATCH, Work, entities_of, turn
from tests.support.memories import embedder

NAME, OTHER, ORIGIN = "an entity's name", "another's", "the name of what leads to it"
ID, ORIGIN_ID, FACT, EDGE = "the entity's id", "the id of what leads to it", "a memory's id", "the id of the edge to it"

CALLS: dict[str, list[dict[str, Any]]] = {
    "remember": [
        {
            "items": [
                {"text": "Somebody saw it", "about": [NAME]},
                {"text": "One more is new", "name": "new one", "kind": "person"},
                {"text": "It rained"},
            ]
        }
    ],
    "relate": [
        {
            "triples": [
                {"subject": NAME, "predicate": "knows", "object": OTHER},
                {"subject": NAME, "predicate": "knows", "object": "nobody yet"},
            ]
        }
    ],
    "revise": [{"name": NAME, "text": "Makes anvils", "importance": 3}, {"id": FACT, "text": "said otherwise"}],
    "forget": [
        {"names": [NAME], "mode": "outdated"},
        {"ids": [FACT], "mode": "outdated"},
        {"names": [OTHER], "mode": "delete"},
        {"ids": [FACT], "mode": "delete"},
    ],
    "create_entities": [
        {
            "entities": [
                {"name": NAME, "entityType": "thing", "observations": []},
                {"name": "quite new", "entityType": "thing", "observations": ["says this"]},
            ]
        }
    ],
    "create_relations": [
        {
            "relations": [
                {"from": NAME, "to": OTHER, "relationType": "likes"},
                {"from": NAME, "to": "one unknown", "relationType": "likes"},
            ]
        }
    ],
    "add_observations": [{"observations": [{"entityName": NAME, "contents": ["said later"]}]}],
    "delete_entities": [{"entityNames": [NAME]}],
    "delete_observations": [{"deletions": [{"entityName": NAME, "observations": ["and wine"]}]}],
    "delete_relations": [{"relations": [{"from": ORIGIN, "to": NAME, "relationType": "next"}]}],
    "set_entity_parent": [{"entityName": NAME, "parentName": OTHER}],
    "add_tags": [{"entityName": NAME, "tags": ["VIP"]}],
    "remove_tags": [{"entityName": NAME, "tags": ["VIP"]}],
    "set_importance": [{"entityName": NAME, "importance": 9}],
    "merge_entities": [{"source": NAME, "target": OTHER}],
    "import_graph": [
        {
            "format": "csv",
            "data": f"name,entityType,observations,tags\nGrace,person,wrote code,vip\n{NAME},thing,is imported,\n",
            "mergeStrategy": "merge",
            "dryRun": False,
        }
    ],
    "create_node": [
        {
            "text": "Alice repairs the clock",
            "node_type": "Fact",
            "kind": "note",
            "auto_link": False,
            "links": [{"node_id": ID, "node_type": "Entity", "relation_type": "DESCRIBES"}],
        }
    ],
    "update_node": [
        {"node_id": FACT, "text": "is new now", "metadata": {"page": 4}, "versioning": True},
        {"node_id": FACT, "text": "is newer now", "versioning": False},
    ],
    "delete_node": [{"node_id": FACT}],
    "mark_outdated": [{"fact_id": FACT, "reason": "the clock was sold"}],
    "create_triplet": [{"subject": NAME, "predicate": "repairs", "object_value": "Lighthouse clock"}],
    "create_relation": [{"from_id": ID, "to_id": FACT, "relation_type": "FOLLOWS_FROM"}],
    "delete_relation": [{"from_id": ORIGIN_ID, "to_id": ID, "relation_type": "next"}],
    "create_summary_fact": [{"fact_ids": [FACT], "summary_text": "Clocks are repaired", "kind": "summary"}],
    "put_node": [
        {"kind": "note", "content": "Tea is made of leaves", "tags": ["topic:tea"]},
        {"lineage_id": FACT, "kind": "note", "content": "Tea is made", "based_on_version": 1},
    ],
    "put_edge": [
        {"from_lineage": ID, "to_lineage": FACT, "kind": "needs"},
        {"from_lineage": ORIGIN_ID, "to_lineage": ID, "kind": "next", "metadata": {"since": 2026}, "ordinal": 2},
    ],
    "delete_edge": [{"id": EDGE}],
    "put_subgraph": [
        {
            "nodes": [
                {"ref": "tea", "kind": "note", "content": "Tea is made of leaves"},
                {"kind": "note", "content": "Leaves grow on bushes"},
            ],
            "edges": [{"from_ref": "tea", "to_lineage": ID, "kind": "about"}],
        }
    ],
}
"""How each tool is called, without those that go through a whole graph by design."""

SEARCHES = {"similarity.find_near_duplicates"}
"""Statements that search a graph for near duplicates of a new memory."""

MAX_ROWS = 400
"""The most rows that a statement may look at. A plan that goes through one table of the graph looks at a thousand or
more.
"""


@pytest.mark.parametrize("work", ["unread", "among", "beside", "own"], indirect=True)
async def test_a_write_looks_at_few_other_rows(work: Work, settings: Settings) -> None:
    agent = work.agent
    for part in ("early", "late"):
        await agent.create(*entities_of(part, BATCH))
    await agent.relate(*((f"early {n}", f"late {n}", "next") for n in range(BATCH)))
    await agent.remember(*(turn(n) for n in range(2 * BATCH)))
    await agent.embed()
    facts = await work.owner.fetch(
        "SELECT id FROM nodes WHERE tenant_id = $1 AND name IS NULL ORDER BY id", agent.caller.tenant_id
    )
    services = Services(Databases(agent.db), QuestionEncoder(embedder()), settings)
    found: dict[str, float] = {}
    number = 0
    for tool in [tool for tool in CATALOGUE if tool.name in CALLS]:
        for example in CALLS[tool.name]:
            number += 2
            told = await _about(work, number) | {FACT: str(facts[10 * number]["id"])}
            arguments = msgspec.convert(_filled(example, told), tool.arguments)
            call = Call(agent.caller, services, tool.name, tool.read_only)
            work.watch.clear()
            await tool.handler(call, arguments)
            for query, rows in work.watch.rows.items():
                key = f"{tool.name}: {query}"
                found[key] = max(rows, found.get(key, 0))
    assert {name.partition(":")[0] for name in found} == set(CALLS)
    assert {key: n for key, n in found.items() if n > MAX_ROWS and key.partition(": ")[2] not in SEARCHES} == {}


async def _about(work: Work, number: int) -> dict[str, str]:
    """What to put for each name or id in an example, this time."""
    name, other, origin = f"late {number}", f"late {number + 1}", f"early {number}"
    ids = {entity.name: entity.id for entity in (await work.agent.open(name, other, origin)).entities}
    edge = await work.owner.fetchval(
        "SELECT id FROM relations WHERE tenant_id = $1 AND from_node = $2", work.agent.caller.tenant_id, ids[origin]
    )
    return {
        NAME: name,
        OTHER: other,
        ORIGIN: origin,
        ID: str(ids[name]),
        ORIGIN_ID: str(ids[origin]),
        EDGE: str(edge),
    }


def _filled(example: Mapping[str, Any], told: Mapping[str, str]) -> Any:
    text = json.dumps(example)
    for stand_in, meant in told.items():
        text = text.replace(stand_in, meant)
    return json.loads(text)
