"""Group `listeners`: what open streams cost a gateway: memory, processor time, and the delay of notifications.

All streams belong to one key and listen to one graph, so that one write has to notify all of them. The limits of the
gateway are raised for that. Memory is that of the process alone (USS), beyond that of a gateway that has served calls.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx2
import psutil
from rich import box
from rich.table import Table

from recollect.errors import Unavailable
from tests.benchmarks.memory import new_tenant
from tests.benchmarks.processes import processor_seconds
from tests.benchmarks.stack import Stack
from tests.benchmarks.wire import MODERN

TRANSPORTS = ("sse", "mcp")
CHECK_SECONDS = 10.0
"""The interval in which a stream checks its credential: a third of the default, so that it is measured sooner."""

ROUNDS = 5
WARM_UP = 50
OPENED_AT_ONCE = 50
LISTENERS = {
    "RECOLLECT_STREAMS": "100000",
    "RECOLLECT_STREAMS_PER_TENANT": "100000",
    "RECOLLECT_STREAMS_PER_KEY": "100000",
    "RECOLLECT_STREAM_CHECK_SECONDS": str(CHECK_SECONDS),
    "RECOLLECT_MAX_CONNECTIONS": "100000",
    "RECOLLECT_MAX_CONNECTIONS_PER_ADDRESS": "100000",
}
"""Variables of a gateway that accepts so many streams from one address."""

_GRAPH = "recollect://graphs/default"


@dataclass(slots=True)
class MeasuredListeners:
    """So many open streams of one transport.

    `kilobytes`: memory per stream. `checking`: processor seconds of the gateway per check of a stream. `telling`: the
    same per notification of a write; `heard`: seconds until the last stream was notified, for each round.
    """

    transport: str
    listeners: int
    kilobytes: float
    checking: float
    telling: float
    heard: list[float]


async def measure_listeners(stack: Stack, sizes: Sequence[int], rows: list[MeasuredListeners]) -> None:
    """Measure every size, by both transports, into `rows`."""
    _, key = await new_tenant(stack.settings)
    for transport in TRANSPORTS:
        for size in sizes:
            await stack.serve(embeds=False)
            rows.append(await _measure(stack, key, transport, size))
            stack.gateway.stop()  # The next would take the memory that these gave back, and seem to need none.


async def _measure(stack: Stack, key: str, transport: str, size: int) -> MeasuredListeners:
    pid = stack.gateway.pid
    assert pid is not None
    async with AsyncExitStack() as closing:
        http = await closing.enter_async_context(
            httpx2.AsyncClient(
                base_url=f"http://127.0.0.1:{stack.settings.port}",
                headers={"Authorization": f"Bearer {key}"},
                timeout=60,
            )
        )
        for number in range(WARM_UP):
            await _write(http, number)
        warm = [await _open(closing, stack, key, transport) for _ in range(WARM_UP)]
        before = _bytes(pid)
        streams = list(warm)
        while len(streams) < size + WARM_UP:
            at_once = min(OPENED_AT_ONCE, size + WARM_UP - len(streams))
            streams += await asyncio.gather(*(_open(closing, stack, key, transport) for _ in range(at_once)))
        kilobytes = (_bytes(pid) - before) / 1024 / size
        began = processor_seconds(pid)
        await asyncio.sleep(CHECK_SECONDS)
        checking = (processor_seconds(pid) - began) / len(streams)
        heard, began = [], processor_seconds(pid)
        for number in range(ROUNDS):
            started = time.perf_counter()
            await _write(http, number)
            await asyncio.gather(*(_read_notification(reader) for reader in streams))
            heard.append(time.perf_counter() - started)
        telling = max(processor_seconds(pid) - began, 0.0) / ROUNDS / len(streams)
    return MeasuredListeners(transport, size, kilobytes, checking, telling, heard)


async def _open(closing: AsyncExitStack, stack: Stack, key: str, transport: str) -> asyncio.StreamReader:
    reader, writer = await asyncio.open_connection("127.0.0.1", stack.settings.port, limit=2**14)
    closing.callback(writer.close)
    writer.write(_request(key, transport))
    status = await reader.readline()
    if b" 200 " not in status:
        raise Unavailable(f"A stream was refused: {status!r} {(await reader.read(2000))!r}")
    await reader.readuntil(b"acknowledged" if transport == "mcp" else b"id: ")
    return reader


def _request(key: str, transport: str) -> bytes:
    credential = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    if transport == "sse":
        return f"GET /v1/graphs/default/changes HTTP/1.1\r\n{credential}Accept: text/event-stream\r\n\r\n".encode()
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    }
    params = {"_meta": meta, "notifications": {"resourceSubscriptions": [_GRAPH]}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\n{credential}Accept: application/json, text/event-stream\r\n"
        f"Content-Type: application/json\r\nMCP-Protocol-Version: {MODERN}\r\nMcp-Method: subscriptions/listen\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _read_notification(reader: asyncio.StreamReader) -> None:
    """Read until the notification of one write."""
    while True:
        line = await reader.readline()
        if not line:
            raise Unavailable("A stream ended")
        if b"event: change" in line or b"resources/updated" in line:
            return


async def _write(http: httpx2.AsyncClient, number: int) -> None:
    text = f"The kettle number {time.time_ns()} {number} is on the stove"
    (await http.post("/v1/graphs/default/memories", json={"items": [{"text": text}]})).raise_for_status()


def _bytes(pid: int) -> int:
    return int(psutil.Process(pid).memory_full_info().uss)


def listeners_table(rows: Sequence[MeasuredListeners]) -> Table:
    """The table of the measurements."""
    table = Table(box=box.SIMPLE, title="Listeners: what open streams cost a gateway")
    for column in ("transport", "streams", "kB each", "ms a check", "ms to tell one", "s until all heard", "most"):
        table.add_column(column, justify="right")
    for row in rows:
        ordered = sorted(row.heard)
        figures = (row.kilobytes, row.checking * 1000, row.telling * 1000, ordered[len(ordered) // 2], ordered[-1])
        table.add_row(row.transport, f"{row.listeners:,}", *(f"{figure:.2f}" for figure in figures))
    return table
