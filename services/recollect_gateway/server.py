"""The HTTP server of the gateway, as its command and the tests run it."""

import resource
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from litestar import Litestar

from recollect.settings import Settings
from recollect_gateway.access_log import AccessLog
from recollect_gateway.http_protocol import bounded
from recollect_gateway.public_edge import PublicEdge
from recollect_gateway.streams import Streams

_OTHER_FILES = 512
"""Files that a gateway has open beside its clients' connections: logs, PostgreSQL, Redis, models."""


class GatewayServer(uvicorn.Server):
    """uvicorn's server, which ends streams when it is told to stop: else it would wait until it cuts them off."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._drain = drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, then stop as uvicorn does."""
        self._drain()
        await super().shutdown(sockets)


def drain_of(app: Litestar) -> Callable[[], None]:
    """What ends the streams of a gateway, once it was started."""

    def drain() -> None:
        streams: Streams | None = app.state.get("streams")
        if streams is not None:
            streams.drain()

    return drain


def server_config(app: Any, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the application, behind the public edge."""
    edge = PublicEdge(app, settings)
    return uvicorn.Config(
        AccessLog(edge) if settings.access_log else edge,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=bounded(settings),
        ws="none",  # Another protocol would have none of these bounds.
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=10,
    )


def allow_open_files(settings: Settings) -> None:
    """Raise this process's soft limit of open files, so that a full house meets our bound and not the system's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.max_connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
