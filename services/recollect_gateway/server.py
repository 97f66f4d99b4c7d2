"""The HTTP server of the gateway, as its command and the tests run it."""

import resource
from typing import Any

import uvicorn

from recollect.settings import Settings
from recollect_gateway.access_log import AccessLog
from recollect_gateway.http_protocol import bounded
from recollect_gateway.public_edge import PublicEdge

_OTHER_FILES = 512
"""Files that a gateway has open beside its clients' connections: logs, PostgreSQL, Redis, models."""


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
