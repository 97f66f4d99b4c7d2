"""A key that is confined to some toolsets: its tools, its routes, and the keys that it may create."""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey
from recollect.caller import Caller, Scope
from recollect.errors import Forbidden
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.app import create_app
from recollect_gateway.management.guards import TOOLSETS_OPT, within_toolsets
from recollect_gateway.mcp_endpoint.tools import CATALOGUE, TOOLS, TOOLSETS
from recollect_workers import job_loop
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers
from tests.support.jobs import employed
from tests.support.quick_embedder import QUICK_EMBEDDER
from tests.support.routes import stand_ins
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import environment

DESCRIPTION = "GET /v1/openapi.json"
PAGES = {
    "GET /account",
    "POST /account/delete",
    "POST /account/grants/{grant_id}/end",
    "POST /account/organisations/{tenant}/leave",
    "POST /account/passkeys",
    "POST /account/passkeys/options",
    "POST /account/passkeys/{passkey_id}/name",
    "POST /account/passkeys/{passkey_id}/remove",
    "POST /account/password",
    "POST /account/providers/{provider_id}/disconnect",
    "POST /account/sessions/{session_id}/end",
    "GET /forgot",
    "POST /forgot",
    "GET /join/{secret}",
    "POST /join/{secret}",
    "GET /oauth/authorize",
    "POST /oauth/authorize",
    "POST /passkeys/sign-in",
    "POST /passkeys/sign-in/options",
    "GET /reset/{secret}",
    "POST /reset/{secret}",
    "GET /",
    "GET /sign-in",
    "GET /sign-in/callback/{provider_id}",
    "POST /sign-in",
    "POST /sign-in/local",
    "POST /sign-in/provider",
    "POST /sign-out",
}
"""Pages for people: a cookie says who is signed in."""

OAUTH = {
    "GET /.well-known/oauth-authorization-server",
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/oauth-protected-resource/mcp",
    "GET /.well-known/oauth-protected-resource/mcp/x/{toolsets}",
    "GET /.well-known/oauth-protected-resource/t/{tenant}/mcp",
    "GET /.well-known/oauth-protected-resource/t/{tenant}/mcp/x/{toolsets}",
    "GET /.well-known/openid-configuration",
    "GET /oauth/jwks.json",
    "POST /oauth/introspect",
    "POST /oauth/register",
    "POST /oauth/revoke",
    "POST /oauth/token",
}
"""Endpoints for public OAuth clients, which check what is presented there."""

OPEN = {
    "GET /health/live",
    "GET /health/ready",
    DESCRIPTION,
    f"{DESCRIPTION}/openapi.json",
    f"{DESCRIPTION}/{{path}}",
    "GET /v1/docs",
    "GET /v1/docs/begin.js",
    "GET /v1/docs/scalar.js",
    "POST /v1/keys/report",
    *PAGES,
    *OAUTH,
}
"""Routes that need no credential of a tenant."""

