"""Who is calling: the one value that every request, tool call and job carries."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from recollect.errors import ErrorCode, Forbidden

T = TypeVar("T")


class Scope(StrEnum):
    """What a credential may do. `tenant:admin` manages graphs and keys, and can grant the scopes that it has itself."""

    MEMORY_READ = "memory:read"
    MEMORY_WRITE = "memory:write"
    TENANT_ADMIN = "tenant:admin"


OPERATOR = "operator"
"""The subject of operators, who act as the owner of the database. No credential has it."""


Check = Callable[[T], None]
"""A check of a use case that changes an object: it gets the object in its current, locked state, and raises
PreconditionFailed where the caller's condition does not hold."""


def unconditional(_: object) -> None:
    """The check of a caller that sets no condition."""


class Role(StrEnum):
    """The role of a person in a tenant. A role has all permissions of the roles below it."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    READER = "reader"


ROLE_SCOPES = {
    Role.READER: frozenset({Scope.MEMORY_READ}),
    Role.MEMBER: frozenset({Scope.MEMORY_READ, Scope.MEMORY_WRITE}),
    Role.ADMIN: frozenset(Scope),
    Role.OWNER: frozenset(Scope),
}
"""The scopes of each role. In addition to the rights of an admin, an owner may give and take the role of owner."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The request limits of a tenant's plan, for the whole tenant and for one credential; None: no limit."""

    requests_per_minute: int | None = None
    key_requests_per_minute: int | None = None
    concurrent_calls: int | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """A tenant's credential, resolved. The tenant comes from here and from nowhere else.

    `graphs` and `toolsets` are allow-lists; None allows all. `graphs` holds ids, so that a renamed graph stays allowed.
    `default_graph`: the name or id of the graph of calls without a `graph` argument. `expires_at`: when the credential
    expires; None: never. `read_at`: when it was read, by the clock that set `expires_at`; None where others set it.
    `role`: that of the person who calls; None for an API key. `subject` identifies the credential: no two have the
    same. `plan` is the name of the tenant's plan; it and `rates` come with credentials, and are empty for the service's
    own work. `address`: where the request came from, by which clients are rate-limited; None without a network.
    `of_service`: work of the service itself or of an operator, which goes on while the tenant is suspended.
    """

    tenant_id: UUID
    tenant: str
    subject: str
    scopes: frozenset[Scope]
    graphs: frozenset[UUID] | None = None
    toolsets: frozenset[str] | None = None
    default_graph: str = "default"
    expires_at: datetime | None = None
    role: Role | None = None
    plan: str = ""
    rates: Rates = Rates()
    address: str | None = None
    of_service: bool = False
    read_at: datetime | None = field(default=None, compare=False)

    @property
    def is_operator(self) -> bool:
        """Whether this is an operator of the deployment."""
        return self.subject == OPERATOR

    def may(self, scope: Scope) -> bool:
        """Whether the credential has `scope`."""
        return scope in self.scopes

    def require(self, scope: Scope) -> None:
        """Raise Forbidden unless the credential has `scope`."""
        if scope not in self.scopes:
            raise Forbidden(f"This credential lacks the scope {scope}. Ask an admin for a key that has it.")

    def require_toolset(self, toolsets: frozenset[str]) -> None:
        """Raise Forbidden if an allow-list names none of these toolsets."""
        if self.toolsets is not None and not self.toolsets & toolsets:
            needed = " or ".join(sorted(toolsets)) or "every toolset"
            raise Forbidden(
                f"This credential is limited to some toolsets, but this needs {needed}. Ask an admin for a key that "
                "has it.",
                code=ErrorCode.TOOLSET_NOT_ALLOWED,
            )

    def require_non_expiring(self) -> None:
        """Raise Forbidden where the credential expires: rights that it gives could last longer."""
        if self.expires_at is not None:
            raise Forbidden(
                "This credential expires, so it cannot give rights that may last longer. Use a credential that does "
                "not expire.",
                code=ErrorCode.EXPIRY_EXCEEDED,
            )

    def require_can_grant(self, role: Role) -> None:
        """Raise Forbidden where this role has more rights than the credential, or for longer."""
        for scope in ROLE_SCOPES[role]:
            self.require(scope)
        self.require_toolset(frozenset())
        self.require_graph(None)
        self.require_non_expiring()

    def may_use_graph(self, graph_id: UUID) -> bool:
        """Whether the allow-list, if there is one, names this graph."""
        return self.graphs is None or graph_id in self.graphs

    def require_unconfined(self, consequence: str) -> None:
        """Raise Forbidden where an allow-list limits the credential to some graphs, and say what that means."""
        if self.graphs is not None:
            raise Forbidden(
                f"This credential is limited to some graphs{consequence}. Ask an admin.",
                code=ErrorCode.GRAPH_NOT_ALLOWED,
            )

    def require_graph(self, graph_id: UUID | None, *, by_default: bool = False) -> None:
        """Raise Forbidden if an allow-list lacks this graph; None: a graph that does not exist yet.

        `by_default`: nobody named the graph, so that naming another one helps.
        """
        if self.graphs is not None and graph_id not in self.graphs:
            if by_default:
                raise Forbidden(
                    "This credential is limited to some graphs, and the default one is none of them. Name one of them "
                    "in graph; list_graphs lists them.",
                    code=ErrorCode.GRAPH_NOT_ALLOWED,
                    path="graph",
                )
            raise Forbidden(
                "This credential has no access to that graph. Ask an admin to add it to the key's allow-list.",
                code=ErrorCode.GRAPH_NOT_ALLOWED,
            )


def default_graph_of(named: str | None, graph_ids: Collection[UUID] | None) -> str:
    """The graph of a credential's calls that name none: the one that was chosen for it, or the only one that it has.

    The latter is given by its id, so that a renamed graph stays the default.
    """
    only = str(*graph_ids) if graph_ids is not None and len(graph_ids) == 1 else None
    return named or only or "default"
