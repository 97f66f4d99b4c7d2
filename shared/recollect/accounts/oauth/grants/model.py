"""Grants, and the codes and tokens issued for them.

Tokens are opaque and look like keys (`rcl_access_…`, `rcl_refresh_…`, `rcl_code_…`). Each use looks the token up, so
that revoking it works at once.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from recollect.caller import ROLE_SCOPES, Caller, Role, Scope
from recollect.settings import Settings

ACCESS, REFRESH, CODE = "access", "refresh", "code"
"""Kinds of codes and tokens, as their text names them."""

CODE_LIFETIME = timedelta(seconds=60)
REUSE_REMEMBERED = timedelta(days=7)
"""How long a used refresh token is remembered; after that it is an unknown token."""

EXPIRED_REMEMBERED = timedelta(days=1)
"""How long an expired access token is remembered: until then, using it is not taken for a guess."""

MAX_SIBLINGS = 20
"""How often a refresh token may be used within its grace window."""

CODE_REPEATS = timedelta(seconds=10)
"""How long a used code may come again with the same verifier, as a browser sends it that reloads the client's page."""

MAX_REFRESH_TOKENS = 50
"""The most refresh tokens of one grant that were not used yet, one for each parallel session; the oldest end."""

MAX_REMEMBERED_TOKENS = 1_000
"""The most used refresh tokens of one grant, and access tokens of it, that are stored; the oldest are forgotten."""

MAX_GRANTS = 100
"""The most valid grants of one person in one tenant; one more ends the least recently used one."""

MAX_ENDED_GRANTS = 200
"""The most ended grants of one person in one tenant that are stored; the oldest are forgotten."""

MAX_OWN_GRANTS = 200
"""The most grants that a person's account page lists, the most recently used first."""

OPENID, OFFLINE_ACCESS = "openid", "offline_access"
IDENTITY_SCOPES = (OPENID, OFFLINE_ACCESS)
"""Scopes that give no rights in a tenant: the identity of the person, and refresh tokens."""

SCOPES = (*(str(scope) for scope in Scope), *IDENTITY_SCOPES)
DEFAULT_SCOPES = (str(Scope.MEMORY_READ), str(Scope.MEMORY_WRITE))
"""The scopes of a client that requests none."""

ADMINISTRATIVE_SCOPES = frozenset({str(Scope.TENANT_ADMIN)})
ADVERTISED_SCOPES = tuple(scope for scope in SCOPES if scope not in ADMINISTRATIVE_SCOPES)
"""The scopes that discovery lists: some clients request them all. A client that needs more requests that by name."""


@dataclass(frozen=True, slots=True)
class TokenTimes:
    """Lifetimes of tokens; `grace`: how long parallel sessions may reuse a refresh token."""

    access: timedelta
    refresh: timedelta
    grace: timedelta

    @classmethod
    def of(cls, settings: Settings) -> "TokenTimes":
        """The lifetimes of the settings."""
        return cls(
            timedelta(seconds=settings.oauth_access_seconds),
            timedelta(days=settings.oauth_refresh_days),
            timedelta(seconds=settings.oauth_refresh_grace_seconds),
        )


@dataclass(frozen=True, slots=True)
class Approval:
    """The request of a client that a person approved. `graph_ids` and `toolsets` None: all, future ones included."""

    person_id: UUID
    client_id: str
    client_name: str
    scopes: tuple[str, ...]
    graph_ids: tuple[UUID, ...] | None
    toolsets: tuple[str, ...] | None
    resource: str
    redirect_uri: str
    code_challenge: str
    nonce: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant as it is listed. `person_email` and `person_name`: the person who gave it."""

    id: UUID
    person_id: UUID
    person_email: str
    person_name: str
    client_id: str
    client_name: str
    scopes: tuple[str, ...]
    graph_ids: tuple[UUID, ...] | None
    toolsets: tuple[str, ...] | None
    resource: str
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None


@dataclass(frozen=True, slots=True)
class OwnGrant:
    """A valid grant as the person who gave it sees it; `graphs` by name. `role`: their present role in its tenant."""

    tenant_id: UUID
    tenant: str
    tenant_name: str
    role: Role
    id: UUID
    client_id: str
    client_name: str
    scopes: tuple[str, ...]
    graphs: tuple[str, ...] | None
    toolsets: tuple[str, ...] | None
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class GrantStatus:
    """The grant of a presented code or token, with the present role of its person.

    `is_valid`: it is not revoked, and its tenant is active.
    """

    grant_id: UUID
    person_id: UUID
    client_id: str
    resource: str
    scopes: tuple[str, ...]
    role: Role
    is_valid: bool

    @property
    def allowed(self) -> tuple[str, ...]:
        """The granted scopes that the person's role still has."""
        return within_role(self.scopes, self.role)


@dataclass(frozen=True, slots=True)
class PresentedCode:
    """A code that a client may still exchange for tokens."""

    grant: GrantStatus
    redirect_uri: str
    code_challenge: str
    nonce: str | None


@dataclass(frozen=True, slots=True)
class PresentedRefresh:
    """A refresh token that may be used, once more or as one of several parallel sessions."""

    grant: GrantStatus
    id: UUID
    generation: int


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """Tokens at the one moment when they can be returned."""

    access: str
    refresh: str | None
    seconds: int
    scopes: tuple[str, ...]


class TokenKind(StrEnum):
    """Kinds of token that a client may introspect or revoke."""

    ACCESS = ACCESS
    REFRESH = REFRESH


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """The facts about a token that has not ended, as its client may read them.

    `used`: it is a refresh token that was already exchanged for others.
    """

    kind: TokenKind
    id: UUID
    used: bool
    grant_id: UUID
    person_id: UUID
    client_id: str
    scopes: tuple[str, ...]
    resource: str
    created_at: datetime
    expires_at: datetime


def within_role(scopes: tuple[str, ...], role: Role) -> tuple[str, ...]:
    """The scopes among these that a role has; every role has the scopes that give no rights in a tenant."""
    role_scopes = {*(str(scope) for scope in ROLE_SCOPES[role]), *IDENTITY_SCOPES}
    return tuple(scope for scope in scopes if scope in role_scopes)


def as_scopes(scopes: tuple[str, ...]) -> frozenset[Scope]:
    """The scopes among these that a Caller can have."""
    return frozenset(Scope(scope) for scope in scopes if scope not in IDENTITY_SCOPES)


def authorization_server(tenant_id: UUID) -> Caller:
    """The Caller of the authorization server in a tenant, once the tenant of a code or token is known."""
    return Caller(tenant_id, tenant="", subject="oauth", scopes=frozenset(), of_service=True)
