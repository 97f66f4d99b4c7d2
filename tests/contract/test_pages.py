"""Without a limit, lists and searches answer with pages that a model can read, one after the other."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, TOOLS
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, in_one_task, revision_of, rpc_headers
from tests.support.large_graph import (
    ALIKE,
    BELOW,
    CHAIN,
    ENTITIES,
    FACTS,
    GRAPHS,
    HUB,
    PAIRS,
    TOP,
    TOUCHING,
    TYPES,
    VERSIONS,
    LargeGraph,
    large_graph,
)
from tests.support.memories import Agent

PAGE = 16_000
"""The maximum of characters in a default reply: 4,000 tokens, by the rule of four characters a token."""

Answer = Mapping[str, Any]
GoOn = Callable[[Answer, Answer], Answer | None]
"""Makes the arguments of the next page from those of a page and its answer; None after the last page."""


def next_offset(asked: Answer, answer: Answer) -> Answer | None:
    following = answer.get("nextOffset", answer.get("next_offset"))
    return None if following is None else {**asked, "offset": following}


def keyset(argument: str, rows: str, field_: str) -> GoOn:
    """Pages that continue after the last row while there are more."""
    return lambda asked, answer: {**asked, argument: answer[rows][-1][field_]} if answer["more"] else None


def next_cursor(asked: Answer, answer: Answer) -> Answer | None:
    return {**asked, "cursor": answer["next_cursor"]} if answer["next_cursor"] else None


@dataclass(frozen=True)
class List:
    """How a list is requested: its required arguments, the field of its rows, their number, and how pages continue.

    `only` narrows it to a few pages, `toolset` decides whose dialect answers. Values in braces are ids of the graph.
    """

    tool: str
    rows: str
    asked: Answer = field(default_factory=dict)
    only: Answer = field(default_factory=dict)
    count: int | None = None
    go_on: GoOn = next_offset
    toolset: str = "all"


IMPORTANT = {"minImportance": 10}

LISTS = (
    List("search_nodes", "entities", {"query": "budget"}, IMPORTANT),
    List("search_nodes", "entities", {"query": "budget"}, IMPORTANT, toolset="organize"),
    List("search_relations", "relations", only={"relationType": "part_of"}, count=TOUCHING),
    List("get_neighbors", "entities", {"name": HUB}, count=TOUCHING),
    List("list_entity_types", "types", count=TYPES),
    List("list_relation_types", "types", count=TYPES + 1),
    List("search_nodes_ranked", "results", {"query": "budget"}, IMPORTANT),
    List("boolean_search", "entities", {"query": "budget AND NOT Lisbon"}, IMPORTANT),
    List("fuzzy_search", "entities", {"query": "type of review 0"}, {"threshold": 0.8}),
    List("search_by_date_range", "entities", only={"tags": ["team 7", "team 8"]}, count=ENTITIES // 10),
    List("get_children", "entities", {"entityName": TOP}, count=BELOW),
    List("get_descendants", "entities", {"entityName": TOP}, {"entityName": "{above}"}, count=CHAIN),
    List("get_root_entities", "entities", only={"graph": ALIKE}, count=2 * PAIRS),
    List("get_subtree", "entities", {"entityName": TOP}, {"entityName": "{above}"}, count=1 + CHAIN),
    List("get_ancestors", "entities", {"entityName": "{deepest}"}, count=CHAIN + 1),
    List("find_duplicates", "groups", {"graph": ALIKE}, count=PAIRS),
    List("validate_graph", "warnings"),
    List("search", "results", {"query": "quarterly budget review"}),
    List("find_similar", "results", {"fact_id": "{fact}", "threshold": 0.5}),
    List("search_triplets", "triplets", only={"predicate": "part_of"}, count=TOUCHING),
    List("get_node_change_history", "versions", {"node_id": "{fact}"}, count=VERSIONS),
    List("list_graphs", "graphs", count=GRAPHS, go_on=keyset("after", "graphs", "name")),
    List("history", "versions", {"lineage_id": "{fact}"}, count=VERSIONS),
    List("list_nodes", "nodes", only={"kinds": ["note"]}, count=FACTS),
    List("outgoing", "edges", {"lineage_id": "{fact}"}, count=FACTS),
    List("incoming", "edges", {"lineage_id": "{hub}"}, count=TOUCHING),
    List("search_graph", "hits", {"text": "quarterly budget review"}),
    List(
        "batch_search",
        "hits",
        {"queries": [{"text": "quarterly budget", "limit": 50}, {"text": "Lisbon", "limit": 50}]},
    ),
    List("list_tags", "tags", count=410),
    List("symlink_manifest", "symlinks", count=50),
    List("symlink_manifest", "inbound", count=50),
    List("list_jobs", "jobs", count=90, go_on=keyset("before", "jobs", "id")),
    List("recent_changes", "changes", {"since_revision": 0}, go_on=keyset("since_revision", "changes", "revision")),
    List("usage", "usage", only={"to": f"{datetime.now(UTC):%Y-%m-%dT%H}:00:00Z"}, go_on=next_cursor),
)

Says = Callable[[Answer], bool]


def is_cut(answer: Answer) -> bool:
    return bool(answer["cut"] == "size")


def has_more(answer: Answer) -> bool:
    return bool(answer["more"])


BOUNDED: dict[str, tuple[Answer, Says]] = {
    "recall": ({"query": "quarterly budget review"}, has_more),
    "explore": ({"start": HUB}, lambda answer: bool(answer["cut"])),
    "describe_entity": ({"name": HUB}, lambda answer: is_cut(answer) and answer["degree"] == TOUCHING),
    "find_path": ({"from": HUB, "to": "{first}"}, lambda answer: len(answer["path"]) == 2),
    "find_all_paths": ({"from": HUB, "to": "{first}"}, lambda answer: len(answer["paths"]) > 1),
    "extract_subgraph": ({"names": [HUB]}, is_cut),
    "get_context": ({"node_id": "{fact}"}, lambda answer: bool(answer["cut"])),
    "get_trace": ({"from_id": "{fact}", "to_id": "{other}"}, lambda answer: answer["paths"][0]["length"] == 1),
    "traverse": ({"lineage_id": "{fact}"}, is_cut),
    "describe_schema": ({}, has_more),
    "get_stats": ({}, lambda answer: answer["stats"]["entities"] == ENTITIES),
}
"""Tools that answer with the nearest, best or first results and say that there are more: they are not lists.

