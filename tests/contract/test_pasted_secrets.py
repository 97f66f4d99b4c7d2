"""A key or a token of this service that was pasted into a text is stored nowhere, and no answer repeats it."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest

from recollect.accounts.identity.model import generate_secret
from recollect.accounts.identity.pasted_secrets import REASON, contains_secret, refuse_secrets
from recollect.caller import Caller
from recollect.errors import InvalidInput
from recollect.postgres.database import Database
from recollect.times import NEEDED
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from tests.contract.examples import EXAMPLES
from tests.support.gateway import RunningGateway, revision_of, rpc_headers

ALL = "/mcp/x/all"
KINDS = ("agent", "admin", "operator", "access", "refresh", "code")
OTHER_FAULTS = ("Expected", "Invalid", "at most 40 characters", NEEDED)
Place = tuple[str | int, ...]


@pytest.fixture
async def http(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key, **rpc_headers()) as http:
        yield http


class TestRecognition:
    def test_each_kind_is_recognised_wherever_it_stands(self, subtests: pytest.Subtests) -> None:
        for kind in KINDS:
            secret = generate_secret(kind)
            for text in (secret, f"Bearer {secret}", f"key={secret}.", f"a\n{secret}b", f"rcl_rcl_{secret}"):
                with subtests.test(text):
                    assert contains_secret(text)

    def test_what_is_no_secret_is_not(self, subtests: pytest.Subtests) -> None:
        secret = generate_secret("agent")
        mistyped = secret[:-1] + ("a" if secret[-1] != "a" else "b")
        for text in ("rcl_", "rcl_agent_…3fQa", secret[:-1], mistyped, secret.upper(), generate_secret("client")):
            with subtests.test(text):
                assert not contains_secret(text)

    def test_every_place_is_named(self) -> None:
        secret = generate_secret("agent")
        value = {"a": [{"b": "x"}, {"b": secret}], "metadata": {secret: 1, "c": {"d": secret}}, "e": "x"}
        with pytest.raises(InvalidInput) as error:
            refuse_secrets(value)
        assert [line.split(":")[0] for line in str(error.value).split("\n")] == ["a.1.b", "metadata", "metadata.c.d"]
        assert secret not in str(error.value)


@pytest.mark.proves("security: pasted-secrets")
async def test_no_tool_stores_one(
    gateway: RunningGateway, http: httpx2.AsyncClient, db: Database, caller: Caller, subtests: pytest.Subtests
) -> None:
    """In each text of each tool that writes: nothing is written, and the error names the path.

    What is no free text, such as a time, is refused for what it is. `put_subgraph` writes what else is in the call.
    """
    secret = generate_secret("agent")
    for tool in [tool for tool in CATALOGUE if not (tool.read_only or tool.destructive or tool.name == "put_subgraph")]:
        example = EXAMPLES[tool.name]
        for place in [place for place in texts_in(example) if place[0] not in ("graph", "owner_id")]:
            with subtests.test(tool=tool.name, place=place):
                arguments = replaced(example, place, f"The key is {secret}")
                result = await gateway.call(http, tool.name, arguments, path=ALL)
                told = json.dumps(result)
                assert result["isError"]
                assert result["_meta"][ERROR_META]["path"] == ".".join(map(str, place))
                assert (REASON in told and secret not in told) or any(word in told for word in OTHER_FAULTS)
    assert await revision_of(db, caller) == 0


@pytest.mark.proves("security: pasted-secrets")
async def test_the_tools_that_store_texts_refuse_it_for_this_reason(
    gateway: RunningGateway, http: httpx2.AsyncClient, db: Database, caller: Caller, subtests: pytest.Subtests
) -> None:
    secret = generate_secret("refresh")
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("remember", {"items": [{"text": "x"}, {"text": secret}]}, "items.1.text"),
        ("remember", {"items": [{"text": "x", "metadata": {"k": [secret]}}]}, "items.0.metadata.k.0"),
        ("remember", {"items": json.dumps([{"text": secret}]).replace("rcl_", "rcl\\u005f")}, "items.0.text"),
        ("revise", {"name": "Ada", "text": secret}, "text"),
        ("relate", {"triples": [{"subject": "a", "predicate": "b", "object": secret}]}, "triples.0.object"),
        ("create_entities", {"entities": [entity("A", secret)]}, "entities.0.observations.0"),
        ("add_observations", {"observations": [{"entityName": secret, "contents": []}]}, "observations.0.entityName"),
        ("create_node", {"text": secret}, "text"),
        ("put_node", {"kind": "note", "content": secret}, "content"),
        ("create_graph", {"name": "other", "metadata": {"key": secret}}, "metadata.key"),
        ("forget", {"names": ["Ada"], "reason": secret}, "reason"),
    ]
    for name, arguments, path in calls:
        with subtests.test(tool=name, path=path):
            result = await gateway.call(http, name, arguments, path=ALL)
            assert result["isError"]
            assert result["_meta"][ERROR_META] == {"code": "invalid_input", "path": path}
            assert REASON in json.dumps(result)
            assert secret not in json.dumps(result)
    assert await revision_of(db, caller) == 0


async def test_an_item_that_is_read_alone_fails_alone(gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
    secret = generate_secret("admin")
    nodes = [{"content": secret}, {"content": "x", "ref": secret}, {"content": "x"}]
    put = await gateway.call(http, "put_subgraph", {"nodes": [node | {"kind": "note"} for node in nodes]}, path=ALL)
    *bad, good = put["structuredContent"]["nodes"]
    assert [one["error"].partition(":")[0] for one in bad] == ["content", "ref"]
    assert all(REASON in one["error"] for one in bad)
    assert good["created"]
    assert secret not in json.dumps(put)


async def test_one_that_was_stored_before_can_be_looked_for_and_taken_away(
    gateway: RunningGateway, http: httpx2.AsyncClient
) -> None:
    secret = generate_secret("agent")
    for name, arguments in (
        ("recall", {"query": secret}),
        ("search_nodes", {"query": secret}),
        ("delete_observations", {"deletions": [{"entityName": "A", "observations": [secret]}]}),
        ("delete_entities", {"entityNames": [secret]}),
    ):
        result = await gateway.call(http, name, arguments, path=ALL)
        assert not result["isError"] or REASON not in json.dumps(result), name


@pytest.mark.proves("security: pasted-secrets")
async def test_an_import_reports_the_line(
    gateway: RunningGateway, http: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    """Also where the file writes its characters as escapes."""
    secret = generate_secret("agent")
    lines = [
        {"type": "entity", "name": "A", "entityType": "t", "observations": ["x"]},
        {"type": "entity", "name": "B", "entityType": "t", "observations": ["y", f"key {secret}"]},
        {"type": "relation", "from": "A", "to": secret, "relationType": "r"},
    ]
    data = "\n".join(map(json.dumps, lines)).replace("rcl_", "\\u0072cl_")
    with subtests.test("tool"):
        result = await gateway.call(http, "import_graph", {"format": "jsonl", "data": data, "graph": "one"}, path=ALL)
        assert result["isError"]  # It imports all or nothing.
        assert [result["content"][0]["text"].count(f"line {line}: {REASON}") for line in (2, 3)] == [1, 1]
    with subtests.test("route"):
        headers = {"Content-Type": "application/x-ndjson"}
        answer = (await http.post("/v1/graphs/two/import", content=data, headers=headers)).json()
        assert (answer["entities_created"], answer["relations_created"]) == (1, 0)
        assert [(error["line"], error["reason"]) for error in answer["errors"]] == [(2, REASON), (3, REASON)]


@pytest.mark.proves("security: pasted-secrets")
async def test_no_route_stores_one(gateway: RunningGateway, admin_key: str, db: Database, caller: Caller) -> None:
    secret = generate_secret("access")
    async with gateway.http(admin_key) as http:
        for path, body, place in (
            ("/v1/graphs/default/memories", {"items": [{"text": f"my key: {secret}"}]}, "items.0.text"),
            ("/v1/graphs", {"name": "other", "metadata": {"key": secret}}, "metadata.key"),
        ):
            response = await http.post(path, json=body)
            assert response.status_code == 400, response.text
            assert secret not in response.text
            assert place in response.text
    assert await revision_of(db, caller) == 0


def entity(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "entityType": "t", "observations": [text]}


def texts_in(value: Any, path: Place = ()) -> Iterator[Place]:
    """The places of the texts of an example."""
    if isinstance(value, str):
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from texts_in(item, (*path, key))


def replaced(value: Any, path: Place, text: str) -> Any:
    """The value with a text in that place."""
    if not path:
        return text
    inner: dict[Any, Any] = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    inner[path[0]] = replaced(inner[path[0]], path[1:], text)
    return inner if isinstance(value, dict) else list(inner.values())
