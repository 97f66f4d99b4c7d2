"""The largest batches that can be written hold the event loop no longer than any other call."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.settings import Settings
from recollect_gateway.operations.batches import MAX_BATCH, MAX_OBSERVATIONS
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey
from tests.support.loop_bounds import within_bounds
from tests.support.watched_gateway import watched_gateway

pytestmark = pytest.mark.usefixtures("leaves_nothing")

GRAPH = "/v1/graphs/batches"


@pytest.fixture(scope="module")
def alone() -> None:
    """These share the graph that they write."""


@pytest.fixture(scope="module")
async def http(settings: Settings, issue: NewApiKey, new_tenant: NewTenant) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a gateway whose event loop is watched."""
    key = (await issue(operator_caller(await new_tenant()), kind="admin")).secret
    async with watched_gateway(settings) as gateway, gateway.http(key) as client:
        yield client


async def outcomes(http: httpx2.AsyncClient, path: str, items: list[dict[str, Any]]) -> set[str]:
    async with within_bounds(http):
        answer = await http.post(f"{GRAPH}/{path}", json={"items": items})
    assert answer.status_code == 200, answer.text
    return {item["status"] for item in answer.json()["items"]}


async def test_nodes_with_all_the_observations_that_items_may_have(http: httpx2.AsyncClient) -> None:
    said = [f"fact {n}" for n in range(MAX_OBSERVATIONS)]
    items = [{"name": f"Node {n}", "observations": said} for n in range(MAX_BATCH)]
    assert await outcomes(http, "nodes/batch", items) == {"new"}
    assert await outcomes(http, "nodes/batch", items) == {"known"}
    changed = [{"name": item["name"], "tags": [f"tag {n}" for n in range(50)]} for item in items]
    assert await outcomes(http, "nodes/batch", changed) == {"updated"}


async def test_relations_with_much_metadata(http: httpx2.AsyncClient) -> None:
    metadata = {f"key {n}": "x" * 50 for n in range(90)}
    items = [{"source": f"A {n}", "type": "to", "target": f"B {n}", "metadata": metadata} for n in range(MAX_BATCH)]
    assert await outcomes(http, "relations/batch", items) == {"new"}
    assert await outcomes(http, "relations/batch", items) == {"known"}
