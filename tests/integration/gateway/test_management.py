"""The management API over real HTTP: graphs, keys, and refusals as problem details (RFC 9457)."""

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, rpc_answer, rpc_headers
from tests.support.routes import OPEN_TO_ALL

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CODES = {400: "invalid_input", 401: "unauthenticated", 404: "not_found", 405: "method_not_allowed"}


@pytest.fixture
async def admin(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as http:
        yield http


@pytest.fixture
async def agent(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key) as http:
        yield http


@pytest.fixture
async def other(gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant) -> AsyncIterator[httpx2.AsyncClient]:
    """Another tenant's admin."""
    issued = await issue(operator_caller(await new_tenant()), kind="admin")
    async with gateway.http(issued.secret) as http:
        yield http


async def done(http: httpx2.AsyncClient, method: str, path: str, **body: Any) -> Any:
    """The answer to a request that must succeed."""
    response = await http.request(method, path, json=body or None)
    assert response.status_code in (200, 201), response.text
    return response.json()


async def everything(http: httpx2.AsyncClient, path: str, limit: int) -> list[Any]:
    """Every entry of a list, page by page."""
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await http.get(path, params={"limit": str(limit), **cursor})).json()
        assert len(page["items"]) <= limit
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def graph_names(http: httpx2.AsyncClient) -> list[str]:
    return [graph["name"] for graph in await everything(http, "/v1/graphs", 200)]


