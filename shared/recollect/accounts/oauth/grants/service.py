"""Use cases of grants: give one, change its code for tokens, refresh these, turn one into a Caller, take it all back.

What a client presents a second time may have been stolen. A code that comes again, and a refresh token that comes again
later than parallel sessions of one client explain, end their grant: all its tokens are void. To commit that, these use
cases answer None and do not raise.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.identity.model import generate_secret, hash_secret, kind_of
from recollect.accounts.identity.service import GRANT_SUBJECT, REFUSAL
from recollect.accounts.members.model import subject_of
from recollect.accounts.oauth.grants import store
from recollect.accounts.oauth.grants.model import (
    ACCESS,
    CODE,
    CODE_LIFETIME,
    MAX_GRANTS,
    MAX_OWN_GRANTS,
    MAX_SIBLINGS,
    REFRESH,
    REUSE_REMEMBERED,
    Approval,
    Grant,
    GrantStanding,
    IssuedTokens,
    OwnGrant,
    PresentedCode,
    PresentedRefresh,
    TokenFacts,
    TokenKind,
    TokenTimes,
    as_scopes,
    within_role,
)
from recollect.accounts.oauth.grants.store import AccessRecord, RefreshRecord
from recollect.accounts.people.model import Membership
from recollect.caller import ROLE_SCOPES, Caller, Rates
from recollect.errors import ErrorCode, NotFound, TenantSuspended, Unauthenticated
from recollect.peppers import found_under, hashes_under
from recollect.platform.db import Database
from recollect.platform.transactions import Session, Transaction

REUSE, CLIENT, LIMIT = "reuse", "client", "limit"
"""Who revoked a grant, where it was neither a person nor a key."""


class WrongResource(Unauthenticated):
    """The token holds, elsewhere. Nobody is told the difference."""


def approving(membership: Membership, person_id: UUID, *, address: str | None = None) -> Caller:
    """A member who gives a grant: reaches every graph of the tenant that it may name. `address`: where they are."""
    return Caller(
        membership.tenant_id,
        membership.tenant,
        subject=subject_of(person_id),
        scopes=ROLE_SCOPES[membership.role],
        role=membership.role,
        address=address,
    )


async def approve(tx: Transaction, approval: Approval, *, pepper: bytes) -> str:
    """Give a grant; its code, which is in the answer and nowhere else.

    Whoever gives it is a member of the tenant, or the database refuses.
    """
    code = generate_secret(CODE)
    await store.forget_grants(tx, approval.person_id)
    grant_id = await store.insert_grant(tx, approval, lifetime=CODE_LIFETIME)
    await store.insert_code(tx, grant_id, approval, code_hash=hash_secret(code, pepper), lifetime=CODE_LIFETIME)
    await audit.record(tx, Action.GRANT_GIVEN, named("grant", grant_id), scopes=list(approval.scopes))
    beyond = await store.revoke_oldest_grants(tx, approval.person_id, kept=MAX_GRANTS)
    if beyond:
        await audit.record(tx, Action.GRANT_ENDED, *(named("grant", each) for each in beyond), revoked_by=LIMIT)
    return code


async def find_tenant(db: Database, secret: str, *, pepper: bytes) -> UUID | None:
    """Whose a code or token is; None for what is none, or of nobody."""
    if kind_of(secret) not in (CODE, ACCESS, REFRESH):
        return None

    async def asked(session: Session) -> UUID | None:
        return await found_under(pepper, lambda each: store.find_tenant(session, hash_secret(secret, each)))

    return await db.find_in_any_cell(
        secret, asked, held_as=lambda: hashes_under(pepper, lambda each: hash_secret(secret, each))
    )


async def present_code(tx: Transaction, code: str, client_id: str, *, pepper: bytes) -> PresentedCode | None:
    """The code, held for this transaction; None where it does not hold, or not for this client.

    One that was used before ends its grant.
    """
    record = await found_under(pepper, lambda each: store.hold_code(tx, hash_secret(code, each)))
    if record is None or record.presented.standing.client_id != client_id:
        return None
    standing = record.presented.standing
    if record.used:
        await _end_reused(tx, standing.grant_id)
        return None
    return record.presented if standing.holds and not record.ended else None


async def redeem_code(
    tx: Transaction, presented: PresentedCode, *, refreshes: bool, times: TokenTimes, pepper: bytes
) -> IssuedTokens:
    """The first tokens of a grant. The code must have been presented in this transaction."""
    standing = presented.standing
    await store.use_code(tx, standing.grant_id)
    return await _issue(tx, standing, standing.allowed, generation=0 if refreshes else None, times=times, pepper=pepper)


async def present_refresh(
    tx: Transaction, token: str, client_id: str, *, times: TokenTimes, pepper: bytes
) -> PresentedRefresh | None:
    """The refresh token, held for this transaction; None where it does not hold, or not for this client.

    One that was used before, and not just now, ends its grant.
    """
    record = await found_under(
        pepper, lambda each: store.hold_refresh_token(tx, hash_secret(token, each), grace=times.grace)
    )
    if record is None or record.standing.client_id != client_id:
        return None
    if record.late:
        await _end_reused(tx, record.standing.grant_id)
        return None
    return _presented(record) if record.standing.holds and not record.ended else None


async def refresh(
    tx: Transaction, presented: PresentedRefresh, scopes: tuple[str, ...] | None, *, times: TokenTimes, pepper: bytes
) -> IssuedTokens:
    """New tokens for one that was presented in this transaction; `scopes` None are all that are granted."""
    await store.use_refresh_token(tx, presented.id)
    allowed = presented.standing.allowed
    kept = allowed if scopes is None else tuple(scope for scope in allowed if scope in scopes)
    await store.forget_tokens(tx, presented.standing.grant_id, remembered=REUSE_REMEMBERED)
    return await _issue(tx, presented.standing, kept, generation=presented.generation + 1, times=times, pepper=pepper)


async def authenticate(db: Database, secret: str, *, resource: str | None, pepper: bytes) -> Caller:
    """The Caller that an access token stands for at this resource; at none where that is None.

    Raises Unauthenticated, alike for every reason, or Unavailable.
    """

    async def asked(session: Session) -> AccessRecord | None:
        return await found_under(pepper, lambda each: store.find_access_token(session, hash_secret(secret, each)))

    record = await db.find_in_any_cell(
        secret, asked, held_as=lambda: hashes_under(pepper, lambda each: hash_secret(secret, each))
    )
    if record is None or record.revoked_at is not None or record.expires_at <= datetime.now(UTC):
        raise Unauthenticated(REFUSAL)
    if record.resource != resource:
        raise WrongResource(REFUSAL)
    if record.tenant_status != "active":
        raise TenantSuspended(REFUSAL)
    return _caller(record)


async def introspect(tx: Transaction, token: str, client_id: str, *, pepper: bytes) -> TokenFacts | None:
    """What a token says that is this client's, and has not ended; None for every other one."""
    kind = TokenKind(kind_of(token) or "")
    found = await found_under(pepper, lambda each: store.find_facts(tx, kind, hash_secret(token, each)))
    if found is None or found[0].client_id != client_id:
        return None
    facts, role = found
    return replace(facts, scopes=within_role(facts.scopes, role))


