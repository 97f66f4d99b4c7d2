"""The Python client follows a graph's changes, over lost connections."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from recollect_client import AsyncRecollect, Change, NotFoundError, Recollect, Retries, UnauthenticatedError
from tests.support.cut_connections import relayed
from tests.support.gateway import RunningGateway
from tests.support.timeouts import MAX_WAIT_SECONDS

PATIENT = Retries(attempts=1_000, first_wait=0.01, longest_wait=0.05)


async def next_of(changes: AsyncIterator[Change]) -> Change:
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        return await anext(changes)


async def test_changes_come_in_order_and_the_log_has_them(aclient: AsyncRecollect, client: Recollect) -> None:
    await aclient.remember("Bees make honey")
    changes = aclient.changes(after_revision=0)
    first = await next_of(changes)
    assert first.operation == "remember"
    await aclient.remember("Bees dance", tags="dance")
    second = await next_of(changes)
    assert second.revision == first.revision + 1
    assert [change.revision for change in client.change_log()] == [first.revision, second.revision]
    assert [change.revision for change in client.change_log(tag="dance")] == [second.revision]
    following = client.changes(after_revision=0)  # a client that blocks, in a thread of its own
    assert [(await asyncio.to_thread(next, following)).revision for _ in range(2)] == [first.revision, second.revision]
    await changes.aclose()


async def test_nothing_is_missed_or_told_twice_when_connections_are_cut(
    gateway: RunningGateway, key: str, aclient: AsyncRecollect
) -> None:
    await aclient.remember("Fact 0")
    async with relayed(gateway.url) as relay, AsyncRecollect(relay.url, api_key=key) as client:
        changes = client.changes(after_revision=0, retries=PATIENT)
        told = [await next_of(changes)]
        for number in range(1, 4):
            relay.refusing = True
            relay.cut()
            await aclient.remember(f"Fact {number}")
            relay.refusing = False
            told.append(await next_of(changes))
        assert [change.revision for change in told] == list(range(told[0].revision, told[0].revision + 4))
        assert relay.connections > 3
        await changes.aclose()


async def test_what_cannot_be_followed_is_said(aclient: AsyncRecollect, gateway: RunningGateway) -> None:
    with pytest.raises(NotFoundError):
        await next_of(aclient.changes(graph="nowhere"))
    async with AsyncRecollect(gateway.url, api_key="rcl_wrong") as client:
        with pytest.raises(UnauthenticatedError):
            await next_of(client.changes())
