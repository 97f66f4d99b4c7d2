"""Access tokens of an issuer that a tenant trusts, at its endpoint, over real HTTP, with an issuer on loopback."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from pydantic import SecretStr

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import MODERN, NewApiKey, RunningGateway, answer, rpc_headers, serving
from tests.support.identity_provider import (
    Forge,
    IdentityProviderServer,
    identity_provider,
    signed_by_public_key,
    signed_by_stranger,
    unsigned,
)
from tests.support.timeouts import MAX_WAIT_SECONDS

PATH = "/v1/trusted-issuers"
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture(scope="module")
def gateway(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway that reaches issuers on this machine."""
    with serving(settings.model_copy(update={"outbound_networks": ["127.0.0.0/8"]})) as running:
        yield running


@pytest.fixture
async def idp() -> AsyncIterator[IdentityProviderServer]:
    async with identity_provider() as server:
        yield server


@pytest.fixture
async def admin(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as client:
        yield client


@pytest.fixture
async def web(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http() as client:
        yield client


@pytest.fixture
async def other_caller(new_tenant: NewTenant) -> Caller:
    return operator_caller(await new_tenant())


@dataclass
class Trust:
    """A tenant that trusts an issuer, and tokens of that issuer."""

    gateway: RunningGateway
    tenant: str
    idp: IdentityProviderServer
    trusted: dict[str, Any]
    web: httpx2.AsyncClient

    @property
    def path(self) -> str:
        return f"/t/{self.tenant}/mcp"

    def token(self, **claims: Any) -> str:
        now = int(time.time())
        said = {
            "iss": self.idp.issuer,
            "sub": "agent-7",
            "aud": self.gateway.url + self.path,
            "exp": now + 300,
            "iat": now,
            "scope": "memory:read memory:write",
            **claims,
        }
        return self.idp.signed({name: value for name, value in said.items() if value is not None}, typ="at+jwt")

    async def status(self, token: str, path: str | None = None) -> int:
        """The status of a request with this token, by default to the tenant's endpoint."""
        headers = {**rpc_headers(), "Authorization": f"Bearer {token}"}
        return (await self.web.post(path or self.path, json=LIST_TOOLS, headers=headers)).status_code


@pytest.fixture
async def trust(
    gateway: RunningGateway,
    admin: httpx2.AsyncClient,
    web: httpx2.AsyncClient,
    caller: Caller,
    idp: IdentityProviderServer,
) -> Trust:
    made = await done(admin, "POST", PATH, name="Acme Tokens", issuer=idp.issuer)
    return Trust(gateway, caller.tenant, idp, made, web)


class TestStreams:
    async def test_a_stream_ends_once_its_token_may_no_longer_read(
        self, trust: Trust, admin: httpx2.AsyncClient
    ) -> None:
        """The token is still valid, and would not be allowed to subscribe."""
        await done(admin, "POST", "/v1/graphs", name="work")
        work, token = "recollect://graphs/work", trust.token()
        writing = [{"value": "memory:write", "scopes": ["memory:write"]}]
        async with (
            trust.gateway.client(token, trust.path, revision=MODERN) as client,
            client.listen(resource_subscriptions=[work], resources_list_changed=True) as subscription,
        ):
            assert subscription.honored.resource_subscriptions == [work]
            await done(admin, "PATCH", f"{PATH}/{trust.trusted['id']}", rules=writing)
            await done(admin, "POST", "/v1/graphs/work/memories", items=[{"text": "The kettle is hot."}])
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                assert [event async for event in subscription] == []
        assert await trust.status(token) == 200


class TestTokens:
    async def test_an_agent_works_with_a_token(self, trust: Trust, admin: httpx2.AsyncClient) -> None:
        async with trust.gateway.client(trust.token(), trust.path + "/x/agent") as client:
            await answer(client, "remember", items=[{"text": "The depot in Hull closes at four."}])
            found = await answer(client, "recall", query="When does the depot close?")
        assert "Hull" in str(found)
        assert trust.trusted["resource"] == trust.gateway.url + trust.path

    @pytest.mark.proves("security: issuer-audience")
    @pytest.mark.parametrize(
        "claims",
        [
            {"aud": "https://elsewhere.example/mcp"},
            {"aud": None},
            {"aud": []},
            {"iss": "https://issuer.example"},
            {"iss": None},
            {"iss": 7},
            {"exp": 1},
            {"exp": None},
            {"exp": "tomorrow"},
            {"exp": 10**30},
            {"nbf": 99_999_999_999},
            {"sub": None},
            {"sub": ""},
            {"sub": "a\u202eb"},
            {"sub": "x" * 300},
            {"sub": ["agent"]},
        ],
        ids=str,
    )
    async def test_a_token_with_wrong_claims_is_refused(self, trust: Trust, claims: dict[str, Any]) -> None:
        assert await trust.status(trust.token()) == 200
        assert await trust.status(trust.token(**claims)) == 401

    @pytest.mark.proves("security: issuer-signatures")
    @pytest.mark.parametrize("forge", [unsigned, signed_by_public_key, signed_by_stranger])
    async def test_a_token_with_a_forged_signature_is_refused(self, trust: Trust, forge: Forge) -> None:
        right = trust.token()
        assert await trust.status(forge(trust.idp, right)) == 401
        assert await trust.status(right) == 200

    @pytest.mark.parametrize("token", ["a.b.c", "e30.e30.e30", "..", "x" * 9_000, "e30." + "A" * 9_000 + ".e30"])
    async def test_an_invalid_token_is_refused_without_a_request(self, trust: Trust, token: str) -> None:
        assert await trust.status(token) == 401
        assert trust.idp.server.connections == 0

    @pytest.mark.proves("security: issuer-audience")
    async def test_a_token_is_valid_for_one_resource(
        self, trust: Trust, admin: httpx2.AsyncClient, other_caller: Caller
    ) -> None:
        """Neither for the endpoint of all tenants, nor outside of MCP, nor with the audience of another tenant."""
        token = trust.token()
        assert await trust.status(token, "/mcp") == 401
        assert await trust.status(token, f"/t/{other_caller.tenant}/mcp") == 401
        assert await trust.status(trust.token(aud=f"{trust.gateway.url}/mcp"), "/mcp") == 401
        headers = {"Authorization": f"Bearer {token}"}
        assert (await trust.web.get("/v1/graphs", headers=headers)).status_code == 401
        headers["X-Recollect-Tenant"] = trust.tenant
        assert (await trust.web.get("/v1/graphs", headers=headers)).status_code == 401
        listed = trust.token(aud=["https://elsewhere.example", trust.gateway.url + trust.path])
        assert await trust.status(listed) == 200

    @pytest.mark.proves("security: invalid-tokens")
    async def test_a_token_is_for_the_endpoint_by_whichever_of_its_addresses(
        self, trust: Trust, other_caller: Caller, subtests: pytest.Subtests
    ) -> None:
        """A client asks its issuer for a token for the `resource` of the metadata, which is the address that it has."""
        local = trust.gateway.url.replace("127.0.0.1", "localhost")
        for audience in (f"{trust.gateway.url}{trust.path}/x/memory", f"{local}{trust.path}/", f"{local}{trust.path}"):
            with subtests.test(audience):
                token = trust.token(aud=audience)
                assert [await trust.status(token, trust.path + more) for more in ("", "/", "/x/memory")] == [200] * 3
                assert await trust.status(token, f"/t/{other_caller.tenant}/mcp/x/memory") == 401
        foreign = f"{trust.gateway.url}/t/{other_caller.tenant}/mcp/x/memory"
        for audience in (foreign, f"http://localhost:1{trust.path}"):
            with subtests.test(audience):
                assert await trust.status(trust.token(aud=audience)) == 401

    @pytest.mark.proves("security: invalid-tokens")
    async def test_failures_are_throttled_like_keys(self, settings: Settings, trust: Trust) -> None:
        few: dict[str, Any] = {
            "outbound_networks": ["127.0.0.0/8"],
            "failed_keys_per_minute": 5,
            "rate_limit_wait_seconds": MAX_WAIT_SECONDS,
        }
        few["key_secret"] = SecretStr(f"counted apart {uuid4()}")
        with serving(settings.model_copy(update=few)) as gateway:
            async with gateway.http() as web:
                told = []
                for number in range(8):
                    headers = {**rpc_headers(), "Authorization": f"Bearer {trust.token(aud=str(number))}"}
                    told.append((await web.post(trust.path, json=LIST_TOOLS, headers=headers)).status_code)
        assert told[:4] == [401] * 4
        assert told[-1] == 429


class TestRules:
    async def tools(self, trust: Trust, token: str) -> set[str]:
        async with trust.gateway.client(token, trust.path + "/x/all") as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    @pytest.mark.proves("security: issuer-rules")
    async def test_a_token_has_the_scopes_of_matching_rules(self, trust: Trust) -> None:
        both, reads = await self.tools(trust, trust.token()), await self.tools(trust, trust.token(scope="memory:read"))
        assert {"remember", "recall"} <= both
        assert ("recall" in reads, "remember" in reads) == (True, False)
        for nothing in ("", "tenant:admin", None, ["memory:write:x"], 7, {"memory:read": 1}, "MEMORY:READ"):
            assert await self.tools(trust, trust.token(scope=nothing)) == set()

    @pytest.mark.proves("security: issuer-rules")
    async def test_a_custom_claim_maps_to_scopes_and_graphs(self, trust: Trust, admin: httpx2.AsyncClient) -> None:
        await done(admin, "POST", "/v1/graphs", name="sales")
        rules = [
            {"value": "sales-agents", "scopes": ["memory:read", "memory:write"], "graphs": ["sales"]},
            {"value": "auditors", "scopes": ["memory:read"], "graphs": ["sales", "default"]},
            {"value": "everything", "scopes": ["memory:read"]},
        ]
        await done(admin, "PATCH", f"{PATH}/{trust.trusted['id']}", claim="groups", rules=rules)

        async def graphs(groups: list[str]) -> list[str]:
            async with trust.gateway.client(trust.token(groups=groups), trust.path + "/x/all") as client:
                return sorted(each["name"] for each in (await answer(client, "list_graphs"))["graphs"])

        assert await graphs(["sales-agents"]) == ["sales"]
        assert await graphs(["auditors"]) == ["default", "sales"]
        assert await graphs(["everything", "strangers"]) == ["default", "sales"]
        assert await graphs(["sales-agents", "auditors"]) == ["sales"], "to write nowhere that a rule does not say"
        assert await graphs(["sales-agents", "everything"]) == ["sales"]

    @pytest.mark.proves("security: disabled-issuers")
    async def test_tokens_are_invalid_once_the_issuer_is_disabled_changed_or_deleted(
        self, trust: Trust, admin: httpx2.AsyncClient
    ) -> None:
        token, path = trust.token(), f"{PATH}/{trust.trusted['id']}"
        for change, expected in ((False, 401), (True, 200)):
            await done(admin, "PATCH", path, enabled=change)
            assert await trust.status(token) == expected
        await done(admin, "PATCH", path, algorithm="ES256")
        assert await trust.status(token) == 401
        await done(admin, "PATCH", path, algorithm="RS256")
        assert await trust.status(token) == 200
        assert (await admin.delete(path)).status_code == 204
        assert await trust.status(token) == 401


class TestMetadata:
    async def test_only_the_tenants_own_resource_names_the_issuer(
        self, trust: Trust, admin: httpx2.AsyncClient, other_caller: Caller
    ) -> None:
        own, others = trust.gateway.url, f"/.well-known/oauth-protected-resource/t/{other_caller.tenant}/mcp"
        described = f"/.well-known/oauth-protected-resource{trust.path}"
        assert (await trust.web.get(described)).json()["authorization_servers"] == [own, trust.idp.issuer]
        for path in (others, "/.well-known/oauth-protected-resource/mcp"):
            assert (await trust.web.get(path)).json()["authorization_servers"] == [own]
        await done(admin, "PATCH", f"{PATH}/{trust.trusted['id']}", enabled=False)
        assert (await trust.web.get(described)).json()["authorization_servers"] == [own]


class TestManagement:
    async def test_an_issuer_is_added_listed_and_deleted(self, trust: Trust, admin: httpx2.AsyncClient) -> None:
        (listed,) = (await done(admin, "GET", PATH))["items"]
        assert listed == trust.trusted
        assert listed["rules"] == [
            {"value": scope, "scopes": [scope], "graphs": None} for scope in ("memory:read", "memory:write")
        ]
        problem(await admin.post(PATH, json={"name": "x", "issuer": trust.idp.issuer}), 409, "issuer_exists")
        for number in range(4):
            await done(admin, "POST", PATH, name="x", issuer=f"https://login{number}.example.com")
        problem(
            await admin.post(PATH, json={"name": "x", "issuer": "https://more.example.com"}), 409, "too_many_issuers"
        )

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("issuer", "ftp://login.example.com"),
            ("issuer", "https://login.example.com/?a"),
            ("algorithm", "HS256"),
            ("algorithm", "none"),
            ("claim", ""),
            ("name", ""),
            ("rules", []),
            ("rules.0.scopes.0", [{"value": "x", "scopes": ["memory:all"]}]),
            ("rules.0.scopes", [{"value": "x", "scopes": []}]),
            ("rules.0.value", [{"value": "", "scopes": ["memory:read"]}]),
        ],
    )
    async def test_an_invalid_issuer_is_refused_with_its_path(
        self, admin: httpx2.AsyncClient, path: str, value: Any
    ) -> None:
        body = {"name": "x", "issuer": "https://login.example.com", path.partition(".")[0]: value}
        assert problem(await admin.post(PATH, json=body), 400)["path"] == path
        assert (await done(admin, "GET", PATH))["items"] == []

    async def test_another_tenant_cannot_reach_an_issuer(
        self, trust: Trust, issue: NewApiKey, other_caller: Caller
    ) -> None:
        async with trust.gateway.http((await issue(other_caller, kind="admin")).secret) as other:
            for method, body in (("PATCH", {"enabled": False}), ("DELETE", None)):
                strange = await other.request(method, f"{PATH}/{trust.trusted['id']}", json=body)
                missing = await other.request(method, f"{PATH}/{uuid4()}", json=body)
                assert (strange.status_code, strange.content) == (missing.status_code, missing.content)
                problem(strange, 404, "issuer_not_found")
            assert (await done(other, "GET", PATH))["items"] == []
            theirs = await done(other, "POST", PATH, name="Also", issuer=trust.idp.issuer)
            await done(other, "PATCH", f"{PATH}/{theirs['id']}", enabled=False)
        assert await trust.status(trust.token()) == 200, "each tenant trusts for itself"

    @pytest.mark.proves("security: issuer-rules")
    async def test_rules_cannot_give_more_than_their_author_has(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, key: str, admin: httpx2.AsyncClient
    ) -> None:
        body = {"name": "x", "issuer": "https://login.example.com"}
        await done(admin, "POST", "/v1/graphs", name="sales")
        async with gateway.http(key) as agent:
            problem(await agent.post(PATH, json=body), 403, "scope_required")
        narrow = await issue(caller, scopes=frozenset({"tenant:admin", "memory:read"}))
        async with gateway.http(narrow.secret) as client:
            problem(await client.post(PATH, json=body), 403, "scope_required")
            reads = [{"value": "r", "scopes": ["memory:read"]}]
            made = await done(client, "POST", PATH, **body, rules=reads)
            more = [{"value": "r", "scopes": ["memory:write"]}]
            problem(await client.patch(f"{PATH}/{made['id']}", json={"rules": more}), 403, "scope_required")
