"""Clients of the run's gateway, for the test's tenant."""

from collections.abc import AsyncIterator, Iterator

import pytest

from recollect_client import AsyncRecollect, Recollect
from tests.support.gateway import RunningGateway


@pytest.fixture
def client(gateway: RunningGateway, key: str) -> Iterator[Recollect]:
    """A client that blocks, with the key of an agent. The gateway runs in a thread of its own."""
    with Recollect(gateway.url, api_key=key) as client:
        yield client


@pytest.fixture
async def aclient(gateway: RunningGateway, key: str) -> AsyncIterator[AsyncRecollect]:
    """A client for asyncio, with the key of an agent."""
    async with AsyncRecollect(gateway.url, api_key=key) as client:
        yield client


@pytest.fixture
async def admin(gateway: RunningGateway, admin_key: str) -> AsyncIterator[AsyncRecollect]:
    """A client for asyncio, with the key of an admin."""
    async with AsyncRecollect(gateway.url, api_key=admin_key) as client:
        yield client
