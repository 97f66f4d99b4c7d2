"""What waits for workers in each cell, what failed lately, and which versions run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from litestar import Controller, Response, get
from litestar.datastructures import State
from redis.exceptions import RedisError

from recollect import __version__
from recollect.cells.directory import service as directory
from recollect.errors import Unavailable
from recollect.jobs.backlog import service as backlog
from recollect.jobs.backlog.model import Backlog, FailedWork
from recollect.postgres.operator_sessions import Operator
from recollect_operator.operator_identity import OperatorIdentity, OperatorRequest
from recollect_operator.pages.rendering import render

LATELY = timedelta(days=1)
"""How far back failed jobs are counted."""

LATE_SECONDS = 300
"""How long the oldest entry of a queue waits before the page marks it."""


@dataclass(frozen=True, slots=True)
class CellHealth:
    """The state that one cell reports; `answers` False: it does not answer."""

    name: str
    answers: bool = False
    server: str = ""
    lacks: Sequence[str] = ()
    queues: Sequence[Backlog] = ()
    failed: Sequence[FailedWork] = ()


class HealthPages(Controller):
    """The state of the deployment."""

    path = "/health"

    @get("/")
    async def show(self, request: OperatorRequest, state: State) -> Response[str]:
        """Every cell, Valkey, and the version of this process."""
        cells = [await _examine(state, name, request.user) for name in state.cells.names]
        return render(
            request,
            "health/show.html",
            cells=cells,
            valkey=await _valkey_version(state),
            version=__version__,
            late_seconds=LATE_SECONDS,
            most=backlog.MOST_COUNTED,
        )


async def _examine(state: State, name: str, identity: OperatorIdentity) -> CellHealth:
    try:
        async with state.cells.at(name).session(identity) as operator:
            return await _read(operator)
    except Unavailable:
        return CellHealth(name)


async def _read(operator: Operator) -> CellHealth:
    lacks = await directory.missing_migrations(operator)
    server = await directory.server_version(operator)
    if lacks:  # What is asked below may be among them.
        return CellHealth(operator.cell, True, server, lacks)
    queues = await backlog.read_backlog(operator)
    failed = await backlog.list_failed_work(operator, datetime.now(UTC) - LATELY)
    return CellHealth(operator.cell, True, server, lacks, queues, failed)


async def _valkey_version(state: State) -> str | None:
    """The version of Valkey, or of what stands in for it; None: it does not answer."""
    try:
        server: dict[str, Any] = await state.redis.info("server")
    except (RedisError, OSError):
        return None
    return str(server.get("valkey_version") or server.get("redis_version") or "unknown")
