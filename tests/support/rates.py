"""Tenants with limits, and the limits in the headers of answers."""

import asyncio
import itertools
import re
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.plans import service as plans
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.postgres.operator_sessions import Operator
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway, rpc_headers
from tests.support.timeouts import MAX_WAIT_SECONDS

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

Limit = Callable[..., Awaitable[None]]
"""Gives a tenant a plan with limits: `await limit(tenant, requests_per_minute=…)`."""

NewLimited = Callable[..., Awaitable[Caller]]
"""Creates a tenant whose plan has these limits; returns a caller with every scope."""

_ITEM = re.compile(r'"(\w+)"((?:;[a-z]+=\d+)+)')
_serial = itertools.count(1)


@pytest.fixture(scope="session")
def limit(operator: Operator) -> Limit:
    async def give(tenant: Tenant, **limits: int) -> None:
        name = f"rates-{next(_serial)}"
        await plans.set_plan(operator, name, limits)
        await tenants.set_plan(operator, tenant.slug, name)

    return give


@pytest.fixture(scope="session")
def new_limited(new_tenant: NewTenant, limit: Limit) -> NewLimited:
    async def make(**limits: int) -> Caller:
        tenant = await new_tenant()
        await limit(tenant, **limits)
        return operator_caller(tenant)

    return make


@dataclass(frozen=True, slots=True)
class ReportedLimit:
    """One limit in the headers of an answer."""

    quota: int
    window: int
    remaining: int
    reset: int


def reported_limits(answer: httpx2.Response) -> dict[str, ReportedLimit]:
    """The limits in the headers of an answer, by the names of their policies."""
    fields = [_items(answer.headers.get(name, "")) for name in ("RateLimit-Policy", "RateLimit")]
    assert fields[0].keys() == fields[1].keys(), answer.headers
    return {
        name: ReportedLimit(policy["q"], policy["w"], fields[1][name]["r"], fields[1][name]["t"])
        for name, policy in fields[0].items()
    }


def _items(field: str) -> dict[str, dict[str, int]]:
    """A list of strings with parameters that are integers (RFC 9651), which takes no other form."""
    if not field:
        return {}
    matches = [_ITEM.fullmatch(item) for item in field.split(", ")]
    found = {match[1]: match[2] for match in matches if match}
    assert len(found) == len(matches), field
    return {
        name: {key: int(value) for key, value in (each.split("=") for each in parameters.split(";")[1:])}
        for name, parameters in found.items()
    }


async def list_graphs(client: httpx2.AsyncClient) -> httpx2.Response:
    """Send one request to a route."""
    return await client.get("/v1/graphs")


async def list_tools(client: httpx2.AsyncClient) -> httpx2.Response:
    """Send one MCP request."""
    return await client.post("/mcp", json=LIST_TOOLS, headers=rpc_headers())


async def flood(clients: Sequence[httpx2.AsyncClient], count: int) -> Counter[int]:
    """Send so many requests at once, by clients and transports in turn, and count the statuses."""
    asked = itertools.islice(itertools.cycle(itertools.product((list_graphs, list_tools), clients)), count)
    return Counter(answer.status_code for answer in await asyncio.gather(*(ask(client) for ask, client in asked)))


def unsent(secret: str, path: str = "/mcp") -> bytes:
    """The head of a request whose body is not sent yet."""
    named = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {secret}\r\n"
    return f"{named}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n".encode()


@contextmanager
def under_way(gateway: RunningGateway, secret: str) -> Iterator[socket.socket]:
    """An admitted call whose body is never sent."""
    address = urlsplit(gateway.url)
    with socket.create_connection((str(address.hostname), address.port or 80), timeout=MAX_WAIT_SECONDS) as client:
        client.sendall(unsent(secret))
        assert client.recv(65536).startswith(b"HTTP/1.1 100")
        yield client
