"""Signing in at each address of an endpoint, by each name of the gateway.

Clients compare `resource` in the metadata with the address that a person gave them, letter by letter.
"""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.gateway import RunningGateway, answer, rpc_headers, serving
from tests.support.oauth import HandClient, Visitor, Wallet, oauth_client
from tests.support.people import browser, joined

PATHS = ("/mcp", "/mcp/", "/mcp/x/memory", "/mcp/x/memory/", "/mcp/x/memory,organize", "/mcp/x/no-such-toolset")
WELL_KNOWN = "/.well-known/oauth-protected-resource"


@pytest.fixture
async def person(databases: Databases, caller: Caller, settings: Settings) -> Person:
    return await joined(databases, caller, Role.MEMBER, pepper=settings.key_secret.get_secret_value().encode())


@pytest.fixture
async def visitor(gateway: RunningGateway, person: Person) -> AsyncIterator[Visitor]:
    async with browser(gateway) as http:
        yield Visitor(http, person.email)


def under_each_name(gateway: RunningGateway) -> list[str]:
    """The gateway's addresses: where it listens, and the other names of this machine."""
    return [gateway.url.replace("127.0.0.1", name) for name in ("127.0.0.1", "localhost")]


async def discovered(http: httpx2.AsyncClient, address: str) -> dict[str, Any]:
    """The metadata of the resource at this address, as a client finds it that was answered 401 there."""
    challenged = await http.post(address, json={}, headers=rpc_headers())
    assert challenged.status_code == 401
    (named,) = re.findall(r'resource_metadata="([^"]*)"', challenged.headers["www-authenticate"])
    document: dict[str, Any] = (await http.get(named)).json()
    origin, _, path = address.partition("/mcp")
    origin, tenant = origin.split("/t/")[0], re.findall("/t/[^/]+", origin)
    own = f"{origin}{WELL_KNOWN}{''.join(tenant)}/mcp{path}"
    assert named == own, "it is where a client looks that was not answered yet, too"
    return document


async def test_each_address_has_metadata_of_its_own(
    gateway: RunningGateway, caller: Caller, subtests: pytest.Subtests
) -> None:
    async with gateway.http() as http:
        for origin in under_each_name(gateway):
            for path in (*PATHS, *(f"/t/{caller.tenant}{path}" for path in PATHS)):
                with subtests.test(origin + path):
                    document = await discovered(http, origin + path)
                    assert document["resource"] == origin + path
                    (issuer,) = document["authorization_servers"]
                    server = await http.get(f"{issuer}/.well-known/oauth-authorization-server")
                    assert server.json()["issuer"] == issuer == gateway.url
        for origin in under_each_name(gateway):
            assert (await http.get(origin + WELL_KNOWN)).json()["resource"] == f"{origin}/mcp"


async def test_an_address_that_can_be_none_of_ours_has_no_metadata_and_is_not_repeated(
    gateway: RunningGateway, subtests: pytest.Subtests
) -> None:
    async with gateway.http() as http:
        for path in ("/mcp/x/%22", "/mcp/x/A", "/mcp/x/" + "x" * 201, "/t/%22/mcp/x/memory", "/t/A/mcp", "/mcp/y"):
            with subtests.test(path):
                assert (await http.get(WELL_KNOWN + path)).status_code == 404
                if path != "/mcp/y":
                    challenged = await http.post(path, json={}, headers=rpc_headers())
                    assert challenged.headers["www-authenticate"].endswith(f'{gateway.url}{WELL_KNOWN}/mcp"')
        challenged = await http.post("/t/acme/mcp/x/%22", json={}, headers=rpc_headers())
        assert challenged.headers["www-authenticate"].endswith(f'{WELL_KNOWN}/t/acme/mcp"')


async def test_the_official_client_signs_in_at_each_address(
    gateway: RunningGateway, visitor: Visitor, caller: Caller, subtests: pytest.Subtests
) -> None:
    for origin in under_each_name(gateway):
        for path in ("/mcp", "/mcp/", "/mcp/x/memory", f"/t/{caller.tenant}/mcp/x/memory"):
            with subtests.test(origin + path):
                async with oauth_client(RunningGateway(origin), visitor, Wallet(), path=path) as client:
                    assert (await client.list_tools()).tools


async def test_a_token_is_for_the_endpoint_by_whatever_address_it_was_requested(
    gateway: RunningGateway, visitor: Visitor, caller: Caller, subtests: pytest.Subtests
) -> None:
    client = await HandClient.register(gateway, visitor.http)
    for resource in (f"{origin}/mcp/x/memory/" for origin in under_each_name(gateway)):
        with subtests.test(resource):
            issued = await client.tokens(visitor, resource=resource)
            async with gateway.http(issued["access_token"]) as http:
                listed = [(await http.post(path, json={}, headers=rpc_headers())).status_code for path in PATHS[:3]]
                assert 401 not in listed
                other = await http.post(f"/t/{caller.tenant}/mcp", json={}, headers=rpc_headers())
                assert other.status_code == 401
                refreshed = await client.refresh(issued["refresh_token"], resource=f"{gateway.url}/mcp")
                assert refreshed.status_code == 200


@pytest.mark.proves("security: own-addresses")
async def test_names_that_the_operator_gave_with_their_scheme_are_answered_with(settings: Settings) -> None:
    changed = {
        "public_url": "https://memory.example.com",
        "allowed_hosts": ["127.0.0.1:*", "https://memory.acme.example", "proxied.internal"],
    }
    with serving(settings.model_copy(update=changed)) as gateway:
        async with gateway.http() as http:

            async def resource_at(host: str) -> str:
                document = (await http.get(f"{WELL_KNOWN}/mcp/x/memory", headers={"Host": host})).json()
                assert document["authorization_servers"] == ["https://memory.example.com"]
                return str(document["resource"])

            assert await resource_at("memory.acme.example") == "https://memory.acme.example/mcp/x/memory"
            for proxied in ("proxied.internal", gateway.url.partition("://")[2], "memory.example.com"):
                assert await resource_at(proxied) == "https://memory.example.com/mcp/x/memory"
            elsewhere = await http.get(WELL_KNOWN, headers={"Host": "elsewhere.example"})
            assert elsewhere.status_code == 421


async def test_a_step_up_names_the_address_that_was_asked(gateway: RunningGateway, visitor: Visitor) -> None:
    client = await HandClient.register(gateway, visitor.http)
    visitor.chosen = {"decision": "allow", "scope": "memory:read"}
    issued = await client.tokens(visitor)
    origin = under_each_name(gateway)[1]
    async with gateway.http(issued["access_token"]) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "remember", "arguments": {}}}
        refused = await http.post(f"{origin}/mcp/x/agent", json=body, headers=rpc_headers())
    assert refused.status_code == 403
    assert f'resource_metadata="{origin}{WELL_KNOWN}/mcp/x/agent"' in refused.headers["www-authenticate"]


async def test_a_wallet_of_one_name_is_of_use_at_another(gateway: RunningGateway, visitor: Visitor) -> None:
    """Tokens are kept by clients for an address; what they are for is the endpoint."""
    wallet = Wallet()
    async with oauth_client(gateway, visitor, wallet) as client:
        await answer(client, "read_graph")
    async with RunningGateway(under_each_name(gateway)[1]).client(wallet.current_tokens.access_token) as client:
        assert (await answer(client, "read_graph"))["entities"] == []