To see more, ask for something else: from a node farther away, about fewer types, by a tool that lists.
"""

WHOLE = {
    "read_graph": "the whole graph is what the official server's clients ask for; limit and offset page it",
    "open_nodes": "what is named, as the official server answers it",
    "batch_get_entities": "what is named",
    "get_entity": "one entity",
    "get_parent": "one entity",
    "graph_stats": "counts",
    "export_graph": "one file",
    "get_node": "one node",
    "fetch": "one memory",
    "get_node_by_id": "one version",
    "get_node_by_lineage": "one version",
    "get_graph": "one graph",
    "get_job": "one job; output_offset and output_limit page what it left",
    "test_connection": "one state",
    "health_check": "one state",
}
"""Tools that answer with one object, or with the named ones: these are returned completely."""

EVERY_LIST = pytest.mark.parametrize("list_", LISTS, ids=lambda list_: f"{list_.toolset}-{list_.tool}-{list_.rows}")


@pytest.fixture(scope="module")
async def http(gateway: RunningGateway, owner_of: "Owner") -> AsyncIterator[httpx2.AsyncClient]:
    async with in_one_task(gateway.http(owner_of.secret, **rpc_headers())) as http:
        yield http


@dataclass(frozen=True)
class Owner:
    """The owner of the graph, with an admin's key."""

    agent: Agent
    secret: str


@pytest.fixture(scope="module")
async def owner_of(db: Database, new_tenant: NewTenant, issue: NewApiKey) -> Owner:
    caller = operator_caller(await new_tenant())
    return Owner(Agent(db, caller), (await issue(caller, kind="admin")).secret)


@pytest.fixture(scope="module")
async def large(gateway: RunningGateway, http: httpx2.AsyncClient, db: Database, owner_of: Owner) -> LargeGraph:
    return await large_graph(gateway, http, db, owner_of.agent.caller)