async def give_back(tx: Transaction, facts: TokenFacts) -> None:
    """A client needs a token no more: an access token alone, or with a refresh token all that its grant gave."""
    if facts.kind is TokenKind.ACCESS:
        await store.revoke_access_token(tx, facts.id)
        tx.change_callers()
    else:
        await _end(tx, facts.grant_id, revoked_by=CLIENT)


async def list_grants(
    tx: Transaction, *, person_id: UUID | None = None, after: UUID | None = None, limit: int = 100
) -> list[Grant]:
    """The tenant's grants, or those of one person, oldest first, void ones too."""
    return await store.list_grants(tx, person_id=person_id, after=after, limit=limit)


async def revoke_grant(tx: Transaction, grant_id: UUID) -> Grant:
    """Make a grant and all its tokens void from now on; doing it twice changes nothing. Raises NotFound."""
    await _end(tx, grant_id, revoked_by=tx.caller.subject)
    grant = await store.get_grant(tx, grant_id)
    if grant is None:
        raise NotFound("There is no such grant.", code=ErrorCode.GRANT_NOT_FOUND)
    return grant


async def list_own_grants(db: Database, person_id: UUID, *, within: UUID | None) -> list[OwnGrant]:
    """What a person who has signed in lets clients do: what holds, the last used first.

    In all their tenants, or in the one to which their session is confined (`within`).
    """

    async def asked(session: Session) -> list[OwnGrant]:
        return await store.list_own_grants(session, most=MAX_OWN_GRANTS)

    if within is None:
        found = await db.list_from_all_cells(asked, person_id=person_id)
        return sorted(found, key=lambda each: each.last_used_at or each.created_at, reverse=True)[:MAX_OWN_GRANTS]
    async with db.personal(person_id, within=within) as session:
        return [each for each in await asked(session) if each.tenant_id == within]


