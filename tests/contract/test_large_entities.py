"""An entity with more observations than a reply holds: reads tell the newest of them, and how to read the others."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp_types import TextResourceContents

from recollect.caller import Caller
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.contract.conftest import ConnectedClient, connected_to
from tests.contract.test_hidden_entities import HIDDEN as LARGE
from tests.contract.test_hidden_entities import READS, with_ids
from tests.support.gateway import LEGACY, NewApiKey, RunningGateway, answer, in_one_task, serving

MAX_REPLY_BYTES = 64_000
TEXTS = [f"{n}: Quincy collects blue cheese " + '"ä\n' * 120 for n in range(400)]
"""What is said of the large entity, oldest first: 240 kB, and more as JSON, since a third of it is escaped there."""
OTHER = "Paul paints barns"


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


@pytest.mark.proves("security: large-entities")
async def test_every_read_answers_within_the_bound(client: Client, subtests: pytest.Subtests) -> None:
    ids = await store_large(client)
    for tool, arguments in READS.items():
        for toolset_arguments in (arguments, arguments | {"as_of": ids["revision"]}):
            if "as_of" in toolset_arguments and not takes_as_of(tool):
                continue
            with subtests.test(tool=tool, as_of=toolset_arguments.get("as_of")):
                result = await client.call_tool(tool, {"graph": "default", **with_ids(toolset_arguments, ids)})
                assert not result.is_error, result.content
                assert len(json.dumps(result.structured_content, ensure_ascii=False).encode()) <= 1.2 * MAX_REPLY_BYTES


async def test_lists_and_searches_tell_the_newest_and_the_rest_of_the_page(
    client: Client, subtests: pytest.Subtests
) -> None:
    await store_large(client)
    calls: dict[str, dict[str, Any]] = {
        "read_graph": {},
        "search_nodes": {"query": "a", "limit": 10},
        "open_nodes": {"names": [LARGE, "Paul"]},
        "batch_get_entities": {"names": [LARGE, "Paul"]},
        "extract_subgraph": {"names": [LARGE], "limit": 10},
    }
    for tool, arguments in calls.items():
        with subtests.test(tool=tool):
            told = {entity["name"]: entity for entity in (await answer(client, tool, **arguments))["entities"]}
            large = told[LARGE]
            assert told["Paul"]["observations"] == [OTHER]
            assert "omittedObservations" not in told["Paul"]
            count = len(large["observations"])
            assert large["observations"] == TEXTS[-count:]
            assert large["omittedObservations"] == {
                "count": len(TEXTS) - count,
                "next": f"get_entity with observationsOffset {count}",
            }
    organized = await answer(client, "search_by_date_range", limit=10)
    [large] = [entity for entity in organized["entities"] if entity["name"] == LARGE]
    assert large["omittedObservations"]["count"] == len(TEXTS) - len(large["observations"])


async def test_what_was_left_out_is_read_in_pages(
    client: Client, http: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    ids = await store_large(client)
    revision = ids.pop("revision")

    async def by_name(offset: int) -> Any:
        return await answer(client, "get_entity", name=LARGE, observationsOffset=offset)

    async def in_the_past(offset: int) -> Any:
        return await answer(client, "get_entity", name=LARGE, observationsOffset=offset, as_of=revision)

    async def by_lineage(offset: int) -> Any:
        read = await answer(client, "get_node_by_lineage", lineage_id=ids[LARGE], observations_offset=offset)
        return read["node"]

    async def as_fact(offset: int) -> Any:
        return (await answer(client, "get_node", node_id=ids[LARGE], observations_offset=offset))["node"]

    async def by_route(offset: int) -> Any:
        got = await http.get(f"/v1/graphs/default/nodes/{LARGE}", params={"observations_offset": offset})
        assert got.status_code == 200, got.text
        return got.json()

    for read in (by_name, in_the_past, by_lineage, as_fact, by_route):
        with subtests.test(read=read.__name__):
            texts: list[str] = []
            pages = 0
            while len(texts) < len(TEXTS):
                page = await read(len(texts))
                omitted = page.get("omittedObservations") or page.get("omitted_observations") or {"count": 0}
                texts = page["observations"] + texts
                pages += 1
                assert page["observations"]
                assert omitted["count"] == len(TEXTS) - len(texts)
                assert omitted["count"] == 0 or omitted["next"].endswith(f" {len(texts)}")
            assert texts == TEXTS
            assert pages > 5


async def test_a_fetched_entity_is_told_in_documents(client: Client) -> None:
    ids = await store_large(client)
    further: str | None = ids[LARGE]
    found: list[str] = []
    documents = 0
    while further is not None:
        document = await answer(client, "fetch", id=further)
        assert document["id"] == further
        further = document["metadata"].get("next")
        said = document["text"]
        if further is not None:
            note, _, said = said.partition("\n")
            assert f"older observations are left out: fetch {further} tells them" in note
        found = re.split(r"\n(?=\d+: )", said) + found
        documents += 1
    assert found == TEXTS
    assert documents > 2
    for unknown in ("@5", f"{ids[LARGE]}@", f"{ids[LARGE]}@x", f"{ids[LARGE]}@1@2", f"{ids[LARGE]}@999999999"):
        result = await client.call_tool("fetch", {"id": unknown})
        assert result.is_error


async def test_organize_tells_one_entity_in_pages(
    small_replies: RunningGateway, secret: str, client: Client, subtests: pytest.Subtests
) -> None:
    await store_large(client)
    async with in_one_task(small_replies.client(secret, "/mcp/x/organize")) as organize:
        for connected in (organize, client):
            with subtests.test(organized=connected is organize):
                texts: list[str] = []
                while len(texts) < len(TEXTS):
                    opened = await answer(connected, "open_nodes", names=[LARGE], observationsOffset=len(texts))
                    [page] = opened["entities"]
                    texts = page["observations"] + texts
                    if left := page.get("omittedObservations"):
                        assert left["count"] == len(TEXTS) - len(texts)
                        assert left["next"].endswith(f"observationsOffset {len(texts)}")
                assert texts == TEXTS


async def test_writes_tell_the_newest_of_what_they_changed(client: Client) -> None:
    await store_large(client)
    moved = await answer(client, "set_entity_parent", entityName=LARGE, parentName=None)
    await answer(client, "create_entities", entities=[{"name": "other", "entityType": "t", "observations": []}])
    merged = await answer(client, "merge_entities", entityNames=["other", LARGE])
    for told in (moved, merged):
        count = len(told["observations"])
        assert told["observations"] == TEXTS[-count:]
        assert told["omittedObservations"]["count"] == len(TEXTS) - count
    # All of them were merged.
    assert (await answer(client, "get_entity", name="other"))["omittedObservations"]["count"] == len(TEXTS) - count


async def test_resources_tell_the_newest(client: Client) -> None:
    await store_large(client)
    for uri in ("memory://knowledge-graph", f"recollect://graphs/default/nodes/{LARGE}"):
        [content] = (await client.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        assert json.dumps(TEXTS[-1], ensure_ascii=False) in content.text
        assert TEXTS[0] not in content.text


async def test_many_entities_share_a_reply(client: Client) -> None:
    """None of them is larger than a reply, and all together are."""
    names = [f"e{n}" for n in range(50)]
    entities = [
        {"name": name, "entityType": "t", "observations": [f"{n} {'x' * 390}" for n in range(6)]} for name in names
    ]
    await answer(client, "create_entities", entities=entities)
    await answer(client, "create_entities", entities=[{"name": "brief", "entityType": "t", "observations": ["short"]}])
    told = (await answer(client, "batch_get_entities", names=[*names, "brief"]))["entities"]
    assert [len(entity["observations"]) for entity in told] == [2] * 50 + [1]
    assert {entity["omittedObservations"]["count"] for entity in told[:-1]} == {4}
    assert "omittedObservations" not in told[-1]


async def store_large(client: Client) -> dict[str, str]:
    """An entity that is larger than a reply, with others that lead to it; return ids by name, and the revision."""
    large = {"name": LARGE, "entityType": "painter", "observations": TEXTS}
    paul = {"name": "Paul", "entityType": "person", "observations": [OTHER]}
    root = {"name": "Root", "entityType": "place", "observations": []}
    await answer(client, "create_entities", entities=[large, paul, root])
    relations = [{"from": "Paul", "to": LARGE, "relationType": "knows"}]
    await answer(client, "create_relations", relations=relations)
    for child, parent in ((LARGE, "Root"), ("Paul", LARGE)):
        await answer(client, "set_entity_parent", entityName=child, parentName=parent)
    nodes = (await answer(client, "list_nodes", compact=True))["nodes"]
    revision = str((await answer(client, "get_graph"))["revision"])
    return {node["name"]: node["lineage_id"] for node in nodes} | {"revision": revision}


def takes_as_of(tool: str) -> bool:
    return "as_of" in json_schema(TOOLS[tool].arguments)["properties"]
