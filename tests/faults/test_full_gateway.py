"""A gateway whose connections are all taken: addresses with many make room for those with few, and for probes."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.settings import Settings
from recollect_http.server.connection_limits import FEW_CONNECTIONS
from tests.conftest import NewTenant
from tests.faults.test_hostile_clients import GET, POST, Connection, connected
from tests.support.gateway import NewApiKey, RunningGateway, serving

TOTAL, OF_ONE = 100, 20
CROWD = [f"127.0.0.{n}" for n in range(2, 2 + TOTAL // OF_ONE)]
"""As many addresses as fill a gateway."""

NEIGHBOUR, OTHER = "127.0.1.1", "127.0.1.2"


@pytest.fixture(scope="module")
def small(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway with few connections."""
    bounds = {"max_connections": TOTAL, "max_connections_per_address": OF_ONE}
    with serving(settings.model_copy(update=bounds)) as gateway:
        yield gateway


@asynccontextmanager
async def crowded(gateway: RunningGateway, sent: bytes, sites: list[str]) -> AsyncIterator[list[Connection]]:
    """As many connections as allowed from each of the addresses; all have sent this, and were answered if complete."""
    async with AsyncExitStack() as stack:
        opened = list[Connection]()
        for site in sites:
            for _ in range(OF_ONE):
                one = await stack.enter_async_context(connected(gateway, site))
                await one.send(sent)
                if sent.endswith(b"\r\n\r\n"):
                    await one.answer()
                opened.append(one)
        yield opened


async def status_from(gateway: RunningGateway, site: str, path: bytes = b"/health/live") -> int:
    """The status that a new connection from this address is answered; 0 for none."""
    async with connected(gateway, site) as one:
        await one.send(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path)
        return int((await one.rest())[9:12] or 0)


@pytest.mark.proves("security: full-gateway")
@pytest.mark.parametrize(
    "sent",
    [b"", GET, GET + b"\r\n", POST + b"Content-Length: 9\r\n\r\n"],
    ids=["nothing", "half a request", "a request", "a request without its body"],
)
async def test_a_full_gateway_answers_probes_and_other_addresses(small: RunningGateway, sent: bytes) -> None:
    async with crowded(small, sent, CROWD):
        for path in (b"/health/live", b"/health/ready", b"/.well-known/oauth-authorization-server"):
            assert [await status_from(small, site, path) for site in (NEIGHBOUR, OTHER)] == [200, 200]


async def test_a_neighbour_keeps_its_connection_beside_a_crowd_that_comes_again(small: RunningGateway) -> None:
    async with connected(small, NEIGHBOUR) as neighbour:
        await neighbour.send(GET + b"\r\n")
        assert (await neighbour.answer())[0] == 200
        for _ in range(3):
            async with crowded(small, b"", CROWD):
                await neighbour.send(GET + b"\r\n")
                assert (await neighbour.answer())[0] == 200


async def test_the_longest_idle_connection_of_the_largest_address_is_closed(settings: Settings) -> None:
    bounds = {"max_connections": 5, "max_connections_per_address": 4}
    async with AsyncExitStack() as stack:
        gateway = stack.enter_context(serving(settings.model_copy(update=bounds)))
        small = await stack.enter_async_context(connected(gateway, OTHER))
        large = [await stack.enter_async_context(connected(gateway, CROWD[0])) for _ in range(4)]
        for one in (small, *large, large[0]):  # The first was used last, so that the second is the longest idle.
            await one.send(GET + b"\r\n")
            assert (await one.answer())[0] == 200
        assert await status_from(gateway, NEIGHBOUR) == 200
        assert [await is_closed(one) for one in (small, *large)] == [False, False, True, False, False]


async def test_equal_addresses_do_not_close_each_others_connections(settings: Settings) -> None:
    bounds = {"max_connections": 4, "max_connections_per_address": 4}
    async with AsyncExitStack() as stack:
        gateway = stack.enter_context(serving(settings.model_copy(update=bounds)))
        held = [await stack.enter_async_context(connected(gateway, site)) for site in CROWD[:2] for _ in range(2)]
        for one in held:
            await one.send(GET + b"\r\n")
            assert (await one.answer())[0] == 200
        assert [await status_from(gateway, CROWD[0]), await status_from(gateway, NEIGHBOUR)] == [503, 200]


async def is_closed(one: Connection) -> bool:
    """Whether the gateway closed this connection: another request is not answered."""
    try:
        await one.send(GET + b"\r\n")
        await one.answer()
    except (asyncio.IncompleteReadError, ConnectionError):
        return True
    return False


@pytest.mark.proves("security: full-gateway")
async def test_requests_whose_bodies_come_slowly_give_way(settings: Settings) -> None:
    """They need no key, and nothing is being answered on them: those of the address with most connections go."""
    bounds = {"max_connections": 2 * OF_ONE, "max_connections_per_address": OF_ONE}
    with serving(settings.model_copy(update=bounds)) as gateway:
        async with crowded(gateway, SLOW, CROWD[:2]) as opened, AsyncExitStack() as stack:
            many = [await stack.enter_async_context(connected(gateway, NEIGHBOUR)) for _ in range(FEW_CONNECTIONS + 2)]
            for one in many:
                await one.send(GET + b"\r\n")
                assert (await one.answer())[0] == 200
            kept = opened[OF_ONE + 5]
            await kept.send(b"_type=password".ljust(20_000 - len("grant"), b"&"))
            assert (await kept.answer())[0] == 400
        await asyncio.sleep(0)  # The clients' sockets are closed before this thread waits for the gateway's end.


@pytest.mark.proves("security: full-gateway")
async def test_calls_under_way_are_not_closed(settings: Settings, new_tenant: NewTenant, issue: NewApiKey) -> None:
    """Neither streams, nor an answer that began before the body of its request had come."""
    caller = operator_caller(await new_tenant())
    key = (await issue(caller)).secret
    bounds = {"max_connections": 5, "max_connections_per_address": 5}
    get = b"GET /v1/graphs/default/changes HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
    get += b"Authorization: Bearer %s\r\n" % key.encode()
    async with AsyncExitStack() as stack:
        gateway = stack.enter_context(serving(settings.model_copy(update=bounds)))
        async with gateway.http(key) as http:
            assert (await http.post("/v1/graphs/default/memories", json={"items": [{"text": "x"}]})).status_code == 200
        held = [await stack.enter_async_context(connected(gateway, CROWD[0])) for _ in range(5)]
        for one, length in zip(held, (b"", b"", b"", b"", b"Content-Length: 9\r\n"), strict=True):
            await one.send(get + length + b"\r\n")
            assert b" 200 " in await one.reader.readline()
        assert await status_from(gateway, NEIGHBOUR) == 503
        assert not any(one.reader.at_eof() for one in held)


FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
SLOW = b"POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000\r\n" + FORM + b"\r\ngrant"
