"""Toolset `lineage` agrees with a small model on any sequence of calls, under both conflict policies."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.gateway import NewApiKey, RunningGateway, in_one_task, rpc_headers


@dataclass(frozen=True)
class ModelledVersion:
    """A version of a node of the model; `by` is the number of the version that superseded it."""

    kind: str
    content: str
    tags: tuple[str, ...]
    by: int | None = None


@dataclass
class Model:
    """Lineages in the order of their creation, and edges as (source, target, kind) by lineage number."""

    policy: str
    lineages: list[list[ModelledVersion]] = field(default_factory=list)
    edges: list[tuple[int, int, str]] = field(default_factory=list)

    def put(self, lineage: int | None, based_on: int | None, version: ModelledVersion) -> bool | None:
        """Whether the put is recorded as a conflict; None where it is refused."""
        if lineage is None:
            self.lineages.append([version])
            return False
        versions = self.lineages[lineage]
        if based_on is not None and based_on > len(versions):
            return None
        if any(replace(versions[number - 1], by=None) == version for number in self.heads(lineage)):
            return False  # What a head says already is not written again.
        beside = self.policy == "manual" and based_on not in (None, len(versions))
        if not beside:
            versions[:] = [replace(old, by=old.by or len(versions) + 1) for old in versions]
        versions.append(version)
        return beside

    def heads(self, lineage: int) -> set[int]:
        """The numbers of the versions that nothing has superseded."""
        return {number for number, version in enumerate(self.lineages[lineage], start=1) if version.by is None}

    def listed(self, kinds: list[str], tags: list[str]) -> list[int]:
        """The lineages of the heads that pass a filter, once for each of these heads."""
        wanted = {tag.lower() for tag in tags}
        heads = [
            (number, version) for number, all_ in enumerate(self.lineages) for version in all_ if version.by is None
        ]
        return [
            number
            for number, version in heads
            if (not kinds or version.kind in kinds) and (not wanted or wanted & {tag.lower() for tag in version.tags})
        ]


KINDS = st.sampled_from(["note", "idea"])
TAGS = st.lists(st.sampled_from(["Topic:Tea", "topic:tea", "hot"]), max_size=2)
PLACE = st.integers(0, 3)
PUTS = st.tuples(st.just("put"), st.none() | PLACE, st.none() | st.integers(1, 4), KINDS, TAGS)
OPERATIONS = st.one_of(
    PUTS,
    PUTS,
    st.tuples(st.just("connect"), PLACE, PLACE, st.sampled_from(["cites", "about"])),
    st.tuples(st.just("disconnect"), PLACE),
    st.tuples(st.just("subgraph"), st.lists(st.tuples(st.none() | PLACE, KINDS), min_size=1, max_size=3)),
)

_graphs = itertools.count(1)


@pytest.fixture(scope="module")
async def http(gateway: RunningGateway, new_tenant: NewTenant, issue: NewApiKey) -> AsyncIterator[httpx2.AsyncClient]:
    secret = (await issue(operator_caller(await new_tenant()))).secret
    async with in_one_task(gateway.http(secret, **rpc_headers())) as client:
        yield client


@dataclass
class Toolset:
    """The toolset on one graph, and the ids of what the model numbers."""

    gateway: RunningGateway
    http: httpx2.AsyncClient
    graph: str
    ids: list[str] = field(default_factory=list)
    edges: dict[tuple[int, int, str], str] = field(default_factory=dict)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        """The answer of a tool; None where it refuses."""
        result = await self.gateway.call(self.http, tool, {"graph": self.graph, **arguments}, path="/mcp/x/lineage")
        answer: dict[str, Any] | None = None if result["isError"] else result["structuredContent"]
        return answer

    async def answer(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool that must not refuse."""
        answer = await self.call(tool, **arguments)
        assert answer is not None
        return answer


@pytest.mark.proves("memgraph: model")
@examples(20)
@given(policy=st.sampled_from(["lww", "manual"]), operations=st.lists(OPERATIONS, min_size=1, max_size=12))
@example(  # Three heads, one of them put on a sibling, settled by a put on none.
    policy="manual",
    operations=[("put", place, base, "note", []) for place, base in ((None, None), (0, 1), (0, 1), (0, 2), (0, None))],
)
@example(  # The same twice in one call.
    policy="lww",
    operations=[("put", None, None, "note", []), ("subgraph", [(0, "idea"), (0, "idea")])],
)
async def test_the_toolset_agrees_with_its_model(
    gateway: RunningGateway, http: httpx2.AsyncClient, policy: str, operations: list[Any]
) -> None:
    model, tools = Model(policy), Toolset(gateway, http, f"model-{next(_graphs)}")
    await tools.answer("create_graph", name=tools.graph, conflict_policy=policy)
    steps: dict[str, Callable[..., Awaitable[None]]] = {
        "put": put,
        "connect": connect,
        "disconnect": disconnect,
        "subgraph": subgraph,
    }
    for step, (operation, *arguments) in enumerate(operations):
        await steps[operation](model, tools, f"said {step}", *arguments)
    await assert_alike(model, tools)


