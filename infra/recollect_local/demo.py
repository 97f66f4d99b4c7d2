"""A database that is ready to use: migrated, with a demo tenant and keys to it."""

from dataclasses import dataclass

from recollect.accounts.identity.model import KIND_SCOPES, NewKey, kind_of, operator_caller
from recollect.accounts.identity.service import authenticate, create_key
from recollect.accounts.tenants.model import Tenant
from recollect.accounts.tenants.service import create_tenant, find_tenant
from recollect.errors import NotFound, Unauthenticated
from recollect.platform.db import Database
from recollect.platform.migrate import migrate
from recollect.platform.operator_sessions import Operator
from recollect.settings import Settings

DEMO_TENANT = "demo"


@dataclass(frozen=True, slots=True)
class DemoKeys:
    """The keys of the demo tenant: one for agents, which is pasted into clients, and one for administration."""

    agent: str | None = None
    admin: str | None = None

    @classmethod
    def stored(cls, api_key: str | None, admin_key: str | None) -> "DemoKeys":
        """The keys that a data folder holds. Until there were two, it held the one for administration as `api_key`."""
        if admin_key is None and kind_of(api_key or "") == "admin":
            return cls(admin=api_key)
        return cls(api_key, admin_key)


async def prepare_demo(settings: Settings, stored: DemoKeys) -> DemoKeys:
    """Migrate the database, make the demo tenant if it is missing, and return keys for agents and for administration.

    Each is the stored one if that is still valid, else a new key. Raises Unavailable or MigrationFailed.
    """
    await migrate(settings.migration_url, lock_timeout_seconds=settings.lock_timeout_seconds)
    async with Operator.connect(settings.migration_url, settings) as operator:
        tenant = await _demo_tenant(operator)
    async with Database.connect(settings.database_url, settings=settings) as db:
        return DemoKeys(
            await _key(db, tenant, "agent", stored.agent, settings.pepper),
            await _key(db, tenant, "admin", stored.admin, settings.pepper),
        )


async def _demo_tenant(operator: Operator) -> Tenant:
    try:
        return await find_tenant(operator, DEMO_TENANT)
    except NotFound:
        return await create_tenant(operator, DEMO_TENANT, "Demo")


async def _key(db: Database, tenant: Tenant, kind: str, stored: str | None, pepper: bytes) -> str:
    """The stored key if it is a valid one of this tenant and kind, else a new key."""
    if stored and await _is_valid(db, stored, tenant, kind, pepper):
        return stored
    async with db.transaction(operator_caller(tenant)) as tx:
        issued = await create_key(tx, NewKey(name=f"recollect local, {kind}", kind=kind), pepper=pepper)
    return issued.secret


async def _is_valid(db: Database, key: str, tenant: Tenant, kind: str, pepper: bytes) -> bool:
    """Whether the key is one of this tenant's and has the scopes of this kind, and no other."""
    try:
        caller = await authenticate(db, key, pepper=pepper)
    except Unauthenticated:
        return False
    return caller.tenant_id == tenant.id and caller.scopes == KIND_SCOPES[kind]
