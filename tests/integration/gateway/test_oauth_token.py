"""/oauth/token, /oauth/revoke and /oauth/introspect, called by hand, and the use of tokens."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, rpc_answer, rpc_headers, serving
from tests.support.oauth import HandClient, Visitor
from tests.support.people import browser, joined

READ: tuple[str, Any] = ("read_graph", {})
WRITE: tuple[str, Any] = ("create_entities", {"entities": []})


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def person(databases: Databases, caller: Caller, pepper: bytes) -> Person:
    return await joined(databases, caller, Role.MEMBER, pepper=pepper)


@pytest.fixture
async def visitor(gateway: RunningGateway, person: Person) -> AsyncIterator[Visitor]:
    async with browser(gateway) as http:
        yield Visitor(http, person.email)


@pytest.fixture
async def web(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http() as http:
        yield http


@pytest.fixture
async def client(gateway: RunningGateway, web: httpx2.AsyncClient) -> HandClient:
    return await HandClient.register(gateway, web)


async def call_tool(
    http: httpx2.AsyncClient, token: str, tool: tuple[str, Any], path: str = "/mcp/x/memory"
) -> httpx2.Response:
    """The HTTP answer to one tool call."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool[0], "arguments": tool[1]}}
    headers = {**rpc_headers(), "Authorization": f"Bearer {token}"}
    return await http.post(path, content=json.dumps(body), headers=headers)


class TestUse:
    @pytest.mark.proves("security: client-registration")
    async def test_a_client_counts_as_used_once_it_has_tokens(
        self, visitor: Visitor, client: HandClient, owner: asyncpg.Connection
    ) -> None:
        """A client is not kept for a code that was never redeemed."""
        is_used = "SELECT last_used_at IS NOT NULL FROM oauth_clients WHERE id = $1"
        code = await client.code(visitor)
        assert await owner.fetchval(is_used, client.id) is False
        assert (await client.redeem(code)).status_code == 200
        assert await owner.fetchval(is_used, client.id) is True


