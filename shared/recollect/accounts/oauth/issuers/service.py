"""Use cases of trusted issuers: a tenant configures the issuers that it trusts; their tokens become Callers.

A token is valid at the resource of one tenant, which its address names, and is checked on every request: disabling an
issuer works at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import structlog
from authlib.oauth2.claims import JWTClaims
from joserfc import jws
from joserfc.errors import ExpiredTokenError, JoseError

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, changed_fields, named
from recollect.accounts.identity.service import EXPIRED, ISSUER_SUBJECT, REFUSAL
from recollect.accounts.oauth.issuers import store
from recollect.accounts.oauth.issuers.model import (
    MAX_ISSUER,
    MAX_ISSUERS,
    MAX_SUBJECT,
    IssuerChange,
    NewIssuer,
    TrustedIssuer,
    check_fields,
    check_issuer,
    looks_like_token,
    reach_of,
    require_may_trust,
)
from recollect.accounts.oauth.issuers.store import IssuerRecord
from recollect.accounts.token_issuers import LEEWAY_SECONDS, IssuerFailed, Issuers, TokenRefused
from recollect.caller import Caller, Rates, default_graph_of
from recollect.cells.databases import Databases
from recollect.errors import Conflict, ErrorCode, NotFound, TenantSuspended, TokenExpired, Unauthenticated
from recollect.postgres.transactions import Session, Transaction
from recollect.text.control_characters import controls

log = structlog.get_logger(__name__)


class NotTrusted(Unauthenticated):
    """The token is not valid here and now; it may be elsewhere, or once its issuer answers. The message is the same."""


@dataclass(frozen=True, slots=True)
class PresentedToken:
    """An access token as a client presented it, at the resource of the tenant that the address names.

    `names_resource`: whether an audience is the resource, which has several addresses.
    """

    secret: str
    tenant: str
    names_resource: Callable[[str], bool]


async def list_issuers(tx: Transaction) -> list[TrustedIssuer]:
    """The issuers that the tenant trusts, by name."""
    return await store.list_issuers(tx)


async def trust_issuer(tx: Transaction, new: NewIssuer) -> TrustedIssuer:
    """Trust an issuer; its rules may give at most the rights of the caller.

    Raises InvalidInput, Forbidden, or Conflict if it is trusted already or the tenant has MAX_ISSUERS.
    """
    check_issuer(new.issuer)
    check_fields(new.name, new.algorithm, new.claim, new.rules)
    require_may_trust(tx.caller, new.rules)
    await store.lock_issuers(tx)
    if len(await store.list_issuers(tx)) >= MAX_ISSUERS:
        raise Conflict(
            f"A tenant can trust at most {MAX_ISSUERS} issuers. Drop one first.", code=ErrorCode.TOO_MANY_ISSUERS
        )
    added = await store.insert_issuer(tx, new)
    if added is None:
        raise Conflict("This issuer is already trusted.", code=ErrorCode.ISSUER_EXISTS, path="issuer")
    await audit.record(tx, Action.ISSUER_TRUSTED, _named(added.id))
    return added


async def change_issuer(tx: Transaction, issuer_id: UUID, change: IssuerChange) -> TrustedIssuer:
    """Change, disable or enable an issuer. Raises NotFound, InvalidInput or Forbidden."""
    check_fields(change.name, change.algorithm, change.claim, change.rules)
    before = await store.lock_issuer(tx, issuer_id)
    changed = await store.change_issuer(tx, issuer_id, change)
    if before is None or changed is None:
        raise _no_issuer()
    if change.enabled is not False:
        require_may_trust(tx.caller, changed.rules)
    if fields := changed_fields(before, changed):
        await audit.record(tx, Action.ISSUER_CHANGED, _named(issuer_id), fields=fields)
    return changed


async def delete_issuer(tx: Transaction, issuer_id: UUID) -> None:
    """Stop trusting an issuer. Raises NotFound."""
    if not await store.delete_issuer(tx, issuer_id):
        raise _no_issuer()
    await audit.record(tx, Action.ISSUER_DELETED, _named(issuer_id))


async def trusted_addresses(databases: Databases, tenant: str) -> list[str]:
    """The issuers that the tenant of this slug trusts in addition to us; empty if there is no such tenant.

    Raises Unavailable if its cell is unavailable, or it is moving.
    """

    async def find(session: Session) -> list[str] | None:
        return await store.list_addresses(session, tenant) or None

    return await databases.find_in_any_cell(f"issuers {tenant}", find, slug=tenant) or []


async def authenticate(databases: Databases, issuers: Issuers, presented: PresentedToken) -> Caller:
    """The Caller of a token of a trusted issuer. Raises Unauthenticated, with one message for every reason.

    It raises TokenExpired for a token that the issuer signed and whose time is over.
    """
    try:
        address = _unverified_issuer(presented.secret)
        by = f"issuer {presented.tenant} {address}"
        record = await databases.find_in_any_cell(
            by, lambda session: store.find_issuer(session, presented.tenant, address), slug=presented.tenant
        )
        if record is None:
            raise NotTrusted(REFUSAL)
        verified = await issuers.verified(record.tenant_id, record.issuer, presented.secret, record.algorithm)
        caller = _caller(record, _validated(record, verified.header, verified.claims, presented))
    except ExpiredTokenError:  # Its signature was verified before.
        raise TokenExpired(EXPIRED) from None
    except (TokenRefused, IssuerFailed, JoseError, ValueError, TypeError, OverflowError) as error:
        log.info("token of trusted issuer rejected", tenant=presented.tenant, reason=str(error))
        raise NotTrusted(REFUSAL) from None
    if record.tenant_status != "active":
        raise TenantSuspended(REFUSAL)
    return caller


def _unverified_issuer(token: str) -> str:
    """The issuer that a token names, before it is verified. Raises TokenRefused, JoseError or ValueError."""
    if not looks_like_token(token):
        raise TokenRefused("it is not a token")
    try:
        claims = msgspec.json.decode(jws.extract_compact(token.encode()).payload, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise TokenRefused("it holds no claims") from None
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or not 1 <= len(issuer) <= MAX_ISSUER or "\x00" in issuer:
        raise TokenRefused("it names no issuer")
    return issuer


def _validated(
    record: IssuerRecord, header: dict[str, Any], claims: dict[str, Any], presented: PresentedToken
) -> dict[str, Any]:
    """The claims, if they are for this resource and valid now (RFC 9068, 4). Raises JoseError or TokenRefused."""
    if not any(map(presented.names_resource, _audiences(claims))):
        raise TokenRefused("it is for another audience")
    options = {
        "iss": {"essential": True, "value": record.issuer},
        "sub": {"essential": True},
        "exp": {"essential": True},
    }
    JWTClaims(claims, header, options).validate(leeway=LEEWAY_SECONDS)
    subject = claims["sub"]
    if not isinstance(subject, str) or not 1 <= len(subject) <= MAX_SUBJECT or controls(subject):
        raise TokenRefused("its subject is not valid")
    return claims


def _audiences(claims: dict[str, Any]) -> list[str]:
    """The audiences that a token names: one, or a list (RFC 7519, 4.1.3)."""
    named_audiences = claims.get("aud")
    listed = named_audiences if isinstance(named_audiences, list) else [named_audiences]
    return [audience for audience in listed if isinstance(audience, str)]


def _caller(record: IssuerRecord, claims: dict[str, Any]) -> Caller:
    reach = reach_of(record.rules, claims.get(record.claim))
    return Caller(
        tenant_id=record.tenant_id,
        tenant=record.tenant,
        subject=f"{ISSUER_SUBJECT}{record.id}:{claims['sub']}",
        scopes=reach.scopes,
        graphs=reach.graphs,
        default_graph=default_graph_of(None, reach.graphs),
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
        plan=record.plan,
        rates=Rates(record.requests_per_minute, record.key_requests_per_minute, record.concurrent_calls),
    )


def _named(issuer_id: UUID) -> str:
    return named("trusted_issuer", issuer_id)


def _no_issuer() -> NotFound:
    return NotFound("There is no such issuer.", code=ErrorCode.ISSUER_NOT_FOUND)
