"""Requests of the Python client that are sent again: the gateway does each act once."""

import asyncio

import pytest

from recollect.caller import Caller
from recollect_client import (
    NO_RETRIES,
    AsyncRecollect,
    ConnectionError,
    Recollect,
    Retries,
    TimeoutError,
    TooManyRequestsError,
)
from tests.support.cut_connections import relayed
from tests.support.gateway import NewApiKey, RunningGateway, until
from tests.support.web_server import plain, web_server

QUICKLY = Retries(first_wait=0.01)


async def test_a_key_is_created_once_though_the_answer_was_lost(
    gateway: RunningGateway, admin_key: str, admin: AsyncRecollect
) -> None:
    """The first answer is cut off by the relay: the gateway has done it, and the client does not know."""
    async with relayed(gateway.url) as relay, AsyncRecollect(relay.url, api_key=admin_key, retries=QUICKLY) as client:
        relay.loses_answers = 1
        issued = await client.create_key("lost at first")
        assert relay.connections == 2
    every_key = admin.keys()
    assert [key.id async for key in every_key if key.name == "lost at first"] == [issued.id]


async def test_a_connection_that_is_refused_for_a_while(gateway: RunningGateway, key: str) -> None:
    async with relayed(gateway.url) as relay:
        relay.refusing = True
        async with AsyncRecollect(relay.url, api_key=key, retries=NO_RETRIES) as client:
            with pytest.raises(ConnectionError, match="does not answer"):
                await client.recall("tea")
        async with AsyncRecollect(relay.url, api_key=key, retries=Retries(attempts=50, first_wait=0.01)) as client:
            asked = asyncio.create_task(client.remember("Bees make honey"))
            await until(lambda: relay.connections >= 3)
            relay.refusing = False
            assert [memory.status for memory in await asked] == ["new"]


async def test_a_blocking_client_waits_as_long_as_the_answer_asks(key: str) -> None:
    """A gateway that is busy twice. What it is asked is the same each time, with one idempotency key."""
    busy = plain(b"{}", "Retry-After: 0", status="503 Busy")
    done = plain(b'{"memories":[]}', "Content-Type: application/json")
    async with web_server(lambda head, writer: (busy if len(server.requests) < 3 else done)(head, writer)) as server:
        with Recollect(f"http://127.0.0.1:{server.port}", api_key=key) as client:
            assert len(await asyncio.to_thread(client.remember, "Bees make honey")) == 0
    assert len(server.requests) == 3
    assert len({body for _, body in server.requests}) == 1
    keys = {line for head in server.heads() for line in head.splitlines() if line.startswith("idempotency-key: ")}
    assert len(keys) == 1


async def test_an_answer_that_does_not_come(key: str) -> None:
    waits = asyncio.Event()

    async with web_server(lambda head, writer: waits.wait()) as server:  # type: ignore[arg-type, return-value]
        url = f"http://127.0.0.1:{server.port}"
        async with AsyncRecollect(url, api_key=key, retries=NO_RETRIES, timeout=0.05) as client:
            with pytest.raises(TimeoutError):
                await client.recall("tea")
        waits.set()


async def test_a_rate_that_is_used_up_says_when_to_come_back(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller
) -> None:
    limited = await issue(caller, requests_per_minute=1)
    retries = Retries(total_wait=0.0)
    async with AsyncRecollect(gateway.url, api_key=limited.secret, retries=retries) as client:
        asked = (client.recall("tea") for _ in range(50))
        with pytest.raises(TooManyRequestsError, match="rate_limited") as refused:
            [await answer for answer in asked]
    assert 0 < (refused.value.retry_after or 0) <= 60


async def test_a_client_whose_keys_are_used_up_goes_on_without(key: str) -> None:
    """It is told once; afterwards what may be repeated without a key has none at its first attempt."""
    used_up = plain(b'{"code":"too_many_idempotency_keys"}', "Retry-After: 3600", status="429 Too Many Requests")
    done = plain(b'{"memories":[]}', "Content-Type: application/json")
    async with (
        web_server(lambda head, writer: (done if len(server.requests) > 1 else used_up)(head, writer)) as server,
        AsyncRecollect(f"http://127.0.0.1:{server.port}", api_key=key) as client,
    ):
        await client.remember("Bees make honey")
        await client.remember("Wasps do not")
    assert ["idempotency-key" in head for head in server.heads()] == [True, False, False]
