"""Bodies of many distinct keys, of which a parser makes a text and an entry of a table each, hold up nobody."""

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.settings import Settings
from recollect_http.requests.bodies import MAX_MEMBERS
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, rpc_headers
from tests.support.loop_bounds import within_bounds
from tests.support.watched_gateway import watched_gateway

PATHS = ("/mcp/x/all", "/v1/graphs/default/memories")


def body_of(members: int) -> bytes:
    """A body for either path with so many members."""
    distinct = b",".join(b'"k%06d":0' % n for n in range(members))
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{%s}}}' % distinct


@pytest.mark.proves("security: many-members")
async def test_bodies_of_many_members_keep_the_bounds(
    settings: Settings, new_tenant: NewTenant, issue: NewApiKey, subtests: pytest.Subtests
) -> None:
    secret = (await issue(operator_caller(await new_tenant()))).secret
    async with watched_gateway(settings) as gateway, gateway.http(secret) as http:
        await _send(http, PATHS[0], 10)  # What is imported at the first call is no part of the measurement.
        for path in PATHS:
            for members in (MAX_MEMBERS - 10, MAX_MEMBERS + 1, 190_000):
                with subtests.test(path=path, members=members):
                    async with within_bounds(http):
                        answer = await _send(http, path, members)
                    assert (answer.status_code == 413) == (members > MAX_MEMBERS), answer.text[:300]


async def _send(http: httpx2.AsyncClient, path: str, members: int) -> httpx2.Response:
    return await http.post(path, content=body_of(members), headers=rpc_headers())
