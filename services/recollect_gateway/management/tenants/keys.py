"""/v1/keys: the tenant's API keys."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from litestar import Controller, Request, Response
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta, Struct, structs

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import ApiKey, NewKey
from recollect.caller import Scope
from recollect.graph.graphs import service as graphs
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin
from recollect_gateway.mcp_endpoint.tools import known_toolsets
from recollect_gateway.requests.validation import valid_body
from recollect_http.client_addresses import site_of_client
from recollect_http.fields import (
    CreatedAt,
    CreatedBy,
    GraphIds,
    GraphNames,
    KeyInPath,
    RequestsPerMinute,
    RevokedAt,
    ScopeNames,
    Toolsets,
)
from recollect_http.openapi.routes import delete, get, post
from recollect_http.pages import IdCursor, Limit, Page, page_of
from recollect_http.preconditions import tagged, unchanged
from recollect_http.problems import CHANGE_RESPONSES, RESPONSES, TAGGED_RESPONSES
from recollect_http.requests.argument_types import GraphName

MAX_REPORT_BYTES = 1024
"""Bytes of the body that reports a key, which anybody may send."""

OF_KIND = "`agent` (scopes `memory:read` and `memory:write` by default) or `admin` (`tenant:admin`, too)"
KeyKind = Annotated[str, Meta(description=OF_KIND)]
KeyName = Annotated[str, Meta(description="Name of the API key for people")]
NewScopes = Annotated[
    list[Scope], Meta(description="Scopes of the key; null: those of its kind", examples=[["memory:read"]])
]
DefaultGraph = Annotated[
    GraphName, Meta(description="Name or id of the graph that calls use if they name none; null: `default`")
]
NewExpiry = Annotated[
    datetime,
    Meta(
        tz=True,
        description="Time, with its offset from UTC, from which on the key is not valid; null: it never expires",
        examples=["2099-12-31T00:00:00Z"],
    ),
]
NewToolsets = Annotated[
    list[Annotated[str, Meta(max_length=64)]],
    Meta(
        max_length=20,
        description="Toolsets to which the key is limited, with the routes that do the same as one of their tools; "
        "null: all tools and routes",
        examples=[["agent", "memory"]],
    ),
]
NewRate = Annotated[
    int,
    Meta(
        ge=1,
        le=1_000_000,
        description="Maximum number of requests in a minute, at most that of the tenant's plan; null: that of the plan",
    ),
]


class KeyBody(Struct, frozen=True):
    """An API key without its secret."""

    id: Annotated[str, Meta(description="Id of the API key, a UUID")]
    name: KeyName
    kind: KeyKind
    hint: Annotated[str, Meta(description="Beginning and end of the secret, by which people recognize the key")]
    scopes: ScopeNames
    graphs: GraphIds
    default_graph: Annotated[
        str | None, Meta(description="Id of the graph that calls use if they name none; null: the one named `default`")
    ]
    created_at: CreatedAt
    created_by: CreatedBy
    expires_at: Annotated[
        datetime | None, Meta(description="Time from which on the key is not valid; null: it never expires")
    ]
    revoked_at: RevokedAt
    last_used_at: Annotated[
        datetime | None, Meta(description="Time of the last use, a few seconds late; null: never used")
    ]
    toolsets: Toolsets
    requests_per_minute: RequestsPerMinute


class IssuedKeyBody(KeyBody, frozen=True):
    """An API key with its secret."""

    secret: Annotated[str, Meta(description="Secret to send as `Authorization: Bearer …`, which is returned only here")]


class CreateKey(Struct, frozen=True, forbid_unknown_fields=True):
    """An API key to create. It cannot be allowed more than the credential that creates it."""

    name: Annotated[KeyName, Meta(min_length=1, max_length=200, examples=["research agents"])]
    kind: Annotated[Literal["agent", "admin"], Meta(description=OF_KIND)] = "agent"
    scopes: NewScopes | None = None
    graphs: Annotated[GraphNames, Meta(max_length=200)] | None = None
    default_graph: DefaultGraph | None = None
    expires_at: NewExpiry | None = None
    toolsets: NewToolsets | None = None
    requests_per_minute: NewRate | None = None


class RotateKey(Struct, frozen=True, forbid_unknown_fields=True):
    """How to rotate an API key."""

    overlap_hours: Annotated[
        float, Meta(ge=0, le=720, description="Hours for which the old key stays valid beside the new one, at most 720")
    ] = 24


class ReportKey(Struct, frozen=True, forbid_unknown_fields=True):
    """A leaked API key to report."""

    key: Annotated[str, Meta(max_length=200, description="Secret of the key (`rcl_…`), or any other text")]


class KeyController(Controller):
    """List, create and revoke keys."""

    path = "/keys"
    tags = ("keys",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="A page of the tenant's API keys.", summary="List keys")
    async def list_keys(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[KeyBody]:
        """List the tenant's API keys, oldest first, including revoked and expired ones."""
        async with db.transaction(request.user, read_only=True) as tx:
            found = await identity.list_keys(tx, after=cursor, limit=limit + 1)
        return page_of(found, limit, lambda key: KeyBody(**_fields(key)), lambda key: str(key.id))

    @get(
        "/{key_id:uuid}",
        responses=TAGGED_RESPONSES,
        response_description="The API key, without its secret.",
        summary="Get a key",
    )
    async def get_key(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], key_id: KeyInPath
    ) -> Response[KeyBody]:
        """Return an API key with its ETag. Revoked and expired keys are returned, too."""
        async with db.transaction(request.user, read_only=True) as tx:
            return tagged(request, KeyBody(**_fields(await identity.get_key(tx, key_id))), lasting=_lasting)

    @post(
        "/",
        response_description="The API key that was created, with its secret, which is shown only here.",
        summary="Create a key",
        before_request=valid_body(CreateKey),
    )
    async def create_key(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State, data: JSONBody[CreateKey]
    ) -> IssuedKeyBody:
        """Create an API key. Its secret is only in this response and cannot be retrieved later."""
        async with db.transaction(request.user) as tx:
            issued = await identity.create_key(tx, await _new_key(tx, data), pepper=state.pepper)
        return IssuedKeyBody(**_fields(issued.key), secret=issued.secret)

    @post(
        "/{key_id:uuid}/rotate",
        responses=CHANGE_RESPONSES,
        response_description="The new API key, with its secret, which is shown only here.",
        summary="Rotate a key",
        before_request=valid_body(RotateKey),
    )
    async def rotate_key(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        key_id: KeyInPath,
        data: JSONBody[RotateKey],
    ) -> IssuedKeyBody:
        """Create a new key with the properties of this one. This key expires after the overlap.

        The new key's secret is only in this response. The response is 409 `key_void` if this key is revoked or has
        expired.
        """
        overlap = timedelta(hours=data.overlap_hours)
        async with db.transaction(request.user) as tx:
            issued = await identity.rotate_key(
                tx, key_id, overlap=overlap, pepper=state.pepper, check=unchanged(request, _lasting_of)
            )
        return IssuedKeyBody(**_fields(issued.key), secret=issued.secret)

    @delete(
        "/{key_id:uuid}",
        responses=CHANGE_RESPONSES,
        response_description="The API key, which is revoked now.",
        summary="Revoke a key",
        status_code=200,
    )
    async def revoke_key(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], key_id: KeyInPath
    ) -> KeyBody:
        """Revoke an API key at once. Revoking it again changes nothing."""
        async with db.transaction(request.user) as tx:
            key = await identity.revoke_key(tx, key_id, check=unchanged(request, _lasting_of))
            return KeyBody(**_fields(key))


