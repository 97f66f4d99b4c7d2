"""Gateways without one of the guards between tenants: the predicates of queries, or row-level security.

Two guards keep tenants apart: each query says `tenant_id = :tenant_id`, and PostgreSQL has policies. With both in
place, a hole in one of them does not show, so attacks are made with each alone.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

import asyncpg
import pytest
import structlog.testing

import recollect.cells.databases
from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.postgres.connections import APP_ROLE
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.support.gateway import RunningGateway, serving

WITHOUT_POLICIES = "tests_without_policies"
"""A role with the rights of APP_ROLE that bypasses all policies."""

RESOLVING = ("find_graph", "find_graph_ids", "lock_graph")
"""Queries that find a tenant's graph by name: most attacks fail there, before any other query runs."""


@dataclass(frozen=True, slots=True)
class Guards:
    """The active guards: row-level security, predicates, or both; with `deep`, no query looks the graph up first."""

    policies: bool = True
    predicates: bool = True
    deep: bool = False


BOTH = Guards()
POLICIES_ALONE = Guards(predicates=False)
POLICIES_ALONE_IN_THE_GRAPH = Guards(predicates=False, deep=True)
PREDICATES_ALONE = Guards(policies=False)
NEITHER = Guards(policies=False, predicates=False, deep=True)

EACH = {
    "both guards": BOTH,
    "row-level security alone": POLICIES_ALONE,
    "row-level security alone, in the graph": POLICIES_ALONE_IN_THE_GRAPH,
    "the predicates alone": PREDICATES_ALONE,
}


@dataclass(frozen=True)
class Attacked:
    """A gateway, and the guards that are active during an attack."""

    gateway: RunningGateway
    guards: Guards

    @contextmanager
    def by(self, stranger: Mapping[str, UUID], victim: Mapping[str, UUID]) -> Iterator[None]:
        """Disable the predicates, if requested: the stranger's queries bind the ids of the victim."""
        if self.guards.predicates:
            yield
            return
        swapped = {stranger[kind]: victim[kind] for kind in ("tenant", "graph")}
        kept = RESOLVING if self.guards.deep else ()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Transaction, "_arguments", _binding(stranger["tenant"], swapped, kept))
            # A violation is an internal error, whose traceback would be printed each time.
            with structlog.testing.capture_logs():
                yield


def _binding(stranger: UUID, swapped: Mapping[UUID, UUID], kept: tuple[str, ...]) -> Any:
    """Replace the stranger's ids in the parameters of a transaction by the victim's; the session's tenant remains."""
    bound = Transaction._arguments

    def exchanged(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [exchanged(each) for each in value]
        return swapped.get(value, value) if isinstance(value, UUID) else value

    def arguments(self: Transaction, query: Query, parameters: dict[str, Any]) -> list[Any]:
        values = bound(self, query, parameters)
        if self.tenant_id != stranger or query.text.startswith(tuple(f"/* graphs.{name} */" for name in kept)):
            return values
        return [exchanged(value) for value in values]

    return arguments


async def ids_of(db: Database, caller: Caller) -> dict[str, UUID]:
    """The ids of a tenant and of its graph `default`."""
    async with db.transaction(caller, read_only=True) as tx:
        return {"tenant": caller.tenant_id, "graph": (await graphs.get_graph(tx, "default")).id}


class _Unwatched(Database):
    """A database in which only the predicates of queries keep tenants apart."""

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str,
        *,
        role: str = APP_ROLE,
        settings: Settings,
        **more: Any,
    ) -> AsyncIterator[Self]:
        """A pool that connects as the role without policies."""
        assert role == APP_ROLE
        async with super().connect(url, role=WITHOUT_POLICIES, settings=settings, **more) as database:
            yield database


@pytest.fixture(scope="module")
async def unwatched(postgres: LocalPostgres, settings: Settings) -> AsyncIterator[RunningGateway]:
    """A gateway to which no policy applies; its role otherwise has the rights of the application."""
    superuser = await asyncpg.connect(postgres.url())
    try:
        await superuser.execute(f"DROP ROLE IF EXISTS {WITHOUT_POLICIES}")
        await superuser.execute(f"CREATE ROLE {WITHOUT_POLICIES} BYPASSRLS IN ROLE {APP_ROLE}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(recollect.cells.databases, "Database", _Unwatched)
            with serving(settings.model_copy(update={"database_url": postgres.url()})) as gateway:
                yield gateway
        await superuser.execute(f"DROP ROLE {WITHOUT_POLICIES}")
    finally:
        await superuser.close()


@pytest.fixture(params=list(EACH.values()), ids=list(EACH))
def attacked(request: pytest.FixtureRequest, gateway: RunningGateway, unwatched: RunningGateway) -> Attacked:
    """The gateway with both guards, then with each alone."""
    guards: Guards = request.param
    return Attacked(gateway if guards.policies else unwatched, guards)


@pytest.fixture
def unguarded(unwatched: RunningGateway) -> Attacked:
    """A gateway without guards, which shows that the attacks would find a hole."""
    return Attacked(unwatched, NEITHER)
