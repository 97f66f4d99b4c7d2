"""/v1/webhooks: addresses to which the tenant's events are sent."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.graph.graphs import service as graphs
from recollect.outbound.http_client import MAX_URL_LENGTH, Outbound
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction
from recollect.webhooks.endpoints import service as webhooks
from recollect.webhooks.endpoints.model import MAX_DESCRIPTION, MAX_GRAPHS, NewWebhook, Webhook, WebhookPatch
from recollect.webhooks.events.model import EventType
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import (
    CreatedAt,
    CreatedBy,
    DisabledAt,
    GraphIds,
    GraphNames,
    WebhookInPath,
)
from recollect_http.openapi.routes import delete, get, patch, post
from recollect_http.pages import IdCursor, Limit, Page, page_of

_OF_URL = "Address to which events are sent, which must begin with `https://`"
_OF_EVENTS = "Types of the events that are sent to it"
Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_URL_LENGTH,
        description=_OF_URL,
        examples=["https://hooks.example.com/recollect"],
    ),
]
WebhookDescription = Annotated[str, Meta(description="Description for people")]
Description = Annotated[WebhookDescription, Meta(max_length=MAX_DESCRIPTION, examples=["index of the intranet"])]
Events = Annotated[
    list[EventType],
    Meta(min_length=1, max_length=20, description=_OF_EVENTS, examples=[["graph.changed", "job.finished"]]),
]
Graphs = Annotated[GraphNames, Meta(min_length=1, max_length=MAX_GRAPHS)]


class WebhookBody(Struct, frozen=True):
    """A webhook without its secret."""

    id: Annotated[str, Meta(description="Id of the webhook, a UUID")]
    url: Annotated[str, Meta(description=_OF_URL)]
    description: WebhookDescription
    events: Annotated[list[str], Meta(description=_OF_EVENTS)]
    graphs: GraphIds
    enabled: Annotated[bool, Meta(description="Whether events are sent to it")]
    disabled_reason: Annotated[
        Literal["asked", "gone", "failing"] | None,
        Meta(
            description="Why it is disabled: `asked` (by an admin), `gone` (it answered 410) or `failing` (no attempt "
            "succeeded for five days); null: it is enabled"
        ),
    ]
    disabled_at: DisabledAt
    failing_since: Annotated[
        datetime | None, Meta(description="Time since which no attempt succeeded; null: the last one did")
    ]
    previous_secret_ends_at: Annotated[
        datetime | None, Meta(description="Time until which the previous secret signs, too; null: there is none")
    ]
    created_at: CreatedAt
    created_by: CreatedBy


class IssuedWebhookBody(WebhookBody, frozen=True):
    """A webhook with its secret."""

    secret: Annotated[str, Meta(description="Secret (`whsec_…`) that signs the events, which is returned only here")]


class CreateWebhook(Struct, frozen=True, forbid_unknown_fields=True):
    """A webhook to create."""

    url: Url
    events: Events
    description: Description = ""
    graphs: Graphs | None = None


class ChangeWebhook(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a webhook to change. Omitted fields stay."""

    url: Url | UnsetType = UNSET
    events: Events | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    graphs: Graphs | UnsetType | None = UNSET
    enabled: Annotated[bool, Meta(description="Whether events are sent to it")] | UnsetType = UNSET


class RotateSecret(Struct, frozen=True, forbid_unknown_fields=True):
    """How to rotate a webhook's secret."""

    overlap_hours: Annotated[
        float,
        Meta(ge=0, le=168, description="Hours for which the current secret signs beside the new one, at most 168"),
    ] = 24


