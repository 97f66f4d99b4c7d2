"""The official client, in both revisions, with every tool."""

from collections.abc import AsyncIterator

import pytest
from mcp import Client

from tests.support.gateway import MODES, RunningGateway, in_one_task


@pytest.fixture
def key(admin_key: str) -> str:
    """The secret of an admin's key, because one tool of the catalogue is for admins only."""
    return admin_key


@pytest.fixture(params=MODES)
async def client(request: pytest.FixtureRequest, gateway: RunningGateway, key: str) -> AsyncIterator[Client]:
    """A client that is connected with the key of an admin of the test's tenant."""
    async with in_one_task(gateway.client(key, "/mcp/x/all", revision=request.param)) as client:
        yield client
