"""`recollect keys …`: the API keys of a tenant."""

from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID

from cyclopts import App

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import ApiKey, IssuedKey, NewKey
from recollect.accounts.operator_keys import service as operator_keys
from recollect.caller import Scope
from recollect.graph.graphs import service as graphs
from recollect.platform.transactions import Transaction
from recollect_cli.operations import as_operator_of_each_cell, for_tenant, pepper
from recollect_cli.tables import show

app = App(name="keys", help="Create, list, rotate and revoke the API keys of a tenant.")

NamedScope = Literal["memory:read", "memory:write", "tenant:admin"]


@app.command
def create(
    tenant: str,
    name: str,
    *,
    kind: str = "agent",
    scope: list[NamedScope] | None = None,
    graph: list[str] | None = None,
    default_graph: str | None = None,
    toolset: list[str] | None = None,
    expires: datetime | None = None,
    requests_per_minute: int | None = None,
) -> None:
    """Create a key and print it. It is shown only once.

    Parameters
    ----------
    tenant
        The tenant's slug.
    name
        Name of the key, which says what it is for.
    kind
        Kind of the key: agent or admin.
    scope
        Scope of the key. Repeat the option for each scope. Default: those of the kind.
    graph
        Graph that the key may use. Repeat the option for each graph. Default: all.
    default_graph
        Graph of calls that do not name one. Default: `default`.
    toolset
        Toolset that the key may use. Repeat the option for each toolset. Default: all.
    expires
        Time of expiry, such as 2027-01-31; UTC unless an offset is given. Default: never.
    requests_per_minute
        Maximum number of requests per minute. The limit of the tenant's plan applies, too. Default: that limit.
    """

    async def work(tx: Transaction) -> IssuedKey:
        ids = await graphs.graph_ids(tx, [*(graph or ()), *([default_graph] if default_graph else ())])
        new = NewKey(
            name,
            kind=kind,
            scopes=frozenset(map(Scope, scope)) if scope else None,
            graph_ids=tuple(ids[g] for g in graph) if graph else None,
            default_graph_id=ids[default_graph] if default_graph else None,
            toolsets=_known_toolsets(toolset) if toolset else None,
            expires_at=expires.replace(tzinfo=expires.tzinfo or UTC) if expires else None,
            requests_per_minute=requests_per_minute,
        )
        return await identity.create_key(tx, new, pepper=pepper())

    print(for_tenant(tenant, work).secret)


def _known_toolsets(names: list[str]) -> tuple[str, ...]:
    # Loads all of MCP, which takes longer than the rest.
    from recollect_gateway.mcp_endpoint.catalogue import known_toolsets

    return known_toolsets(names)


@app.command
def rotate(tenant: str, key_id: UUID, *, overlap_hours: float = 24) -> None:
    """Replace a key: create one with the same permissions, and print it. The old key expires after the overlap.

    Parameters
    ----------
    tenant
        The tenant's slug.
    key_id
        The key's id, from `recollect keys list`.
    overlap_hours
        Hours until the old key expires, 0 to 720.
    """
    overlap = timedelta(hours=overlap_hours)
    issued = for_tenant(tenant, lambda tx: identity.rotate_key(tx, key_id, overlap=overlap, pepper=pepper()))
    print(issued.secret)


@app.command(name="list")
def list_keys(tenant: str) -> None:
    """List the keys of a tenant, oldest first.

    Parameters
    ----------
    tenant
        The tenant's slug.
    """
    _show(for_tenant(tenant, lambda tx: identity.list_keys(tx, limit=1000)))


@app.command
def revoke(tenant: str, key_id: UUID) -> None:
    """Revoke a key. It is no longer accepted.

    Parameters
    ----------
    tenant
        The tenant's slug.
    key_id
        The key's id, as `recollect keys list` shows it.
    """
    _show([for_tenant(tenant, lambda tx: identity.revoke_key(tx, key_id))])


def _show(keys: list[ApiKey]) -> None:
    rows = [(str(k.id), k.name, k.hint, ",".join(k.scopes), _day(k.last_used_at), _state(k)) for k in keys]
    show(("id", "name", "key", "scopes", "last used", "state"), rows)


def _day(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d}" if at else "never"


def _state(key: ApiKey) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= datetime.now(UTC) else "active"


@app.command
def hashed() -> None:
    """Count the valid keys of all tenants that are hashed with RECOLLECT_KEY_SECRET, and all others."""
    counts = as_operator_of_each_cell(lambda operator: operator_keys.count_hashed_keys(operator, pepper=pepper()))
    now, left = (sum(count) for count in zip(*counts, strict=True))
    print(f"{now} keys are hashed with RECOLLECT_KEY_SECRET")
    print(f"{left} keys are hashed with another or an unknown secret. While it is accepted, using a key hashes it anew")
