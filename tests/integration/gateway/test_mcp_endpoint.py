"""The MCP endpoint over real HTTP: offered tools, credentials, and bad requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import generate_secret, operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller, Scope
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from recollect.valkey.change_bus import ChangeBus
from recollect.valkey.client import connect_redis
from recollect.valkey.rate_limits.limiter import RateLimiter
from recollect_gateway.callers.admission import Admission
from recollect_gateway.callers.credentials import Authenticator
from recollect_gateway.callers.oauth_resources import Resources
from recollect_gateway.calls import Services
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.server_catalogue import RECOLLECT
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from recollect_gateway.mcp_endpoint.transport.endpoint import McpEndpoint
from recollect_gateway.streaming.streams import Streams
from tests.conftest import NewTenant
from tests.support.gateway import (
    LEGACY,
    MODERN,
    MODES,
    NewApiKey,
    RunningGateway,
    error_of,
    eventually,
    revision_of,
    rpc_answer,
    rpc_headers,
    text_of,
)
from tests.support.memories import embedder

RequireUnharmed = Callable[[], Awaitable[None]]
Case = Callable[[str], AbstractAsyncContextManager[None]]
BOTH_REVISIONS = pytest.mark.parametrize("revision", MODES)
AGENT = [tool.name for tool in CATALOGUE if "agent" in tool.toolsets]
MEMORY = [tool.name for tool in CATALOGUE if "memory" in tool.toolsets]
BOTH = [tool.name for tool in CATALOGUE if tool.toolsets & {"agent", "memory"}]
ALL = [tool.name for tool in CATALOGUE]
READING = [tool.name for tool in CATALOGUE if tool.read_only]
ALICE = {"name": "Alice", "entityType": "person", "observations": ["likes tea"]}
READ_GRAPH = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "read_graph", "arguments": {}}}
INTERNALS = (
    "traceback",
    'file "',
    "asyncpg",
    "select ",
    "insert into",
    "site-packages",
    "recollect_gateway",
    "recollect_http",
    "psycopg",
    "pydantic",
    "msgspec",
    "jsonrpcrequest",
    "http://",
    "https://",
    " line 1",
)


@pytest.fixture(scope="module")
async def tenant_caller(new_tenant: NewTenant) -> Caller:
    """A caller of the tenant of the requests that write nothing."""
    return operator_caller(await new_tenant())


@pytest.fixture(scope="module")
async def every_scope(issue: NewApiKey, tenant_caller: Caller) -> str:
    """The secret of a key to which every tool is offered."""
    return (await issue(tenant_caller, kind="admin")).secret


@pytest.fixture(scope="module")
async def http(gateway: RunningGateway, every_scope: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with that key."""
    async with gateway.http(every_scope, **rpc_headers()) as http:
        yield http


@pytest.fixture
async def other(new_tenant: NewTenant) -> Caller:
    """The operator of another tenant."""
    return operator_caller(await new_tenant())


def assert_no_internals(text: str) -> None:
    """An answer contains nothing of our internals."""
    assert not [word for word in INTERNALS if word in text.lower()], text


