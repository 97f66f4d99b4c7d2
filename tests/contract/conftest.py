"""The official client, in both revisions, of every tool there is."""

from collections.abc import AsyncIterator

import pytest
from mcp import Client

from tests.support.gateway import MODES, RunningGateway, held


@pytest.fixture(params=MODES)
async def client(request: pytest.FixtureRequest, gateway: RunningGateway, key: str) -> AsyncIterator[Client]:
    """Connected with the key of an agent of the test's tenant."""
    async with held(gateway.client(key, "/mcp/x/all", revision=request.param)) as client:
        yield client