class TestToken:
    async def test_a_code_is_redeemed_for_tokens(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient, gateway: RunningGateway
    ) -> None:
        answer = await client.redeem(await client.code(visitor), resource=f"{gateway.url}/mcp")
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-store"
        issued = answer.json()
        assert issued.pop("access_token").startswith("rcl_access_")
        assert issued.pop("refresh_token").startswith("rcl_refresh_")
        assert issued == {"token_type": "Bearer", "expires_in": 900, "scope": "memory:read memory:write"}

    @pytest.mark.parametrize(
        ("changed", "error"),
        [
            ({"code": "rcl_code_" + "0" * 38}, "invalid_grant"),
            ({"code": "x"}, "invalid_grant"),
            ({"code": None}, "invalid_request"),
            ({"client_id": None}, "invalid_client"),
            ({"client_id": "rcl_client_x"}, "invalid_client"),
            ({"client_id": "another"}, "invalid_grant"),
            ({"redirect_uri": "http://127.0.0.1:1/callback"}, "invalid_grant"),
            ({"code_verifier": None}, "invalid_request"),
            ({"code_verifier": "x"}, "invalid_request"),
            ({"code_verifier": "x" * 43}, "invalid_grant"),
            ({"grant_type": None}, "unsupported_grant_type"),
            ({"grant_type": "password"}, "unsupported_grant_type"),
            ({"grant_type": "refresh_token"}, "invalid_request"),
            ({"resource": "https://elsewhere.example.com/mcp"}, "invalid_target"),
            ({"resource": "tenant"}, "invalid_target"),
        ],
    )
    async def test_a_request_that_does_not_match_the_code_is_refused_and_does_not_use_it_up(
        self,
        visitor: Visitor,
        client: HandClient,
        web: httpx2.AsyncClient,
        gateway: RunningGateway,
        caller: Caller,
        changed: dict[str, str | None],
        error: str,
    ) -> None:
        given: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "code": await client.code(visitor),
            "redirect_uri": client.redirect_uri,
            "code_verifier": client.verifier,
        }
        if changed.get("client_id") == "another":
            changed = {"client_id": (await HandClient.register(gateway, web)).id}
        if changed.get("resource") == "tenant":
            changed = {"resource": f"{gateway.url}/t/{caller.tenant}/mcp"}
        refused = await client.token(**{**given, **changed})
        assert (refused.status_code, refused.json()["error"]) == (400, error)
        assert refused.headers["cache-control"] == "no-store"
        assert (await client.token(**given)).status_code == 200

    @pytest.mark.parametrize(
        ("asked_with", "redeemed_with"),
        [({}, {"redirect_uri": None}), ({"redirect_uri": None}, {"redirect_uri": None}), ({"redirect_uri": None}, {})],
    )
    async def test_the_redirect_address_may_be_left_out(
        self,
        visitor: Visitor,
        client: HandClient,
        asked_with: dict[str, str | None],
        redeemed_with: dict[str, str | None],
    ) -> None:
        """PKCE proves who may redeem the code. A redirect address that is given must still be that of the code."""
        code = await client.code(visitor, **asked_with)
        wrong = await client.redeem(code, redirect_uri="http://127.0.0.1:1/callback")
        assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_grant")
        assert (await client.redeem(code, **redeemed_with)).status_code == 200

    async def test_a_client_secret_is_refused(self, visitor: Visitor, client: HandClient) -> None:
        """Clients have no secrets: one that sends a secret was meant for another server."""
        code = await client.code(visitor)
        refused = await client.redeem(code, client_secret="x")
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_client")

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            (b"{}", "application/json"),
            (b"grant_type=refresh_token&grant_type=password", "application/x-www-form-urlencoded"),
            (b"x=%ff", "application/x-www-form-urlencoded"),
            (b"\xff", "application/x-www-form-urlencoded"),
            (b"&".join(b"p%d=1" % n for n in range(200)), "application/x-www-form-urlencoded"),
            (b"x=" + b"y" * 5_000, "application/x-www-form-urlencoded"),
        ],
    )
    async def test_an_unreadable_body_is_an_invalid_request(
        self, web: httpx2.AsyncClient, body: bytes, kind: str
    ) -> None:
        for path in ("/oauth/token", "/oauth/revoke", "/oauth/introspect"):
            answer = await web.post(path, content=body, headers={"Content-Type": kind})
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), path

    async def test_a_long_body_is_not_read(self, web: httpx2.AsyncClient) -> None:
        assert (await web.post("/oauth/token", data={"x": "y" * 40_000})).status_code == 413

    async def test_a_code_used_again_ends_its_grant(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient
    ) -> None:
        code = await client.code(visitor)
        issued = (await client.redeem(code)).json()
        assert (await call_tool(web, issued["access_token"], READ)).status_code == 200
        again = await client.redeem(code)  # As a page does that was reloaded.
        assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
        assert (await call_tool(web, issued["access_token"], READ)).status_code == 200
        stolen = await client.redeem(code, code_verifier="x" * 43)
        assert (stolen.status_code, stolen.json()["error"]) == (400, "invalid_grant")
        assert (await call_tool(web, issued["access_token"], READ)).status_code == 401
        assert (await client.refresh(issued["refresh_token"])).status_code == 400

    async def test_a_client_without_the_refresh_grant_gets_no_refresh_token(
        self, visitor: Visitor, gateway: RunningGateway, web: httpx2.AsyncClient
    ) -> None:
        client = await HandClient.register(gateway, web, grant_types=["authorization_code"])
        assert "refresh_token" not in await client.tokens(visitor)

    async def test_parallel_refreshes_give_siblings(self, visitor: Visitor, client: HandClient) -> None:
        issued = await client.tokens(visitor)
        answers = await asyncio.gather(*(client.refresh(issued["refresh_token"]) for _ in range(4)))
        assert [answer.status_code for answer in answers] == [200] * 4
        assert len({answer.json()["refresh_token"] for answer in answers}) == 4

    async def test_a_refresh_may_narrow_and_not_widen_scopes(self, visitor: Visitor, client: HandClient) -> None:
        issued = await client.tokens(visitor, scope="memory:read")
        assert (await client.refresh(issued["refresh_token"], scope="memory:read")).json()["scope"] == "memory:read"
        more = await client.refresh(issued["refresh_token"], scope="memory:read memory:write")
        assert (more.status_code, more.json()["error"]) == (400, "invalid_scope")

    async def test_an_id_token_names_the_person_and_the_client(
        self, visitor: Visitor, client: HandClient, gateway: RunningGateway, web: httpx2.AsyncClient, person: Person
    ) -> None:
        issued = await client.tokens(visitor, scope="openid memory:read", nonce="the nonce")
        keys = (await web.get("/oauth/jwks.json")).json()
        claims = jwt.decode(issued["id_token"], KeySet.import_key_set(keys), algorithms=["ES256"]).claims
        assert claims.pop("exp") - claims.pop("iat") == 900
        expected = {"iss": gateway.url, "sub": str(person.id), "aud": client.id, "nonce": "the nonce"}
        assert claims == expected
        assert "id_token" not in await client.tokens(visitor)


