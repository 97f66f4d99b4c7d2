"""A call that waits for its client releases its slot."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from recollect.fairness.fair_queue import FairQueue
from recollect.fairness.slots import Slot, acquire_slot
from recollect_gateway.callers.pacing import PacedExchange

PART = {"type": "http.request", "body": b"a part", "more_body": True}
LAST = {"type": "http.request", "body": b"the last", "more_body": False}
ANSWER_PART = {"type": "http.response.body", "body": b"a part", "more_body": True}
ANSWER_END = {"type": "http.response.body", "body": b"the last", "more_body": False}


class Client:
    """A client that sends the parts of a body and takes those of an answer when the test lets it."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Queue[dict[str, Any]]()
        self.taken = list[dict[str, Any]]()

    async def send(self) -> Any:
        """The next message, when there is one."""
        return await self.goes_on.get()

    async def take(self, message: Any) -> None:
        """Take a part when the test lets it."""
        if message["type"] == "http.response.body":
            await self.goes_on.get()
        self.taken.append(message)


@pytest.fixture
async def queue() -> FairQueue:
    """A queue with one slot."""
    return FairQueue(1)


@pytest.fixture
async def slot(queue: FairQueue) -> AsyncIterator[Slot]:
    """The slot of the call under test."""
    async with acquire_slot(queue, "tenant", wait_seconds=1000) as slot:
        yield slot


async def _require_free_slot(queue: FairQueue) -> None:
    async with acquire_slot(queue, "tenant", wait_seconds=1000):
        assert queue.slots_of("tenant") == 1


async def test_a_call_releases_its_slot_while_it_receives_a_body(queue: FairQueue, slot: Slot) -> None:
    client = Client()
    exchange = PacedExchange(slot, client.send, client.take)
    for message in (PART, PART, LAST):
        receiving = asyncio.create_task(exchange.receive())
        await asyncio.sleep(0)
        await _require_free_slot(queue)
        client.goes_on.put_nowait(message)
        assert await receiving == message
        assert queue.slots_of("tenant") == 1, "then it works on what came"


async def test_a_call_that_waits_for_a_disconnect_keeps_its_slot(queue: FairQueue, slot: Slot) -> None:
    client = Client()
    exchange = PacedExchange(slot, client.send, client.take)
    client.goes_on.put_nowait(LAST)
    await exchange.receive()
    listening = asyncio.create_task(exchange.receive())
    await asyncio.sleep(0)
    assert queue.slots_of("tenant") == 1
    client.goes_on.put_nowait({"type": "http.disconnect"})
    assert (await listening)["type"] == "http.disconnect"


async def test_a_call_releases_its_slot_while_its_client_reads_the_answer(queue: FairQueue, slot: Slot) -> None:
    client = Client()
    exchange = PacedExchange(slot, client.send, client.take)
    await exchange.send({"type": "http.response.start", "status": 200, "headers": []})
    assert queue.slots_of("tenant") == 1
    for message, afterwards in ((ANSWER_PART, 1), (ANSWER_PART, 1), (ANSWER_END, 0)):
        sending = asyncio.create_task(exchange.send(message))  # type: ignore[arg-type]  # a message as servers take it
        await asyncio.sleep(0)
        await _require_free_slot(queue)
        client.goes_on.put_nowait({})
        await sending
        assert queue.slots_of("tenant") == afterwards
    assert [each["type"] for each in client.taken] == ["http.response.start", *["http.response.body"] * 3]