class TestOfferedTools:
    @pytest.mark.proves("rules: listed-is-callable")
    async def test_the_address_and_headers_select_the_tools(
        self, gateway: RunningGateway, every_scope: str, tenant_caller: Caller, subtests: pytest.Subtests
    ) -> None:
        for revision in MODES:
            for path, headers, offered in [
                ("/mcp", {}, AGENT),
                ("/mcp/", {}, AGENT),
                ("/mcp/x/agent", {}, AGENT),
                ("/mcp/x/memory", {}, MEMORY),
                ("/mcp/x/all", {}, ALL),
                ("/mcp/x/agent,memory", {}, BOTH),
                ("/t/{tenant}/mcp", {}, AGENT),
                ("/t/{tenant}/mcp/x/memory", {}, MEMORY),
                ("/mcp", {"X-MCP-Toolsets": "memory"}, MEMORY),
                ("/mcp", {"X-MCP-Toolsets": "memory , agent,"}, BOTH),
                ("/mcp", {"X-MCP-Toolsets": "all"}, ALL),
                ("/mcp", {"X-MCP-Toolsets": ""}, AGENT),
                ("/mcp/x/memory", {"X-MCP-Toolsets": "agent"}, MEMORY),
                ("/mcp/x/all", {"X-MCP-Readonly": "true"}, READING),
                ("/mcp/x/all", {"X-MCP-Readonly": "1"}, READING),
                ("/mcp/x/all", {"X-MCP-Readonly": "false"}, ALL),
                ("/mcp/x/all", {"X-MCP-Readonly": "Off"}, ALL),
            ]:
                with subtests.test(f"{path} {headers} {revision}"):
                    address = path.format(tenant=tenant_caller.tenant)
                    async with gateway.client(every_scope, address, revision=revision, headers=headers) as client:
                        assert [tool.name for tool in (await client.list_tools()).tools] == offered

    async def test_any_value_but_false_of_the_read_only_header_excludes_writing_tools(
        self, gateway: RunningGateway, every_scope: str, subtests: pytest.Subtests
    ) -> None:
        """Sent as written here: HTTP clients would correct some of it."""
        for said in [
            [word]
            for word in ("on", "t", "y", "TRUE", "2", "", "true ", " true", "true, false", "false, false", "falsch")
        ] + [["false", "true"], ["true", "false"], ["0", "maybe"]]:
            with subtests.test(str(said)):
                call = {"name": "remember", "arguments": {"items": [{"text": "x"}]}}
                body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
                headers = [*rpc_headers().items(), *(("X-MCP-Readonly", word) for word in said)]
                headers += [("Host", "127.0.0.1:1"), ("Authorization", f"Bearer {every_scope}")]
                headers += [("Content-Length", str(len(body)))]
                lines = "".join(f"{name}: {value}\r\n" for name, value in [*headers, ("Connection", "close")])
                address = urlsplit(gateway.url)
                reader, writer = await asyncio.open_connection(address.hostname, address.port)
                writer.write(f"POST /mcp HTTP/1.1\r\n{lines}\r\n{body}".encode())
                assert b"Unknown tool: remember" in await reader.read()
                writer.close()

    @pytest.mark.proves("rules: listed-is-callable")
    @pytest.mark.parametrize("path", ["/mcp/x/memory", "/mcp/x/agent"])
    async def test_only_listed_tools_can_be_called(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, path: str
    ) -> None:
        listed = {tool["name"] for tool in (await gateway.post(http, "tools/list", {}, path=path))["result"]["tools"]}
        for name in [*ALL, "unheard_of", "", "CREATE_ENTITIES"]:
            answer = await gateway.post(http, "tools/call", {"name": name, "arguments": {"x": 1}}, path=path)
            assert ("result" in answer) is (name in listed)
            if name not in listed:
                assert answer["error"]["message"] == f"Unknown tool: {name}"

    async def test_an_unknown_toolset_is_refused_by_name(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, subtests: pytest.Subtests
    ) -> None:
        for path, headers in [
            ("/mcp/x/nothing", {}),
            ("/mcp", {"X-MCP-Toolsets": "memory,nothing"}),
            ("/mcp/x/Memory", {}),
        ]:
            with subtests.test(f"{path} {headers}"):
                response = await http.post(path, json=READ_GRAPH, headers=headers)
                problem = response.json()
                assert (response.status_code, problem["code"], problem["path"]) == (400, "invalid_input", "toolset")
                known = "the toolsets are: admin, agent, facts, lineage, memory, openai, organize, all"
                assert known in problem["detail"]

    @BOTH_REVISIONS
    async def test_a_key_that_may_only_read_is_offered_reading_tools(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, revision: str, db: Database
    ) -> None:
        reader = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
        async with gateway.client(reader.secret, "/mcp/x/all", revision=revision) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == READING
            with pytest.raises(MCPError, match="Unknown tool: create_entities"):
                await client.call_tool("create_entities", {"entities": [ALICE]})
            assert (await client.call_tool("read_graph", {})).structured_content == {"entities": [], "relations": []}
        assert await revision_of(db, caller) == 0

    @BOTH_REVISIONS
    async def test_a_key_without_memory_scopes_is_offered_no_memory_tools(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, revision: str
    ) -> None:
        admin = await issue(caller, kind="admin", scopes=frozenset({Scope.TENANT_ADMIN}))
        async with gateway.client(admin.secret, "/mcp/x/all", revision=revision) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["delete_graph"]
            assert (await client.list_resources()).resources == []
            with pytest.raises(MCPError, match="Unknown resource"):
                await client.read_resource("memory://knowledge-graph")


