"""/v1/keys: the tenant's API keys."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller, Request, Response, delete, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import Meta, Struct, structs

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import ApiKey, NewKey
from recollect.caller import Caller, Scope
from recollect.graph.graphs import service as graphs
from recollect.platform.db import Database
from recollect.platform.transactions import Transaction
from recollect_gateway.addresses import site_of_client
from recollect_gateway.admission import by_address
from recollect_gateway.errors import ACT_RESPONSES, CHANGE_RESPONSES, RESPONSES, TAGGED_RESPONSES
from recollect_gateway.guards import BY_SCOPE, requires_admin
from recollect_gateway.management.pages import Limit, Page, page_of
from recollect_gateway.mcp_endpoint.catalogue import known_toolsets
from recollect_gateway.preconditions import tagged, unchanged
from recollect_gateway.shapes import GraphName
from recollect_gateway.validation import valid_body

MAX_REPORT_BYTES = 1024
"""Bytes of the body that reports a key, which anybody may send."""

AnyRequest = Request[Caller, Any, State]


class KeyBody(Struct, frozen=True):
    """A key, without its secret. `graphs`: ids of the graphs that it may access, since names change; null: all graphs.

    `toolsets` null: it may use every tool and every route.
    """

    id: str
    name: str
    kind: str
    hint: str
    scopes: list[str]
    graphs: list[str] | None
    default_graph: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    toolsets: list[str] | None
    requests_per_minute: int | None


class IssuedKeyBody(KeyBody, frozen=True):
    """A key with its secret, which is returned only once."""

    secret: str


class CreateKey(Struct, frozen=True, forbid_unknown_fields=True):
    """A key to create. Graphs are given by name; `scopes` null: those of the kind.

    `toolsets` restricts the key to those toolsets, and to the routes that do the same as one of their tools.
    `requests_per_minute` null: the limit that the tenant's plan sets for one key, which is also the maximum.
    """

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    kind: Literal["agent", "admin"] = "agent"
    scopes: list[Scope] | None = None
    graphs: Annotated[list[GraphName], Meta(max_length=200)] | None = None
    default_graph: GraphName | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None
    toolsets: Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=20)] | None = None
    requests_per_minute: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class RotateKey(Struct, frozen=True, forbid_unknown_fields=True):
    """How long the replaced key remains valid besides the new one."""

    overlap_hours: Annotated[float, Meta(ge=0, le=720)] = 24


class ReportKey(Struct, frozen=True, forbid_unknown_fields=True):
    """A leaked key to report."""

    key: Annotated[str, Meta(max_length=200)]


class KeyController(Controller):
    """List, create and revoke keys."""

    path = "/keys"
    tags = ("keys",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", responses=RESPONSES, summary="List keys")
    async def list_keys(
        self,
        request: AnyRequest,
        db: NamedDependency[Database],
        cursor: FromQuery[UUID | None] = None,
        limit: Limit = 50,
    ) -> Page[KeyBody]:
        """List the tenant's API keys, oldest first, including revoked and expired ones."""
        async with db.transaction(request.user, read_only=True) as tx:
            found = await identity.list_keys(tx, after=cursor, limit=limit + 1)
        return page_of(found, limit, lambda key: KeyBody(**_fields(key)), lambda key: str(key.id))

    @get("/{key_id:uuid}", responses=TAGGED_RESPONSES, summary="Get a key")
    async def read_key(
        self, request: AnyRequest, db: NamedDependency[Database], key_id: FromPath[UUID]
    ) -> Response[KeyBody]:
        """Return an API key with its ETag. Revoked and expired keys are returned, too."""
        async with db.transaction(request.user, read_only=True) as tx:
            return tagged(request, KeyBody(**_fields(await identity.get_key(tx, key_id))), lasting=_lasting)

    @post("/", responses=ACT_RESPONSES, summary="Create a key", before_request=valid_body(CreateKey))
    async def create_key(
        self, request: AnyRequest, db: NamedDependency[Database], state: State, data: JSONBody[CreateKey]
    ) -> IssuedKeyBody:
        """Create an API key. Its secret is only in this response and cannot be retrieved later."""
        async with db.transaction(request.user) as tx:
            issued = await identity.create_key(tx, await _new_key(tx, data), pepper=state.pepper)
        return IssuedKeyBody(**_fields(issued.key), secret=issued.secret)

    @post(
        "/{key_id:uuid}/rotate",
        responses=CHANGE_RESPONSES,
        summary="Rotate a key",
        before_request=valid_body(RotateKey),
    )
    async def rotate_key(
        self,
        request: AnyRequest,
        db: NamedDependency[Database],
        state: State,
        key_id: FromPath[UUID],
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

    @delete("/{key_id:uuid}", responses=CHANGE_RESPONSES, summary="Revoke a key", status_code=200)
    async def revoke_key(self, request: AnyRequest, db: NamedDependency[Database], key_id: FromPath[UUID]) -> KeyBody:
        """Revoke an API key at once. Revoking it again changes nothing."""
        async with db.transaction(request.user) as tx:
            key = await identity.revoke_key(tx, key_id, check=unchanged(request, _lasting_of))
            return KeyBody(**_fields(key))


@post(
    "/keys/report",
    responses=RESPONSES,
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
    await identity.report_key(state.db, data.key, pepper=state.pepper, address=site_of_client(request))


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
