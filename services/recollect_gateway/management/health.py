"""Health: whether the process is up, and whether it can serve."""

from litestar import Controller, get
from litestar.datastructures import State

from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.process.readiness import Readiness
from recollect_http.problems import RESPONSES
from recollect_http.server.disconnects import DisconnectMiddleware


class HealthController(Controller):
    """Probes for operators; they need no credential and reveal nothing."""

    path = "/health"
    tags = ("health",)
    middleware = (DisconnectMiddleware(),)

    @get("/live", response_description="The process is running.", summary="Check that the process is running")
    async def check_liveness(self) -> dict[str, str]:
        """Check whether the process is running."""
        return {"status": "ok"}

    @get(
        "/ready",
        response_description="The gateway can take requests.",
        summary="Check that the gateway can take requests",
        responses={status: RESPONSES[status] for status in (429, 503)},
        guards=[by_address("ready", lambda settings: settings.public_requests_per_minute)],
    )
    async def check_readiness(self, state: State) -> dict[str, str]:
        """Check whether this gateway can take requests.

        The response is 503 while it cannot: the database is unavailable or older than this version, or the gateway is
        stopping. It is ready also while Redis is unavailable, since calls work without it, and while at least one of
        several cells is available. `status` is `degraded`, and `detail` says why, if the embedder answers vectors of
        another length than configured: recall then searches by words alone; and if the gateway's clock differs from the
        database's by more than ten seconds.
        """
        readiness: Readiness = state.readiness
        await readiness.require()
        detail = readiness.degraded
        return {"status": "ok"} if detail is None else {"status": "degraded", "detail": detail}
