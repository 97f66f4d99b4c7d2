"""Addresses of endpoints: they tell nothing of tenants, and a token of one tenant holds at none of another's."""

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway, rpc_headers
from tests.support.oauth import HandClient, Visitor
from tests.support.people import browser, joined

WELL_KNOWN = "/.well-known/oauth-protected-resource"
ADDRESSES = ("/t/{}/mcp", "/t/{}/mcp/", "/t/{}/mcp/x/memory", "/t/{}/mcp/x/no-such-toolset")
TOLD = {"content-type", "cache-control", "www-authenticate"}


@pytest.fixture
async def person(databases: Databases, caller: Caller, settings: Settings) -> Person:
    return await joined(databases, caller, Role.OWNER, pepper=settings.key_secret.get_secret_value().encode())


@pytest.fixture
async def visitor(gateway: RunningGateway, person: Person) -> AsyncIterator[Visitor]:
    async with browser(gateway) as http:
        yield Visitor(http, person.email)


@pytest.mark.proves("security: addresses-of-endpoints")
async def test_a_tenant_and_none_look_alike_at_every_address(
    gateway: RunningGateway, caller: Caller, subtests: pytest.Subtests
) -> None:
    def told(answer: httpx2.Response, tenant: str) -> tuple[int, str, dict[str, str]]:
        headers = {name: value.replace(tenant, "…") for name, value in answer.headers.items() if name in TOLD}
        return answer.status_code, answer.text.replace(tenant, "…"), headers

    async with gateway.http() as http:
        for name in ("127.0.0.1", "localhost"):
            origin = gateway.url.replace("127.0.0.1", name)
            for address in ADDRESSES:
                with subtests.test(name + address):
                    answers = []
                    for tenant in (caller.tenant, f"nobody-{uuid4()}"):
                        path = address.format(tenant)
                        asked = await http.get(origin + WELL_KNOWN + path), await http.post(origin + path, json={})
                        answers.append([told(answer, tenant) for answer in asked])
                    assert answers[0] == answers[1]
                    assert [answer[0] for answer in answers[0]] == [200, 401]


@pytest.mark.proves("security: addresses-of-endpoints")
async def test_a_token_of_one_tenant_holds_at_no_address_of_another(
    gateway: RunningGateway, visitor: Visitor, caller: Caller, new_tenant: NewTenant, subtests: pytest.Subtests
) -> None:
    other = operator_caller(await new_tenant())
    client = await HandClient.register(gateway, visitor.http)
    local = gateway.url.replace("127.0.0.1", "localhost")
    for resource in (f"{local}/t/{caller.tenant}/mcp/x/memory", f"{local}/t/{caller.tenant}/mcp/"):
        token = (await client.tokens(visitor, resource=resource))["access_token"]
        async with gateway.http(token) as http:
            for address in (*ADDRESSES, *(local + address for address in ADDRESSES)):
                with subtests.test(f"{resource} {address}"):
                    own = await http.post(address.format(caller.tenant), json={}, headers=rpc_headers())
                    assert own.status_code != 401
                    foreign = await http.post(address.format(other.tenant), json={}, headers=rpc_headers())
                    assert foreign.status_code == 401


@pytest.mark.proves("security: addresses-of-endpoints")
async def test_no_token_is_given_for_another_tenants_endpoint_by_whichever_address(
    gateway: RunningGateway, visitor: Visitor, new_tenant: NewTenant, subtests: pytest.Subtests
) -> None:
    foreign = (await new_tenant()).slug
    client = await HandClient.register(gateway, visitor.http)
    await client.tokens(visitor)
    local = gateway.url.replace("127.0.0.1", "localhost")
    pages = set()
    for tenant in (foreign, "nobody-has-this-one"):
        for address in ADDRESSES:
            with subtests.test(address):
                answer = await visitor.http.get(client.request(resource=local + address.format(tenant)))
                assert (answer.status_code, answer.headers.get("location")) == (400, None)
                pages.add(answer.text.partition("<main")[2])
    assert len(pages) == 1
