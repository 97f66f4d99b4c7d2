"""/v1/audit: the log of administrative acts in the tenant."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec
from litestar import Controller
from litestar.di import NamedDependency
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIResponse, OpenAPIType, Operation, Schema
from litestar.params import QueryParameter
from litestar.response import Stream
from msgspec import Meta, Struct

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, AuditEntry, AuditFilter
from recollect.caller import Caller
from recollect.errors import InvalidInput
from recollect.postgres.tenant_database import TenantDatabase
from recollect.times import NEEDED
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin, while_authenticated
from recollect_gateway.management.memory.times import require_written_times
from recollect_http.fields import ActDetails, ClientAddress, TraceId
from recollect_http.openapi.headers import DISPOSITION, disposition_of
from recollect_http.openapi.routes import get
from recollect_http.pages import IdCursor, Limit, Page, page_of
from recollect_http.requests.parsing import check_text, utc

NDJSON = "application/x-ndjson"
PLAIN = "text/plain"
"""How the export is sent to clients that ask for it, such as generated ones, which know no lines of JSON."""

ByActor = Annotated[
    str | None,
    QueryParameter(name="actor", max_length=200, description="Only acts by this subject: `key:…`, `person:…`"),
]
OnObject = Annotated[
    str | None,
    QueryParameter(name="object", max_length=200, description="Only acts on this object: `key:…`, `graph:…`"),
]
Since = Annotated[datetime | None, QueryParameter(name="since", description="Only acts at or after this time")]
Until = Annotated[datetime | None, QueryParameter(name="until", description="Only acts before this time")]
OfAction = Annotated[Action | None, QueryParameter(name="action", description="Only acts of this kind")]


class AuditEntryBody(Struct, frozen=True):
    """One act of administration."""

    id: Annotated[str, Meta(description="Id of the entry, a UUID")]
    at: Annotated[datetime, Meta(description="Time of the act")]
    actor: Annotated[
        str,
        Meta(
            description="Subject of a key, person or grant, such as `key:…` with an id; or `operator`, `worker`, "
            "`oauth`, `reported` (of a leaked key) or `unknown` (of a refused sign-in)"
        ),
    ]
    action: Annotated[Action, Meta(description="Kind of act")]
    objects: Annotated[list[str], Meta(description="What the act was done to, each as `kind:id`, such as `graph:…`")]
    address: ClientAddress
    trace_id: TraceId
    details: ActDetails


@dataclass
class AuditExportOperation(Operation):
    """Adds to the OpenAPI document that the answer is a file of lines."""

    def __post_init__(self) -> None:
        """Add the media type and the header."""
        schema = Schema(
            type=OpenAPIType.STRING, description="One JSON object per line, each as an item of `GET /v1/audit`"
        )
        answer = (self.responses or {}).get("200")
        if isinstance(answer, OpenAPIResponse):
            answer.content = {NDJSON: OpenAPIMediaType(schema=schema), PLAIN: OpenAPIMediaType(schema=schema)}
            answer.headers = {DISPOSITION: disposition_of("audit.jsonl")}


class AuditController(Controller):
    """Read and export the audit log."""

    path = "/audit"
    tags = ("audit",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="A page of the audit log.", summary="Read the audit log")
    async def list_audit_entries(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        actor: ByActor = None,
        action: OfAction = None,
        on: OnObject = None,
        since: Since = None,
        until: Until = None,
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[AuditEntryBody]:
        """List the acts of administration in the tenant, newest first."""
        require_written_times(request, "since", "until")
        filters = _filter(actor, action, on, since, until)
        async with db.transaction(request.user, read_only=True) as tx:
            found = await audit.list_entries(tx, filters, before=cursor, limit=limit + 1)
        return page_of(found, limit, _body, lambda entry: str(entry.id))

    @get(
        "/export",
        response_description="The entries of the audit log, one JSON object per line.",
        summary="Export the audit log",
        operation_class=AuditExportOperation,
    )
    async def export_audit_entries(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        actor: ByActor = None,
        action: OfAction = None,
        on: OnObject = None,
        since: Since = None,
        until: Until = None,
    ) -> Stream:
        """Export the audit log, or the entries that pass the filters, newest first, as one JSON object per line.

        The export itself is recorded in the audit log. A response that ends before its last chunk is incomplete. It is
        `text/plain` for a request whose `Accept` names that and no other type.
        """
        require_written_times(request, "since", "until")
        filters = _filter(actor, action, on, since, until)
        async with db.transaction(request.user, also_suspended=True) as tx:  # The export itself is recorded.
            await audit.record(tx, Action.AUDIT_EXPORTED)
        parts = while_authenticated(request, _lines(db, request.user, filters))
        headers = {DISPOSITION: 'attachment; filename="audit.jsonl"', "X-Content-Type-Options": "nosniff"}
        is_plain = request.headers.get("accept", "").partition(";")[0].strip().lower() == PLAIN
        return Stream(parts, media_type=PLAIN if is_plain else NDJSON, headers=headers)


async def _lines(db: TenantDatabase, caller: Caller, filters: AuditFilter) -> AsyncIterator[bytes]:
    async for entries in audit.export_entries(db, caller, filters):
        yield msgspec.json.Encoder().encode_lines([_body(entry) for entry in entries])


def _filter(
    actor: str | None, action: Action | None, on: str | None, since: datetime | None, until: datetime | None
) -> AuditFilter:
    check_text({"actor": actor, "object": on})
    return AuditFilter(actor, action, on, _time(since, "since"), _time(until, "until"))


def _time(value: datetime | None, name: str) -> datetime | None:
    if value is not None and value.tzinfo is None:
        raise InvalidInput(NEEDED, path=name)
    return utc(value, name)


def _body(entry: AuditEntry) -> AuditEntryBody:
    return AuditEntryBody(
        str(entry.id),
        entry.at,
        entry.actor,
        Action(entry.action),
        list(entry.objects),
        entry.address,
        entry.trace_id,
        entry.details,
    )
