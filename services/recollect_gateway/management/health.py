"""Health: whether the process is up, and whether it can serve."""

from litestar import Controller, get
from litestar.datastructures import State

from recollect_gateway.admission import by_address
from recollect_gateway.departures import DepartureMiddleware
from recollect_gateway.readiness import Readiness


class HealthController(Controller):
    """Probes for operators; they need no credential and reveal nothing."""

    path = "/health"
    tags = ("health",)
    middleware = (DepartureMiddleware(),)

    @get("/live")
    async def live(self) -> dict[str, str]:
        """The process is up."""
        return {"status": "ok"}

    @get("/ready", guards=[by_address("ready", lambda settings: settings.public_requests_per_minute)])
    async def ready(self, state: State) -> dict[str, str]:
        """It may be given requests; 503 while it may not: the database is away or older than this version, or it stops.

        Redis may be away: calls go on without it. So may any cell but one, where there are several.
        """
        readiness: Readiness = state.readiness
        await readiness.require()
        return {"status": "ok"}