class TestTokensInUse:
    @pytest.mark.proves("security: token-resource")
    async def test_a_token_is_valid_for_its_resource_only(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient, gateway: RunningGateway, caller: Caller
    ) -> None:
        own = f"/t/{caller.tenant}/mcp"
        everybodys = (await client.tokens(visitor))["access_token"]
        tenants = (await client.tokens(visitor, resource=gateway.url + own))["access_token"]
        for token, path, status in [
            (everybodys, "/mcp", 200),
            (everybodys, "/mcp/x/memory", 200),
            (everybodys, own, 401),
            (tenants, own + "/x/memory", 200),
            (tenants, "/mcp", 401),
            (tenants, "/t/nobody-has-this-one/mcp", 401),
            (tenants, own, 200),
        ]:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            headers = {**rpc_headers(), "Authorization": f"Bearer {token}"}
            answer = await web.post(path, content=json.dumps(body), headers=headers)
            assert answer.status_code == status, (path, answer.text)

    @pytest.mark.proves("security: token-resource")
    async def test_a_token_is_not_valid_at_another_gateways_address_or_for_administration(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient, settings: Settings
    ) -> None:
        token = (await client.tokens(visitor))["access_token"]
        with serving(settings) as other:
            async with other.http() as http:
                assert (await call_tool(http, token, READ)).status_code == 401
        for path in ("/v1/keys", "/v1/grants", "/v1/usage"):
            assert (await web.get(path, headers={"Authorization": f"Bearer {token}"})).status_code == 401
        assert (await call_tool(web, token, READ)).status_code == 200

    async def test_refresh_tokens_and_codes_are_not_valid_for_calls(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient
    ) -> None:
        issued = await client.tokens(visitor)
        for secret in (issued["refresh_token"], await client.code(visitor)):
            assert (await call_tool(web, secret, READ)).status_code == 401

    async def test_a_tool_beyond_the_scopes_gets_a_challenge(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient, gateway: RunningGateway
    ) -> None:
        token = (await client.tokens(visitor, scope="memory:read"))["access_token"]
        for tool in (WRITE, ("create_entities", {"entities": [{"name": "x" * 100_000}]})):
            answer = await call_tool(web, token, tool)
            assert answer.status_code == 403
            assert answer.json()["code"] == "scope_required"
            metadata = f"{gateway.url}/.well-known/oauth-protected-resource/mcp/x/memory"
            assert answer.headers["www-authenticate"] == (
                'Bearer realm="recollect", error="insufficient_scope", scope="memory:write", '
                f'resource_metadata="{metadata}"'
            )

    async def test_delete_graph_requires_the_scope_of_its_route(
        self,
        visitor: Visitor,
        client: HandClient,
        web: httpx2.AsyncClient,
        issue: NewApiKey,
        db: Database,
        caller: Caller,
        person: Person,
    ) -> None:
        """An admin's client gets a challenge. A member's, and a key that may write, are told what they lack."""
        delete, path = ("delete_graph", {"graph": "notes"}), "/mcp/x/lineage"
        lacking = "Unknown tool: delete_graph. It is for credentials that have the scope tenant:admin"
        key, token = (await issue(caller)).secret, (await client.tokens(visitor))["access_token"]
        for secret in (key, token):
            assert rpc_answer((await call_tool(web, secret, delete, path)).text)["error"]["message"] == lacking
        async with db.transaction(caller) as tx:
            await members.change_role(tx, person.id, Role.ADMIN)
        answer = await call_tool(web, token, delete, path)
        assert (answer.status_code, 'scope="tenant:admin"' in answer.headers["www-authenticate"]) == (403, True)
        visitor.chosen = {"decision": "allow", "scope": "tenant:admin"}
        token = (await client.tokens(visitor, scope="tenant:admin"))["access_token"]
        done = rpc_answer((await call_tool(web, token, delete, path)).text)["result"]["structuredContent"]
        assert done == {"graph": "notes", "deleted": False}

    @pytest.mark.parametrize(
        ("tool", "path", "chosen"),
        [
            (("no_such_tool", {}), "/mcp/x/memory", {}),
            (WRITE, "/mcp/x/agent", {}),
            (WRITE, "/mcp/x/memory", {"toolsets": "some", "toolset": "agent"}),
        ],
        ids=["no tool", "not chosen", "not granted"],
    )
    async def test_a_tool_that_no_step_up_would_allow_is_unknown(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient, tool: Any, path: str, chosen: Any
    ) -> None:
        visitor.chosen = {"decision": "allow", **chosen}
        token = (await client.tokens(visitor, scope="memory:read"))["access_token"]
        answer = await call_tool(web, token, tool, path)
        assert answer.status_code != 403
        assert f"Unknown tool: {tool[0]}" in rpc_answer(answer.text)["error"]["message"]

    async def test_a_tool_beyond_the_persons_role_is_unknown(
        self,
        gateway: RunningGateway,
        web: httpx2.AsyncClient,
        client: HandClient,
        visitor: Visitor,
        db: Database,
        caller: Caller,
        person: Person,
    ) -> None:
        """Otherwise, a client would ask its person again and again in vain."""
        token = (await client.tokens(visitor))["access_token"]
        barely = (await client.tokens(visitor, scope="openid"))["access_token"]
        async with db.transaction(caller) as tx:
            await members.change_role(tx, person.id, Role.READER)
        assert "Unknown tool" in (await call_tool(web, token, WRITE)).text
        assert "Unknown tool" in (await call_tool(web, barely, WRITE)).text
        assert (await call_tool(web, barely, READ)).status_code == 403
        assert (await call_tool(web, token, READ)).status_code == 200

    async def test_keys_get_no_challenge(self, web: httpx2.AsyncClient, issue: NewApiKey, caller: Caller) -> None:
        key = (await issue(caller, scopes=frozenset({"memory:read"}))).secret
        answer = await call_tool(web, key, WRITE)
        assert "Unknown tool" in answer.text
        assert "www-authenticate" not in answer.headers

    @pytest.mark.proves("security: token-reach")
    async def test_tokens_of_a_removed_member_are_invalid_at_once(
        self,
        visitor: Visitor,
        client: HandClient,
        web: httpx2.AsyncClient,
        db: Database,
        caller: Caller,
        person: Person,
    ) -> None:
        issued = await client.tokens(visitor)
        assert (await call_tool(web, issued["access_token"], READ)).status_code == 200
        async with db.transaction(caller) as tx:
            await members.remove_member(tx, person.id)
        assert (await call_tool(web, issued["access_token"], READ)).status_code == 401
        assert (await client.refresh(issued["refresh_token"])).json()["error"] == "invalid_grant"


