"""Relations with more metadata than a reply holds: walks tell those that fit, and lists tell the rest in pages."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp_types import TextResourceContents

from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import naming
from recollect.graph.relations import service as relations
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import Walk
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.contract.conftest import ConnectedClient, connected_to
from tests.support.gateway import LEGACY, NewApiKey, RunningGateway, answer, serving

MAX_REPLY_BYTES = 64_000
COUNT = 40
"""Relations at the hub, of 5 kB each: 200 kB."""


@pytest.fixture(scope="module")
def small_replies(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway whose replies may be small, so that what is stored need not be large."""
    with serving(settings.model_copy(update={"max_reply_bytes": MAX_REPLY_BYTES})) as gateway:
        yield gateway


@pytest.fixture
async def secret(issue: NewApiKey, caller: Caller) -> str:
    return (await issue(caller, kind="admin")).secret


@pytest.fixture(scope="module")
async def connected(small_replies: RunningGateway) -> AsyncIterator[ConnectedClient]:
    async with connected_to(small_replies) as connected:
        yield connected


@pytest.fixture
async def client(connected: ConnectedClient, secret: str) -> Client:
    return await connected(secret, "/mcp/x/all", LEGACY)


@pytest.fixture
async def http(small_replies: RunningGateway, secret: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with small_replies.http(secret) as http:
        yield http


async def test_every_walk_tells_what_fits(client: Client, subtests: pytest.Subtests) -> None:
    ids = await store_large(client)
    hub, end = ids["hub"], ids["end"]
    calls: dict[str, tuple[dict[str, Any], str | None]] = {
        "get_context": ({"node_id": hub, "depth": 1, "max_nodes": 100}, "edges"),
        "get_trace": ({"from_id": hub, "to_id": end, "max_paths": COUNT}, "edges"),
        "traverse": ({"lineage_id": hub, "max_depth": 1, "max_nodes": 100}, "edges"),
        "explore": ({"start": "hub", "depth": 1, "max_nodes": 100}, None),
        "get_neighbors": ({"name": "hub", "limit": 100}, None),
        "outgoing": ({"lineage_id": hub, "limit": 100}, None),
        "incoming": ({"lineage_id": end, "limit": 100}, None),
    }
    for tool, (arguments, cut) in calls.items():
        for as_of in (None, ids["revision"]):
            with subtests.test(tool=tool, as_of=as_of):
                past = {} if as_of is None else {"as_of": as_of}
                told = await answer(client, tool, **arguments, **past)
                assert (told.get("cut") or None) == cut
                # What is told of an edge is whole.
                for edge in edges_in(told):
                    assert edge["metadata"] == {"number": edge["metadata"]["number"], "said": "x" * 5_000}
                assert tool in ("explore", "get_neighbors") or 1 < len([*edges_in(told)]) < COUNT


async def test_paths_are_told_whole(client: Client, subtests: pytest.Subtests) -> None:
    ids = await store_large(client)
    for most in (2, 5, COUNT):
        with subtests.test(max_paths=most):
            told = await answer(client, "get_trace", from_id=ids["hub"], to_id=ids["end"], max_paths=most)
            paths = [(len(path["nodes"]), len(path["edges"])) for path in told["paths"]]
            assert paths == [(3, 2)] * len(paths)
            assert 1 < len(paths) <= most
            assert told["cut"] == ("paths" if len(paths) == most else "edges")


async def test_lists_of_edges_go_on_where_a_reply_was_full(
    client: Client, http: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    ids = await store_large(client)
    for tool, node in (("outgoing", "hub"), ("incoming", "end")):
        with subtests.test(tool=tool):
            numbers: list[int] = []
            offset: int | None = 0
            while offset is not None:
                page = await answer(client, tool, lineage_id=ids[node], limit=100, offset=offset)
                numbers += [edge["metadata"]["number"] for edge in page["edges"]]
                offset = page.get("next_offset")
            assert sorted(numbers) == list(range(COUNT))
    with subtests.test(tool="route"):
        numbers, cursor, pages = [], None, 0
        while pages == 0 or cursor is not None:
            params = {"limit": 100} | ({} if cursor is None else {"cursor": cursor})
            got = (await http.get("/v1/graphs/default/nodes/hub/relations", params=params)).json()
            numbers += [edge["metadata"]["number"] for edge in got["items"]]
            cursor, pages = got["next_cursor"], pages + 1
        assert (sorted(numbers), pages > 2) == (list(range(COUNT)), True)
    with subtests.test(tool="resource"):
        [content] = (await client.read_resource("recollect://graphs/default/nodes/hub")).contents
        assert isinstance(content, TextResourceContents)
        assert json.loads(content.text)["more_relations"] is True


async def test_symlinks_go_on_where_a_reply_was_full(client: Client) -> None:
    ids = await store_large(client)
    far = await answer(client, "put_node", graph="far", kind="note", content="far away")
    to = {"to_lineage": far["node"]["lineage_id"], "to_graph": "far"}
    for number in range(COUNT):
        metadata = {"number": number, "said": "x" * 5_000}
        await answer(client, "put_edge", from_lineage=ids[f"leaf {number}"], kind="far", metadata=metadata, **to)
    numbers: list[int] = []
    offset: int | None = 0
    while offset is not None:
        page = await answer(client, "symlink_manifest", graph="default", limit=100, offset=offset)
        numbers += [edge["metadata"]["number"] for edge in page["symlinks"]]
        offset = page.get("next_offset")
    assert sorted(numbers) == list(range(COUNT))


async def test_a_walk_reads_no_metadata(client: Client, caller: Caller, db: Database) -> None:
    ids = await store_large(client)
    async with db.transaction(caller, read_only=True, reply_bytes=24_000) as tx:
        for as_of in (None, ids["revision"]):
            view = await graphs.view(tx, None, as_of)
            hub = (await naming.find_named(view, ["hub"]))["hub"].id
            edges = await relations.edges_of(view, [hub], Walk(), within=[view.graph.id], limit=100)
            assert [edge.metadata for edge in edges] == [{}] * COUNT
            told = await subgraphs.edges_within_reply(view, edges)
            assert [(edge.id, edge.metadata["number"]) for edge in told] == [(edges[n].id, n) for n in range(2)]
            twice = await subgraphs.edges_within_reply(view, edges, {edge.id: 2 for edge in edges})
            assert twice == told[:1]


async def test_a_merge_keeps_the_metadata(client: Client) -> None:
    await store_large(client)
    await answer(client, "create_entities", entities=[{"name": "other", "entityType": "t", "observations": []}])
    await answer(client, "merge_entities", source="hub", target="other")
    ids = await ids_of(client)
    told = await answer(client, "outgoing", lineage_id=ids["other"], limit=5)
    assert [len(edge["metadata"]["said"]) for edge in told["edges"]] == [5_000] * 5


async def store_large(client: Client) -> dict[str, str]:
    """A hub from which many paths lead to one end, by relations with much metadata; ids by name, and the revision."""
    names = ["hub", "end", *(f"leaf {n}" for n in range(COUNT))]
    entities = [{"name": name, "entityType": "t", "observations": []} for name in names]
    await answer(client, "create_entities", entities=entities)
    ids = await ids_of(client)
    for number in range(COUNT):
        leaf, metadata = ids[f"leaf {number}"], {"number": number, "said": "x" * 5_000}
        await answer(client, "put_edge", from_lineage=ids["hub"], to_lineage=leaf, kind="to", metadata=metadata)
        await answer(client, "put_edge", from_lineage=leaf, to_lineage=ids["end"], kind="to", metadata=metadata)
    revision = str((await answer(client, "get_graph"))["revision"])
    return ids | {"revision": revision}


async def ids_of(client: Client) -> dict[str, str]:
    nodes = (await answer(client, "list_nodes", compact=True, limit=200))["nodes"]
    return {node["name"]: node["lineage_id"] for node in nodes}


def edges_in(told: Any) -> Iterator[dict[str, Any]]:
    """The edges in an answer: objects with metadata and a kind of their own."""
    if isinstance(told, list):
        for item in told:
            yield from edges_in(item)
    elif isinstance(told, dict):
        if "metadata" in told and ({"from_id", "from_lineage"} & told.keys()):
            yield told
        for item in told.values():
            yield from edges_in(item)
