"""A database that is ready to use: migrated, with a demo tenant and keys to it."""

import secrets
from uuid import UUID

from recollect.accounts.identity.model import KIND_SCOPES, NewKey, operator_caller
from recollect.accounts.identity.service import authenticate, create_key
from recollect.accounts.members import service as members
from recollect.accounts.tenants.model import Tenant, TenantPatch
from recollect.accounts.tenants.service import change_own_tenant, create_tenant, find_tenant
from recollect.caller import Role
from recollect.cells.databases import Databases
from recollect.errors import NotFound, Unauthenticated
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_local.demo_keys import DemoKeys
from recollect_local.machine_time_zone import machine_time_zone

DEMO_TENANT = "demo"
OWNER = "owner@demo.example"
"""The address of the demo owner, at which nobody reads mail."""


async def prepare_demo(settings: Settings, stored: DemoKeys) -> DemoKeys:
    """Migrate the database, make the demo tenant if it is missing, and return keys for agents and for administration.

    Each is the stored one if that is still valid, else a new key. A new tenant has the time zone of this machine, so
    that "yesterday" is a day of the person at it. Raises Unavailable or MigrationFailed.
    """
    await migrate(settings.migration_url, lock_timeout_seconds=settings.lock_timeout_seconds)
    async with Operator.connect(settings.migration_url, settings) as operator:
        tenant, is_new = await _demo_tenant(operator)
    async with Database.connect(settings.database_url, settings=settings) as db:
        if is_new and (zone := machine_time_zone()) is not None:
            async with db.transaction(operator_caller(tenant)) as tx:
                await change_own_tenant(tx, TenantPatch(sets_time_zone=True, time_zone=zone))
        return DemoKeys(
            await _key(db, tenant, "agent", stored.agent, settings.pepper),
            await _key(db, tenant, "admin", stored.admin, settings.pepper),
        )


async def prepare_owner(settings: Settings) -> str:
    """The demo tenant's owner, as the setting `local_owner` names them: made where there is none.

    The account has a password that nobody knows: its owner signs in on this machine by one click.
    """
    async with Operator.connect(settings.migration_url, settings) as operator:
        tenant, _ = await _demo_tenant(operator)
    async with Database.connect(settings.database_url, settings=settings) as db:
        return f"{tenant.id}/{await _owner(Databases(db), tenant, settings.pepper)}"


async def _owner(databases: Databases, tenant: Tenant, pepper: bytes) -> UUID:
    db = databases.of(tenant.id)
    async with db.transaction(operator_caller(tenant)) as tx:
        found = [member for member in await members.list_members(tx) if member.email == OWNER]
    if found:
        return found[0].person_id
    async with db.transaction(operator_caller(tenant)) as tx:
        issued = await members.invite(tx, OWNER, Role.OWNER, pepper=pepper)
    invitation = await members.open_invitation(databases, issued.secret, pepper=pepper)
    joined = await members.join_with_new_account(databases, invitation, "Demo owner", secrets.token_urlsafe(32))
    return joined.person_id


async def _demo_tenant(operator: Operator) -> tuple[Tenant, bool]:
    """The demo tenant, and whether it was made now."""
    try:
        return await find_tenant(operator, DEMO_TENANT), False
    except NotFound:
        return await create_tenant(operator, DEMO_TENANT, "Demo"), True


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
        caller = await authenticate(Databases(db), key, pepper=pepper)
    except Unauthenticated:
        return False
    return caller.tenant_id == tenant.id and caller.scopes == KIND_SCOPES[kind]
