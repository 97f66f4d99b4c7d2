"""A tenant that is suspended read-only: each tool and route that writes is refused, and those that read go on."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.errors import ErrorCode
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.contract.examples import EXAMPLES, Played
from tests.contract.test_audit_routes import CHANGING, READS_BY_POST
from tests.support.documents import DOCUMENT
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers
from tests.support.routes import OPEN_TO_ALL, example_request, stand_ins
from tests.tenancy.conftest import Neighbour, contents
from tests.tenancy.test_every_tool import play

READ_ONLY = str(ErrorCode.TENANT_READ_ONLY)

LOOK_FIRST = {"POST /v1/email-domains/{domain_id}/verify"}
"""Routes that look for their object before they begin to write."""

OF_SESSIONS = {"DELETE /v1/sessions/{session_id}": "a person's own, of no tenant"}
"""Routes that change nothing of the tenant."""

REFUSED = [
    route
    for route in CHANGING
    if route not in READS_BY_POST | OF_SESSIONS and route.partition(" ")[2] not in OPEN_TO_ALL
]


@pytest.fixture
async def keys(issue: NewApiKey, caller: Caller) -> tuple[str, str]:
    """Two keys with every right, created while the tenant may write."""
    return (await issue(caller, kind="admin")).secret, (await issue(caller, kind="admin")).secret


@pytest.fixture
async def played(gateway: RunningGateway, keys: tuple[str, str]) -> Played:
    """The ids from the examples of all tools, so that each finds what it names; those of routes name Ada."""
    async with gateway.http(keys[0], **rpc_headers()) as http:
        played = await play(gateway, http)
        known = await http.post("/v1/graphs/default/nodes/batch", json={"items": [{"name": "Ada"}]})
        assert known.json()["items"][0]["status"] == "new"
        return played


@pytest.fixture
async def suspended(played: Played, operator: Operator, caller: Caller) -> AsyncIterator[None]:
    await tenants.suspend_tenant(operator, caller.tenant, read_only=True)
    yield
    await tenants.resume_tenant(operator, caller.tenant)


@pytest.mark.proves("security: read-only-tenants")
@pytest.mark.usefixtures("suspended")
async def test_every_tool_that_writes_is_refused_and_the_others_go_on(
    gateway: RunningGateway,
    keys: tuple[str, str],
    played: Played,
    caller: Caller,
    db: Database,
    owner: asyncpg.Connection,
) -> None:
    before = await stored_rows(owner, db, caller)
    async with gateway.http(keys[0], **rpc_headers()) as http:
        for name, example in EXAMPLES.items():
            told = await gateway.call(http, name, played.fill(example), path="/mcp/x/all")
            code = told.get("_meta", {}).get(ERROR_META, {}).get("code")
            assert (code == READ_ONLY) is not TOOLS[name].read_only, (name, told)
            if not TOOLS[name].read_only:
                assert "read-only" in told["content"][0]["text"], name
                assert "Ask " in told["content"][0]["text"], name
    assert await stored_rows(owner, db, caller) == before


@pytest.mark.proves("security: read-only-tenants")
@pytest.mark.usefixtures("suspended")
async def test_every_route_that_writes_is_refused(
    gateway: RunningGateway,
    keys: tuple[str, str],
    played: Played,
    caller: Caller,
    db: Database,
    owner: asyncpg.Connection,
) -> None:
    """The requests name unknown objects, which shows that the refusal comes before any look-up."""
    before, others = await stored_rows(owner, db, caller), dict[str, int]()
    async with gateway.http(keys[1]) as http:
        for route in REFUSED:
            answer = await ask(http, route)
            if answer.json()["code"] != READ_ONLY:
                others[route] = answer.status_code
            keyed = await ask(http, route, {"Idempotency-Key": "once"})
            assert keyed.status_code in (400, 403, others.get(route)), (route, keyed.text)
    assert others == dict.fromkeys(LOOK_FIRST, 404)
    assert await stored_rows(owner, db, caller) == before


@pytest.mark.usefixtures("suspended")
async def test_every_route_that_reads_goes_on(gateway: RunningGateway, keys: tuple[str, str]) -> None:
    read = set()
    reading = [
        f"GET {path}" for path, methods in DOCUMENT["paths"].items() if path.startswith("/v1/") and "get" in methods
    ]
    async with gateway.http(keys[1]) as http:
        for route in [*reading, *READS_BY_POST]:
            answer = await ask(http, route, graph="default")
            assert answer.status_code in (200, 400, 404), (route, answer.text)
            if answer.is_success:
                read.add(route)
    assert {"GET /v1/graphs/{name}/export", "GET /v1/audit/export", "GET /v1/keys", *READS_BY_POST} <= read


async def ask(
    http: httpx2.AsyncClient, route: str, headers: dict[str, str] | None = None, *, graph: str = "nowhere"
) -> httpx2.Response:
    """Send the example request of the route."""
    method, path = route.split(" ")
    asked: dict[str, Any] = example_request(DOCUMENT, method.lower(), path, stand_ins(path, graph=graph))
    file = {"Content-Type": "application/x-ndjson"} if "content" in asked else {}
    asked["headers"] = {**asked.get("headers", {}), **file, **(headers or {})}
    return await http.request(method, **asked)


async def stored_rows(owner: asyncpg.Connection, db: Database, caller: Caller) -> list[str]:
    """Every row of the tenant, except counts of calls and records of reads."""
    rows = await contents(owner, Neighbour(db, caller))
    counted = ('"hour": ', '"last_used_at": ', '"action": "graph.exported"', '"action": "audit.exported"')
    return sorted(row for row in rows if not any(word in row for word in counted))
