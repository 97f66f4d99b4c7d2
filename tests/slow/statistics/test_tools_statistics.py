"""No tool compares all rows with each other, whatever statistics PostgreSQL has when it plans.

Each is called with its example, about an entity with many observations and relations, in a graph with many others.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec
import pytest

from recollect.cells.databases import Databases
from recollect.errors import NotFound, RecollectError
from recollect.graph.graphs import service as graphs
from recollect.memory.model import NewMemory
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from recollect_gateway.calls import Call, Services
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from recollect_local.postgres import LocalPostgres
from tests.contract.examples import EXAMPLES
from tests.support.column_statistics import BATCH, Work, entities_of, work_after
from tests.support.memories import embedder
from tests.support.worst_calls import on_graph

HUB = "hub"

MAX_ROWS = 800_000
"""The most rows that a statement may look at, in all steps of its plan. `find_similar` compares twenty vectors with
five thousand, in up to six steps, as it reads each kind of vectors by itself. Comparing entities, observations or
vectors with each other takes millions."""

NAME, ID, SILENT = "late 7", "the id of late 7", "silent"
KEYED: dict[str, dict[str, Any]] = {
    "get_entity": {"name": NAME},
    "batch_get_entities": {"names": [NAME]},
    "open_nodes": {"names": [NAME]},
    "describe_entity": {"name": NAME},
    "get_node": {"node_id": ID},
    "fetch": {"id": ID},
    "get_context": {"node_id": ID, "depth": 1, "max_nodes": 10},
    "get_node_by_lineage": {"lineage_id": ID},
    "history": {"lineage_id": ID},
    "traverse": {"lineage_id": ID, "max_depth": 1},
    "outgoing": {"lineage_id": ID},
    "incoming": {"lineage_id": ID},
    "get_neighbors": {"name": NAME},
    "extract_subgraph": {"names": [NAME], "depth": 1},
    "explore": {"start": NAME},
    "get_parent": {"entityName": NAME},
    "get_ancestors": {"entityName": NAME},
    "get_descendants": {"entityName": NAME},
    "get_subtree": {"entityName": NAME},
    "add_observations": {
        "observations": [{"entityName": name, "contents": ["said later"]} for name in (NAME, SILENT)],
    },
}
"""Tools whose statements are planned once a session for all tenants (Call.reading), with their arguments."""

MAX_KEYED_ROWS = 120
"""The most rows that such a statement may look at, for an entity that has three observations, is an end of two
relations, and has a neighbour with as many. A plan that goes through a graph looks at a thousand."""

SEARCHING: dict[str, tuple[dict[str, Any], set[str]]] = {
    "recall": ({"query": "What is said of late 7?"}, {"recall.find_candidates", "recall.find_by_words"}),
    "search": ({"query": "What is said of late 7?"}, {"recall.find_candidates", "recall.find_by_words"}),
    "search_nodes": ({"query": "ate 7"}, {"search.search_substring"}),
    "search_nodes_ranked": (
        {"query": NAME},
        {"search.sample_words", "search.search_ranked", "graphs.find_live_head"},
    ),
}
"""Tools that search first, with their arguments and the statements that search. Others are planned once a session."""

MAX_ROWS_BESIDE = 3_000
"""The most rows that such a statement may look at: ten for each of 300 candidates. Going through the graph for each
takes a million."""

MAX_ROWS_OF_THE_PAST = 150_000
"""The most rows that a statement may look at that goes through a past graph: thirty for each of its five thousand
passages."""

READING_FIRST = sorted(CATALOGUE, key=lambda tool: not tool.read_only)
"""Tools that write come last: deletions leave little to look at."""


async def fill(work: Work) -> None:
    """Write a thousand entities, five hundred relations of one of them, as many memories of it, and other memories."""
    agent = work.agent
    for part in ("early", "late"):
        await agent.create(*entities_of(part, BATCH))
    await agent.create(HUB)
    await agent.relate(*((HUB, f"early {n}", "to") for n in range(BATCH)))
    await agent.relate(*((f"early {n}", f"late {n}", "next") for n in range(BATCH)))
    await agent.remember(*(NewMemory(f"fact {n} of the hub", thread="talk", about=(HUB,)) for n in range(BATCH)))
    await agent.remember(*(NewMemory(f"said {n}", thread="talk") for n in range(BATCH)))
    await agent.embed()


@pytest.fixture
async def work(request: pytest.FixtureRequest, postgres: LocalPostgres, settings: Settings) -> AsyncIterator[Work]:
    """Work in a graph with all of this."""
    async with work_after(fill, request.param, postgres.url(), settings) as work:
        yield work


async def call_tool(work: Work, services: Services, tool: ToolSpec, hub: UUID) -> None:
    """Call a tool as the gateway does. Other names in its example may not exist."""
    arguments = on_graph(EXAMPLES[tool.name], tool, "default", HUB, str(hub))
    call = Call(work.agent.caller, services, tool.name, tool.read_only)
    with suppress(RecollectError):
        await tool.handler(call, msgspec.convert(arguments, tool.arguments))


@pytest.mark.parametrize("work", ["unread", "among", "beside"], indirect=True)
async def test_no_tool_compares_all_rows_with_each_other(work: Work, settings: Settings) -> None:
    [hub] = (await work.agent.open(HUB)).entities
    services = Services(Databases(work.agent.db), QuestionEncoder(embedder()), settings)
    found: dict[str, float] = {}
    for tool in READING_FIRST:
        work.watch.clear()
        await call_tool(work, services, tool, hub.id)
        found |= {f"{tool.name}: {query}": rows for query, rows in work.watch.rows.items()}
    assert len({name.partition(":")[0] for name in found}) > 0.9 * len(CATALOGUE)
    assert {name: rows for name, rows in found.items() if rows > MAX_ROWS} == {}


@pytest.mark.parametrize("work", ["unread", "among", "beside"], indirect=True)
async def test_lookups_by_key_look_at_few_other_rows(work: Work, settings: Settings) -> None:
    await work.agent.create(SILENT)
    [entity] = (await work.agent.open(NAME)).entities
    services = Services(Databases(work.agent.db), QuestionEncoder(embedder()), settings)
    found: dict[str, float] = {}
    for tool in [tool for tool in CATALOGUE if tool.name in KEYED]:
        work.watch.clear()
        arguments = {name: str(entity.id) if value == ID else value for name, value in KEYED[tool.name].items()}
        call = Call(work.agent.caller, services, tool.name, tool.read_only)
        await tool.handler(call, msgspec.convert(arguments, tool.arguments))
        found |= {f"{tool.name}: {query}": rows for query, rows in work.watch.rows.items()}
    assert {name.partition(":")[0] for name in found} == set(KEYED)
    assert {name: rows for name, rows in found.items() if rows > MAX_KEYED_ROWS} == {}


@pytest.mark.parametrize("work", ["among", "beside less"], indirect=True)
async def test_reading_the_past_looks_at_few_rows(work: Work, settings: Settings) -> None:
    """In every tool with `as_of`: lookups by key stay lookups, and none goes through the graph for each result."""
    [entity] = (await work.agent.open(NAME)).entities
    async with work.agent.db.transaction(work.agent.caller, read_only=True) as tx:
        then = (await graphs.head_of(await graphs.view(tx, None))).revision
    await work.agent.create("later")
    services = Services(Databases(work.agent.db), QuestionEncoder(embedder()), settings)
    found: dict[str, float] = {}
    for tool in [tool for tool in CATALOGUE if "as_of" in tool.arguments.__struct_encode_fields__]:
        work.watch.clear()
        example = KEYED.get(tool.name) or on_graph(EXAMPLES[tool.name], tool, "default", NAME, str(entity.id))
        arguments = {name: str(entity.id) if value == ID else value for name, value in example.items()}
        call = Call(work.agent.caller, services, tool.name, tool.read_only)
        with suppress(NotFound):  # Other names in an example.
            await tool.handler(call, msgspec.convert({**arguments, "as_of": str(then)}, tool.arguments))
        found |= {f"{tool.name}: {query}": rows for query, rows in work.watch.rows.items()}
    keyed = {name: rows for name, rows in found.items() if name.partition(":")[0] in KEYED}
    assert len(keyed) > len(KEYED)
    assert {name: rows for name, rows in keyed.items() if rows > MAX_KEYED_ROWS} == {}
    assert {name: rows for name, rows in found.items() if rows > MAX_ROWS_OF_THE_PAST} == {}


@pytest.mark.parametrize("work", ["unread", "among", "beside"], indirect=True)
async def test_lookups_beside_a_search_look_at_few_rows(work: Work, settings: Settings) -> None:
    services = Services(Databases(work.agent.db), QuestionEncoder(embedder()), settings)
    found: dict[str, float] = {}
    for tool in [tool for tool in CATALOGUE if tool.name in SEARCHING]:
        work.watch.clear()
        arguments, searches = SEARCHING[tool.name]
        call = Call(work.agent.caller, services, tool.name, tool.read_only)
        await tool.handler(call, msgspec.convert(arguments, tool.arguments))
        assert searches <= work.watch.rows.keys()
        found |= {f"{tool.name}: {query}": rows for query, rows in work.watch.rows.items() if query not in searches}
    assert {name.partition(":")[0] for name in found} == set(SEARCHING)
    assert {name: rows for name, rows in found.items() if rows > MAX_ROWS_BESIDE} == {}