@post(
    "/keys/report",
    responses=RESPONSES,
    response_description="The report was received. If the text is an API key, it is revoked now.",
    summary="Report a leaked key",
    tags=["keys"],
    status_code=204,
    guards=[by_address("report", lambda settings: settings.sign_ins_per_minute)],
    before_request=valid_body(ReportKey),
    request_max_body_size=MAX_REPORT_BYTES,
)
async def report_key(request: Request[Any, Any, State], state: State, data: JSONBody[ReportKey]) -> None:
    """Revoke a leaked key. Holding the key is the proof: no other credential is needed.

    The response is the same for every text, whether or not it is a key.
    """
    await identity.report_key(state.databases, data.key, pepper=state.pepper, address=site_of_client(request))


async def _new_key(tx: Transaction, data: CreateKey) -> NewKey:
    names = [*(data.graphs or []), *([data.default_graph] if data.default_graph else [])]
    ids = await graphs.graph_ids(tx, names)
    return NewKey(
        data.name,
        kind=data.kind,
        scopes=None if data.scopes is None else frozenset(data.scopes),
        graph_ids=None if data.graphs is None else tuple(ids[name] for name in data.graphs),
        default_graph_id=ids[data.default_graph] if data.default_graph else None,
        expires_at=data.expires_at,
        toolsets=None if data.toolsets is None else known_toolsets(data.toolsets),
        requests_per_minute=data.requests_per_minute,
    )


def _lasting(body: KeyBody) -> KeyBody:
    """The part of a key that can be changed: all but the time of its last use."""
    return structs.replace(body, last_used_at=None)


def _lasting_of(key: ApiKey) -> KeyBody:
    return _lasting(KeyBody(**_fields(key)))


def _fields(key: ApiKey) -> dict[str, Any]:
    return {
        "id": str(key.id),
        "name": key.name,
        "kind": key.kind,
        "hint": key.hint,
        "scopes": list(key.scopes),
        "graphs": None if key.graph_ids is None else [str(graph_id) for graph_id in key.graph_ids],
        "default_graph": str(key.default_graph_id) if key.default_graph_id else None,
        "created_at": key.created_at,
        "created_by": key.created_by,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "toolsets": None if key.toolsets is None else list(key.toolsets),
        "requests_per_minute": key.requests_per_minute,
    }