@dataclass(frozen=True)
class Asker:
    """Calls tools on a graph."""

    gateway: RunningGateway
    http: httpx2.AsyncClient
    large: LargeGraph

    async def __call__(self, tool: str, arguments: Answer, toolset: str = "all") -> tuple[Answer, str]:
        """The structured content and the texts of a success."""
        filled = {name: self._filled(value) for name, value in arguments.items()}
        result = await self.gateway.call(self.http, tool, filled, path=f"/mcp/x/{toolset}")
        assert not result["isError"], (tool, arguments, result)
        return result["structuredContent"], "".join(content["text"] for content in result["content"])

    async def page(self, tool: str, arguments: Answer, toolset: str = "all") -> Answer:
        """The structured content of a reply that must fit a page, as text and as structured content."""
        answer, text = await self(tool, arguments, toolset)
        compact = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        assert (len(text) <= PAGE, len(compact) <= PAGE) == (True, True), (tool, len(text), len(compact))
        return answer

    def _filled(self, value: Any) -> Any:
        return self.large.called[value[1:-1]] if isinstance(value, str) and value.startswith("{") else value


@pytest.fixture(scope="module")
def ask(gateway: RunningGateway, http: httpx2.AsyncClient, large: LargeGraph) -> Asker:
    return Asker(gateway, http, large)


@pytest.mark.proves("rules: pages-of-4000-tokens")
def test_every_tool_that_reads_is_a_list_or_bounded_or_returns_one_object() -> None:
    listed = {list_.tool for list_ in LISTS}
    assert not listed & {*BOUNDED}
    assert not (listed | {*BOUNDED}) & {*WHOLE}
    assert listed | {*BOUNDED} | {*WHOLE} == {tool.name for tool in CATALOGUE if tool.read_only}


@pytest.mark.proves("rules: pages-of-4000-tokens")
@EVERY_LIST
async def test_a_default_reply_fits_a_page(ask: Asker, list_: List) -> None:
    """With only the required arguments."""
    assert (await ask.page(list_.tool, list_.asked, list_.toolset))[list_.rows]


@pytest.mark.proves("rules: pages-of-4000-tokens")
@pytest.mark.parametrize("tool", BOUNDED)
async def test_a_bounded_reply_fits_a_page_and_says_that_more_exists(ask: Asker, tool: str) -> None:
    arguments, says = BOUNDED[tool]
    assert says(await ask.page(tool, arguments))


@pytest.mark.proves("rules: pages-tell-each-row-once")
@EVERY_LIST
async def test_pages_contain_every_row_once(ask: Asker, owner_of: Owner, list_: List) -> None:
    """Also if something is written between pages, where the tool can read the graph as of the first page."""
    asked: dict[str, Any] = {**list_.asked, **list_.only}
    pinned = "as_of" in TOOLS[list_.tool].arguments.__struct_encode_fields__
    if pinned:
        asked["as_of"] = ask.large.revisions[asked.get("graph", "default")]
    all_at_once = await rows_of(ask, list_, {**asked, "limit": 50})
    told, pages = list[str](), 0
    following: Answer | None = asked
    while following is not None:
        answer = await ask.page(list_.tool, following, list_.toolset)
        told += map(json.dumps, answer[list_.rows])
        following, pages = list_.go_on(following, answer), pages + 1
        if pinned and pages == 1:
            await newcomer(owner_of.agent, asked.get("graph"))
    assert pages > 1
    assert len(set(told)) == len(told) == (list_.count or len(told))
    assert told == all_at_once


async def rows_of(ask: Asker, list_: List, asked: Answer) -> list[str]:
    """Every row, in pages of the requested size."""
    told = list[str]()
    following: Answer | None = asked
    while following is not None:
        answer, _ = await ask(list_.tool, following, list_.toolset)
        assert len(answer[list_.rows]) <= asked["limit"]
        told += map(json.dumps, answer[list_.rows])
        following = list_.go_on(following, answer)
    return told


async def newcomer(agent: Agent, graph: str | None) -> None:
    """Write an entity that every list of that graph would contain."""
    writer = Agent(agent.db, agent.caller, graph)
    name = f"Newcomer {await revision_of(agent.db, agent.caller, graph or 'default')}"
    said = ("Quarterly budget review in Lisbon",)
    await writer.create(NewEntity(name, "type of review 0", said, tags=("team 7", name), importance=10))
    await writer.relate((name, HUB, "part_of"))
