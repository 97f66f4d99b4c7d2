"""Vectors that a write stores at once are the tenant's own."""

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers

GARAGE = "Our vehicle stands in the garage on Elm Street"
AUTOMOBILE = "Where do I find an automobile for parking?"
TABLES = ("passage_vectors", "searched_vectors", "passage_evidence")


async def recalled(gateway: RunningGateway, http: httpx2.AsyncClient) -> list[str]:
    result = await gateway.call(http, "recall", {"query": AUTOMOBILE}, path="/mcp")
    return [memory["text"] for memory in result["structuredContent"]["memories"]]


@pytest.mark.proves("security: searches-of-one-tenant")
async def test_a_vector_of_one_tenant_is_no_answer_to_another(
    gateway: RunningGateway,
    issue: NewApiKey,
    new_tenant: NewTenant,
    owner: asyncpg.Connection,
    subtests: pytest.Subtests,
) -> None:
    tenants = [await new_tenant(), await new_tenant()]
    mine, theirs = [(await issue(operator_caller(tenant))).secret for tenant in tenants]
    async with gateway.http(mine, **rpc_headers()) as http, gateway.http(theirs, **rpc_headers()) as other:
        await gateway.call(other, "remember", {"items": [{"text": "Bees make honey"}]}, path="/mcp")
        await gateway.call(http, "remember", {"items": [{"text": GARAGE}]}, path="/mcp")
        assert await recalled(gateway, http) == [GARAGE]
        assert GARAGE not in await recalled(gateway, other)
    for table in TABLES:
        with subtests.test(table):
            for tenant in tenants:
                count = await owner.fetchval(f"SELECT count(*) FROM {table} WHERE tenant_id = $1", tenant.id)
                assert count == 1