class WebhookController(Controller):
    """Create, list, update and delete webhooks."""

    path = "/webhooks"
    tags = ("webhooks",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="A page of the tenant's webhooks.", summary="List webhooks")
    async def list_webhooks(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[WebhookBody]:
        """List the tenant's webhooks, oldest first, including disabled ones."""
        async with db.transaction(request.user, read_only=True) as tx:
            found = await webhooks.list_webhooks(tx, after=cursor, limit=limit + 1)
        return page_of(found, limit, lambda webhook: WebhookBody(**_fields(webhook)), lambda webhook: str(webhook.id))

    @post(
        "/",
        response_description="The webhook that was created, with its secret, which is shown only here.",
        summary="Create a webhook",
        before_request=valid_body(CreateWebhook),
    )
    async def create_webhook(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State, data: JSONBody[CreateWebhook]
    ) -> IssuedWebhookBody:
        """Create a webhook, which receives events from now on.

        Its secret is only in this response and cannot be retrieved later.
        """
        _require_address(state, data.url)
        async with db.transaction(request.user) as tx:
            new = NewWebhook(data.url, tuple(dict.fromkeys(data.events)), data.description, await _ids(tx, data.graphs))
            issued = await webhooks.create_webhook(tx, new, pepper=state.pepper)
        return IssuedWebhookBody(**_fields(issued.webhook), secret=issued.secret)

    @get("/{webhook_id:uuid}", response_description="The webhook, without its secret.", summary="Get a webhook")
    async def get_webhook(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], webhook_id: WebhookInPath
    ) -> WebhookBody:
        """Return a webhook without its secret."""
        async with db.transaction(request.user, read_only=True) as tx:
            return WebhookBody(**_fields(await webhooks.get_webhook(tx, webhook_id)))

    @patch(
        "/{webhook_id:uuid}",
        response_description="The webhook after the change.",
        summary="Update a webhook",
        before_request=valid_body(ChangeWebhook),
    )
    async def update_webhook(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        webhook_id: WebhookInPath,
        data: JSONBody[ChangeWebhook],
    ) -> WebhookBody:
        """Change a webhook's address or events, or disable or enable it. Omitted fields stay.

        A webhook that is enabled again receives the events that happened in the meantime.
        """
        if data.url is not UNSET:
            _require_address(state, data.url)
        async with db.transaction(request.user) as tx:
            return WebhookBody(**_fields(await webhooks.change_webhook(tx, webhook_id, await _patch(tx, data))))

    @delete("/{webhook_id:uuid}", response_description="The webhook was deleted.", summary="Delete a webhook")
    async def delete_webhook(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], webhook_id: WebhookInPath
    ) -> None:
        """Delete a webhook and all its deliveries, including those not yet sent."""
        async with db.transaction(request.user) as tx:
            await webhooks.delete_webhook(tx, webhook_id)

    @post(
        "/{webhook_id:uuid}/secret",
        response_description="The webhook with its new secret, which is shown only here.",
        summary="Rotate a webhook's secret",
        before_request=valid_body(RotateSecret),
    )
    async def rotate_webhook_secret(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        webhook_id: WebhookInPath,
        data: JSONBody[RotateSecret],
    ) -> IssuedWebhookBody:
        """Create a new secret for a webhook. The secret is only in this response.

        Until the overlap ends, events are signed with the current secret as well. A secret older than the current one
        stops signing at once.
        """
        overlap = timedelta(hours=data.overlap_hours)
        async with db.transaction(request.user) as tx:
            issued = await webhooks.rotate_secret(tx, webhook_id, overlap=overlap, pepper=state.pepper)
        return IssuedWebhookBody(**_fields(issued.webhook), secret=issued.secret)


def _require_address(state: State, url: str) -> None:
    outbound: Outbound = state.outbound
    outbound.require_address(url, path="url")


async def _ids(tx: Transaction, names: list[str] | None) -> tuple[UUID, ...] | None:
    """The ids of the graphs with these names; None for all graphs."""
    if names is None:
        return None
    ids = await graphs.graph_ids(tx, names)
    return tuple(dict.fromkeys(ids[name] for name in names))


async def _patch(tx: Transaction, data: ChangeWebhook) -> WebhookPatch:
    return WebhookPatch(
        url=data.url or None,
        description=None if data.description is UNSET else data.description,
        event_types=tuple(dict.fromkeys(data.events)) if data.events else None,
        graph_ids=await _ids(tx, data.graphs) if data.graphs else None,
        every_graph=data.graphs is None,
        enabled=None if data.enabled is UNSET else data.enabled,
    )


def _fields(webhook: Webhook) -> dict[str, Any]:
    return {
        "id": str(webhook.id),
        "url": webhook.url,
        "description": webhook.description,
        "events": list(webhook.event_types),
        "graphs": None if webhook.graph_ids is None else [str(graph_id) for graph_id in webhook.graph_ids],
        "enabled": webhook.enabled,
        "disabled_reason": webhook.disabled_reason,
        "disabled_at": webhook.disabled_at,
        "failing_since": webhook.failing_since,
        "previous_secret_ends_at": webhook.previous_secret_ends_at,
        "created_at": webhook.created_at,
        "created_by": webhook.created_by,
    }