async def put(
    model: Model, tools: Toolset, content: str, place: int | None, based_on: int | None, kind: str, tags: list[str]
) -> None:
    lineage = None if place is None or place >= len(model.lineages) else place
    conflict = model.put(lineage, based_on, ModelledVersion(kind, content, tuple(tags)))
    lineage_id = None if lineage is None else tools.ids[lineage]
    wanted = {"kind": kind, "content": content, "tags": tags, "based_on_version": based_on}
    answer = await tools.call("put_node", lineage_id=lineage_id, **wanted)
    assert (answer is None) is (conflict is None)
    if answer is not None:
        assert ("conflict" in answer, answer["created"]) == (conflict, lineage is None)
        tools.ids += [answer["node"]["lineage_id"]] if lineage is None else []


async def connect(model: Model, tools: Toolset, _: str, source: int, target: int, kind: str) -> None:
    if max(source, target) >= len(model.lineages):
        return
    edge = (source, target, kind)
    new = edge not in model.edges
    model.edges += [edge] if new else []
    ends = {"from_lineage": tools.ids[source], "to_lineage": tools.ids[target]}
    answer = await tools.answer("put_edge", kind=kind, **ends)
    assert answer["created"] is new
    assert tools.edges.setdefault(edge, answer["edge"]["id"]) == answer["edge"]["id"]


async def disconnect(model: Model, tools: Toolset, _: str, place: int) -> None:
    if place < len(model.edges):
        edge_id = tools.edges.pop(model.edges.pop(place))
        assert (await tools.answer("delete_edge", id=edge_id))["deleted"]
        assert not (await tools.answer("delete_edge", id=edge_id))["deleted"]


async def subgraph(model: Model, tools: Toolset, content: str, nodes: list[tuple[int | None, str]]) -> None:
    """Put a subgraph, which writes each node as often as it is named, in order."""
    known = len(model.lineages)
    specs, expected = list[dict[str, Any]](), list[int]()
    for place, kind in nodes:
        lineage = None if place is None or place >= known else place
        specs.append({"kind": kind, "content": content, "lineage_id": None if lineage is None else tools.ids[lineage]})
        model.put(lineage, None, ModelledVersion(kind, content, ()))
        expected.append(len(model.lineages[-1 if lineage is None else lineage]))
    answer = await tools.answer("put_subgraph", nodes=specs)
    assert [node.get("version") for node in answer["nodes"]] == expected
    tools.ids += [node["lineage_id"] for node in answer["nodes"] if node["created"]]


async def assert_alike(model: Model, tools: Toolset) -> None:
    """Compare every read of the toolset with the model."""
    for lineage, lineage_id in enumerate(tools.ids):
        await assert_history(model, tools, lineage, lineage_id)
        edges = (await tools.answer("outgoing", lineage_id=lineage_id))["edges"]
        assert [edge["id"] for edge in edges] == [tools.edges[e] for e in model.edges if e[0] == lineage]
        edges = (await tools.answer("incoming", lineage_id=lineage_id))["edges"]
        assert [edge["id"] for edge in edges] == [tools.edges[e] for e in model.edges if e[1] == lineage]
    for kinds, tags in (([], []), (["idea"], []), ([], ["TOPIC:TEA"]), (["note"], ["hot", "topic:tea"])):
        nodes = (await tools.answer("list_nodes", kinds=kinds, tags=tags))["nodes"]
        assert [tools.ids.index(node["lineage_id"]) for node in nodes] == model.listed(kinds, tags)
    assert (await tools.answer("describe_schema"))["node_count"] == len(model.lineages)


async def assert_history(model: Model, tools: Toolset, lineage: int, lineage_id: str) -> None:
    told = (await tools.answer("history", lineage_id=lineage_id))["versions"][::-1]
    numbers = {version["id"]: version["version"] for version in told}
    assert list(numbers.values()) == list(range(1, len(told) + 1))
    assert [
        ModelledVersion(v["kind"], v["content"], tuple(v["tags"]), numbers.get(v.get("superseded_by"))) for v in told
    ] == model.lineages[lineage]
    heads = model.heads(lineage)
    for version in told:
        beside = heads - {version["version"]} if version["version"] in heads else set()
        assert {numbers[other] for other in version["conflicts"]} == beside
        assert version["is_current"] is (version["version"] in heads)
    current = (await tools.answer("get_node_by_lineage", lineage_id=lineage_id))["node"]
    assert current == told[-1]
    assert (await tools.answer("get_node_by_lineage", lineage_id=lineage_id, at_version=1))["node"] == told[0]
    at_time = told[0]["created_at"]
    assert (await tools.answer("get_node_by_lineage", lineage_id=lineage_id, at_time=at_time))["node"] == told[0]
