"""`recollect keys …`: the API keys of a tenant, by a gateway or, for operators who name the tenant, by the database."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from cyclopts import App, Parameter

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import ApiKey, IssuedKey, NewKey
from recollect.accounts.operator_keys import service as operator_keys
from recollect.caller import Scope
from recollect.graph.graphs import service as graphs
from recollect.postgres.transactions import Transaction
from recollect_cli.gateway import ApiKey as ApiKeyOption
from recollect_cli.gateway import Url, body_of, connected
from recollect_cli.operations import as_operator_of_each_cell, for_tenant, pepper
from recollect_cli.tables import AsJson, echo, show, show_json
from recollect_cli.tenancy import MAX_LISTED, PAGE, TENANT, id_of, listed, require_one_option, tenant_of

app = App(name="keys", help="Create, list, rotate and revoke the API keys of a tenant.")

NamedScope = Literal["memory:read", "memory:write", "tenant:admin"]

_OF_KEY = f"{TENANT} KEY-ID: the key's id, as `recollect keys list` shows it."
TenantAndName = Annotated[
    str, Parameter(name="[TENANT] NAME", help=f"{TENANT} NAME: the name of the key, which says what it is for.")
]
TenantAndKey = Annotated[str, Parameter(name="[TENANT] KEY-ID", help=_OF_KEY)]
Tenant = Annotated[str | None, Parameter(help=TENANT)]


class KeyView(msgspec.Struct, frozen=True):
    """The fields of a key that commands show."""

    id: UUID
    name: str
    hint: str
    scopes: list[str]
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class IssuedKeyView(msgspec.Struct, frozen=True):
    """A key that was made."""

    id: UUID
    name: str
    secret: str


@app.command(usage="Usage: recollect keys create [TENANT] NAME [OPTIONS]")
def create(
    *words: TenantAndName,
    kind: Literal["agent", "admin"] = "agent",
    scope: list[NamedScope] | None = None,
    graph: list[str] | None = None,
    default_graph: str | None = None,
    toolset: list[str] | None = None,
    expires: datetime | None = None,
    requests_per_minute: int | None = None,
    url: Url = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Create a key and print it. It is shown only once.

    Parameters
    ----------
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
    tenant, (name,) = tenant_of(words, "NAME", command="keys create", url=url, api_key=api_key)
    expires_at = expires.replace(tzinfo=expires.tzinfo or UTC) if expires else None
    if tenant is None:
        body = body_of(
            name=name,
            kind=kind,
            scopes=scope,
            graphs=graph,
            default_graph=default_graph,
            expires_at=expires_at,
            toolsets=toolset,
            requests_per_minute=requests_per_minute,
        )
        _print_secret(_issued(url, api_key, "/keys", body), "Created")
        return

    async def work(tx: Transaction) -> IssuedKey:
        ids = await graphs.graph_ids(tx, [*(graph or ()), *([default_graph] if default_graph else ())])
        new = NewKey(
            name,
            kind=kind,
            scopes=frozenset(map(Scope, scope)) if scope else None,
            graph_ids=tuple(ids[g] for g in graph) if graph else None,
            default_graph_id=ids[default_graph] if default_graph else None,
            toolsets=_known_toolsets(toolset) if toolset else None,
            expires_at=expires_at,
            requests_per_minute=requests_per_minute,
        )
        return await identity.create_key(tx, new, pepper=pepper())

    _print_secret(_view(for_tenant(tenant, work)), "Created")


def _known_toolsets(names: list[str]) -> tuple[str, ...]:
    # Loads all of MCP, which takes longer than the rest.
    from recollect_gateway.mcp_endpoint.tools import known_toolsets

    return known_toolsets(names)


@app.command(usage="Usage: recollect keys rotate [TENANT] KEY-ID [OPTIONS]")
def rotate(*words: TenantAndKey, overlap_hours: float = 24, url: Url = None, api_key: ApiKeyOption = None) -> None:
    """Replace a key: create one with the same permissions, and print it. The old key expires after the overlap.

    Parameters
    ----------
    overlap_hours
        Hours until the old key expires, 0 to 720.
    """
    tenant, (word,) = tenant_of(words, "KEY-ID", command="keys rotate", url=url, api_key=api_key)
    key_id, overlap = id_of(word, "key"), timedelta(hours=overlap_hours)
    if tenant is None:
        issued = _issued(url, api_key, f"/keys/{key_id}/rotate", body_of(overlap_hours=overlap_hours))
    else:
        issued = _view(for_tenant(tenant, lambda tx: identity.rotate_key(tx, key_id, overlap=overlap, pepper=pepper())))
    _print_secret(issued, f"Replaced {key_id}, which expires in {overlap_hours:g} hours, by")


@app.command(name="list")
def list_keys(tenant: Tenant = None, *, json: AsJson = False, url: Url = None, api_key: ApiKeyOption = None) -> None:
    """List the keys of a tenant, oldest first."""
    require_one_option(tenant, url, api_key, json=json)
    if tenant is not None:
        _show(for_tenant(tenant, lambda tx: identity.list_keys(tx, limit=MAX_LISTED)))
        return
    with connected(url, api_key) as gateway:
        if json:
            show_json(gateway.send("GET", f"/keys?limit={PAGE}"))
        else:
            _show(list(listed(gateway, "/keys", KeyView)))


@app.command(usage="Usage: recollect keys revoke [TENANT] KEY-ID [OPTIONS]")
def revoke(*words: TenantAndKey, url: Url = None, api_key: ApiKeyOption = None) -> None:
    """Revoke a key. It is no longer accepted."""
    tenant, (word,) = tenant_of(words, "KEY-ID", command="keys revoke", url=url, api_key=api_key)
    key_id = id_of(word, "key")
    if tenant is not None:
        _show([for_tenant(tenant, lambda tx: identity.revoke_key(tx, key_id))])
        return
    with connected(url, api_key) as gateway:
        _show([msgspec.json.decode(gateway.send("DELETE", f"/keys/{key_id}"), type=KeyView)])


def _issued(url: str | None, api_key: str | None, path: str, body: bytes) -> IssuedKeyView:
    """The key that the gateway makes in answer to this request."""
    with connected(url, api_key) as gateway:
        return msgspec.json.decode(gateway.send("POST", path, body), type=IssuedKeyView)


def _view(issued: IssuedKey) -> IssuedKeyView:
    return IssuedKeyView(issued.key.id, issued.key.name, issued.secret)


def _print_secret(issued: IssuedKeyView, did: str) -> None:
    print(issued.secret)
    echo(f"{did} the key {issued.name!r} with the id {issued.id}. It is shown only this once.")


def _show(keys: Sequence[ApiKey | KeyView]) -> None:
    rows = [(str(k.id), k.name, k.hint, ",".join(k.scopes), _day(k.last_used_at), _state(k)) for k in keys]
    show(("id", "name", "key", "scopes", "last used", "state"), rows, empty="There are no keys.")


def _day(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d}" if at else "never"


def _state(key: ApiKey | KeyView) -> str:
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
