"""A call returns its slot while it waits for something outside of the process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from recollect.fairness.fair_queue import FairQueue
from recollect.fairness.slots import acquire_slot
from recollect.outbound.http_client import Outbound
from recollect.outbound.mail import Email, Mailer
from recollect.outbound.txt_records import TextRecords
from recollect.settings import Settings
from tests.support.gateway import eventually
from tests.support.timeouts import MAX_WAIT_SECONDS

Ask = Callable[[], Awaitable[object]]


@asynccontextmanager
async def mail() -> AsyncIterator[Ask]:
    async with _silent_server() as port:
        settings = Settings(mail_url=f"smtp://127.0.0.1:{port}", mail_from="memory@example.com")  # type: ignore[arg-type]
        mailer = Mailer.of(settings)
        assert mailer is not None
        yield lambda: mailer.send(Email("ada@example.com", "Hello", "Hello."))


@asynccontextmanager
async def an_address() -> AsyncIterator[Ask]:
    async with _silent_server() as port:
        outbound = Outbound(Settings(outbound_networks=["127.0.0.0/8"]))
        yield lambda: outbound.get(f"http://127.0.0.1:{port}/", on_behalf_of="tenant")
        await outbound.close()


@asynccontextmanager
async def the_dns() -> AsyncIterator[Ask]:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, ("127.0.0.1", 0))
    host, port = transport.get_extra_info("sockname")
    records = TextRecords(Settings(dns_servers=[f"{host}:{port}"]))
    yield lambda: records.look_up("example.com", on_behalf_of="tenant")
    transport.close()


@asynccontextmanager
async def _silent_server() -> AsyncIterator[int]:
    """The port of a server that accepts connections and does not answer."""
    writers = []

    async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for writer in writers:
            writer.close()


@pytest.mark.parametrize("asked", [mail, an_address, the_dns])
async def test_a_slot_is_free_while_a_call_waits_for_another_server(
    asked: Callable[[], AbstractAsyncContextManager[Ask]],
) -> None:
    queue = FairQueue(1)

    async def call(ask: Ask) -> None:
        async with acquire_slot(queue, "tenant", wait_seconds=MAX_WAIT_SECONDS):
            at_work.set()
            await ask()

    async def is_free() -> bool:
        return not queue.slots_of("tenant")

    async with asked() as ask:
        at_work = asyncio.Event()
        waiting = asyncio.create_task(call(ask))
        await at_work.wait()
        await eventually(is_free)
        assert not waiting.done()
        async with acquire_slot(queue, "another", wait_seconds=MAX_WAIT_SECONDS):
            pass
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