BY_SCOPE = {
    "GET /v1/keys",
    "POST /v1/keys",
    "DELETE /v1/keys/{key_id}",
    "POST /v1/keys/{key_id}/rotate",
    "GET /v1/keys/{key_id}",
    "GET /v1/members",
    "GET /v1/members/{person_id}",
    "PATCH /v1/members/{person_id}",
    "DELETE /v1/members/{person_id}",
    "GET /v1/invitations",
    "POST /v1/invitations",
    "DELETE /v1/invitations/{invitation_id}",
    "GET /v1/email-domains",
    "POST /v1/email-domains",
    "POST /v1/email-domains/{domain_id}/verify",
    "PATCH /v1/email-domains/{domain_id}",
    "DELETE /v1/email-domains/{domain_id}",
    "GET /v1/trusted-issuers",
    "POST /v1/trusted-issuers",
    "PATCH /v1/trusted-issuers/{issuer_id}",
    "DELETE /v1/trusted-issuers/{issuer_id}",
    "GET /v1/language-model",
    "PUT /v1/language-model",
    "DELETE /v1/language-model",
    "GET /v1/identity-providers",
    "POST /v1/identity-providers",
    "PATCH /v1/identity-providers/{provider_id}",
    "DELETE /v1/identity-providers/{provider_id}",
    "GET /v1/grants",
    "DELETE /v1/grants/{grant_id}",
    "GET /v1/audit",
    "GET /v1/audit/export",
    "POST /v1/graphs/{name}/erase",
    "GET /v1/plan",
    "GET /v1/webhooks",
    "POST /v1/webhooks",
    "GET /v1/webhooks/{webhook_id}",
    "PATCH /v1/webhooks/{webhook_id}",
    "DELETE /v1/webhooks/{webhook_id}",
    "POST /v1/webhooks/{webhook_id}/secret",
    "POST /v1/webhooks/{webhook_id}/test",
    "POST /v1/webhooks/{webhook_id}/replay",
    "GET /v1/webhooks/{webhook_id}/deliveries",
    "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay",
    "GET /v1/tenant",
    "PATCH /v1/tenant",
    "GET /v1/sessions",
    "DELETE /v1/sessions/{session_id}",
}
"""Routes that do what no tool does, for `tenant:admin` only or (plan, tenant, one's own sessions) for every credential.
The list is deliberate."""

DOES_AS = {
    "GET /v1/graphs": ("list_graphs",),
    "GET /v1/graphs/{name}": ("get_graph", "graph_stats", "get_stats"),
    "POST /v1/graphs": ("create_graph",),
    "DELETE /v1/graphs/{name}": ("delete_graph",),
    "PATCH /v1/graphs/{name}": ("update_graph_config",),
    "GET /v1/graphs/{name}/nodes": ("list_nodes",),
    "GET /v1/graphs/{name}/nodes/{node}": ("get_node", "get_node_by_lineage"),
    "GET /v1/graphs/{name}/nodes/{node}/history": ("history",),
    "GET /v1/graphs/{name}/nodes/{node}/relations": ("outgoing", "incoming"),
    "GET /v1/graphs/{name}/search": ("search",),
    "GET /v1/graphs/{name}/changes": ("recent_changes",),
    "POST /v1/graphs/{name}/memories": ("remember",),
    "POST /v1/graphs/{name}/conversations": ("remember",),
    "POST /v1/graphs/{name}/recall": ("recall",),
    "POST /v1/graphs/{name}/relate": ("relate",),
    "POST /v1/graphs/{name}/revise": ("revise",),
    "POST /v1/graphs/{name}/forget": ("forget",),
    "POST /v1/graphs/{name}/distil": ("remember",),
    "DELETE /v1/graphs/{name}/distilled": ("forget",),
    "POST /v1/graphs/{name}/explore": ("explore",),
    "POST /v1/graphs/{name}/nodes/batch": ("remember", "revise"),
    "POST /v1/graphs/{name}/relations/batch": ("relate",),
    "POST /v1/graphs/{name}/import": ("import_graph",),
    "POST /v1/graphs/{name}/imports": ("import_graph",),
    "GET /v1/graphs/{name}/export": ("export_graph",),
    "POST /v1/graphs/{name}/exports": ("start_export",),
    "POST /v1/graphs/{name}/deduplicate": ("propose_duplicates",),
    "POST /v1/graphs/{name}/reindex": ("reindex",),
    "POST /v1/graphs/{name}/reembed": ("reembed",),
    "GET /v1/jobs": ("list_jobs",),
    "GET /v1/jobs/{job_id}": ("get_job",),
    "GET /v1/jobs/{job_id}/output": ("get_job",),
    "DELETE /v1/jobs/{job_id}/output": ("get_job",),
    "POST /v1/jobs/{job_id}/cancel": ("cancel_job",),
    "GET /v1/graphs/{name}/dismissals": ("find_duplicates",),
    "GET /v1/usage": ("usage",),
    "GET /v1/usage/series": ("usage",),
    "GET /v1/usage/stored": ("usage",),
}
"""The tools that do the same as a route, by docs/keys.md."""

