"""The official client, in both revisions, with every tool."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.gateway import MODES, RunningGateway, in_one_task

ConnectedClient = Callable[..., Awaitable[Client]]


@pytest.fixture
def key(admin_key: str) -> str:
    """The secret of an admin's key, because one tool of the catalogue is for admins only."""
    return admin_key


@pytest.fixture(scope="session")
async def connected(gateway: RunningGateway) -> AsyncIterator[ConnectedClient]:
    """Clients of the run's gateway with a key: `await connected(key, path, revision)`."""
    async with connected_to(gateway) as with_key:
        yield with_key


@asynccontextmanager
async def connected_to(gateway: RunningGateway) -> AsyncIterator[ConnectedClient]:
    """Clients of a gateway, one for each address and revision.

    The endpoint keeps no sessions: each request shows its key. So one connected client serves all tests, each of which
    has a key and a tenant of its own. A client of its own would list a hundred tools for each test and compile their
    schemas. The client caches no answers, which would be those of another tenant.
    """
    made: dict[tuple[str, str], tuple[httpx2.AsyncClient, Client]] = {}

    async with AsyncExitStack() as stack:

        async def with_key(key: str, path: str, revision: str) -> Client:
            if (path, revision) not in made:
                http = await stack.enter_async_context(gateway.http(key))
                client = Client(
                    streamable_http_client(gateway.url + path, http_client=http), mode=MODES[revision], cache=None
                )
                made[path, revision] = http, await stack.enter_async_context(in_one_task(client))
            http, client = made[path, revision]
            http.headers["Authorization"] = f"Bearer {key}"
            return client

        yield with_key


@pytest.fixture(params=MODES)
async def client(request: pytest.FixtureRequest, connected: ConnectedClient, key: str) -> Client:
    """A client with the key of an admin of the test's tenant."""
    return await connected(key, "/mcp/x/all", request.param)
