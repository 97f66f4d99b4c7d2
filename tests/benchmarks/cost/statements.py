"""What a call sends to PostgreSQL: round trips, statements, and the time of planning beside that of running them.

`pg_stat_statements` counts and times for one login alone, `COUNTED`: the gateway whose processor time is measured has
another one, so that counting costs it nothing. Statements inside functions are part of running the one that calls them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median

import asyncpg

from recollect.platform.connections import APP_ROLE
from recollect_local.machine import Machine
from recollect_local.tuning import postgres_settings
from tests.benchmarks.cost.round_trips import RoundTrips
from tests.benchmarks.stack import WORKER_LOGIN

COUNTED = "benchmark_counted"
"""The login whose statements are counted."""


def counting_settings() -> dict[str, str]:
    """Those that `make run` gives PostgreSQL, and what counts statements."""
    settings = postgres_settings(Machine.own())
    return settings | {
        "shared_preload_libraries": f"{settings['shared_preload_libraries']}, pg_stat_statements",
        "pg_stat_statements.track": "none",
        "pg_stat_statements.track_planning": "on",
    }


_LOGINS = f"""
    CREATE EXTENSION pg_stat_statements SCHEMA public;
    CREATE ROLE {WORKER_LOGIN} LOGIN IN ROLE {APP_ROLE};
    CREATE ROLE {COUNTED} LOGIN IN ROLE {APP_ROLE};
    ALTER ROLE {COUNTED} SET pg_stat_statements.track = 'top'"""

_SUMS = """
    SELECT coalesce(sum(calls), 0)::bigint AS statements, coalesce(sum(plans), 0)::bigint AS plans,
        coalesce(sum(total_plan_time), 0) AS planning, coalesce(sum(total_exec_time), 0) AS running
    FROM public.pg_stat_statements"""


@dataclass(frozen=True, slots=True)
class Sent:
    """By one call; times in milliseconds of the clock."""

    round_trips: float
    statements: float
    plans: float
    planning: float
    running: float


class StatementCounter:
    """Counts what calls send, one at a time."""

    def __init__(self, superuser: asyncpg.Connection, trips: RoundTrips) -> None:
        self._superuser, self._trips = superuser, trips

    async def by_call(self, make: Callable[[], Awaitable[None]], calls: int) -> Sent:
        """Make a call so often; the median of each figure, since a gateway sends something of its own at times."""
        differences = list[list[float]]()
        for _ in range(calls):
            before = await self._figures()
            await make()
            after = await self._figures()
            differences.append([now - then for now, then in zip(after, before, strict=True)])
        return Sent(*(median(figures) for figures in zip(*differences, strict=True)))

    async def _figures(self) -> list[float]:
        sums = await self._superuser.fetchrow(_SUMS)
        assert sums is not None
        return [float(figure) for figure in (self._trips.count, *sums)]


@asynccontextmanager
async def statement_counter(superuser_url: str, trips: RoundTrips) -> AsyncIterator[StatementCounter]:
    """Make the logins in the migrated database, and count."""
    superuser = await asyncpg.connect(superuser_url)
    try:
        await superuser.execute(_LOGINS)
        yield StatementCounter(superuser, trips)
    finally:
        await superuser.close()