OF_TOOLSETS = {
    "GET /v1/graphs/{name}/passages/refused": {"admin"},
    "PUT /v1/graphs/{name}/dismissals/{node_id}/{other_id}": {"organize"},
    "DELETE /v1/graphs/{name}/dismissals/{node_id}/{other_id}": {"organize"},
}
"""Routes without an equal tool, and their toolsets."""


CONSOLE = ("/app", "/assets/")
"""Pages of the console, which no key opens (tests/tenancy/test_console.py), and files that are the same for all."""


def handlers() -> Iterator[tuple[str, HTTPRouteHandler]]:
    """Every route of the application except the MCP endpoint and the console, as method and path."""
    for route in create_app(Settings(embedder=QUICK_EMBEDDER)).routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            for method in handler.http_methods:
                if method != "OPTIONS" and not route.path.startswith(CONSOLE):
                    yield f"{method} {route.path_format}", handler


@cache
def handlers_by_name() -> dict[str, HTTPRouteHandler]:
    """The same by name. They are not looked up on import: each process of the tests imports this, and few need it."""
    return dict(handlers())


@cache
def toolsets_of_routes() -> dict[str, Any]:
    """The toolsets of each route that needs a credential; None where scopes alone decide."""
    found = handlers_by_name()
    return {name: found[name].opt.get(TOOLSETS_OPT, "undeclared") for name in sorted(set(found) - OPEN)}


@cache
def confined_routes() -> list[str]:
    """The routes that belong to toolsets."""
    return [name for name, toolsets in toolsets_of_routes().items() if toolsets is not None]


class TestDeclarations:
    @pytest.mark.proves("rules: toolset-allow-list", "security: toolsets")
    def test_each_route_declares_its_toolsets_and_is_guarded(self, subtests: pytest.Subtests) -> None:
        for name in toolsets_of_routes():
            with subtests.test(name):
                assert name.partition(" ")[2].startswith("/v1/")
                toolsets = toolsets_of_routes()[name]
                assert toolsets != "undeclared", "say mirrors(…), belongs_to(…) or BY_SCOPE as its opt"
                assert toolsets is None or (toolsets and set(toolsets) <= TOOLSETS)
                assert within_toolsets in [
                    getattr(guard, "func", guard) for guard in handlers_by_name()[name].resolve_guards()
                ]

    def test_routes_without_credential_or_toolsets_are_closed_lists(self) -> None:
        assert {name for name, toolsets in toolsets_of_routes().items() if toolsets is None} == BY_SCOPE
        assert set(handlers_by_name()) >= OPEN
        assert len(toolsets_of_routes()) > 20

    def test_each_route_belongs_to_the_toolsets_of_its_equal_tools(self) -> None:
        of_tools = {name: set().union(*(TOOLS[tool].toolsets for tool in tools)) for name, tools in DOES_AS.items()}
        assert {name: toolsets_of_routes()[name] for name in confined_routes()} == of_tools | OF_TOOLSETS

    def test_a_route_named_like_a_tool_belongs_to_its_toolsets(self) -> None:
        """`POST …/recall` is `recall`: the name of a route agrees with its declaration."""
        named = {name: re.sub(r"[^a-z]", "", name.rpartition("/")[2]) for name in confined_routes()}
        alike = {name: TOOLS[last].toolsets for name, last in named.items() if last in TOOLS}
        assert {name: toolsets_of_routes()[name] for name in alike} == alike
        assert len(alike) >= 4


@pytest.fixture
async def confined(issue: NewApiKey, caller: Caller) -> dict[str, str]:
    """Secrets of keys with every scope, each confined to one toolset."""
    return {toolset: (await issue(caller, kind="admin", toolsets=(toolset,))).secret for toolset in sorted(TOOLSETS)}


async def answered(http: httpx2.AsyncClient, name: str) -> httpx2.Response:
    """The answer of the route to a request with an unexpected body."""
    method, path = name.split(" ")
    body = {} if method == "GET" else {"json": {"nothing": "of that kind"}}
    return await http.request(method, path.format(**stand_ins(path)), **body)  # type: ignore[arg-type]


