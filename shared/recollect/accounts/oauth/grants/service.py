"""Use cases of grants: give a grant, exchange its code for tokens, refresh them, turn a token into a Caller, revoke.

A code or token that is presented a second time may have been stolen. A repeated code, and a refresh token that is
repeated later than parallel sessions of one client explain, end their grant: all its tokens are void. To commit that,
these use cases return None instead of raising.
"""

import hmac
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from authlib.oauth2.rfc7636 import create_s256_code_challenge

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.identity.model import generate_secret, hash_secret, kind_of
from recollect.accounts.identity.service import EXPIRED, GRANT_SUBJECT, REFUSAL
from recollect.accounts.members.model import subject_of
from recollect.accounts.oauth.grants import store
from recollect.accounts.oauth.grants.model import (
    ACCESS,
    CODE,
    CODE_LIFETIME,
    CODE_REPEATS,
    EXPIRED_REMEMBERED,
    MAX_ENDED_GRANTS,
    MAX_GRANTS,
    MAX_OWN_GRANTS,
    MAX_REFRESH_TOKENS,
    MAX_REMEMBERED_TOKENS,
    MAX_SIBLINGS,
    REFRESH,
    REUSE_REMEMBERED,
    Approval,
    Grant,
    GrantStatus,
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
from recollect.cells.databases import Databases
from recollect.crypto.peppers import find_under_any_secret, hashes_under
from recollect.errors import CredentialEnded, ErrorCode, NotFound, TenantSuspended, TokenExpired, Unauthenticated
from recollect.postgres.transactions import Session, Transaction

REUSE, CLIENT, LIMIT = "reuse", "client", "limit"
"""Values of `revoked_by` where neither a person nor a key revoked a grant."""


class WrongResource(Unauthenticated):
    """The token is valid for another resource. The message is the same as for an invalid token."""


def approving(membership: Membership, person_id: UUID, *, address: str | None = None) -> Caller:
    """The Caller of a member who gives a grant, which may name any graph of the tenant. `address`: their address."""
    return Caller(
        membership.tenant_id,
        membership.tenant,
        subject=subject_of(person_id),
        scopes=ROLE_SCOPES[membership.role],
        role=membership.role,
        address=address,
    )


async def approve(tx: Transaction, approval: Approval, *, pepper: bytes) -> str:
    """Give a grant and return its code, which is in the result and nowhere else.

    The database refuses grants by people who are not members of the tenant.
    """
    code = generate_secret(CODE)
    await store.forget_grants(tx, approval.person_id, remembered=MAX_ENDED_GRANTS)
    grant_id = await store.insert_grant(tx, approval, lifetime=CODE_LIFETIME)
    await store.insert_code(tx, grant_id, approval, code_hash=hash_secret(code, pepper), lifetime=CODE_LIFETIME)
    await audit.record(tx, Action.GRANT_GIVEN, named("grant", grant_id), scopes=list(approval.scopes))
    revoked_ids = await store.revoke_oldest_grants(tx, approval.person_id, max_stored=MAX_GRANTS)
    if revoked_ids:
        objects = [named("grant", revoked_id) for revoked_id in revoked_ids]
        await audit.record(tx, Action.GRANT_ENDED, *objects, revoked_by=LIMIT)
    return code


async def find_tenant(databases: Databases, secret: str, *, pepper: bytes) -> UUID | None:
    """The tenant of a code or token; None for other text, or an unknown one."""
    if kind_of(secret) not in (CODE, ACCESS, REFRESH):
        return None

    async def find(session: Session) -> UUID | None:
        return await find_under_any_secret(
            pepper, lambda accepted: store.find_tenant(session, hash_secret(secret, accepted))
        )

    return await databases.find_in_any_cell(
        secret, find, stored_hashes=lambda: hashes_under(pepper, lambda accepted: hash_secret(secret, accepted))
    )


async def present_code(
    tx: Transaction, code: str, client_id: str, *, verifier: str | None = None, pepper: bytes
) -> PresentedCode | None:
    """The code, locked for this transaction; None where it is not valid, or not for this client.

    A code that was used before ends its grant, unless it comes again at once and with its verifier, which only the
    client knows: then it is refused, and the tokens that it gave stay.
    """
    record = await find_under_any_secret(
        pepper, lambda accepted: store.lock_code(tx, hash_secret(code, accepted), repeats=CODE_REPEATS)
    )
    if record is None or record.presented.grant.client_id != client_id:
        return None
    grant = record.presented.grant
    if record.used:
        if not (record.just_used and _is_verifier(verifier, record.presented.code_challenge)):
            await _end_reused(tx, grant.grant_id)
        return None
    return record.presented if grant.is_valid and not record.ended else None


async def redeem_code(
    tx: Transaction, presented: PresentedCode, *, refreshes: bool, times: TokenTimes, pepper: bytes
) -> IssuedTokens:
    """The first tokens of a grant. The code must have been presented in this transaction."""
    grant = presented.grant
    await store.use_code(tx, grant.grant_id)
    return await _issue(tx, grant, grant.allowed, generation=0 if refreshes else None, times=times, pepper=pepper)


async def present_refresh(
    tx: Transaction, token: str, client_id: str, *, times: TokenTimes, pepper: bytes
) -> PresentedRefresh | None:
    """The refresh token, locked for this transaction; None where it is not valid, or not for this client.

    A token that was used before, and longer ago than the grace window, ends its grant.
    """
    record = await find_under_any_secret(
        pepper, lambda accepted: store.lock_refresh_token(tx, hash_secret(token, accepted), grace=times.grace)
    )
    if record is None or record.grant.client_id != client_id:
        return None
    if record.late:
        await _end_reused(tx, record.grant.grant_id)
        return None
    return _presented(record) if record.grant.is_valid and not record.ended else None


async def refresh(
    tx: Transaction, presented: PresentedRefresh, scopes: tuple[str, ...] | None, *, times: TokenTimes, pepper: bytes
) -> IssuedTokens:
    """New tokens for a refresh token that was presented in this transaction; `scopes` None: all granted ones."""
    await store.use_refresh_token(tx, presented.id)
    allowed = presented.grant.allowed
    if scopes is not None:
        allowed = tuple(scope for scope in allowed if scope in scopes)
    await store.forget_tokens(
        tx, presented.grant.grant_id, access_remembered=EXPIRED_REMEMBERED, remembered=REUSE_REMEMBERED
    )
    generation = presented.generation + 1
    issued = await _issue(tx, presented.grant, allowed, generation=generation, times=times, pepper=pepper)
    await store.end_oldest_tokens(
        tx, presented.grant.grant_id, unused=MAX_REFRESH_TOKENS, remembered=MAX_REMEMBERED_TOKENS
    )
    return issued


async def authenticate(
    databases: Databases,
    secret: str,
    *,
    resource: str | None,
    of_tenant: Callable[[str], str] | None = None,
    pepper: bytes,
) -> Caller:
    """The Caller that an access token stands for at this resource; no token is valid at the resource None.

    `of_tenant`: a token for the resource that this makes of its tenant's slug is valid, too.

    Raises Unauthenticated, with one message for every reason, or Unavailable. It raises CredentialEnded for a token
    that was revoked, and TokenExpired, whose message says so, for one that its client may renew.
    """

    async def find(session: Session) -> AccessRecord | None:
        return await find_under_any_secret(
            pepper, lambda accepted: store.find_access_token(session, hash_secret(secret, accepted))
        )

    record = await databases.find_in_any_cell(
        secret, find, stored_hashes=lambda: hashes_under(pepper, lambda accepted: hash_secret(secret, accepted))
    )
    if record is None:
        raise Unauthenticated(REFUSAL)
    if record.revoked_at is not None:
        raise CredentialEnded(REFUSAL)
    if record.expires_at <= record.read_at:
        raise TokenExpired(EXPIRED)
    if record.resource != resource and (of_tenant is None or record.resource != of_tenant(record.tenant)):
        raise WrongResource(REFUSAL)
    if record.tenant_status != "active":
        raise TenantSuspended(REFUSAL)
    return _caller(record)


async def introspect(tx: Transaction, token: str, client_id: str, *, pepper: bytes) -> TokenFacts | None:
    """The facts about a token of this client that has not ended; None for every other token."""
    kind = TokenKind(kind_of(token) or "")
    found = await find_under_any_secret(
        pepper, lambda accepted: store.find_facts(tx, kind, hash_secret(token, accepted))
    )
    if found is None or found[0].client_id != client_id:
        return None
    facts, role = found
    return replace(facts, scopes=within_role(facts.scopes, role))


async def give_back(tx: Transaction, facts: TokenFacts) -> None:
    """Revoke a token that its client returns: an access token alone; for a refresh token, its whole grant."""
    if facts.kind is TokenKind.ACCESS:
        await store.revoke_access_token(tx, facts.id)
        tx.change_callers()
    else:
        await _end(tx, facts.grant_id, revoked_by=CLIENT)


async def list_grants(
    tx: Transaction, *, person_id: UUID | None = None, after: UUID | None = None, limit: int = 100
) -> list[Grant]:
    """The tenant's grants, or those of one person, oldest first, void ones included."""
    return await store.list_grants(tx, person_id=person_id, after=after, limit=limit)


async def revoke_grant(tx: Transaction, grant_id: UUID) -> Grant:
    """Revoke a grant and all its tokens; doing it twice changes nothing. Raises NotFound."""
    await _end(tx, grant_id, revoked_by=tx.caller.subject)
    grant = await store.get_grant(tx, grant_id)
    if grant is None:
        raise NotFound("There is no such grant.", code=ErrorCode.GRANT_NOT_FOUND)
    return grant


async def list_own_grants(databases: Databases, person_id: UUID, *, within: UUID | None) -> list[OwnGrant]:
    """The valid grants of a person who has signed in, the most recently used first.

    They are of all their tenants, or of the one to which their session is confined (`within`).
    """

    async def list_grants(session: Session) -> list[OwnGrant]:
        return await store.list_own_grants(session, most=MAX_OWN_GRANTS)

    if within is None:
        grants = await databases.list_from_all_cells(list_grants, person_id=person_id)
        return sorted(grants, key=lambda grant: grant.last_used_at or grant.created_at, reverse=True)[:MAX_OWN_GRANTS]
    async with databases.personal(person_id, within=within) as session:
        return [grant for grant in await list_grants(session) if grant.tenant_id == within]


async def end_own_grant(databases: Databases, person_id: UUID, grant_id: UUID, *, within: UUID | None) -> None:
    """Revoke a grant that this person gave, and all its tokens; `within` as in `list_own_grants`.

    Raises NotFound, also for a grant of another person.
    """
    for grant in await list_own_grants(databases, person_id, within=within):
        if grant.id == grant_id:
            caller = Caller(
                grant.tenant_id, grant.tenant, subject_of(person_id), scopes=ROLE_SCOPES[grant.role], role=grant.role
            )
            async with databases.of(grant.tenant_id).transaction(caller, also_suspended=True) as tx:
                await _end(tx, grant_id, revoked_by=caller.subject)
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
    grant: GrantStatus,
    scopes: tuple[str, ...],
    *,
    generation: int | None,
    times: TokenTimes,
    pepper: bytes,
) -> IssuedTokens:
    """Create new tokens of a grant; without a refresh token for `generation` None."""
    access, refresh_token = generate_secret(ACCESS), None
    await store.insert_access_token(
        tx, grant.grant_id, token_hash=hash_secret(access, pepper), scopes=scopes, lifetime=times.access
    )
    if generation is not None:
        refresh_token = generate_secret(REFRESH)
        token_hash = hash_secret(refresh_token, pepper)
        await store.insert_refresh_token(
            tx, grant.grant_id, token_hash=token_hash, generation=generation, lifetime=times.refresh
        )
    lifetime: timedelta = times.access if generation is None else max(times.access, times.refresh)
    await store.extend_grant(tx, grant.grant_id, lifetime=lifetime)
    return IssuedTokens(access, refresh_token, int(times.access.total_seconds()), scopes)


def _is_verifier(verifier: str | None, challenge: str) -> bool:
    """Whether this is the verifier of a code by S256 (RFC 7636, 4.6)."""
    return verifier is not None and hmac.compare_digest(create_s256_code_challenge(verifier), challenge)


def _presented(record: RefreshRecord) -> PresentedRefresh | None:
    """The token, or None where it was used too often: its holder does not get any number of tokens."""
    if record.uses >= MAX_SIBLINGS:
        return None
    return PresentedRefresh(record.grant, record.id, record.generation)


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
        read_at=record.read_at,
        role=record.role,
        plan=record.plan,
        rates=Rates(record.requests_per_minute, record.key_requests_per_minute, record.concurrent_calls),
    )