class TestTenancy:
    @BOTH_REVISIONS
    async def test_two_tenants_with_the_same_names_do_not_meet(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, other: Caller, revision: str
    ) -> None:
        theirs = {**ALICE, "entityType": "spy", "observations": ["drinks vodka"]}
        knows = [{"from": "Alice", "to": "Alice", "relationType": "knows"}]
        secrets = [(await issue(one)).secret for one in (caller, other)]
        async with (
            gateway.client(secrets[0], "/mcp/x/all", revision=revision) as us,
            gateway.client(secrets[1], "/mcp/x/all", revision=revision) as them,
        ):
            await us.call_tool("create_entities", {"entities": [ALICE]})
            made = await them.call_tool("create_entities", {"entities": [theirs]})
            assert made.structured_content == {"entities": [theirs]}
            await them.call_tool("create_relations", {"relations": knows})
            said = await them.call_tool("remember", {"items": [{"text": "Alice likes tea too", "about": ["Alice"]}]})
            whole = {"entities": [ALICE], "relations": []}
            for tool, arguments in (
                ("read_graph", {}),
                ("open_nodes", {"names": ["Alice"]}),
                ("search_nodes", {"query": "alice"}),
            ):
                assert (await us.call_tool(tool, arguments)).structured_content == whole
            for query in ("vodka", "spy"):
                found = await us.call_tool("search_nodes", {"query": query})
                assert found.structured_content == {"entities": [], "relations": []}
            recalled = await us.call_tool("recall", {"query": "Alice tea vodka"})
            assert [memory["text"] for memory in recalled.structured_content["memories"]] == ["likes tea"]
            assert said.structured_content["memories"][0]["close"] == []
            [content] = (await us.read_resource("memory://knowledge-graph")).contents
            assert json.loads(content.text) == whole  # type: ignore[union-attr]
            await us.call_tool("delete_entities", {"entityNames": ["Alice"]})
            kept = (await them.call_tool("open_nodes", {"names": ["Alice"]})).structured_content
            assert kept["entities"][0]["observations"] == ["drinks vodka", "Alice likes tea too"]
            assert kept["relations"] == knows

    @pytest.mark.proves("rules: no-tenant-argument")
    async def test_the_tenant_comes_from_the_credential_and_never_from_an_argument(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, other: Caller
    ) -> None:
        for name in ("tenant", "tenantId", "tenant_id"):
            result = await gateway.call(http, "read_graph", {name: str(other.tenant_id)})
            assert result["_meta"][ERROR_META] == {"code": "invalid_input", "path": name}

    @pytest.mark.proves("rules: graph-allow-list")
    @BOTH_REVISIONS
    async def test_an_allow_list_excludes_other_graphs(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, db: Database, revision: str
    ) -> None:
        everything = (await issue(caller)).secret
        async with gateway.client(everything, revision=revision) as client:
            for graph in ("open", "closed"):
                await client.call_tool("create_entities", {"graph": graph, "entities": [ALICE]})
        async with db.transaction(caller) as tx:
            allowed = await tx.fetchval(Query.compile("SELECT id FROM graphs WHERE name = 'open'"))
        narrow = await issue(caller, graph_ids=(allowed,), default_graph_id=allowed)
        async with gateway.client(narrow.secret, "/mcp/x/all", revision=revision) as client:
            assert (await client.call_tool("read_graph", {})).structured_content["entities"] == [ALICE]
            for tool, arguments in (
                ("read_graph", {}),
                ("search_nodes", {"query": "Alice"}),
                ("open_nodes", {"names": ["Alice"]}),
                ("recall", {"query": "tea"}),
                ("create_entities", {"entities": []}),
                ("remember", {"items": [{"text": "x"}]}),
                ("delete_entities", {"entityNames": ["Alice"]}),
            ):
                refused = {
                    text_of(result)
                    for graph in ("closed", "default", "not-there")
                    if error_of(result := await client.call_tool(tool, {"graph": graph, **arguments}))["code"]
                    == "graph_not_allowed"
                }
                assert len(refused) == 1, "a graph that is there and one that is not must look alike"
        assert await revision_of(db, caller, "closed") == 1
        assert await revision_of(db, caller, "not-there") == 0