class TestRoutes:
    @pytest.mark.proves("rules: toolset-allow-list", "security: toolsets")
    async def test_each_route_admits_only_its_own_toolsets(
        self, gateway: RunningGateway, confined: dict[str, str]
    ) -> None:
        refused: dict[str, set[str]] = {name: set() for name in toolsets_of_routes()}
        for toolset, secret in confined.items():
            async with gateway.http(secret) as http:
                for name in toolsets_of_routes():
                    response = await answered(http, name)
                    if response.status_code == 403:
                        assert response.headers["content-type"].startswith("application/problem+json")
                        assert response.json()["code"] == "toolset_not_allowed", (name, response.text)
                        refused[name].add(toolset)
                    assert response.status_code < 500
        assert refused == {name: set() if own is None else TOOLSETS - own for name, own in toolsets_of_routes().items()}

    async def test_an_unconfined_key_may_use_each_route(self, gateway: RunningGateway, admin_key: str) -> None:
        async with gateway.http(admin_key) as http:
            for name in toolsets_of_routes():
                assert (await answered(http, name)).status_code != 403, name

    async def test_a_refused_route_writes_nothing(
        self, gateway: RunningGateway, confined: dict[str, str], owner: asyncpg.Connection, caller: Caller
    ) -> None:
        async with gateway.http(confined["memory"]) as http:
            body = {"items": [{"text": "tea is hot"}]}
            response = await http.post("/v1/graphs/default/memories", json=body)
        assert (response.status_code, response.json()["code"]) == (403, "toolset_not_allowed")
        assert "agent" in response.json()["detail"]
        assert await owner.fetchval("SELECT count(*) FROM nodes WHERE tenant_id = $1", caller.tenant_id) == 0

    async def test_the_methods_of_an_address_are_no_secret(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, admin_key: str
    ) -> None:
        """Every key gets what an admin's gets, and no answer says what exists."""
        least = (await issue(caller, scopes=frozenset({Scope.MEMORY_READ}), toolsets=("memory",))).secret
        async with gateway.http(least) as http, gateway.http(admin_key) as admin:
            document = (await http.get("/v1/openapi.json")).json()
            for path in document["paths"]:
                address = re.sub(r"\{\w+_id\}", str(uuid4()), path).replace("{name}", "nowhere")
                told, expected = await http.options(address), await admin.options(address)
                assert (told.status_code, told.content) == (204, b""), path
                assert told.headers["Allow"] == expected.headers["Allow"], path

    async def test_the_output_of_a_job_can_be_downloaded_by_a_confined_key(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, settings: Settings, db: Database
    ) -> None:
        secret = (await issue(caller, toolsets=("admin",))).secret
        async with gateway.http(secret, **rpc_headers()) as http, employed(settings, db) as worker:
            started = await gateway.call(http, "start_export", {"format": "json"}, path="/mcp/x/admin")
            await job_loop.sweep(worker)
            job = {"id": started["structuredContent"]["id"]}
            shown = await gateway.call(http, "get_job", job, path="/mcp/x/admin")
            assert shown["structuredContent"]["status"] == "succeeded"
            fetched = await http.get(shown["structuredContent"]["output"]["path"])
            assert (fetched.status_code, fetched.json()) == (200, {"entities": [], "facts": [], "relations": []})
            assert (await http.post("/v1/graphs/default/exports", json={"format": "json"})).status_code == 202
            assert (await http.post("/v1/graphs/default/deduplicate")).status_code == 202


class TestTools:
    @pytest.mark.proves("rules: toolset-allow-list")
    async def test_a_confined_key_is_offered_only_its_toolsets_at_any_address(
        self, gateway: RunningGateway, confined: dict[str, str]
    ) -> None:
        for toolset, secret in confined.items():
            async with gateway.http(secret, **rpc_headers()) as http:
                answer = await gateway.post(http, "tools/list", {}, path="/mcp/x/all")
                listed = [tool["name"] for tool in answer["result"]["tools"]]
                assert listed == [tool.name for tool in CATALOGUE if toolset in tool.toolsets]

    async def test_a_tool_of_another_toolset_is_unknown(
        self, gateway: RunningGateway, confined: dict[str, str]
    ) -> None:
        async with gateway.http(confined["memory"], **rpc_headers()) as http:
            called = {"name": "recall", "arguments": {"query": "tea"}}
            answer = await gateway.post(http, "tools/call", called, path="/mcp/x/all")
        assert answer["error"]["message"] == "Unknown tool: recall"


