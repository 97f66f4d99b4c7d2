"""The round trips and statements of a call in PostgreSQL, and the times of planning and running them.

`pg_stat_statements` counts and times only for one login, `COUNTED`: the gateway whose processor time is measured has
another one, so that counting costs it nothing. Statements in a function count as part of the statement that calls it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median

import asyncpg

from recollect.postgres.connections import APP_ROLE
from recollect_local.machine import Machine
from recollect_local.tuning import postgres_settings
from tests.benchmarks.cost.round_trips import RoundTrips
from tests.benchmarks.stack import WORKER_LOGIN

COUNTED = "benchmark_counted"
"""The login whose statements count."""


def counting_settings() -> dict[str, str]:
    """The settings of PostgreSQL in `make run`, and those for counting statements."""
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
    """What one call sends; times are milliseconds of the clock."""

    round_trips: float
    statements: float
    plans: float
    planning: float
    running: float


class StatementCounter:
    """Counts the statements of calls, one call at a time."""

    def __init__(self, superuser: asyncpg.Connection, trips: RoundTrips) -> None:
        self._superuser, self._trips = superuser, trips

    async def by_call(self, make: Callable[[], Awaitable[None]], calls: int) -> Sent:
        """Make a call so often; returns the median of each figure, because a gateway sometimes sends others."""
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
    """Create the logins in the migrated database; yields the counter."""
    superuser = await asyncpg.connect(superuser_url)
    try:
        await superuser.execute(_LOGINS)
        yield StatementCounter(superuser, trips)
    finally:
        await superuser.close()