class TestRevocation:
    async def test_revoking_a_refresh_token_ends_the_grant(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient
    ) -> None:
        issued = await client.tokens(visitor)
        given = {"token": issued["refresh_token"], "client_id": client.id, "token_type_hint": "access_token"}
        for _ in range(2):
            assert (await web.post("/oauth/revoke", data=given)).status_code == 200
        assert (await call_tool(web, issued["access_token"], READ)).status_code == 401
        assert (await client.refresh(issued["refresh_token"])).status_code == 400

    async def test_revoking_an_access_token_leaves_the_grant(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient
    ) -> None:
        issued = await client.tokens(visitor)
        given = {"token": issued["access_token"], "client_id": client.id}
        assert (await web.post("/oauth/revoke", data=given)).status_code == 200
        assert (await call_tool(web, issued["access_token"], READ)).status_code == 401
        assert (await client.refresh(issued["refresh_token"])).status_code == 200

    async def test_other_clients_can_neither_revoke_nor_inspect_a_token(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient, gateway: RunningGateway
    ) -> None:
        issued = await client.tokens(visitor)
        stranger = (await HandClient.register(gateway, web)).id
        for token in (issued["access_token"], issued["refresh_token"], "rcl_access_" + "0" * 38, "x"):
            given = {"token": token, "client_id": stranger}
            assert (await web.post("/oauth/revoke", data=given)).text == "{}"
            assert (await web.post("/oauth/introspect", data=given)).json() == {"active": False}
        assert (await call_tool(web, issued["access_token"], READ)).status_code == 200
        for path in ("/oauth/revoke", "/oauth/introspect"):
            nobody = await web.post(path, data={"token": issued["access_token"]})
            assert (nobody.status_code, nobody.json()["error"]) == (400, "invalid_client")
            nothing = await web.post(path, data={"client_id": client.id})
            assert (nothing.status_code, nothing.json()["error"]) == (400, "invalid_request")

    async def test_a_client_can_inspect_its_own_tokens(
        self, visitor: Visitor, client: HandClient, web: httpx2.AsyncClient, gateway: RunningGateway, person: Person
    ) -> None:
        issued = await client.tokens(visitor)
        told = (
            await web.post("/oauth/introspect", data={"token": issued["access_token"], "client_id": client.id})
        ).json()
        assert told.pop("exp") - told.pop("iat") == 900
        assert told == {
            "active": True,
            "client_id": client.id,
            "token_type": "Bearer",
            "scope": "memory:read memory:write",
            "sub": str(person.id),
            "aud": f"{gateway.url}/mcp",
            "iss": gateway.url,
        }
        await client.refresh(issued["refresh_token"])
        used = {"token": issued["refresh_token"], "client_id": client.id}
        assert (await web.post("/oauth/introspect", data=used)).json() == {"active": False}