async def end_own_grant(db: Database, person_id: UUID, grant_id: UUID, *, within: UUID | None) -> None:
    """Make a grant void that this person gave, and all its tokens; `within` as above.

    Raises NotFound, alike for one of somebody else.
    """
    for each in await list_own_grants(db, person_id, within=within):
        if each.id == grant_id:
            giver = Caller(
                each.tenant_id, each.tenant, subject_of(person_id), scopes=ROLE_SCOPES[each.role], role=each.role
            )
            async with db.transaction(giver, also_suspended=True) as tx:
                await _end(tx, grant_id, revoked_by=giver.subject)
            return
    raise NotFound("There is no such grant.", code=ErrorCode.GRANT_NOT_FOUND)


async def _end(tx: Transaction, grant_id: UUID, *, revoked_by: str) -> None:
    if await store.revoke_grant(tx, grant_id, revoked_by=revoked_by):
        await audit.record(tx, Action.GRANT_ENDED, named("grant", grant_id), revoked_by=revoked_by)


async def _end_reused(tx: Transaction, grant_id: UUID) -> None:
    if await store.revoke_grant(tx, grant_id, revoked_by=REUSE):
        await audit.record(tx, Action.GRANT_REUSE_DETECTED, named("grant", grant_id))


async def _issue(
    tx: Transaction,
    standing: GrantStanding,
    scopes: tuple[str, ...],
    *,
    generation: int | None,
    times: TokenTimes,
    pepper: bytes,
) -> IssuedTokens:
    """Store new tokens of a grant; `generation` None gives no refresh token."""
    access, refresh_token = generate_secret(ACCESS), None
    await store.insert_access_token(
        tx, standing.grant_id, token_hash=hash_secret(access, pepper), scopes=scopes, lifetime=times.access
    )
    if generation is not None:
        refresh_token = generate_secret(REFRESH)
        token_hash = hash_secret(refresh_token, pepper)
        await store.insert_refresh_token(
            tx, standing.grant_id, token_hash=token_hash, generation=generation, lifetime=times.refresh
        )
    lifetime: timedelta = times.access if generation is None else max(times.access, times.refresh)
    await store.extend_grant(tx, standing.grant_id, lifetime=lifetime)
    return IssuedTokens(access, refresh_token, int(times.access.total_seconds()), scopes)


def _presented(record: RefreshRecord) -> PresentedRefresh | None:
    """None where more sessions ask than a client has: whoever holds it does not get any number of tokens."""
    if record.uses >= MAX_SIBLINGS:
        return None
    return PresentedRefresh(record.standing, record.id, record.generation)


def _caller(record: AccessRecord) -> Caller:
    return Caller(
        tenant_id=record.tenant_id,
        tenant=record.tenant,
        subject=f"{GRANT_SUBJECT}{record.grant_id}",
        scopes=as_scopes(within_role(record.scopes, record.role)),
        graphs=None if record.graph_ids is None else frozenset(record.graph_ids),
        toolsets=None if record.toolsets is None else frozenset(record.toolsets),
        default_graph=record.default_graph or "default",
        expires_at=record.expires_at,
        role=record.role,
        plan=record.plan,
        rates=Rates(record.requests_per_minute, record.key_requests_per_minute, record.concurrent_calls),
    )
