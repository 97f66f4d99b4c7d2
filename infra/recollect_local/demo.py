"""A database that is ready to use: migrated, with a demo tenant and a key to it."""

from recollect.accounts.identity.model import NewKey, operator_caller
from recollect.accounts.identity.service import authenticate, create_key
from recollect.accounts.tenants.model import Tenant
from recollect.accounts.tenants.service import create_tenant, find_tenant
from recollect.caller import Scope
from recollect.errors import NotFound, Unauthenticated
from recollect.platform.db import Database
from recollect.platform.migrate import migrate
from recollect.platform.operator_sessions import Operator
from recollect.settings import Settings

DEMO_TENANT = "demo"


async def prepare_demo(settings: Settings, stored_key: str | None) -> str:
    """Migrate the database, make the demo tenant if it is missing, and return a key with every scope.

    It is `stored_key` if that is still valid, else a new key. Raises Unavailable or MigrationFailed.
    """
    await migrate(settings.migration_url, lock_timeout_seconds=settings.lock_timeout_seconds)
    async with Operator.connect(settings.migration_url, settings) as operator:
        tenant = await _demo_tenant(operator)
    pepper = settings.pepper
    async with Database.connect(settings.database_url, settings=settings) as db:
        if stored_key and await _is_valid(db, stored_key, tenant, pepper):
            return stored_key
        async with db.transaction(operator_caller(tenant)) as tx:
            issued = await create_key(tx, NewKey(name="recollect local", kind="admin"), pepper=pepper)
    return issued.secret


async def _demo_tenant(operator: Operator) -> Tenant:
    try:
        return await find_tenant(operator, DEMO_TENANT)
    except NotFound:
        return await create_tenant(operator, DEMO_TENANT, "Demo")


async def _is_valid(db: Database, key: str, tenant: Tenant, pepper: bytes) -> bool:
    """Whether the key is one of this tenant's and has every scope."""
    try:
        caller = await authenticate(db, key, pepper=pepper)
    except Unauthenticated:
        return False
    return caller.tenant_id == tenant.id and caller.scopes == frozenset(Scope)