class TestGrants:
    async def test_an_admin_lists_and_ends_grants_of_the_tenant(
        self,
        visitor: Visitor,
        client: HandClient,
        web: httpx2.AsyncClient,
        gateway: RunningGateway,
        admin_key: str,
        key: str,
        caller: Caller,
        person: Person,
    ) -> None:
        issued = await client.tokens(visitor)
        async with gateway.http(key) as agent:
            assert (await agent.get("/v1/grants")).status_code == 403
        async with gateway.http(admin_key) as admin:
            (grant,) = (await admin.get("/v1/grants")).json()["items"]
            assert grant["person"] == {"id": str(person.id), "email": person.email, "name": person.name}
            assert grant["resource"] == f"{gateway.url}/mcp"
            ended = (await admin.delete(f"/v1/grants/{grant['id']}")).json()
            assert ended["revoked_by"].startswith("key:")
            assert (await admin.delete(f"/v1/grants/{grant['id']}")).json() == ended
        assert (await call_tool(web, issued["access_token"], READ)).status_code == 401

    @pytest.mark.proves("security: foreign-tokens")
    async def test_another_tenants_grants_are_not_found(
        self,
        visitor: Visitor,
        client: HandClient,
        gateway: RunningGateway,
        admin_key: str,
        issue: NewApiKey,
        new_tenant: NewTenant,
        owner: asyncpg.Connection,
        caller: Caller,
    ) -> None:
        await client.tokens(visitor)
        grant_id = await owner.fetchval("SELECT id FROM oauth_grants WHERE tenant_id = $1", caller.tenant_id)
        stranger = (await issue(operator_caller(await new_tenant()), kind="admin")).secret
        async with gateway.http(stranger) as http:
            assert (await http.get("/v1/grants")).json()["items"] == []
            foreign = await http.delete(f"/v1/grants/{grant_id}")
            unknown = await http.delete("/v1/grants/00000000-0000-7000-8000-000000000000")
        assert (foreign.status_code, foreign.json()) == (404, unknown.json())
        assert foreign.json()["code"] == "grant_not_found"