class TestCredentials:
    @pytest.fixture
    async def refused(
        self,
        issue: NewApiKey,
        caller: Caller,
        other: Caller,
        db: Database,
        operator: Operator,
        owner: asyncpg.Connection,
    ) -> dict[str, str | None]:
        """Authorization headers that must be refused."""
        good = (await issue(caller)).secret
        revoked = await issue(caller)
        async with db.transaction(caller) as tx:
            await identity.revoke_key(tx, revoked.key.id)
        now = datetime.now(UTC)
        expired = await issue(caller, expires_at=now + timedelta(hours=1))
        await owner.execute("UPDATE api_keys SET expires_at = $2 WHERE id = $1", expired.key.id, now)
        suspended = await issue(other)
        await tenants.suspend_tenant(operator, other.tenant)
        wrong_end = "0" if good[-1] != "0" else "1"
        return {
            "none": None,
            "empty": "",
            "no credential": "Bearer",
            "another scheme": f"Basic {good}",
            "no scheme": good,
            "malformed": "Bearer rcl_agent_short",
            "another kind": "Bearer " + good.replace("rcl_agent_", "rcl_admin_"),
            "wrong checksum": f"Bearer {good[:-1]}{wrong_end}",
            "unknown": f"Bearer {generate_secret('agent')}",
            "twice": f"Bearer {good} {good}",
            "longer": f"Bearer {good}x",
            "odd characters": "Bearer rcl_agent_\xff\xfe",
            "huge": "Bearer " + "x" * 8_000,
            "revoked": f"Bearer {revoked.secret}",
            "expired": f"Bearer {expired.secret}",
            "suspended": f"Bearer {suspended.secret}",
        }

    async def test_all_invalid_credentials_are_refused_the_same_way(
        self, gateway: RunningGateway, refused: dict[str, str | None], issue: NewApiKey, caller: Caller
    ) -> None:
        answers, challenges = {}, set()
        async with gateway.http(**rpc_headers()) as http:
            for name, authorization in refused.items():
                headers = {} if authorization is None else {b"Authorization": authorization.encode("latin-1")}
                for method, path in (("POST", "/mcp"), ("POST", f"/t/{caller.tenant}/mcp"), ("GET", "/v1/graphs")):
                    response = await http.request(method, path, headers=headers, content=json.dumps(READ_GRAPH))
                    answers[name, path] = (response.status_code, response.text)
                    challenges.add((path, bool(authorization), response.headers["WWW-Authenticate"]))
                    assert response.headers["Content-Type"].startswith("application/problem+json")
            good = {"Authorization": f"Bearer {(await issue(caller)).secret}"}
            foreign = await http.post("/t/another/mcp", headers=good, json=READ_GRAPH)
            answers["foreign", "/t"] = (foreign.status_code, foreign.text)
        [(status, body)] = set(answers.values())
        assert status == 401
        assert len({(path, presented) for path, presented, _ in challenges}) == len(challenges), "by the address alone"
        assert all(challenge.startswith("Bearer") for *_, challenge in challenges)
        assert json.loads(body)["code"] == "unauthenticated"

    async def test_the_tenant_of_the_address_must_be_the_keys(
        self, http: httpx2.AsyncClient, tenant_caller: Caller, other: Caller
    ) -> None:
        ours = tenant_caller.tenant
        for slug, status in ((ours, 200), (other.tenant, 401), ("nobody", 401), (ours.upper(), 401)):
            assert (await http.post(f"/t/{slug}/mcp", json=READ_GRAPH)).status_code == status

    async def test_a_revoked_key_is_invalid_at_once(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, db: Database
    ) -> None:
        issued = await issue(caller)
        async with gateway.http(issued.secret, **rpc_headers()) as http:
            assert (await http.post("/mcp", json=READ_GRAPH)).status_code == 200
            async with db.transaction(caller) as tx:
                await identity.revoke_key(tx, issued.key.id)
            assert (await http.post("/mcp", json=READ_GRAPH)).status_code == 401

    async def test_a_resumed_tenant_is_served_again(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, operator: Operator
    ) -> None:
        async with gateway.http((await issue(caller)).secret, **rpc_headers()) as http:
            await tenants.suspend_tenant(operator, caller.tenant)
            assert (await http.post("/mcp", json=READ_GRAPH)).status_code == 401
            await tenants.resume_tenant(operator, caller.tenant)
            assert (await http.post("/mcp", json=READ_GRAPH)).status_code == 200

    async def test_use_of_a_key_is_recorded(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        issued = await issue(caller)
        used = "SELECT last_used_at FROM api_keys WHERE id = $1"
        assert await owner.fetchval(used, issued.key.id) is None

        async def is_noted() -> bool:
            return await owner.fetchval(used, issued.key.id) is not None

        async with gateway.http(issued.secret, **rpc_headers()) as http:
            await http.post("/mcp", json=READ_GRAPH)
            await eventually(is_noted)


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def called(arguments: str) -> bytes:
    """A call of `remember` with these arguments, unparsed."""
    head = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"remember","arguments":'
    return f"{head}{arguments}}}}}".encode()


NESTED = '{"a":' * 200 + "1" + "}" * 200
BAD_BODIES = {
    "empty": b"",
    "white space": b" \n",
    "not JSON": b"hello",
    "half": b'{"jsonrpc":"2.0","id":7,"method":"tools/li',
    "two": b"{}{}",
    "null": b"null",
    "number": b"7",
    "string": b'"tools/list"',
    "object": b"{}",
    "batch of none": b"[]",
    "batch": json.dumps([READ_GRAPH, READ_GRAPH]).encode(),
    "invalid UTF-8": b'{"jsonrpc":"2.0","id":7,"method":"tools/list\xff\xc3\x28"}',
    "UTF-16": json.dumps(READ_GRAPH).encode("utf-16"),
    "deep": deep(100_000).encode(),
    "deep and open": b"[" * 100_000,
    "deep objects": b'{"a":' * 40_000,
    "deep arguments": called(f'{{"items":[{{"text":"x","metadata":{NESTED}}}]}}'),
    "deeper arguments": called(deep(50_000)),
    "lone surrogate": called('{"items":[{"text":"a\\ud800b"}]}'),
    "NUL": called('{"items":[{"text":"a\\u0000b"}]}'),
    "bare NUL": called('{"items":[{"text":"a\x00b"}]}'),
    "huge integer": called('{"items":[{"text":"x","importance":1' + "0" * 5_000 + "}]}"),
    "large integer": called('{"items":[{"text":"x","importance":1' + "0" * 300 + "}]}"),
    "NaN": called('{"items":[{"text":"x","importance":NaN}]}'),
    "Infinity": called('{"items":[{"text":"x","ttl_days":Infinity}]}'),
    "NaN in metadata": called('{"items":[{"text":"x","metadata":{"a":[NaN]}}]}'),
    "1e400 in metadata": called('{"items":[{"text":"x","metadata":{"a":1e400}}]}'),
    "arguments of another type": called('["x"]'),
    "no version": b'{"id":7,"method":"tools/list"}',
    "version 1": b'{"jsonrpc":"1.0","id":7,"method":"tools/list"}',
    "id of another type": b'{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}',
    "id null": b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
    "method of another type": b'{"jsonrpc":"2.0","id":7,"method":7}',
    "no method": b'{"jsonrpc":"2.0","id":7}',
    "unknown method": b'{"jsonrpc":"2.0","id":7,"method":"tools/burn"}',
    "params of another type": b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"x"}',
    "no params": b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}',
    "name of another type": b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":["x"]}}',
    "long number": b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":' + b"7" * 4_000 + b"}}",
    "an answer": b'{"jsonrpc":"2.0","id":7,"result":{}}',
    "a method of the server": b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}',
}


