"""Health: whether the process is up, and whether it can serve."""

from litestar import Controller, get
from litestar.datastructures import State

from recollect.platform.db import Database
from recollect_gateway.admission import by_address


class HealthController(Controller):
    """Probes for whoever runs the gateway; no credential needed, nothing told."""

    path = "/health"
    tags = ("health",)

    @get("/live")
    async def live(self) -> dict[str, str]:
        """The process is up."""
        return {"status": "ok"}

    @get("/ready", guards=[by_address("ready", lambda settings: settings.public_requests_per_minute)])
    async def ready(self, state: State) -> dict[str, str]:
        """The database answers; 503 while it does not. Redis may be away: calls go on without it."""
        db: Database = state.db
        await db.ping()
        return {"status": "ok"}
