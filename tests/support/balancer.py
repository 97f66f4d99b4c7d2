"""A balancer in front of several gateways: requests go round robin to those that are ready, on kept connections.

It sends a request once, so that no retry hides a failure.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import httpx2

from tests.support.fleet import Member
from tests.support.gateway import NO_AUTHORITIES, until

PROBE_SECONDS = 0.2
"""The interval between probes of readiness. A draining gateway continues to serve for longer than that."""


class NoGatewayError(httpx2.ConnectError):
    """No gateway is ready, so nothing was sent."""


class Balancer(httpx2.AsyncBaseTransport):
    """The transport of clients that know one address, behind which gateways come and go."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport(verify=NO_AUTHORITIES)
        self._backends: dict[str, bool] = {}
        self._turn = 0
        self.served: Counter[str] = Counter()
        self.at_work: Counter[str] = Counter()

    def add(self, url: str) -> None:
        """Add a gateway, which gets requests once it is ready."""
        self._backends[url] = False

    async def bring_in(self, members: Iterable[Member]) -> None:
        """Add these gateways, and wait until they get requests."""
        for member in (members := list(members)):
            self.add(member.url)
        for member in members:
            await self.wait_until(member.url, ready=True)

    async def remove(self, url: str) -> None:
        """Send a gateway nothing more, as when an endpoint is removed, and wait until its calls have ended."""
        del self._backends[url]
        await until(lambda: not self.at_work[url])

    def is_ready(self, url: str) -> bool:
        """Whether the gateway gets requests."""
        return self._backends.get(url, False)

    async def wait_until(self, url: str, *, ready: bool) -> None:
        """Wait until the balancer notices that a gateway is ready, or is not."""
        await until(lambda: self.is_ready(url) is ready)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to the next gateway that is ready."""
        backend = self._next()
        target = httpx2.URL(backend)
        request.url = request.url.copy_with(scheme=target.scheme, host=target.host, port=target.port)
        self.served[backend] += 1
        self.at_work[backend] += 1
        try:
            response = await self._inner.handle_async_request(request)
            await response.aread()
            return response
        finally:
            self.at_work[backend] -= 1

    @asynccontextmanager
    async def balancing(self) -> AsyncIterator["Balancer"]:
        """Probe gateways while the block lasts."""
        probing = asyncio.create_task(self._probe())
        try:
            yield self
        finally:
            probing.cancel()
            with suppress(asyncio.CancelledError):
                await probing
            await self._inner.aclose()

    def _next(self) -> str:
        ready = [url for url, is_ready in self._backends.items() if is_ready]
        if not ready:
            raise NoGatewayError("no gateway is ready")
        self._turn += 1
        return ready[self._turn % len(ready)]

    async def _probe(self) -> None:
        async with httpx2.AsyncClient(verify=NO_AUTHORITIES, timeout=5) as http:
            while True:
                for url in list(self._backends):
                    is_ready = False
                    with suppress(httpx2.TransportError):
                        is_ready = (await http.get(f"{url}/health/ready")).status_code == 200
                    if url in self._backends:
                        self._backends[url] = is_ready
                await asyncio.sleep(PROBE_SECONDS)
