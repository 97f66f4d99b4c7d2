"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from recollect.accounts.identity_providers.model import (
    IdentityProvider,
    NewProvider,
    OfferedProvider,
    OwnIdentity,
    ProvenIdentity,
    ProviderChange,
    Purpose,
    SignInSecrets,
)
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class SealedRegistration:
    """Our registration at a provider as it is stored, with the secret encrypted."""

    id: UUID
    issuer: str
    client_id: str
    client_secret: bytes = field(repr=False)
    algorithm: str


async def list_providers(tx: Transaction) -> list[IdentityProvider]:
    """All providers of the tenant, by name."""
    return [IdentityProvider(**row) for row in await tx.fetch(queries.list_providers)]


async def lock_providers(tx: Transaction) -> None:
    """Lock the list of providers until the transaction ends."""
    await tx.execute(queries.lock_providers)


async def insert_provider(
    tx: Transaction, provider_id: UUID, new: NewProvider, *, encrypted: bytes
) -> IdentityProvider | None:
    """Store a provider; None if the tenant has one of this issuer."""
    return await tx.fetch_object(
        queries.insert_provider,
        IdentityProvider,
        id=provider_id,
        name=new.name.strip(),
        issuer=new.issuer,
        client_id=new.client_id,
        client_secret=encrypted,
        algorithm=new.algorithm,
        subject=tx.caller.subject,
    )


async def lock_provider(tx: Transaction, provider_id: UUID) -> IdentityProvider | None:
    """A provider, locked until the transaction ends; or None."""
    return await tx.fetch_object(queries.lock_provider, IdentityProvider, id=provider_id)


async def change_provider(
    tx: Transaction, provider_id: UUID, change: ProviderChange, *, encrypted: bytes | None
) -> IdentityProvider | None:
    """Change a provider; None if the tenant has no such provider."""
    return await tx.fetch_object(
        queries.change_provider,
        IdentityProvider,
        id=provider_id,
        name=change.name.strip() if change.name is not None else None,
        client_id=change.client_id,
        client_secret=encrypted,
        algorithm=change.algorithm,
        enabled=change.enabled,
    )


async def delete_provider(tx: Transaction, provider_id: UUID) -> bool:
    """Delete a provider; False if the tenant has no such provider."""
    return await tx.fetchval(queries.delete_provider, id=provider_id) is not None


async def find_offered(session: Session, slugs: Sequence[str]) -> list[OfferedProvider]:
    """The providers by which people sign in to tenants of these slugs."""
    return [OfferedProvider(**row) for row in await session.fetch(queries.find_offered, slugs=list(slugs))]


async def find_registration(tx: Transaction, provider_id: UUID) -> SealedRegistration | None:
    """Our registration at a provider; None if it is disabled, or the tenant has no such one."""
    return await tx.fetch_object(queries.find_registration, SealedRegistration, id=provider_id)


async def forget_sign_ins(tx: Transaction, *, max_stored: int) -> None:
    """Delete sign-ins that are over, and the oldest beyond `max_stored`."""
    await tx.execute(queries.forget_sign_ins, max_stored=max_stored)


async def insert_sign_in(
    tx: Transaction, provider_id: UUID, secrets: SignInSecrets, purpose: Purpose, *, lifetime: timedelta
) -> None:
    """Store that a browser is sent to a provider."""
    await tx.execute(
        queries.insert_sign_in,
        id=new_id(),
        provider_id=provider_id,
        hash=secrets.hash,
        browser=secrets.browser_hash,
        invitation_id=purpose.invitation_id,
        person_id=purpose.person_id,
        return_to=purpose.return_to,
        lifetime=lifetime,
    )


async def find_sign_in(session: Session, state_hash: bytes) -> UUID | None:
    """The tenant of the sign-in in progress with this hash; None if there is no such sign-in."""
    return await session.fetchval(queries.find_sign_in, hash=state_hash)


async def use_sign_in(tx: Transaction, provider_id: UUID, secrets: SignInSecrets) -> Purpose | None:
    """Delete a sign-in and return its purpose; None if it is not valid in this browser for this provider."""
    return await tx.fetch_object(
        queries.use_sign_in, Purpose, hash=secrets.hash, browser=secrets.browser_hash, provider_id=provider_id
    )


async def find_identity(tx: Transaction, provider_id: UUID, subject: str) -> UUID | None:
    """The person with this subject at the provider, or None."""
    return await tx.fetchval(queries.find_identity, provider_id=provider_id, subject=subject)


async def insert_identity(tx: Transaction, provider_id: UUID, subject: str, person_id: UUID) -> bool:
    """Connect a subject to a member; False if it is connected already, or the member has another subject there."""
    row = await tx.fetchval(queries.insert_identity, provider_id=provider_id, subject=subject, person_id=person_id)
    return row is not None


async def list_own_identities(session: Session, *, most: int) -> list[OwnIdentity]:
    """The identities of the person who has signed in, in all tenants."""
    return [OwnIdentity(**row) for row in await session.fetch(queries.list_own_identities, most=most)]


async def act_as_person(tx: Transaction, person_id: UUID) -> None:
    """Let this transaction read and write the rows of this person as well."""
    await tx.fetchval(queries.act_as_person, person_id=person_id)


async def lock_person(session: Session, person_id: UUID) -> None:
    """Lock the ways by which this person signs in until the transaction ends."""
    await session.fetchval(queries.lock_person, person_id=person_id)


async def lock_sign_in_methods(home: Session, person_id: UUID) -> None:
    """Lock the ways by which this person signs in, in any cell, until the transaction at home ends."""
    await home.execute(queries.lock_sign_in_methods, person_id=person_id)


async def delete_identity(tx: Transaction, provider_id: UUID, person_id: UUID) -> bool:
    """Delete a person's identity at a provider; False if they have none there. Their sessions by it end."""
    return await tx.fetchval(queries.delete_identity, provider_id=provider_id, person_id=person_id) is not None


async def insert_person(tx: Transaction, person_id: UUID, identity: ProvenIdentity) -> None:
    """Store a person of the tenant who came by a provider; call `act_as_person` first."""
    await tx.execute(queries.insert_person, person_id=person_id, email=identity.email, name=identity.name)
