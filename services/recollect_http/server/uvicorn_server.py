"""The HTTP server of the gateway, as its command and the tests run it."""

import asyncio
import resource
import signal
import socket
import time
from types import FrameType
from typing import Any

import uvicorn

from recollect.settings import Settings
from recollect_http.access_log import AccessLog
from recollect_http.client_addresses import TrustedProxies
from recollect_http.server.draining import Drain, keep_answers_whole
from recollect_http.server.http_protocol import bounded
from recollect_http.server.public_edge import PublicEdge

_TICK_SECONDS = 0.1
"""How often uvicorn checks whether it should stop, and renews the Date header."""

_OTHER_FILES = 512
"""Files that a gateway has open in addition to its clients' connections: logs, PostgreSQL, Redis, models."""


class GatewayServer(uvicorn.Server):
    """uvicorn's server, which drains when it gets a signal to stop.

    On SIGTERM it serves on for `seconds` while balancers notice; SIGINT, which a person sends, ends that at once.
    """

    def __init__(self, config: uvicorn.Config, drain: Drain, seconds: float) -> None:
        super().__init__(config)
        keep_answers_whole()
        self._drain, self._seconds = drain, seconds
        self._serves_until = 0.0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note until when to serve, by the signal and the moment at which it came."""
        self._serves_until = time.monotonic() + self._seconds if sig == signal.SIGTERM and not self.should_exit else 0
        super().handle_exit(sig, frame)

    async def main_loop(self) -> None:
        """Serve until a signal, and then until balancers have noticed."""
        await super().main_loop()
        self._drain.begin()
        ticks = 0
        while time.monotonic() < self._serves_until:
            await self.on_tick(ticks)
            await asyncio.sleep(_TICK_SECONDS)
            ticks += 1

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, which uvicorn would wait for until it cuts them off; then stop as it does."""
        self._drain.begin()
        self._drain.end_streams()
        await super().shutdown(sockets)


def server_config(app: Any, settings: Settings, drain: Drain | None = None) -> uvicorn.Config:
    """How uvicorn serves the application, behind the public edge; once the drain has begun, answers end connections."""
    edge = PublicEdge(app, settings)
    return uvicorn.Config(
        AccessLog(edge) if settings.access_log else edge,
        host=listened_at(settings.host),
        port=settings.port,
        loop="recollect.event_loop:EventLoop",
        http=bounded(settings, drain or Drain()),
        ws="none",  # Another protocol would have none of these bounds.
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=TrustedProxies(settings.trusted_proxies).networks,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.finish_seconds,
    )


def listened_at(host: str) -> str:
    """The host at which uvicorn listens: `::` stands for all addresses of both kinds, which it is told by no host.

    asyncio would take `::` for all addresses of IPv6 alone. With two sockets, no address of IPv4 comes as a mapped one.
    """
    return "" if host == "::" else host


def allow_open_files(settings: Settings) -> None:
    """Raise this process's soft limit of open files, so that connections reach our bound before the system's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.max_connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
