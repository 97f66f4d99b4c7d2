"""A person's identities at the providers of their tenants: list them, and disconnect them from the account."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.identity_providers import store
from recollect.accounts.identity_providers.model import OwnIdentity
from recollect.accounts.members.model import subject_of
from recollect.accounts.passkeys import service as passkeys
from recollect.accounts.people import service as people
from recollect.accounts.people.model import PersonSession
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.errors import Conflict, ErrorCode, Forbidden, NotFound
from recollect.postgres.transactions import Session

MAX_OWN_IDENTITIES = 200
"""Identities of a person that are listed."""


async def list_own_identities(databases: Databases, person_id: UUID) -> list[OwnIdentity]:
    """The identities of a person who has signed in, in all their tenants."""
    return await databases.list_from_all_cells(
        lambda session: store.list_own_identities(session, most=MAX_OWN_IDENTITIES), person_id=person_id
    )


async def disconnect(
    databases: Databases, person: PersonSession, provider_id: UUID, *, address: str | None = None
) -> None:
    """Disconnect a person's identity at a provider; their sessions that it began end. `address`: of their client.

    Raises NotFound, with one message for a provider of others and for one that they never used; Forbidden for a session
    that a provider began; Conflict for the last way to sign in.
    """
    if person.by_provider:
        raise Forbidden(
            "You signed in through an organisation's provider. To disconnect it, sign in another way, such as with "
            "your password."
        )
    if not databases.has_several_cells:
        found = await list_own_identities(databases, person.person_id)
        await _disconnect(databases, person, _identity_at(found, provider_id), address)
        return
    async with _sign_in_methods_locked(databases, person) as home:
        found = await _identities_of(databases, home, person.person_id)
        identity = _identity_at(found, provider_id)
        if not (_others(found, identity) or await _has_own_sign_in_method(home, person)):
            raise _last_sign_in_method()
        await _disconnect(databases, person, identity, address)


async def _disconnect(databases: Databases, person: PersonSession, identity: OwnIdentity, address: str | None) -> None:
    caller = Caller(
        identity.tenant_id, identity.tenant, subject_of(person.person_id), scopes=frozenset(), address=address
    )
    async with databases.of(identity.tenant_id).transaction(caller) as tx:
        await store.act_as_person(tx, person.person_id)
        await store.lock_person(tx, person.person_id)
        if not (
            databases.has_several_cells  # Then `disconnect` has checked the others in all cells, and holds their lock.
            or _others(await store.list_own_identities(tx, most=MAX_OWN_IDENTITIES), identity)
            or await _has_own_sign_in_method(tx, person)
        ):
            raise _last_sign_in_method()
        if not await store.delete_identity(tx, identity.provider_id, person.person_id):
            raise _not_connected()
        provider = named("identity_provider", identity.provider_id)
        await audit.record(tx, Action.IDENTITY_DISCONNECTED, named("person", person.person_id), provider)


async def remove_passkey(databases: Databases, person: PersonSession, passkey_id: UUID) -> None:
    """Remove a passkey of a person. Raises NotFound; Conflict for the last way to sign in."""
    within = person.account_tenant
    own = (
        _sign_in_methods_locked(databases, person)
        if databases.has_several_cells
        else databases.personal(person.person_id, within=within)
    )
    async with own as session:
        await store.lock_person(session, person.person_id)
        await passkeys.remove(session, person.person_id, passkey_id)
        identities = await _identities_of(databases, session, person.person_id)
        if not (any(identity.enabled for identity in identities) or await _has_own_sign_in_method(session, person)):
            raise Conflict(
                "This is your only way to sign in. Set a password or add another passkey first.",
                code=ErrorCode.LAST_SIGN_IN,
            )


@asynccontextmanager
async def _sign_in_methods_locked(databases: Databases, person: PersonSession) -> AsyncIterator[Session]:
    """Lock all ways by which a person signs in, which are in several cells; yield the session where the account is."""
    async with (
        databases.several_connections,
        databases.personal(person.person_id, within=person.account_tenant) as home,
    ):
        await store.lock_sign_in_methods(home, person.person_id)
        yield home


async def _identities_of(databases: Databases, home: Session, person_id: UUID) -> list[OwnIdentity]:
    """The identities of a person; those at home as the session `home` sees them."""
    return await databases.list_from_all_cells(
        lambda session: store.list_own_identities(session, most=MAX_OWN_IDENTITIES),
        person_id=person_id,
        home_session=home,
    )


async def _has_own_sign_in_method(home: Session, person: PersonSession) -> bool:
    """Whether a person signs in by a passkey or a password, which are at home."""
    return await passkeys.has_any(home, person.person_id) or await people.has_password(
        home, person.email, person.person_id
    )


def _identity_at(identities: list[OwnIdentity], provider_id: UUID) -> OwnIdentity:
    """The identity at this provider; raises NotFound."""
    for identity in identities:
        if identity.provider_id == provider_id:
            return identity
    raise _not_connected()


def _others(identities: list[OwnIdentity], identity: OwnIdentity) -> list[OwnIdentity]:
    """The identities by which a person can still sign in without this one."""
    return [other for other in identities if other.enabled and other.provider_id != identity.provider_id]


def _last_sign_in_method(first: str = "Add a passkey first.") -> Conflict:
    return Conflict(f"This is your only way to sign in. {first}", code=ErrorCode.LAST_SIGN_IN)


def _not_connected() -> NotFound:
    return NotFound("You have not connected such an identity provider.", code=ErrorCode.PROVIDER_NOT_FOUND)