class TestKeys:
    async def test_keys_are_created_and_listed_with_their_toolsets(
        self, gateway: RunningGateway, admin_key: str
    ) -> None:
        async with gateway.http(admin_key) as http:
            made = await http.post("/v1/keys", json={"name": "reader", "toolsets": ["memory", "agent", "memory"]})
            assert made.json()["toolsets"] == ["memory", "agent"]
            listed = {key["name"]: key["toolsets"] for key in (await http.get("/v1/keys")).json()["items"]}
            assert listed == {"test": None, "reader": ["memory", "agent"]}
            refused = await http.post("/v1/keys", json={"name": "reader", "toolsets": ["agent", "kitchen"]})
        assert (refused.status_code, refused.json()["path"]) == (400, "toolsets.1")

    @pytest.mark.proves("rules: toolset-allow-list")
    async def test_a_confined_key_cannot_create_a_less_confined_key(
        self, gateway: RunningGateway, confined: dict[str, str]
    ) -> None:
        async with gateway.http(confined["agent"]) as http:
            for toolsets in (None, ["memory"], ["agent", "memory"]):
                refused = await http.post("/v1/keys", json={"name": "escape", "toolsets": toolsets})
                assert (refused.status_code, refused.json()["code"]) == (403, "toolset_not_allowed")
            assert (await http.post("/v1/keys", json={"name": "child", "toolsets": ["agent"]})).status_code == 201
            assert (await http.post("/v1/keys", json={"name": "child", "toolsets": []})).status_code == 201

    async def test_a_key_without_toolsets_reaches_only_routes_that_go_by_scope(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller
    ) -> None:
        nothing = await issue(caller, kind="admin", toolsets=())
        async with gateway.http(nothing.secret, **rpc_headers()) as http:
            assert (await http.get("/v1/graphs")).status_code == 403
            assert (await http.get("/v1/keys")).status_code == 200
            answer = await gateway.post(http, "tools/list", {}, path="/mcp/x/all")
        assert answer["result"]["tools"] == []

    async def test_the_command_creates_confined_keys_too(
        self, gateway: RunningGateway, settings: Settings, caller: Caller
    ) -> None:
        async def create(toolset: str) -> tuple[int, str, str]:
            command = ["-m", "recollect_cli.main", "keys", "create", caller.tenant, "reader", "--toolset", toolset]
            command += ["--scope", "memory:read"]
            pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
            variables = os.environ | environment(settings)
            process = await asyncio.create_subprocess_exec(sys.executable, *command, env=variables, **pipes)  # type: ignore[arg-type]
            out, err = await asyncio.wait_for(process.communicate(), MAX_WAIT_SECONDS)
            return process.returncode or 0, out.decode().strip(), err.decode()

        (code, secret, _), (refused, _, told) = await asyncio.gather(create("agent"), create("kitchen"))
        assert code == 0
        async with gateway.http(secret) as http:
            assert (await http.get("/v1/usage")).json()["code"] == "toolset_not_allowed"
            assert (await http.post("/v1/graphs/default/recall", json={"query": "tea"})).status_code == 200
        assert refused != 0
        assert "Unknown toolset 'kitchen'" in told

    async def test_the_use_case_itself_refuses_a_less_confined_key(self, db: Database, caller: Caller) -> None:
        maker = Caller(caller.tenant_id, caller.tenant, "key:x", frozenset(Scope), toolsets=frozenset({"agent"}))
        with pytest.raises(Forbidden, match="every toolset"):
            async with db.transaction(maker) as tx:
                await identity.create_key(tx, NewKey("escape"), pepper=b"pepper")
