"""Access tokens of OAuth under /v1: valid at routes that read or write memories, and at no route that administers."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from recollect.accounts.identity.model import generate_secret
from recollect.accounts.oauth.grants.model import ACCESS
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role, Scope
from recollect.cells.databases import Databases
from recollect.settings import Settings
from recollect_gateway.management.guards import TOOLSETS_OPT, needed_scope, takes_tokens
from tests.contract.test_route_toolsets import answered, handlers_by_name, toolsets_of_routes
from tests.support.gateway import RunningGateway, serving
from tests.support.oauth import HandClient, Visitor
from tests.support.people import browser, joined

TAKEN = {
    "POST /v1/graphs/{name}/memories",
    "POST /v1/graphs/{name}/conversations",
    "POST /v1/graphs/{name}/recall",
    "POST /v1/graphs/{name}/relate",
    "POST /v1/graphs/{name}/revise",
    "POST /v1/graphs/{name}/forget",
    "POST /v1/graphs/{name}/explore",
    "POST /v1/graphs/{name}/nodes/batch",
    "POST /v1/graphs/{name}/relations/batch",
    "GET /v1/graphs",
    "GET /v1/graphs/{name}",
    "GET /v1/graphs/{name}/nodes",
    "GET /v1/graphs/{name}/nodes/{node}",
    "GET /v1/graphs/{name}/nodes/{node}/history",
    "GET /v1/graphs/{name}/nodes/{node}/relations",
    "GET /v1/graphs/{name}/search",
    "GET /v1/graphs/{name}/changes",
}
"""The routes at which tokens are valid. The list is deliberate: none of them administers anything."""

RECALL, REMEMBER = "/v1/graphs/default/recall", "/v1/graphs/default/memories"
ASKED: dict[str, Any] = {"query": "What does Ada drink?"}
TOLD: dict[str, Any] = {"items": [{"text": "drinks tea", "about": ["Ada"]}]}
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUifQ.c2lnbmF0dXJl"


@pytest.fixture
async def owner_person(databases: Databases, caller: Caller, settings: Settings) -> Person:
    return await joined(databases, caller, Role.OWNER, pepper=settings.pepper)


@pytest.fixture
async def visitor(gateway: RunningGateway, owner_person: Person) -> AsyncIterator[Visitor]:
    """An owner of the tenant, who may give a client everything."""
    async with browser(gateway) as http:
        yield Visitor(http, owner_person.email)


@pytest.fixture
async def web(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http() as http:
        yield http


@pytest.fixture
async def client(gateway: RunningGateway, web: httpx2.AsyncClient) -> HandClient:
    return await HandClient.register(gateway, web)


async def everything(client: HandClient, visitor: Visitor) -> str:
    """A token with every scope, in every graph and with every toolset."""
    visitor.chosen = {"decision": "allow", "scope": [*Scope]}
    issued = await client.tokens(visitor, scope=" ".join(Scope))
    assert set(issued["scope"].split()) == set(Scope)
    token: str = issued["access_token"]
    return token


async def revoke(client: HandClient, token: str) -> None:
    """Give a token back."""
    assert (await client.http.post("/oauth/revoke", data={"client_id": client.id, "token": token})).is_success


def challenge(answer: httpx2.Response) -> tuple[int, str, str]:
    """Status and challenge of a refusal, and what it tells people."""
    return answer.status_code, answer.headers["www-authenticate"], answer.json()["detail"]


class TestRoutes:
    @pytest.mark.proves("security: token-resource")
    def test_the_routes_that_take_tokens_are_a_closed_list(self) -> None:
        assert {name for name, handler in handlers_by_name().items() if takes_tokens(handler)} == TAKEN

    @pytest.mark.proves("security: token-resource")
    def test_none_of_them_administers(self) -> None:
        """Each does what a tool does, and needs no more than to read or write memories."""
        for name in TAKEN:
            assert handlers_by_name()[name].opt[TOOLSETS_OPT], name
            assert needed_scope(handlers_by_name()[name]) in {Scope.MEMORY_READ, Scope.MEMORY_WRITE}, name

    @pytest.mark.proves("security: token-resource")
    async def test_a_token_with_every_right_is_refused_at_every_other_route(
        self, gateway: RunningGateway, client: HandClient, visitor: Visitor
    ) -> None:
        """And the refusal says where it is valid, and what to use."""
        token = await everything(client, visitor)
        async with gateway.http(token) as http:
            admitted = set()
            for name in toolsets_of_routes():
                answer = await answered(http, name)
                if answer.status_code != 401:
                    admitted.add(name)
                    continue
                _, header, detail = challenge(answer)
                assert "routes that read or write memories" in detail, name
                assert "Use an API key" in detail
                assert header.startswith('Bearer realm="recollect", error="invalid_token", error_description="Access')
            assert admitted == TAKEN

    async def test_a_token_of_another_issuer_is_told_where_it_is_valid(
        self, web: httpx2.AsyncClient, subtests: pytest.Subtests
    ) -> None:
        for path in (RECALL, "/v1/members"):
            with subtests.test(path):
                answer = await web.request(
                    "POST" if path == RECALL else "GET", path, headers={"Authorization": f"Bearer {JWT}"}
                )
                status, header, detail = challenge(answer)
                assert (status, "/t/{tenant}/mcp only" in detail, "error_description" in header) == (401, True, True)

    @pytest.mark.proves("security: token-resource")
    async def test_an_invalid_token_gets_the_same_answer_as_a_valid_one_where_none_is_taken(
        self, gateway: RunningGateway, client: HandClient, visitor: Visitor
    ) -> None:
        """So the answer reveals nothing about it."""
        valid, revoked = [await everything(client, visitor) for _ in range(2)]
        await revoke(client, revoked)
        told = set()
        for secret in (valid, revoked, generate_secret(ACCESS)):
            async with gateway.http(secret) as http:
                told.add(challenge(await http.get("/v1/keys")))
        assert len(told) == 1


class TestReach:
    async def test_a_token_reads_and_writes_memories_as_its_tools_do(
        self, gateway: RunningGateway, client: HandClient, visitor: Visitor, caller: Caller, subtests: pytest.Subtests
    ) -> None:
        """A token for the endpoint of all tenants, and one for that of its own."""
        for resource in (f"{gateway.url}/mcp", f"{gateway.url}/t/{caller.tenant}/mcp"):
            with subtests.test(resource):
                token = (await client.tokens(visitor, resource=resource))["access_token"]
                async with gateway.http(token) as http:
                    assert (await http.post(REMEMBER, json=TOLD)).status_code == 200
                    found = (await http.post(RECALL, json=ASKED)).json()
                    assert [memory["text"] for memory in found["memories"]] == ["drinks tea"]
                    changes = (await http.get("/v1/graphs/default/changes")).json()["items"]
                    assert changes[0]["actor"].startswith("grant:")

    async def test_a_token_is_limited_to_its_scopes(
        self, gateway: RunningGateway, client: HandClient, visitor: Visitor
    ) -> None:
        token = (await client.tokens(visitor, scope="memory:read"))["access_token"]
        async with gateway.http(token) as http:
            refused = await http.post(REMEMBER, json=TOLD)
            assert (refused.status_code, refused.json()["code"]) == (403, "scope_required")
            assert (await http.post(RECALL, json=ASKED)).status_code == 200

    async def test_a_token_is_limited_to_its_graphs(
        self, gateway: RunningGateway, client: HandClient, visitor: Visitor, admin_key: str
    ) -> None:
        async with gateway.http(admin_key) as http:
            graphs = {name: (await http.post("/v1/graphs", json={"name": name})).json()["id"] for name in ("a", "b")}
        visitor.chosen = {"decision": "allow", "graphs": "some", "graph": graphs["a"]}
        token = (await client.tokens(visitor))["access_token"]
        async with gateway.http(token) as http:
            assert (await http.post("/v1/graphs/a/memories", json=TOLD)).status_code == 200
            refused = await http.post("/v1/graphs/b/memories", json=TOLD)
            assert (refused.status_code, refused.json()["code"]) == (403, "graph_not_allowed")
            assert [graph["name"] for graph in (await http.get("/v1/graphs")).json()["items"]] == ["a"]

    async def test_a_token_is_limited_to_its_toolsets(
        self, gateway: RunningGateway, client: HandClient, visitor: Visitor
    ) -> None:
        visitor.chosen = {"decision": "allow", "toolsets": "some", "toolset": "agent"}
        token = (await client.tokens(visitor))["access_token"]
        async with gateway.http(token) as http:
            assert (await http.post(RECALL, json=ASKED)).status_code == 200
            refused = await http.get("/v1/graphs/default/nodes")
            assert (refused.status_code, refused.json()["code"]) == (403, "toolset_not_allowed")

    @pytest.mark.proves("security: token-resource")
    async def test_a_token_of_another_gateway_is_not_valid(
        self, client: HandClient, visitor: Visitor, settings: Settings
    ) -> None:
        token = (await client.tokens(visitor))["access_token"]
        with serving(settings) as other:
            async with other.http(token) as http:
                assert (await http.post(RECALL, json=ASKED)).status_code == 401

    @pytest.mark.proves("security: token-resource")
    async def test_being_remembered_under_v1_opens_no_other_endpoint(
        self, gateway: RunningGateway, client: HandClient, visitor: Visitor, caller: Caller
    ) -> None:
        """What a gateway remembers of a token for the tenant's endpoint is not valid at the endpoint of all."""
        token = (await client.tokens(visitor, resource=f"{gateway.url}/t/{caller.tenant}/mcp"))["access_token"]
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        async with gateway.http(token, Accept="application/json, text/event-stream") as http:
            for _ in range(2):
                assert (await http.post(RECALL, json=ASKED)).status_code == 200
                refused = await http.post(
                    "/mcp", content=json.dumps(body), headers={"Content-Type": "application/json"}
                )
                assert refused.status_code == 401

    async def test_an_ended_grant_and_an_expired_token_are_refused(
        self, gateway: RunningGateway, client: HandClient, visitor: Visitor, owner: Any
    ) -> None:
        first = (await client.tokens(visitor))["access_token"]
        async with gateway.http(first) as http:
            assert (await http.post(RECALL, json=ASKED)).status_code == 200
            await revoke(client, first)
            assert challenge(await http.post(RECALL, json=ASKED))[1] == 'Bearer realm="recollect"'
        second = (await client.tokens(visitor))["access_token"]
        await owner.execute("UPDATE oauth_access_tokens SET expires_at = now() - interval '1 second'")
        async with gateway.http(second) as http:
            _, header, detail = challenge(await http.post(RECALL, json=ASKED))
        assert (detail, "has expired" in header) == (
            "The access token has expired. Get another, by the refresh token if there is one.",
            True,
        )

    async def test_a_repeated_request_of_a_token_changes_nothing(
        self, gateway: RunningGateway, client: HandClient, visitor: Visitor
    ) -> None:
        token = (await client.tokens(visitor))["access_token"]
        async with gateway.http(token) as http:
            keyed = {"Idempotency-Key": "once"}
            first = await http.post(REMEMBER, json=TOLD, headers=keyed)
            again = await http.post(REMEMBER, json=TOLD, headers=keyed)
        assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