def problem(response: httpx2.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """The problem details of a response."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"].startswith("application/problem+json")
    said: dict[str, Any] = response.json()
    assert set(said) - {"path"} == {"type", "title", "status", "detail", "code"}
    assert (said["status"], said["code"]) == (status, code or CODES[status])
    assert said["detail"]
    return said


class TestGraphs:
    async def test_an_empty_whitelist_allows_every_kind(self, admin: httpx2.AsyncClient) -> None:
        made = await done(admin, "POST", "/v1/graphs", name="open", kind_whitelist=[])
        assert made["kind_whitelist"] is None
        await done(admin, "POST", "/v1/graphs/open/memories", items=[{"text": "tea is hot"}])
        assert (await done(admin, "GET", "/v1/graphs/open"))["facts"] == 1

    async def test_a_new_graph_is_empty(self, admin: httpx2.AsyncClient) -> None:
        wanted = {"name": "team", "conflict_policy": "manual", "kind_whitelist": ["person"], "metadata": {"a": [1]}}
        response = await admin.post("/v1/graphs", json=wanted)
        assert response.status_code == 201
        made = response.json()
        assert {name: made[name] for name in wanted} == wanted
        assert made["created_by"].startswith("key:")
        read = await done(admin, "GET", "/v1/graphs/team")
        counts = {"revision": 0, "entities": 0, "facts": 0, "observations": 0, "relations": 0}
        assert read == made | counts | {"at": read["at"]}

    async def test_a_graph_has_defaults(self, admin: httpx2.AsyncClient) -> None:
        made = await done(admin, "POST", "/v1/graphs", name="plain")
        assert (made["conflict_policy"], made["kind_whitelist"], made["metadata"]) == ("lww", None, {})

    async def test_counts_follow_tool_calls(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient, agent: httpx2.AsyncClient
    ) -> None:
        entities = [{"name": name, "entityType": "t", "observations": ["x", "y"]} for name in ("a", "b")]
        await gateway.call(agent, "create_entities", {"entities": entities})
        edge = {"from": "a", "to": "nobody", "relationType": "r"}
        await gateway.call(agent, "create_relations", {"relations": [edge]})
        await gateway.call(agent, "delete_entities", {"entityNames": ["b"]})
        read = await done(admin, "GET", "/v1/graphs/default")
        counts = {name: read[name] for name in ("revision", "entities", "facts", "observations", "relations")}
        assert counts == {"revision": 3, "entities": 1, "facts": 0, "observations": 2, "relations": 1}

    @pytest.mark.parametrize("limit", [1, 2, 3, 200])
    async def test_pages_of_graphs_are_ordered_by_name_and_complete(
        self, admin: httpx2.AsyncClient, limit: int
    ) -> None:
        names = ["A", "a", "_b", "-c", "@d"]
        for name in names:
            await done(admin, "POST", "/v1/graphs", name=name)
        found = [graph["name"] for graph in await everything(admin, "/v1/graphs", limit)]
        assert sorted(found) == sorted([*names, "default"])

    async def test_invalid_deduplication_metadata_is_refused(self, admin: httpx2.AsyncClient) -> None:
        wanted = {"name": "team", "metadata": {"dedup": {"mode": "merge", "threshold": 7}}}
        said = problem(await admin.post("/v1/graphs", json=wanted), 400, "invalid_input")
        assert (said["path"], said["detail"]) == ("metadata.dedup.threshold", "Expected `float` <= 1.0")
        assert await graph_names(admin) == ["default"]
        await done(admin, "POST", "/v1/graphs", name="team", metadata={"dedup": {"mode": "merge", "threshold": 0.7}})

    async def test_a_name_can_be_used_once_in_a_tenant(
        self, admin: httpx2.AsyncClient, other: httpx2.AsyncClient
    ) -> None:
        await done(admin, "POST", "/v1/graphs", name="team")
        problem(await admin.post("/v1/graphs", json={"name": "team"}), 409, "graph_exists")
        await done(other, "POST", "/v1/graphs", name="team")

    async def test_agents_can_list_and_not_create_graphs(self, agent: httpx2.AsyncClient) -> None:
        problem(await agent.post("/v1/graphs", json={"name": "team"}), 403, "scope_required")
        assert await graph_names(agent) == ["default"]

    async def test_admins_without_memory_scopes_cannot_read_graphs(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller
    ) -> None:
        only_admin = await issue(caller, kind="admin", scopes=frozenset({Scope.TENANT_ADMIN}))
        async with gateway.http(only_admin.secret) as http:
            problem(await http.get("/v1/graphs"), 403, "scope_required")
            problem(await http.get("/v1/graphs/default"), 403, "scope_required")

    async def test_an_allow_list_limits_the_visible_graphs(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient, issue: NewApiKey, caller: Caller
    ) -> None:
        made = {name: await done(admin, "POST", "/v1/graphs", name=name) for name in ("open", "closed")}
        narrow = await done(admin, "POST", "/v1/keys", name="narrow", kind="admin", graphs=["open"])
        async with gateway.http(narrow["secret"]) as http:
            assert await graph_names(http) == ["open"]
            assert (await done(http, "GET", "/v1/graphs/open"))["id"] == made["open"]["id"]
            closed = problem(await http.get("/v1/graphs/closed"), 403, "graph_not_allowed")
            assert problem(await http.get("/v1/graphs/not-there"), 403, "graph_not_allowed") == closed
            problem(await http.post("/v1/graphs", json={"name": "more"}), 403, "graph_not_allowed")

    async def test_another_tenants_graph_is_not_found(
        self, admin: httpx2.AsyncClient, other: httpx2.AsyncClient
    ) -> None:
        await done(admin, "POST", "/v1/graphs", name="ours")
        theirs = problem(await other.get("/v1/graphs/ours"), 404, "graph_not_found")
        assert theirs == problem(await other.get("/v1/graphs/ours"), 404, "graph_not_found")
        assert await graph_names(other) == ["default"]


class TestKeys:
    async def test_a_key_is_created_used_and_revoked(self, gateway: RunningGateway, admin: httpx2.AsyncClient) -> None:
        response = await admin.post("/v1/keys", json={"name": "bot"})
        assert response.status_code == 201
        issued = response.json()
        secret = issued.pop("secret")
        assert secret.startswith("rcl_agent_")
        assert issued["scopes"] == ["memory:read", "memory:write"]
        assert secret not in (await admin.get("/v1/keys")).text, "shown once"
        assert issued in (await done(admin, "GET", "/v1/keys"))["items"]
        async with gateway.http(secret, **rpc_headers()) as bot:
            assert (await bot.post("/mcp", json=LIST_TOOLS)).status_code == 200
            revoked = await done(admin, "DELETE", f"/v1/keys/{issued['id']}")
            assert revoked["revoked_at"]
            assert (await bot.post("/mcp", json=LIST_TOOLS)).status_code == 401
            problem(await bot.get("/v1/graphs"), 401)
        assert await done(admin, "DELETE", f"/v1/keys/{issued['id']}") == revoked, "twice changes nothing"

    async def test_only_the_hash_of_a_key_is_stored(self, admin: httpx2.AsyncClient, owner: asyncpg.Connection) -> None:
        issued = await done(admin, "POST", "/v1/keys", name="bot")
        row = await owner.fetchrow("SELECT k::text FROM api_keys k WHERE id = $1", issued["id"])
        assert row is not None
        assert issued["secret"] not in row[0]
        assert issued["secret"][10:-6] not in row[0]
        assert issued["hint"] == f"rcl_agent_…{issued['secret'][-4:]}"

    async def test_a_key_has_the_requested_properties(self, gateway: RunningGateway, admin: httpx2.AsyncClient) -> None:
        graph = await done(admin, "POST", "/v1/graphs", name="team")
        expires = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        wanted = {"name": "é 🧠", "scopes": ["memory:read"], "graphs": ["team"], "default_graph": "team"}
        issued = await done(admin, "POST", "/v1/keys", **wanted, expires_at=expires)
        assert issued["graphs"] == [graph["id"]]
        assert issued["default_graph"] == graph["id"]
        assert issued["scopes"] == ["memory:read"]
        assert datetime.fromisoformat(issued["expires_at"]) == datetime.fromisoformat(expires)
        async with gateway.http(issued["secret"], **rpc_headers()) as http:
            tools = rpc_answer((await http.post("/mcp", json=LIST_TOOLS)).text)["result"]["tools"]
            assert [tool["name"] for tool in tools] == ["recall", "explore"]

    @pytest.mark.parametrize("over", [timedelta(seconds=1), timedelta(days=366)])
    async def test_an_already_expired_key_is_refused(self, admin: httpx2.AsyncClient, over: timedelta) -> None:
        body = {"name": "old", "expires_at": (datetime.now(UTC) - over).isoformat()}
        refused = await admin.post("/v1/keys", json=body)
        problem(refused, 400)
        assert refused.json()["path"] == "expires_at"
        assert [key["name"] for key in (await done(admin, "GET", "/v1/keys"))["items"]] == ["test"]

    async def test_a_key_can_be_valid_until_the_end_of_the_calendar(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient
    ) -> None:
        issued = await done(admin, "POST", "/v1/keys", name="for ever", expires_at="9999-12-31T23:59:59.999999Z")
        async with gateway.http(issued["secret"], **rpc_headers()) as http:
            assert (await http.post("/mcp", json=LIST_TOOLS)).status_code == 200

    @pytest.mark.parametrize("limit", [1, 2, 200])
    async def test_pages_of_keys_are_ordered_by_age_and_complete(self, admin: httpx2.AsyncClient, limit: int) -> None:
        names = [f"bot {number}" for number in range(4)]
        for name in names:
            await done(admin, "POST", "/v1/keys", name=name)
        assert [key["name"] for key in await everything(admin, "/v1/keys", limit)] == ["test", *names]

    async def test_agents_cannot_manage_keys(self, agent: httpx2.AsyncClient) -> None:
        for method, path in (("GET", "/v1/keys"), ("POST", "/v1/keys"), ("DELETE", f"/v1/keys/{uuid4()}")):
            problem(await agent.request(method, path, json={"name": "x"}), 403, "scope_required")

    async def test_another_tenants_key_is_not_found(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient, other: httpx2.AsyncClient
    ) -> None:
        ours = await done(admin, "POST", "/v1/keys", name="ours")
        foreign = problem(await other.delete(f"/v1/keys/{ours['id']}"), 404, "key_not_found")
        assert foreign == problem(await other.delete(f"/v1/keys/{uuid4()}"), 404, "key_not_found")
        assert ours["id"] not in (await other.get("/v1/keys")).text
        after_ours = await done(other, "GET", f"/v1/keys?cursor={ours['id']}")
        assert after_ours == {"items": [], "next_cursor": None}
        async with gateway.http(ours["secret"], **rpc_headers()) as http:
            assert (await http.post("/mcp", json=LIST_TOOLS)).status_code == 200

    async def test_a_key_cannot_be_given_more_graphs_than_its_creator_has(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient
    ) -> None:
        for name in ("open", "closed"):
            await done(admin, "POST", "/v1/graphs", name=name)
        narrow = await done(admin, "POST", "/v1/keys", name="narrow", kind="admin", graphs=["open"])
        async with gateway.http(narrow["secret"]) as http:
            await done(http, "POST", "/v1/keys", name="as narrow", graphs=["open"])
            for wider in ({}, {"graphs": ["closed"]}, {"graphs": ["open", "closed"]}):
                problem(await http.post("/v1/keys", json={"name": "wider", **wider}), 403, "graph_not_allowed")

    async def test_a_key_cannot_be_given_another_tenants_graphs(
        self, admin: httpx2.AsyncClient, other: httpx2.AsyncClient
    ) -> None:
        await done(admin, "POST", "/v1/graphs", name="ours")
        wanted = {"name": "thief", "graphs": ["ours"]}
        problem(await other.post("/v1/keys", json=wanted), 404, "graph_not_found")


class TestRefusals:
    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/v1/nothing", 404),
            ("GET", "/nothing", 404),
            ("PUT", "/v1/graphs", 405),
            ("PUT", "/v1/graphs/default", 405),
            ("GET", "/v1/graphs?limit=0", 400),
            ("GET", "/v1/graphs?limit=201", 400),
            ("GET", "/v1/graphs?limit=many", 400),
            ("GET", "/v1/graphs?cursor=%00", 400),
            ("GET", "/v1/graphs?cursor=a%20b", 400),
            ("GET", "/v1/graphs?cursor=a%0A", 400),
            ("GET", "/v1/jobs?graph=a%0A", 400),
            ("GET", "/v1/graphs?cursor=" + "x" * 129, 400),
            ("GET", "/v1/graphs/a%20b", 400),
            ("GET", "/v1/graphs/a%00b", 400),
            ("GET", "/v1/graphs/%ff", 400),
            ("GET", "/v1/keys?cursor=not-a-uuid", 400),
            ("DELETE", "/v1/keys/not-a-uuid", 404),
        ],
    )
    async def test_invalid_addresses_are_refused(
        self, admin: httpx2.AsyncClient, method: str, path: str, status: int
    ) -> None:
        response = await admin.request(method, path)
        code = CODES[status]
        problem(response, status, code)

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"null",
            b"[]",
            b'"team"',
            b"{}",
            b'{"name":7}',
            b'{"name":""}',
            b'{"name":"a b"}',
            b'{"name":"team\\n"}',
            b'{"name":"team","colour":"red"}',
            b'{"name":"team","conflict_policy":"mine"}',
            b'{"name":"team","conflict_policy":"lww\\n"}',
            b'{"name":"team","kind_whitelist":"person"}',
            b'{"name":"team","kind_whitelist":["a\\u0000b"]}',
            b'{"name":"team","metadata":{"a":"b\\u0000c"}}',
            b'{"name":"team","metadata":{"a\\u0000b":1}}',
            b'{"name":"team","metadata":{"a":"\\ud800"}}',
            b'{"name":"team","metadata":{"a":NaN}}',
            b'{"name":"team","metadata":' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}",
            b'{"name":"team","metadata":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            b'{"name":"team","metadata":{"a":"' + b"x" * 100_001 + b'"}}',
            b'{"name":"team\xff"}',
        ],
        ids=lambda body: ascii(body[:50]),
    )
    async def test_invalid_graphs_are_refused(self, admin: httpx2.AsyncClient, body: bytes) -> None:
        response = await admin.post("/v1/graphs", content=body, headers={"Content-Type": "application/json"})
        problem(response, 400)
        assert await graph_names(admin) == ["default"]

    @pytest.mark.parametrize(
        "body",
        [
            b'{"name":""}',
            b'{"name":"' + b"x" * 201 + b'"}',
            b'{"name":"a\\u0000b"}',
            b'{"name":"a","kind":"operator"}',
            b'{"name":"a","kind":"admin\\n"}',
            b'{"name":"a","scopes":["memory:burn"]}',
            b'{"name":"a","expires_at":"tomorrow"}',
            b'{"name":"a","expires_at":"2027-01-01T00:00:00"}',
            b'{"name":"a","expires_at":"0001-01-01T00:00:00+12:00"}',
            b'{"name":"a","expires_at":"9999-12-31T23:59:59-12:00"}',
            b'{"name":"a","graphs":["a b"]}',
            b'{"name":"a","graphs":[],"default_graph":"a\\n"}',
            b'{"name":"a","tenant":"other"}',
        ],
        ids=ascii,
    )
    async def test_invalid_keys_are_refused(self, admin: httpx2.AsyncClient, body: bytes) -> None:
        response = await admin.post("/v1/keys", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code in (400, 404), response.text
        problem(response, response.status_code, response.json()["code"])
        assert [key["name"] for key in (await done(admin, "GET", "/v1/keys"))["items"]] == ["test"]

    async def test_a_body_over_the_limit_is_refused(self, admin: httpx2.AsyncClient) -> None:
        body = b'{"name":"' + b"x" * (4 * 1024 * 1024) + b'"}'
        response = await admin.post("/v1/graphs", content=body, headers={"Content-Type": "application/json"})
        problem(response, 413, "request_too_large")

    @pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "application/x-www-form-urlencoded"])
    async def test_other_content_types_do_not_fail(self, admin: httpx2.AsyncClient, content_type: str) -> None:
        body = json.dumps({"name": "team"}).encode()
        response = await admin.post("/v1/graphs", content=body, headers={"Content-Type": content_type})
        assert response.status_code in (201, 400, 415), response.text

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("PUT", "/v1/graphs", "GET, OPTIONS, POST"),
            ("PUT", "/v1/graphs/default", "DELETE, GET, OPTIONS, PATCH"),
            ("PUT", "/v1/keys/00000000-0000-0000-0000-000000000000", "DELETE, GET, OPTIONS"),
            ("GET", "/v1/keys/report", "OPTIONS, POST"),
            ("POST", "/health/live", "GET, OPTIONS"),
        ],
    )
    async def test_other_methods_are_refused_with_the_allowed_ones(
        self, admin: httpx2.AsyncClient, method: str, path: str, allowed: str
    ) -> None:
        response = await admin.request(method, path)
        problem(response, 405)
        assert response.headers["Allow"] == allowed
        told = await admin.options(path)
        assert (told.status_code, told.headers["Allow"]) == (204, allowed)

    async def test_options_returns_the_methods_of_each_path(self, admin: httpx2.AsyncClient) -> None:
        document = (await admin.get("/v1/openapi.json")).json()
        for path, operations in document["paths"].items():
            address = re.sub(r"\{[a-z]+_id\}", str(uuid4()), path.replace("{name}", "default"))
            allowed = {method.upper() for method in operations} | {"OPTIONS"}
            told = await admin.options(address)
            assert (told.status_code, set(told.headers["Allow"].split(", "))) == (204, allowed), path

    async def test_a_request_without_a_credential_is_refused(self, gateway: RunningGateway) -> None:
        async with gateway.http() as http:
            for path in ("/v1/graphs", "/v1/graphs/default", "/v1/keys"):
                for method in ("GET", "OPTIONS"):
                    response = await http.request(method, path)
                    problem(response, 401)
                    assert response.headers["WWW-Authenticate"].startswith("Bearer")


class TestOpenAPI:
    async def test_the_document_is_openapi_3_1_and_public(self, gateway: RunningGateway) -> None:
        async with gateway.http() as http:
            document = (await http.get("/v1/openapi.json")).json()
        assert document["openapi"].startswith("3.1")
        assert document["components"]["securitySchemes"]["apiKey"]["scheme"] == "bearer"

    async def test_every_route_under_v1_requires_a_credential(self, gateway: RunningGateway) -> None:
        """Both in the document and in fact."""
        async with gateway.http() as http:
            document = (await http.get("/v1/openapi.json")).json()
            for path, operations in document["paths"].items():
                for method, operation in operations.items():
                    if path.startswith("/v1/") and path not in OPEN_TO_ALL:
                        others = [way for way in operation["security"] if way != {"accessToken": []}]
                        assert others == [{"apiKey": []}, {"session": [], "tenant": []}]
                        address = re.sub(r"\{[a-z]+_id\}", str(uuid4()), path.replace("{name}", "default"))
                        problem(await http.request(method, address, json={}), 401)
