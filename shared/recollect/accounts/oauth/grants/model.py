"""Grants, and the tokens that follow from them: what is asked, what is stored, what is handed out.

Tokens are opaque and look like keys (`rcl_access_…`, `rcl_refresh_…`, `rcl_code_…`): one look-up tells what one stands
for, so that revoking one works at once.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from recollect.caller import ROLE_SCOPES, Caller, Role, Scope
from recollect.settings import Settings

ACCESS, REFRESH, CODE = "access", "refresh", "code"
"""Kinds of what is handed out, as its form names them."""

CODE_LIFETIME = timedelta(seconds=60)
REUSE_REMEMBERED = timedelta(days=7)
"""How long a refresh token that was used is known as such; after that it is one that nobody knows."""

MAX_SIBLINGS = 20
"""How often a refresh token may be used within its grace window."""

MAX_GRANTS = 100
"""Grants of one person in one tenant that hold; another one ends the one that was not used for the longest time."""

MAX_OWN_GRANTS = 200
"""Grants of one person that are listed on their account, the last used first."""

OPENID, OFFLINE_ACCESS = "openid", "offline_access"
IDENTITY_SCOPES = (OPENID, OFFLINE_ACCESS)
"""Scopes that ask nothing of a tenant: who signed in, and refresh tokens."""

SCOPES = (*(str(scope) for scope in Scope), *IDENTITY_SCOPES)
DEFAULT_SCOPES = (str(Scope.MEMORY_READ), str(Scope.MEMORY_WRITE))
"""What a client asks for that names no scope."""


@dataclass(frozen=True, slots=True)
class TokenTimes:
    """How long tokens hold."""

    access: timedelta
    refresh: timedelta
    grace: timedelta

    @classmethod
    def of(cls, settings: Settings) -> "TokenTimes":
        """As they are set."""
        return cls(
            timedelta(seconds=settings.oauth_access_seconds),
            timedelta(days=settings.oauth_refresh_days),
            timedelta(seconds=settings.oauth_refresh_grace_seconds),
        )


@dataclass(frozen=True, slots=True)
class Approval:
    """What a person said yes to. `graph_ids` and `toolsets` None are all, those to come too."""

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
    """A grant as it is listed. `person_email` and `person_name` say who gave it."""

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
    """A grant that holds, as the person sees it who gave it; `graphs` by name. `role`: theirs in its tenant, now."""

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
class GrantStanding:
    """A grant of which something was presented, with the role that its person has now.

    `holds`: it is not revoked, and its tenant is active.
    """

    grant_id: UUID
    person_id: UUID
    client_id: str
    resource: str
    scopes: tuple[str, ...]
    role: Role
    holds: bool

    @property
    def allowed(self) -> tuple[str, ...]:
        """The scopes that were granted and that the person's role still holds."""
        return within_role(self.scopes, self.role)


@dataclass(frozen=True, slots=True)
class PresentedCode:
    """A code that a client may still change for tokens."""

    standing: GrantStanding
    redirect_uri: str
    code_challenge: str
    nonce: str | None


@dataclass(frozen=True, slots=True)
class PresentedRefresh:
    """A refresh token that may be used, once more or as one of several parallel sessions."""

    standing: GrantStanding
    id: UUID
    generation: int


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """Tokens at the one moment when they can be handed out."""

    access: str
    refresh: str | None
    seconds: int
    scopes: tuple[str, ...]


class TokenKind(StrEnum):
    """What a client may ask about, or give back."""

    ACCESS = ACCESS
    REFRESH = REFRESH


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What is told of a token that has not ended, to whoever presents it as its client.

    `used`: it is a refresh token that gave others already.
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
    """Those scopes that a role holds; scopes that ask nothing of a tenant are everybody's."""
    held = {*(str(scope) for scope in ROLE_SCOPES[role]), *IDENTITY_SCOPES}
    return tuple(scope for scope in scopes if scope in held)


def as_scopes(scopes: tuple[str, ...]) -> frozenset[Scope]:
    """Those of them that a Caller has."""
    return frozenset(Scope(scope) for scope in scopes if scope not in IDENTITY_SCOPES)


def authorization_server(tenant_id: UUID) -> Caller:
    """The authorization server at work for a tenant, once it is known whose a code or a token is."""
    return Caller(tenant_id, tenant="", subject="oauth", scopes=frozenset(), of_service=True)
