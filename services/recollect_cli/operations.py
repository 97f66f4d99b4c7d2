"""How commands of operators use the database."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.cells.directory import service as directory
from recollect.errors import Unavailable
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect.valkey.caller_changes import notify_callers_changed_at_end
from recollect.valkey.client import connect_redis
from recollect_cli.running import operator_settings, run_to_end, without_database

T = TypeVar("T")


def as_operator(work: Callable[[Operator], Awaitable[T]]) -> T:
    """Run `work` as the owner of the database."""

    async def run() -> T:
        settings = operator_settings()
        async with Operator.connect(settings.migration_url, settings) as operator:
            return await work(operator)

    return _run_or_exit(run)


def as_operator_of_each_cell(work: Callable[[Operator], Awaitable[T]]) -> list[T]:
    """Run `work` as the owner of each cell's database, home first."""

    async def run() -> list[T]:
        settings, results = operator_settings(), []
        for name in settings.cell_names:
            cell_settings = settings.of_cell(name)
            async with Operator.connect(cell_settings.migration_url, cell_settings) as operator:
                results.append(await work(operator))
        return results

    return _run_or_exit(run)


def for_tenant(slug: str, work: Callable[[Transaction], Awaitable[T]]) -> T:
    """Run `work` in one transaction of a tenant, under row-level security; raises NotFound."""

    async def run() -> T:
        async with _transaction(slug) as tx:
            return await work(tx)

    return _run_or_exit(run)


def as_all_cells(work: Callable[[Databases], Awaitable[T]]) -> T:
    """Run `work` on the databases of all cells, as the gateway uses them, for no tenant."""

    async def run() -> T:
        settings = operator_settings()
        async with (
            connect_redis(settings) as redis,
            notify_callers_changed_at_end(settings) as on_callers_changed,
            Databases.open(settings, redis, lambda *_: None, on_callers_changed) as databases,
        ):
            return await work(databases)

    return _run_or_exit(run)


def as_tenant(slug: str, work: Callable[[TenantDatabase, Caller], Awaitable[T]]) -> T:
    """Run `work`, which opens its own transactions, as an operator for a tenant; raises NotFound."""

    async def run() -> T:
        async with _database_of(slug) as (db, caller):
            return await work(db, caller)

    return _run_or_exit(run)


def _run_or_exit(run: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of `run`; where the database cannot be used, the error names the settings to check."""
    try:
        return run_to_end(run())
    except Unavailable as error:
        raise without_database(error.message, error.code) from error


def pepper() -> bytes:
    """The secret with which keys are hashed."""
    return operator_settings().pepper


@asynccontextmanager
async def _transaction(slug: str) -> AsyncIterator[Transaction]:
    async with _database_of(slug) as (db, caller), db.transaction(caller) as tx:
        yield tx


@asynccontextmanager
async def _database_of(slug: str) -> AsyncIterator[tuple[TenantDatabase, Caller]]:
    settings = await _settings_of(slug)
    async with Operator.connect(settings.migration_url, settings) as operator:
        tenant = await tenants.find_tenant(operator, slug)
    async with (
        notify_callers_changed_at_end(settings) as on_callers_changed,
        Database.connect(settings.database_url, settings=settings, on_callers_changed=on_callers_changed) as db,
    ):
        yield db, operator_caller(tenant)


async def _settings_of(slug: str) -> Settings:
    """The settings with the addresses of a tenant's cell."""
    settings = operator_settings()
    if not settings.cells:
        return settings
    async with Operator.connect(settings.migration_url, settings) as operator:
        return settings.of_cell(await directory.find_cell(operator, slug=slug))