class TestBadRequests:
    """Each gets a 4xx or an error that says so. Nothing is written, nothing of our internals is shown, and the
    gateway continues.
    """

    @pytest.fixture
    def require_unharmed(self, http: httpx2.AsyncClient, db: Database, tenant_caller: Caller) -> RequireUnharmed:
        async def require_unharmed() -> None:
            answer = await http.post("/mcp/x/memory", json=READ_GRAPH)
            assert rpc_answer(answer.text)["result"]["structuredContent"] == {"entities": [], "relations": []}
            assert await revision_of(db, tenant_caller) == 0

        return require_unharmed

    @pytest.fixture(autouse=True)
    async def serving_continues(self, require_unharmed: RequireUnharmed) -> AsyncIterator[None]:
        yield
        await require_unharmed()

    @pytest.fixture
    def case(self, require_unharmed: RequireUnharmed, subtests: pytest.Subtests) -> Case:
        """Around one of several bad requests: reports it by its name, and requires that serving continues after it."""

        @asynccontextmanager
        async def case(name: str) -> AsyncIterator[None]:
            with subtests.test(name):
                yield
                await require_unharmed()

        return case

    async def test_invalid_bodies_are_refused(self, http: httpx2.AsyncClient, case: Case) -> None:
        for revision in MODES:
            for name, body in BAD_BODIES.items():
                async with case(f"{name} {revision}"):
                    response = await http.post("/mcp/x/all", content=body, headers=rpc_headers(revision))
                    assert_no_internals(response.text)
                    if response.status_code in (200, 202):
                        refused: dict[str, Any] = rpc_answer(response.text) if response.text else {"error": None}
                        assert "error" in refused or refused["result"]["isError"], refused
                    else:
                        assert response.status_code in (400, 404), (response.status_code, response.text)

    @pytest.mark.proves("rules: malformed-messages")
    async def test_an_invalid_message_is_a_protocol_error(self, http: httpx2.AsyncClient, case: Case) -> None:
        for revision in MODES:
            for name, code in [
                *[("empty", -32700), ("not JSON", -32700), ("half", -32700), ("two", -32700), ("deep", -32700)],
                *[("NaN", -32700), ("UTF-16", -32700), ("deeper arguments", -32700), ("long number", -32700)],
                *[("null", -32600), ("number", -32600), ("string", -32600), ("object", -32600), ("no version", -32600)],
                *[("batch of none", -32600), ("batch", -32600), ("version 1", -32600), ("id of another type", -32600)],
                *[("id null", -32600), ("method of another type", -32600), ("params of another type", -32600)],
            ]:
                async with case(f"{name} {revision}"):
                    response = await http.post("/mcp", content=BAD_BODIES[name], headers=rpc_headers(revision))
                    answer = response.json()
                    assert (response.status_code, answer["jsonrpc"], answer["id"]) == (400, "2.0", None)
                    assert answer["error"]["code"] == code
                    assert_no_internals(response.text)

    async def test_batches_are_refused_even_in_revisions_that_had_them(
        self, http: httpx2.AsyncClient, case: Case
    ) -> None:
        for revision in ["2024-11-05", "2025-03-26", "2025-06-18"]:
            async with case(revision):
                response = await http.post("/mcp", content=BAD_BODIES["batch"], headers=rpc_headers(revision))
                assert (response.status_code, response.json()["error"]["code"]) == (400, -32600)

    async def test_methods_that_a_revision_does_not_have_are_not_found(
        self, http: httpx2.AsyncClient, case: Case
    ) -> None:
        for revision, method in [
            *((MODERN, method) for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe")),
            *((LEGACY, method) for method in ("server/discover", "tasks/list", "logging/setLevel")),
        ]:
            async with case(f"{method} {revision}"):
                meta = {
                    "io.modelcontextprotocol/protocolVersion": revision,
                    "io.modelcontextprotocol/clientCapabilities": {},
                }
                body = {
                    "jsonrpc": "2.0",
                    "id": 7,
                    "method": method,
                    "params": {"_meta": meta, "level": "info", "uri": "a://b"},
                }
                response = await http.post("/mcp", json=body, headers=rpc_headers(revision) | {"Mcp-Method": method})
                answer = rpc_answer(response.text)
                assert (answer["id"], answer["error"]["code"]) == (7, -32601)
                assert response.status_code == (404 if revision == MODERN else 200)

    async def test_valid_notifications_and_responses_are_accepted(self, http: httpx2.AsyncClient) -> None:
        """A notification and a client's responses, for which nobody waits."""
        head = '{"jsonrpc":"2.0","id":7,'
        for body in (
            '{"jsonrpc":"2.0","method":"notifications/initialized"}',
            '{"jsonrpc":"2.0","method":"notifications/initialized","params":null}',
            '{"jsonrpc":"2.0","method":"notifications/initialized","params" : { } , "more":[]}',
            head + '"result":{}}',
            head + '"error":{"code":-1,"message":"no"}}',
        ):
            assert (await http.post("/mcp", content=body)).status_code == 202, body

    async def test_a_body_over_the_limit_is_refused(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, case: Case
    ) -> None:
        body = b" " * (4 * 1024 * 1024) + json.dumps(READ_GRAPH).encode()

        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 65536):
                yield body[start : start + 65536]

        for revision in MODES:
            for name, content in (("whole", body), ("in chunks", chunks())):
                async with case(f"{name} {revision}"):
                    response = await http.post("/mcp", content=content, headers=rpc_headers(revision))
                    assert (response.status_code, response.json()["code"]) == (413, "request_too_large")
                    assert "POST /v1/graphs/{graph}/imports" in response.json()["detail"]
                    assert_no_internals(response.text)

    async def test_a_body_just_under_the_limit_is_accepted(self, http: httpx2.AsyncClient) -> None:
        call = json.dumps(READ_GRAPH).encode()
        response = await http.post("/mcp/x/memory", content=b" " * (4 * 1024 * 1024 - len(call)) + call)
        assert response.status_code == 200

    async def test_other_methods_are_refused(self, http: httpx2.AsyncClient, case: Case) -> None:
        for revision in MODES:
            for method in ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"]:
                for path in ["/mcp", "/mcp/x/memory"]:
                    async with case(f"{method} {path} {revision}"):
                        response = await http.request(method, path, headers=rpc_headers(revision))
                        assert (response.status_code, response.headers["Allow"]) == (405, "POST")

    async def test_other_content_types_are_refused(self, http: httpx2.AsyncClient, case: Case) -> None:
        for revision in MODES:
            for content_type in ["text/plain", "application/xml", "", "application/jsonx", "multipart/x"]:
                async with case(f"{content_type} {revision}"):
                    headers = rpc_headers(revision) | {"Content-Type": content_type}
                    response = await http.post("/mcp", content=json.dumps(READ_GRAPH), headers=headers)
                    assert response.status_code in (400, 415)

    async def test_other_accept_headers_are_refused(self, http: httpx2.AsyncClient, case: Case) -> None:
        for accept in ["text/html", "image/png", "application/xml;q=1"]:
            async with case(accept):
                response = await http.post("/mcp", json=READ_GRAPH, headers={"Accept": accept})
                assert response.status_code == 406

    async def test_unknown_revisions_are_refused(self, http: httpx2.AsyncClient, case: Case) -> None:
        for revision in ["1999-01-01", "2099-01-01", "", "x", "2025-11-25, 2026-07-28", "é"]:
            async with case(revision):
                headers = {b"MCP-Protocol-Version": revision.encode()}
                response = await http.post("/mcp", json=READ_GRAPH, headers=headers)
                assert response.status_code == 400
                assert_no_internals(response.text)

    async def test_a_modern_request_whose_headers_and_body_disagree_is_refused(self, http: httpx2.AsyncClient) -> None:
        response = await http.post("/mcp", json=READ_GRAPH, headers=rpc_headers(MODERN))
        assert response.status_code == 400
        assert_no_internals(response.text)

    async def test_odd_paths_are_refused(
        self, gateway: RunningGateway, every_scope: str, tenant_caller: Caller, case: Case
    ) -> None:
        """On a bare connection, since HTTP clients would normalize the path."""
        for path in [
            "/mcp/../v1/graphs",
            "/mcp/..",
            "/mcp//x/memory",
            "//mcp",
            "/mcp/x",
            "/mcp/x/",
            "/mcp/x/memory/more",
            "/mcp/x/memory/../agent",
            "/mcp/%2e%2e/v1/graphs",
            "/mcp%2fx%2fmemory",
            "/mcp/x/mem%6fry",
            "/%6dcp",
            "/mcpx",
            "/MCP",
            "/t",
            "/t/",
            "/t//mcp",
            "/t/mcp",
            "/t/../mcp",
            "/t/{tenant}",
            "/t/{tenant}/mcp/..",
            "/t/{tenant}%2fmcp",
            "/t/{tenant}/x/memory",
            "/t/{tenant}/../{tenant}/mcp",
            "/mcp;x=memory",
            "/mcp%00",
            "/mcp%ff",
            "/mcp/\xe9",
        ]:
            async with case(ascii(path)):
                body = json.dumps(READ_GRAPH).encode()
                request = "\r\n".join(
                    [
                        f"POST {path.format(tenant=tenant_caller.tenant)} HTTP/1.1",
                        "Host: 127.0.0.1:1",
                        f"Authorization: Bearer {every_scope}",
                        "Content-Type: application/json",
                        "Accept: application/json, text/event-stream",
                        "Connection: close",
                        f"Content-Length: {len(body)}\r\n\r\n",
                    ]
                ).encode("latin-1")
                reply = gateway.write(request + body).decode("latin-1")
                assert reply.split(" ", 2)[1] in ("400", "401", "404"), reply
                assert_no_internals(reply.replace(gateway.url, ""))

    async def test_other_hosts_are_refused(self, http: httpx2.AsyncClient, case: Case) -> None:
        """A page that was rebound to this address must not reach a local server."""
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", ""]:
            async with case(host):
                response = await http.post("/mcp", json=READ_GRAPH, headers={"Host": host})
                assert response.status_code in (400, 421)

    async def test_other_origins_are_refused(self, http: httpx2.AsyncClient) -> None:
        response = await http.post("/mcp", json=READ_GRAPH, headers={"Origin": "https://evil.example"})
        assert response.status_code == 403

    async def test_bytes_that_are_not_http_are_refused(self, gateway: RunningGateway, case: Case) -> None:
        for noise in [
            b"\x16\x03\x01\x02\x00\x01",
            b"GET\r\n\r\n",
            b"POST /mcp HTTP/9.9\r\n\r\n",
            b"\x00" * 64,
            b"POST /mcp HTTP/1.1\r\n",
        ]:
            async with case(ascii(noise)):
                reply = gateway.write(noise + b"X" * 70_000 + b"\r\n\r\n")
                assert reply.startswith(b"HTTP/1.1 400") or not reply

    async def test_clients_that_leave_in_the_middle_do_no_harm(self, gateway: RunningGateway, every_scope: str) -> None:
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer {every_scope}\r\n"
        half = f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
        for _ in range(20):
            gateway.write(half.encode(), read=False)


