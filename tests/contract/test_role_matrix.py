"""Who may: each route with each role and each scope, each tool with each scope, as the table in docs/people.md says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from recollect.caller import Caller, Role, Scope
from recollect.platform.db import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.catalogue import TOOLS
from recollect_gateway.web.forms import TENANT_HEADER
from tests.contract.examples import EXAMPLES
from tests.contract.test_openapi_document import OF_TENANTS, roles_of_the_table
from tests.contract.test_openapi_fuzz import DOCUMENT
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers
from tests.support.people import browser, joined, sign_in
from tests.support.routes import example_request

UPWARDS = (Role.READER, Role.MEMBER, Role.ADMIN, Role.OWNER)
SCOPES_OF_KEYS: tuple[Scope | None, ...] = (None, *Scope)
"""Keys with one scope each, and one with none."""

OF_READERS = {
    "POST /v1/keys",
    "POST /v1/trusted-issuers",
    "POST /v1/invitations",
    "POST /v1/email-domains",
    "PATCH /v1/email-domains/{domain_id}",
    "POST /v1/identity-providers",
    "PATCH /v1/identity-providers/{provider_id}",
}
"""They give out `memory:read`, as only who has that can. All that may use them otherwise are admins."""


def scopes_of(role: Role) -> set[str]:
    """What the table gives a role."""
    return {scope for scope, least in roles_of_the_table().items() if UPWARDS.index(least) <= UPWARDS.index(role)}


@asynccontextmanager
async def member(
    gateway: RunningGateway, db: Database, caller: Caller, settings: Settings, role: Role
) -> AsyncIterator[httpx2.AsyncClient]:
    """The browser of somebody who is signed in, and asks as a member of the tenant."""
    person = await joined(db, caller, role, pepper=settings.key_secret.get_secret_value().encode())
    async with browser(gateway) as http:
        assert (await sign_in(http, person.email)).status_code == 303
        http.headers[TENANT_HEADER] = caller.tenant
        yield http


async def barred_routes(http: httpx2.AsyncClient) -> set[str]:
    """The routes that refuse who asks; each is asked what its example asks, of what is not there."""
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
    """The routes whose scope, as the document tells it, is not among these."""
    return {name for name, told in OF_TENANTS.items() if told["x-recollect-scope"] not in {None, *held}}


class TestRoutes:
    @pytest.mark.parametrize("role", UPWARDS)
    async def test_a_person_may_what_the_table_gives_the_role(
        self, gateway: RunningGateway, db: Database, caller: Caller, settings: Settings, role: Role
    ) -> None:
        async with member(gateway, db, caller, settings, role) as http:
            assert await barred_routes(http) == barred_by_the_table(scopes_of(role))

    @pytest.mark.parametrize("role", UPWARDS)
    async def test_a_route_tells_the_roles_that_may(self, role: Role) -> None:
        barred = {
            name for name, told in OF_TENANTS.items() if UPWARDS.index(told["x-recollect-role"]) > UPWARDS.index(role)
        }
        assert barred == barred_by_the_table(scopes_of(role))

    @pytest.mark.parametrize("scope", SCOPES_OF_KEYS)
    async def test_a_key_may_what_its_scope_allows(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, scope: Scope | None
    ) -> None:
        held = {scope} if scope else set()
        async with gateway.http((await issue(caller, kind="admin", scopes=frozenset(held))).secret) as http:
            assert await barred_routes(http) == barred_by_the_table({str(each) for each in held}) | OF_READERS

    async def test_the_table_bars_more_of_lower_roles(self) -> None:
        barred = [len(barred_by_the_table(scopes_of(role))) for role in UPWARDS]
        assert barred[0] > barred[1] > barred[2] == barred[3] == 0

    @pytest.mark.parametrize("role", UPWARDS)
    async def test_only_an_owner_makes_owners(
        self, gateway: RunningGateway, db: Database, caller: Caller, settings: Settings, role: Role
    ) -> None:
        """The last row of the table."""
        async with member(gateway, db, caller, settings, role) as http:
            asked = {"email": "grace@example.com", "role": "owner"}
            answer = await http.post("/v1/invitations", json=asked)
        assert answer.status_code == (201 if role is Role.OWNER else 403), answer.text


class TestTools:
    def test_each_has_an_example(self) -> None:
        assert set(EXAMPLES) == set(TOOLS)

    @pytest.mark.parametrize("scope", SCOPES_OF_KEYS)
    async def test_a_key_may_what_its_scope_allows(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, scope: Scope | None
    ) -> None:
        """What reads asks for `memory:read`, what writes for `memory:write`; few manage."""
        secret = (await issue(caller, kind="admin", scopes=frozenset({scope} if scope else ()))).secret
        async with gateway.http(secret, **rpc_headers()) as http:
            offered = {name for name in EXAMPLES if await is_offered(gateway, http, name)}
        assert offered == {name for name in TOOLS if needed(name) == scope}


MANAGING = {"delete_graph"}
"""Tools of the table's row `tenant:admin`."""


def needed(tool: str) -> Scope:
    """The scope that the table's rows ask of a tool."""
    if tool in MANAGING:
        return Scope.TENANT_ADMIN
    return Scope.MEMORY_READ if TOOLS[tool].read_only else Scope.MEMORY_WRITE


async def is_offered(gateway: RunningGateway, http: httpx2.AsyncClient, tool: str) -> bool:
    """Whether a call of the tool is more than a call of one that there is not."""
    called: dict[str, Any] = {"name": tool, "arguments": EXAMPLES[tool]}
    answer = await gateway.post(http, "tools/call", called, path="/mcp/x/all")
    return not answer.get("error", {}).get("message", "").startswith(f"Unknown tool: {tool}")
