"""A deployed gateway in its own process, and a forwarder that authenticates for clients that cannot."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from recollect.settings import Settings
from recollect.settings.addresses.public_url import local_url
from recollect_local.address import claimed_port
from recollect_local.process import start_process, stop_process
from tests.support.gateway import RunningGateway
from tests.support.workers import environment

ROOT = Path(__file__).parents[2]
"""The folder from which tests are imported."""

START_SECONDS = 60.0
STOP_SECONDS = 20.0
LONGEST_HEAD = 64 * 1024


@dataclass(frozen=True, slots=True)
class DeployedGateway:
    """A gateway process and its log."""

    gateway: RunningGateway
    log: Path

    def faults(self) -> list[str]:
        """The lines of its log with an internal error."""
        return [line for line in self.log.read_text().splitlines() if '"level": "error"' in line or "Traceback" in line]


@contextmanager
def gateway_process(settings: Settings, log: Path, module: str = "recollect_gateway") -> Iterator[DeployedGateway]:
    """`python -m recollect_gateway`, or another module, on a free port, once it is ready."""
    with claimed_port("127.0.0.1", 0) as port:
        variables = environment(settings.model_copy(update={"port": port})) | {"PYTHONPATH": str(ROOT)}
        process = start_process([sys.executable, "-m", module], log=log, environment={**os.environ, **variables})
        try:
            url = local_url("127.0.0.1", port)
            _wait_until_ready(process, url, log)
            yield DeployedGateway(RunningGateway(url), log)
        finally:
            stop_process(process, grace_seconds=STOP_SECONDS)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    give_up = time.monotonic() + START_SECONDS
    while not is_ready(url):
        assert process.poll() is None, f"the gateway ended: {log.read_text()}"
        assert time.monotonic() < give_up, f"the gateway is not ready: {log.read_text()}"
        time.sleep(0.1)


def is_ready(url: str) -> bool:
    """Whether a gateway at that address is ready."""
    try:
        return httpx2.get(f"{url}/health/ready", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False


@asynccontextmanager
async def signing_in(gateway: RunningGateway, key: str) -> AsyncIterator[RunningGateway]:
    """The gateway at another address, where a forwarder adds `key` to every request.

    It passes bytes unchanged except for that header and `Connection: close`: with one request per connection, it sees
    every head.
    """
    host, port = gateway.url.removeprefix("http://").split(":")

    async def forward(client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            head = await client.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            answer.close()
            return
        upstream, request = await asyncio.open_connection(host, int(port))
        request.write(_signed(head, key))
        pipes = [asyncio.create_task(pipe(client, request)), asyncio.create_task(pipe(upstream, answer))]
        # The end of either side ends both, so that the gateway notices when a client leaves.
        await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
        for task in pipes:
            task.cancel()
        for writer in (request, answer):
            writer.close()

    server = await asyncio.start_server(forward, "127.0.0.1", 0, limit=LONGEST_HEAD)
    async with server:
        yield RunningGateway(local_url("127.0.0.1", server.sockets[0].getsockname()[1]))


def _signed(head: bytes, key: str) -> bytes:
    first, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [header for header in headers if not header.lower().startswith((b"connection:", b"authorization:"))]
    return b"\r\n".join([first, *kept, b"Connection: close", f"Authorization: Bearer {key}".encode(), b"", b""])


async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy from source to sink until either ends, then close the sink."""
    try:
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
    except ConnectionError:
        return
    finally:
        sink.close()