async def test_health_needs_no_credential(gateway: RunningGateway) -> None:
    async with gateway.http() as http:
        for path in ("/health/live", "/health/ready"):
            response = await http.get(path)
            assert (response.status_code, response.json()) == (200, {"status": "ok"})


async def test_many_concurrent_calls_are_answered(
    gateway: RunningGateway, key: str, db: Database, caller: Caller
) -> None:
    """There are more calls than connections. Each is answered, and writes its own revision."""
    async with gateway.http(key, **rpc_headers()) as http:

        async def add(number: int) -> Any:
            entity = {"name": f"e{number}", "entityType": "t", "observations": []}
            return (await gateway.call(http, "create_entities", {"entities": [entity]}))["isError"]

        assert not any(await asyncio.gather(*(add(number) for number in range(40))))
    assert await revision_of(db, caller) == 40


@pytest.mark.parametrize("sent", [[], [b'{"jsonrpc": "2.0", ']], ids=["nothing of it", "a part of it"])
@BOTH_REVISIONS
async def test_a_client_that_left_before_its_message_was_read_is_not_answered(
    db: Database, settings: Settings, key: str, sent: list[bytes], revision: str
) -> None:
    """It is not an error, either: writing its traceback would delay all others."""
    admission = Admission(RateLimiter(connect_redis(settings), wait_seconds=1, local_share=1), settings)
    endpoint = McpEndpoint(
        Services(Databases(db), QuestionEncoder(embedder()), settings),
        Authenticator(Databases(db), settings.key_secret.get_secret_value().encode()),
        admission,
        Resources.of_settings(settings),
        Streams(ChangeBus(settings), admission, settings),
        RECOLLECT,
    )
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in sent]
    answered: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answered.append(message)

    headers = {"authorization": f"Bearer {key}", "host": "127.0.0.1:80", **rpc_headers(revision)}
    scope: Any = {"type": "http", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "query_string": b""}
    scope["state"] = {}
    scope["headers"] = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    async with endpoint.sessions.run():
        await endpoint(scope, receive, send)
    assert answered == []
