"""Which roles and scopes may use each route, and which scopes each tool, by the table in docs/people.md."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from recollect.caller import Caller, Role, Scope
from recollect.cells.databases import Databases
from recollect.settings import Settings
from recollect_gateway.callers.browser_sessions import TENANT_HEADER
from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.contract.examples import EXAMPLES
from tests.contract.test_openapi_document import OF_TENANTS, roles_of_the_table
from tests.support.documents import DOCUMENT
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers
from tests.support.people import browser, joined, sign_in
from tests.support.routes import example_request

UPWARDS = (Role.READER, Role.MEMBER, Role.ADMIN, Role.OWNER)
SCOPES_OF_KEYS: tuple[Scope | None, ...] = (None, *Scope)
"""The scopes of the tested keys: one each, and one key with none."""

OF_READERS = {
    "POST /v1/keys",
    "POST /v1/trusted-issuers",
    "POST /v1/invitations",
    "POST /v1/email-domains",
    "PATCH /v1/email-domains/{domain_id}",
    "POST /v1/identity-providers",
    "PATCH /v1/identity-providers/{provider_id}",
}
"""They grant `memory:read`, which only a caller that has it can do. Otherwise only admins may use them."""


def scopes_of(role: Role) -> set[str]:
    """The scopes that the table gives a role."""
    return {scope for scope, least in roles_of_the_table().items() if UPWARDS.index(least) <= UPWARDS.index(role)}


@asynccontextmanager
async def member(
    gateway: RunningGateway, databases: Databases, caller: Caller, settings: Settings, role: Role
) -> AsyncIterator[httpx2.AsyncClient]:
    """The browser of a signed-in member of the tenant."""
    person = await joined(databases, caller, role, pepper=settings.key_secret.get_secret_value().encode())
    async with browser(gateway) as http:
        assert (await sign_in(http, person.email)).status_code == 303
        http.headers[TENANT_HEADER] = caller.tenant
        yield http


async def barred_routes(http: httpx2.AsyncClient) -> set[str]:
    """The routes that refuse this caller; each gets its example request, with unknown objects."""
    barred = set()
    for name in OF_TENANTS:
        method, path = name.split(" ")
        answer = await http.request(method, **example_request(DOCUMENT, method.lower(), path))
        assert answer.status_code not in (401, 405, 429), (name, answer.text)
        assert answer.status_code < 500, (name, answer.text)
        if answer.status_code == 403:
            assert answer.json()["code"] == "scope_required", (name, answer.text)
            barred.add(name)
    return barred


def barred_by_the_table(held: set[str]) -> set[str]:
    """The routes whose documented scope is not among these."""
    return {name for name, told in OF_TENANTS.items() if told["x-recollect-scope"] not in {None, *held}}


class TestRoutes:
    @pytest.mark.proves("security: roles-and-scopes")
    @pytest.mark.parametrize("role", UPWARDS)
    async def test_a_person_has_the_rights_of_their_role_in_the_table(
        self, gateway: RunningGateway, databases: Databases, caller: Caller, settings: Settings, role: Role
    ) -> None:
        async with member(gateway, databases, caller, settings, role) as http:
            assert await barred_routes(http) == barred_by_the_table(scopes_of(role))

    @pytest.mark.parametrize("role", UPWARDS)
    async def test_the_documented_role_of_a_route_follows_the_table(self, role: Role) -> None:
        barred = {
            name for name, told in OF_TENANTS.items() if UPWARDS.index(told["x-recollect-role"]) > UPWARDS.index(role)
        }
        assert barred == barred_by_the_table(scopes_of(role))

    @pytest.mark.proves("security: roles-and-scopes")
    @pytest.mark.parametrize("scope", SCOPES_OF_KEYS)
    async def test_a_key_may_use_the_routes_of_its_scope(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, scope: Scope | None
    ) -> None:
        held = {scope} if scope else set()
        async with gateway.http((await issue(caller, kind="admin", scopes=frozenset(held))).secret) as http:
            assert await barred_routes(http) == barred_by_the_table({str(each) for each in held}) | OF_READERS

    async def test_lower_roles_are_barred_from_more_routes(self) -> None:
        barred = [len(barred_by_the_table(scopes_of(role))) for role in UPWARDS]
        assert barred[0] > barred[1] > barred[2] == barred[3] == 0

    @pytest.mark.parametrize("role", UPWARDS)
    async def test_only_an_owner_can_make_owners(
        self, gateway: RunningGateway, databases: Databases, caller: Caller, settings: Settings, role: Role
    ) -> None:
        """This is the last row of the table."""
        async with member(gateway, databases, caller, settings, role) as http:
            asked = {"email": "grace@example.com", "role": "owner"}
            answer = await http.post("/v1/invitations", json=asked)
        assert answer.status_code == (201 if role is Role.OWNER else 403), answer.text


class TestTools:
    def test_each_tool_has_an_example(self) -> None:
        assert set(EXAMPLES) == set(TOOLS)

    @pytest.mark.parametrize("scope", SCOPES_OF_KEYS)
    async def test_a_key_may_use_the_tools_of_its_scope(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, scope: Scope | None
    ) -> None:
        """Tools that read need `memory:read`, tools that write `memory:write`; few need `tenant:admin`."""
        secret = (await issue(caller, kind="admin", scopes=frozenset({scope} if scope else ()))).secret
        async with gateway.http(secret, **rpc_headers()) as http:
            offered = {name for name in EXAMPLES if await is_offered(gateway, http, name)}
        assert offered == {name for name in TOOLS if needed(name) == scope}


MANAGING = {"delete_graph"}
"""Tools of the table's row `tenant:admin`."""


def needed(tool: str) -> Scope:
    """The scope that a tool needs by the rows of the table."""
    if tool in MANAGING:
        return Scope.TENANT_ADMIN
    return Scope.MEMORY_READ if TOOLS[tool].read_only else Scope.MEMORY_WRITE


async def is_offered(gateway: RunningGateway, http: httpx2.AsyncClient, tool: str) -> bool:
    """Whether the tool is offered, rather than answered as unknown."""
    called: dict[str, Any] = {"name": tool, "arguments": EXAMPLES[tool]}
    answer = await gateway.post(http, "tools/call", called, path="/mcp/x/all")
    return not answer.get("error", {}).get("message", "").startswith(f"Unknown tool: {tool}")
