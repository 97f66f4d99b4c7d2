"""No call blocks the others of its process or takes too much memory: a gateway is watched during the worst calls.

Each graph here is built to be bad for some traversal, search or comparison. The time for which the loop was held is
measured in processor time, which other work on the machine does not lengthen much; a slower machine gets as much more.
The memory of a call is the peak of the resident memory during it, above what the process had before.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import msgspec
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from tests.conftest import NewTenant
from tests.contract.examples import EXAMPLES
from tests.support.documents import DOCUMENT, OPERATIONS
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers
from tests.support.loop_bounds import MAX_TAKEN_BY_CUT, within_bounds
from tests.support.memories import Agent
from tests.support.routes import stand_ins
from tests.support.tasks import TaskClient
from tests.support.watched_gateway import read_heartbeat, watched_gateway
from tests.support.worst_calls import STAND_IN, RouteRequest, on_graph, worst_call, worst_requests

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("leaves_nothing")]

CLIQUE, ALIKE, CHAIN, TALKERS, SPOKES = 120, 4_000, 9_000, 50, 4_000
NUMBERED = 19
BATCH = 1_000
COMPUTE_SECONDS = 1.0
STATEMENT_SECONDS = 20.0
"""So short that a quadratic statement does not end in it; a linear one ends in a fraction of it. A write may take twice
as long, also beside other tests."""


@pytest.fixture(scope="module")
def alone() -> None:
    """Unlike other tests of faults, these share the graphs that they build."""


@pytest.fixture(scope="module")
async def watched(settings: Settings) -> AsyncIterator[RunningGateway]:
    """A gateway whose event loop is watched."""
    bounds = {"compute_seconds": COMPUTE_SECONDS, "statement_timeout_seconds": STATEMENT_SECONDS}
    async with watched_gateway(settings.model_copy(update=bounds)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def tenant_caller(new_tenant: NewTenant) -> Caller:
    return operator_caller(await new_tenant())


@pytest.fixture(scope="module")
async def http(watched: RunningGateway, issue: NewApiKey, tenant_caller: Caller) -> AsyncIterator[httpx2.AsyncClient]:
    async with watched.http((await issue(tenant_caller, kind="admin")).secret) as http:
        yield http


@pytest.fixture(scope="module")
async def clique(db: Database, tenant_caller: Caller) -> str:
    """A graph where every entity is related to every other; only `start` leads to `end`."""
    crowd = [f"member {n}" for n in range(CLIQUE)]
    agent = Agent(db, tenant_caller, "clique")
    await agent.create(*crowd, "start", "end", "beyond")
    triples = [(one, other, "knows") for place, one in enumerate(crowd) for other in crowd[place + 1 :]]
    triples += [(crowd[0], "start", "knows"), (crowd[1], "start", "knows"), ("start", "end", "knows")]
    await in_batches(agent.relate, [*triples, ("end", "beyond", "knows")])
    return "clique"


@pytest.fixture(scope="module")
async def alike(db: Database, tenant_caller: Caller) -> str:
    """Entities of one type whose long names begin equally and end differently."""
    chance = random.Random(1)
    made = [NewEntity("x" * 440 + "".join(chance.choices("abcdefgh", k=60)), "thing") for _ in range(ALIKE)]
    await in_batches(Agent(db, tenant_caller, "alike").create, made)
    return "alike"


@pytest.fixture(scope="module")
async def chain(db: Database, tenant_caller: Caller) -> str:
    """A chain of entities, each the parent of the next; all got another importance in the third revision."""
    links = [f"link {n}" for n in range(CHAIN)]
    agent = Agent(db, tenant_caller, "chain")
    async with agent.writing() as (tx, revision):
        made = await entities.create_entities(tx, revision, [NewEntity(name, "link") for name in links])
    async with agent.writing() as (tx, revision):
        await hierarchy.set_parents_by_name(tx, revision, dict(zip(links[1:], links[:-1], strict=True)))
    async with agent.writing() as (tx, revision):
        heads = await nodes.read_heads(tx, revision.graph, [node_id for node_id, _ in made])
        await nodes.rewrite(tx, revision, [Rewrite(h, replace(h.fields, importance=7.0)) for h in heads.values()])
    return "chain"


@pytest.fixture(scope="module")
async def texts(db: Database, tenant_caller: Caller) -> str:
    """Entities with more text than any reply holds: 10 MB."""
    agent = Agent(db, tenant_caller, "texts")
    said = tuple(f"{'x' * 9_900}{n}" for n in range(20))
    await agent.create(*(NewEntity(f"talker {n}", "talker", said) for n in range(TALKERS)))
    return "texts"


@pytest.fixture(scope="module")
async def numbers(watched: RunningGateway, http: httpx2.AsyncClient) -> list[str]:
    """The ids of nodes with as many numbers in their metadata as allowed: a reply with them has a million values."""
    ids = []
    for n in range(NUMBERED):
        arguments = {"graph": "numbers", "kind": "note", "content": f"note {n}", "metadata": {"some": [0] * 49_000}}
        put = await watched.call(http, "put_node", arguments, path="/mcp/x/all")
        ids.append(put["structuredContent"]["node"]["lineage_id"])
    return ids


@pytest.fixture(scope="module")
async def star(db: Database, tenant_caller: Caller) -> str:
    """One entity that is related to thousands of placeholders."""
    agent = Agent(db, tenant_caller, "star")
    await agent.create("hub")
    await in_batches(agent.relate, [("hub", f"spoke {n}", "to") for n in range(SPOKES)])
    return "star"


async def in_batches(write: Callable[..., Awaitable[Any]], given: Sequence[Any]) -> None:
    for start in range(0, len(given), BATCH):
        await write(*given[start : start + BATCH])


class TestPaths:
    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("find_all_paths", {"from": "start", "to": "end", "maxDepth": 12, "maxPaths": 1000}),
            ("find_all_paths", {"from": "member 5", "to": "beyond", "maxDepth": 12, "maxPaths": 1000}),
            ("find_all_paths", {"from": "member 5", "to": "member 6", "maxDepth": 12, "maxPaths": 1000}),
            ("find_path", {"from": "member 5", "to": "beyond"}),
            ("explore", {"start": "start", "to": "end", "depth": 4}),
            ("explore", {"start": "member 5", "to": "beyond", "depth": 4}),
            ("explore", {"start": "member 5", "depth": 4, "max_nodes": 100}),
        ],
        ids=lambda value: value if isinstance(value, str) else " to ".join(map(str, list(value.values())[:2])),
    )
    async def test_paths_in_a_clique_do_not_hold_the_loop(
        self, watched: RunningGateway, http: httpx2.AsyncClient, clique: str, tool: str, arguments: dict[str, Any]
    ) -> None:
        async with within_bounds(http):
            result = await watched.call(http, tool, {"graph": clique, **arguments}, path="/mcp/x/all")
        assert not result["isError"], result

    async def test_a_trace_in_a_clique_does_not_hold_the_loop(
        self, watched: RunningGateway, http: httpx2.AsyncClient, clique: str, db: Database, tenant_caller: Caller
    ) -> None:
        found = await Agent(db, tenant_caller, clique).open("start", "end")
        start, end = (str(entity.id) for entity in found.entities)
        ends = {"from_id": start, "to_id": end, "max_paths": 50, "graph": clique}
        async with within_bounds(http):
            result = await watched.call(http, "get_trace", ends, path="/mcp/x/all")
        assert len(result["structuredContent"]["paths"]) == 1


class TestDuplicates:
    @pytest.mark.parametrize("tool", ["find_duplicates", "compress_graph"])
    async def test_a_comparison_that_takes_too_long_is_refused_with_advice(
        self, watched: RunningGateway, http: httpx2.AsyncClient, alike: str, tool: str
    ) -> None:
        async with within_bounds(http):
            result = await watched.call(http, tool, {"graph": alike, "threshold": 0.65}, path="/mcp/x/organize")
        assert result["_meta"][ERROR_META]["code"] == "too_costly"
        assert "propose_duplicates" in result["content"][0]["text"]

    async def test_a_comparison_holds_no_connection_and_ends_with_its_client(
        self, settings: Settings, issue: NewApiKey, tenant_caller: Caller, alike: str
    ) -> None:
        """With one connection, other calls are served during an endless comparison."""
        narrow = {"compute_seconds": 10**6, "database_pool_size": 1, "database_acquire_seconds": 20}
        async with (
            watched_gateway(settings.model_copy(update=narrow)) as gateway,
            gateway.http((await issue(tenant_caller)).secret) as http,
            gateway.http() as watching,
        ):
            arguments = {"graph": alike, "threshold": 0.65}
            before = (await read_heartbeat(watching)).spent
            call = asyncio.create_task(gateway.call(http, "find_duplicates", arguments, path="/mcp/x/organize"))

            async def is_computing() -> bool:
                return (await read_heartbeat(watching)).spent > before + 0.5

            await eventually(is_computing)
            result = await gateway.call(http, "list_graphs", {}, path="/mcp/x/lineage")
            assert not result["isError"], result
            assert not call.done()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

            async def is_idle() -> bool:
                spent = (await read_heartbeat(watching)).spent
                await asyncio.sleep(1)
                return (await read_heartbeat(watching)).spent < spent + 0.2

            await eventually(is_idle)


class TestChain:
    async def test_undoing_changes_of_a_chain_of_parents_does_not_hold_the_loop(
        self, watched: RunningGateway, http: httpx2.AsyncClient, chain: str
    ) -> None:
        arguments = {"graph": chain, "since_revision": 2, "dry_run": True}
        async with within_bounds(http):
            result = await watched.call(http, "undo_changes", arguments, path="/mcp/x/admin")
        assert not result["isError"], result
        assert result["structuredContent"]["nodes_restored"] == CHAIN

    async def test_a_parent_at_the_end_of_a_chain_does_not_hold_the_loop(
        self, watched: RunningGateway, http: httpx2.AsyncClient, chain: str
    ) -> None:
        async with within_bounds(http):
            arguments = {"graph": chain, "entityName": "link 0", "parentName": f"link {CHAIN - 1}"}
            circle = await watched.call(http, "set_entity_parent", arguments, path="/mcp/x/organize")
            arguments = {"graph": chain, "entityName": "link 1", "parentName": "link 0"}
            known = await watched.call(http, "set_entity_parent", arguments, path="/mcp/x/organize")
        assert circle["_meta"][ERROR_META]["code"] == "cycle"
        assert not known["isError"], known


def _small(name: str) -> list[str]:
    """500 entities with twenty observations each, as JSON without the opening brace."""
    said = ",".join(f'"{n}"' for n in range(20))
    return [f'"name":"{name} {n}","entityType":"t","observations":[{said}]}}' for n in range(500)]


SMALL_THINGS = {
    "application/x-ndjson": "\n".join('{"type":"entity",' + one for one in _small("line")).encode(),
    "application/json": f'{{"entities":[{",".join("{" + one for one in _small("item"))}],"relations":[]}}'.encode(),
    "text/csv": "\n".join(
        ["name,entityType,observations", *(f"text/csv {n},t,{'; '.join(map(str, range(20)))}" for n in range(500))]
    ).encode(),
}
"""Files with as many observations as one request may have, all of them small."""

EMPTIES = b"[" + b",".join([b"{}"] * 1_300_000) + b"]"
ONES = b"[" + b",".join([b"1"] * 2_000_000) + b"]"
TEXT = b'"' + b"x" * 4_000_000 + b'"'
COMMAS = b'"' + b'\\",' * 1_300_000 + b'"'


class TestBodies:
    """Any body of 4 MB is refused or read without holding the loop."""

    @pytest.mark.parametrize("path", ["/mcp/x/all", "/v1/graphs/default/memories"])
    @pytest.mark.parametrize(
        ("body", "statuses"), [(EMPTIES, {413}), (ONES, {413}), (TEXT, {400}), (COMMAS, {400})], ids=lambda _: "body"
    )
    async def test_a_body_that_is_no_valid_message(
        self, http: httpx2.AsyncClient, path: str, body: bytes, statuses: set[int]
    ) -> None:
        async with within_bounds(http):
            response = await http.post(path, content=body, headers=rpc_headers())
        assert response.status_code in statuses, response.text[:200]

    @pytest.mark.parametrize("path", ["/mcp/x/all", "/v1/graphs/default/memories"])
    async def test_several_large_bodies_at_once(self, http: httpx2.AsyncClient, path: str) -> None:
        async with within_bounds(http):
            posts = (http.post(path, content=EMPTIES, headers=rpc_headers()) for _ in range(4))
            responses = await asyncio.gather(*posts)
        assert {response.status_code for response in responses} == {413}

    @pytest.mark.parametrize("count", [190_000, 1_000_000])
    async def test_a_list_that_is_too_long(self, watched: RunningGateway, http: httpx2.AsyncClient, count: int) -> None:
        arguments = b'{"query":"x","about":[' + b",".join([b'"a"'] * count) + b"]}"
        call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":%s}}' % arguments
        async with within_bounds(http):
            response = await http.post("/mcp/x/all", content=call, headers=rpc_headers())
        said = "about: Array must contain at most 50 elements" if response.status_code == 200 else "may have at most"
        assert said in response.text

    @pytest.mark.proves("security: bodies")
    async def test_many_values_in_metadata(self, watched: RunningGateway, http: httpx2.AsyncClient) -> None:
        items = [{"text": f"fact {n}", "metadata": {"some": [0] * 1_900}} for n in range(100)]
        async with within_bounds(http):
            result = await watched.call(http, "remember", {"items": items}, path="/mcp/x/all")
        assert not result["isError"], result

    @pytest.mark.parametrize("name", ["csv", "jsonl"])
    async def test_a_file_of_empty_lines(self, watched: RunningGateway, http: httpx2.AsyncClient, name: str) -> None:
        media_type = {"csv": "text/csv", "jsonl": "application/x-ndjson"}[name]
        async with within_bounds(http):
            response = await http.post(
                "/v1/graphs/lines/import", content=b"\n" * 4_000_000, headers={"Content-Type": media_type}
            )
            arguments = {"format": name, "data": "\n" * 2_000_000, "dryRun": True}
            result = await watched.call(http, "import_graph", arguments, path="/mcp/x/all")
        assert response.status_code == 413, response.text
        assert result["structuredContent"]["job"], result

    async def test_a_query_that_expands(self, watched: RunningGateway, http: httpx2.AsyncClient) -> None:
        pairs = "".join(f"({chr(97 + 2 * n)} or {chr(98 + 2 * n)})" for n in range(6))
        query = " ".join([f"(({pairs}{pairs})({pairs}{pairs}))"] * 4)
        assert len(query) <= 1_000
        async with within_bounds(http):
            result = await watched.call(http, "boolean_search", {"query": query}, path="/mcp/x/organize")
        assert "split it into smaller queries" in result["content"][0]["text"]


class TestReplies:
    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("fuzzy_search", {"query": "x" * 1_000, "threshold": 0}),
            ("fuzzy_search", {"query": "x" * 1_000, "threshold": 0, "limit": 1000}),
            ("search_nodes", {"query": "x", "limit": 1000}),
            ("boolean_search", {"query": "observation:x", "limit": 1000}),
            ("search_nodes_ranked", {"query": "talker", "limit": 200}),
            ("read_graph", {}),
            ("read_graph", {"limit": 1000}),
            ("open_nodes", {"names": [f"talker {n}" for n in range(100)]}),
            ("batch_get_entities", {"names": [f"talker {n}" for n in range(100)]}),
            ("search_by_date_range", {"limit": 1000}),
        ],
        ids=lambda value: value if isinstance(value, str) else "…",
    )
    async def test_texts_that_exceed_a_reply_are_not_read(
        self, watched: RunningGateway, http: httpx2.AsyncClient, texts: str, tool: str, arguments: dict[str, Any]
    ) -> None:
        async with within_bounds(http, MAX_TAKEN_BY_CUT):
            result = await watched.call(http, tool, {"graph": texts, **arguments}, path="/mcp/x/all")
        if result["isError"]:  # A search that would compare too many characters is refused.
            assert result["_meta"][ERROR_META]["code"] == "too_costly", result
        else:
            assert "omittedObservations" in result["content"][0]["text"]

    @pytest.mark.usefixtures("numbers")
    async def test_a_reply_of_a_million_values_is_sent(self, watched: RunningGateway, http: httpx2.AsyncClient) -> None:
        arguments = {"graph": "numbers", "limit": NUMBERED}
        async with within_bounds(http):
            plain = await watched.call(http, "list_nodes", arguments, path="/mcp/x/all")
        call = {"name": "list_nodes", "arguments": arguments, "_meta": {"progressToken": "here"}}
        async with within_bounds(http):
            streamed = (await watched.post(http, "tools/call", call, path="/mcp/x/all"))["result"]
        async with within_bounds(http):
            modern = await TaskClient(http).call("list_nodes", **arguments)
        for told in (plain, streamed, modern):
            listed = told["structuredContent"]["nodes"]
            assert [len(node["metadata"]["some"]) for node in listed] == [49_000] * NUMBERED
            assert msgspec.json.decode(told["content"][0]["text"]) == told["structuredContent"]

    async def test_a_resource_of_many_values_is_read(self, http: httpx2.AsyncClient, numbers: list[str]) -> None:
        uri = f"recollect://graphs/numbers/nodes/{numbers[0]}"
        async with within_bounds(http):
            read = await TaskClient(http).send("resources/read", uri, uri=uri)
        [contents] = read.json()["result"]["contents"]
        assert msgspec.json.decode(contents["text"])["node"]["metadata"] == {"some": [0] * 49_000}

    async def test_a_large_neighbourhood_is_sent_to_modern_clients(
        self, http: httpx2.AsyncClient, clique: str, db: Database, tenant_caller: Caller
    ) -> None:
        [member] = (await Agent(db, tenant_caller, clique).open("member 1")).entities
        arguments = {"owner_id": clique, "node_id": str(member.id), "depth": 6, "max_nodes": 200}
        async with within_bounds(http):
            told = await TaskClient(http).call("get_context", **arguments)
        assert len(told["structuredContent"]["nodes"]) == CLIQUE + 3


class TestManyItems:
    """Calls that the generated ones below do not cover: few items that become many rows, and files of tiny items."""

    async def test_memories_about_many_entities(self, watched: RunningGateway, http: httpx2.AsyncClient) -> None:
        """1,200 observations of 10,000 characters each, in 24,000 passages."""
        said = "so it was said. " * 620
        about = [f"somebody {n}" for n in range(12)]
        items = [{"text": f"{n} {said}", "about": about} for n in range(100)]
        async with within_bounds(http):
            result = await watched.call(http, "remember", {"graph": "much", "items": items}, path="/mcp/x/all")
        assert not result["isError"], result

    async def test_those_memories_are_undone(self, watched: RunningGateway, http: httpx2.AsyncClient) -> None:
        arguments = {"graph": "much", "since_revision": 0, "dry_run": False}
        async with within_bounds(http):
            result = await watched.call(http, "undo_changes", arguments, path="/mcp/x/admin")
        assert result["structuredContent"]["nodes_removed"] == 12, result

    @pytest.mark.parametrize("media_type", SMALL_THINGS, ids=lambda media_type: media_type.rpartition("/")[2])
    async def test_a_file_of_small_items(self, http: httpx2.AsyncClient, media_type: str) -> None:
        async with within_bounds(http):
            response = await http.post(
                "/v1/graphs/small/import", content=SMALL_THINGS[media_type], headers={"Content-Type": media_type}
            )
        assert response.status_code == 200, response.text
        assert response.json()["observations_added"] == 10_000, response.text[:500]

    async def test_a_thousand_names_are_opened(self, watched: RunningGateway, http: httpx2.AsyncClient) -> None:
        names = [f"text/csv {n}" for n in range(500)] + [f"nobody {n}" for n in range(500)]
        async with within_bounds(http):
            result = await watched.call(http, "open_nodes", {"graph": "small", "names": names}, path="/mcp/x/all")
        assert not result["isError"], result

    @pytest.mark.parametrize("depth", [20, 40, 100_000])
    async def test_a_deeply_nested_value(self, http: httpx2.AsyncClient, depth: int) -> None:
        deep = b"[" * depth + b"]" * depth
        body = b'{"items":[{"text":"deep","metadata":{"a":%s}}]}' % deep
        async with within_bounds(http):
            response = await http.post(
                "/v1/graphs/default/memories", content=body, headers={"Content-Type": "application/json"}
            )
        assert response.status_code == (200 if depth < 32 else 400), response.text

    @pytest.mark.parametrize(
        "path", ["/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/authorize", "/sign-in"]
    )
    async def test_a_form_or_document_of_many_fields(self, watched: RunningGateway, path: str) -> None:
        fields = "&".join(f"{n}=%41%42" for n in range(3_000))[:32_000].encode()
        listed = b'{"redirect_uris":[%s]}' % b",".join([b'"https://a.example"'] * 1_600)
        content, media_type = (
            (listed, "application/json") if "register" in path else (fields, "application/x-www-form-urlencoded")
        )
        async with watched.http() as anybody, within_bounds(anybody):
            response = await anybody.post(path, content=content, headers={"Content-Type": media_type})
        assert 400 <= response.status_code < 500, response.text


class TestStar:
    """An entity with thousands of relations is read without holding the loop."""

    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("explore", {"start": "hub", "depth": 4}),
            ("get_neighbors", {"name": "hub", "limit": 1000}),
            ("extract_subgraph", {"names": ["hub"], "depth": 10}),
            ("open_nodes", {"names": ["hub"]}),
        ],
        ids=lambda value: value if isinstance(value, str) else "…",
    )
    async def test_reading_a_star_does_not_hold_the_loop(
        self, watched: RunningGateway, http: httpx2.AsyncClient, star: str, tool: str, arguments: dict[str, Any]
    ) -> None:
        async with within_bounds(http):
            result = await watched.call(http, tool, {"graph": star, **arguments}, path="/mcp/x/all")
        assert not result["isError"], result


class TestEveryTool:
    """Each tool with the largest arguments of its schema, and with its example on each of the bad graphs."""

    @pytest.mark.proves("security: computations")
    async def test_each_tool_keeps_the_bounds_with_its_largest_arguments(
        self, watched: RunningGateway, http: httpx2.AsyncClient, subtests: pytest.Subtests
    ) -> None:
        for tool in CATALOGUE:
            with subtests.test(tool.name):
                arguments = worst_call(tool, EXAMPLES[tool.name])
                async with within_bounds(http):
                    result = await watched.call(http, tool.name, arguments, path="/mcp/x/all")
                    assert (await http.get("/health/live")).status_code == 200
                assert "isError" in result

    async def test_each_reading_tool_keeps_the_bounds_on_an_adverse_graph(
        self,
        watched: RunningGateway,
        http: httpx2.AsyncClient,
        db: Database,
        tenant_caller: Caller,
        clique: str,
        chain: str,
        texts: str,
        subtests: pytest.Subtests,
    ) -> None:
        for graph, name in ((clique, "member 1"), (chain, "link 1"), (texts, "talker 1")):
            [entity] = (await Agent(db, tenant_caller, graph).open(name)).entities
            for tool in [tool for tool in CATALOGUE if tool.read_only]:
                with subtests.test(f"{tool.name} on {graph}"):
                    arguments = on_graph(EXAMPLES[tool.name], tool, graph, name, str(entity.id))
                    async with within_bounds(http):
                        await watched.call(http, tool.name, arguments, path="/mcp/x/all")


class TestEveryRoute:
    """Each route with the largest request of its schema, and each that reads on each of the bad graphs."""

    async def test_each_route_keeps_the_bounds_with_its_largest_request(
        self, http: httpx2.AsyncClient, subtests: pytest.Subtests
    ) -> None:
        for method, path in OPERATIONS:
            with subtests.test(f"{method} {path}"):
                names = stand_ins(path, graph="default", id_=f"{STAND_IN}-8000-000000000001")
                for worst in worst_requests(DOCUMENT, method, path, names):
                    async with within_bounds(http):
                        status = await send(http, worst)
                        assert (await http.get("/health/live")).status_code == 200
                    assert status < 500

    async def test_each_reading_route_keeps_the_bounds_on_an_adverse_graph(
        self, http: httpx2.AsyncClient, clique: str, alike: str, chain: str, texts: str, subtests: pytest.Subtests
    ) -> None:
        paths = [path for method, path in OPERATIONS if method == "get" and "{name}" in path]
        for graph in (clique, alike, chain, texts):
            [first] = (await http.get(f"/v1/graphs/{graph}/nodes", params={"limit": 1})).json()["items"]
            for path in paths:
                with subtests.test(f"{path} of {graph}"):
                    for worst in worst_requests(DOCUMENT, "get", path, {"name": graph, "node": first["id"]}):
                        async with within_bounds(http):
                            assert await send(http, worst) == 200


async def send(http: httpx2.AsyncClient, worst: RouteRequest) -> int:
    """Send a request, read its whole answer, and return the status."""
    headers = {} if worst.body is None else {"Content-Type": worst.media_type}
    method = worst.method.upper()
    async with http.stream(method, worst.path, params=worst.params, content=worst.body, headers=headers) as answer:
        async for _ in answer.aiter_raw():
            pass
    return answer.status_code
