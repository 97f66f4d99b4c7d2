"""/v1/webhooks/{id}: deliveries to a webhook, sent again and tested."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter, QueryParameter
from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.postgres.tenant_database import TenantDatabase
from recollect.times import storable
from recollect.webhooks.deliveries.model import Delivery, DeliveryStatus
from recollect.webhooks.endpoints import service as webhooks
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import (
    CreatedAt,
    WebhookInPath,
)
from recollect_http.openapi.routes import get, post
from recollect_http.pages import IdCursor, Limit, Page, page_of

OfStatus = Annotated[DeliveryStatus | None, QueryParameter(description="Only deliveries with this status")]


DeliveryInPath = Annotated[UUID, PathParameter(description="Id of the delivery")]


class ReplayFailed(Struct, frozen=True, forbid_unknown_fields=True):
    """Which failed deliveries to send again."""

    since: Annotated[
        datetime,
        Meta(
            tz=True,
            description="Time, with its offset from UTC, from which on the events occurred",
            examples=["2026-11-20T00:00:00Z"],
        ),
    ]


class ReplayedBody(Struct, frozen=True):
    """How many deliveries are sent again."""

    replayed: Annotated[int, Meta(description="Number of deliveries that are sent again")]
    more: Annotated[bool, Meta(description="Whether others may be left, for which there was no room")]


class DeliveryBody(Struct, frozen=True):
    """A delivery: an event for a webhook, and the state of sending it."""

    id: Annotated[str, Meta(description="Id of the delivery, a UUID, which each attempt sends as `webhook-id`")]
    event: Annotated[str, Meta(description="Type of the event, such as `graph.changed`")]
    status: Annotated[
        DeliveryStatus,
        Meta(description="`pending` (an attempt is due), `delivered`, or `failed` (no further attempt is due)"),
    ]
    occurred_at: Annotated[datetime, Meta(description="Time at which the event occurred")]
    created_at: CreatedAt
    attempts: Annotated[int, Meta(description="Number of attempts so far")]
    next_attempt_at: Annotated[datetime | None, Meta(description="Time of the next attempt; null: none is due")]
    last_attempt_at: Annotated[datetime | None, Meta(description="Time of the last attempt; null: none yet")]
    last_status: Annotated[
        int | None,
        Meta(description="HTTP status of the response to the last attempt; null: no attempt, or no response"),
    ]
    last_error: Annotated[
        str | None,
        Meta(
            description="Why the last attempt failed: `no_answer`, `refused`, `redirected`, `gone` or "
            "`secret_unreadable`; null: it did not"
        ),
    ]
    delivered_at: Annotated[datetime | None, Meta(description="Time at which it was delivered; null: not yet")]


class DeliveryController(Controller):
    """List deliveries to a webhook, send them again, send a test."""

    path = "/webhooks/{webhook_id:uuid}"
    tags = ("webhooks",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @post(
        "/test",
        response_description="The delivery of the test event, which will be sent.",
        summary="Test a webhook",
        status_code=202,
    )
    async def test_webhook(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], webhook_id: WebhookInPath
    ) -> DeliveryBody:
        """Send a `webhook.test` event to a webhook, whichever events it receives.

        The response is 409 `webhook_disabled` if the webhook is disabled.
        """
        async with db.transaction(request.user) as tx:
            return _delivery(await webhooks.test_webhook(tx, webhook_id))

    @get("/deliveries", response_description="A page of deliveries to the webhook.", summary="List deliveries")
    async def list_deliveries(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        webhook_id: WebhookInPath,
        status: OfStatus = None,
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[DeliveryBody]:
        """List the events that were sent to a webhook or are waiting to be sent, newest first."""
        async with db.transaction(request.user, read_only=True) as tx:
            found = await webhooks.list_deliveries(tx, webhook_id, status=status, before=cursor, limit=limit + 1)
        return page_of(found, limit, _delivery, lambda delivery: str(delivery.id))

    @post(
        "/deliveries/{delivery_id:uuid}/replay",
        response_description="The delivery, which will be sent again.",
        summary="Replay a delivery",
        status_code=202,
    )
    async def replay_delivery(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        webhook_id: WebhookInPath,
        delivery_id: DeliveryInPath,
    ) -> DeliveryBody:
        """Send a delivery again under its id, whatever its result was."""
        async with db.transaction(request.user) as tx:
            return _delivery(await webhooks.replay(tx, webhook_id, delivery_id))

    @post(
        "/replay",
        response_description="The number of deliveries that will be sent again.",
        summary="Replay failed deliveries",
        status_code=202,
        before_request=valid_body(ReplayFailed),
    )
    async def replay_failed_deliveries(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        webhook_id: WebhookInPath,
        data: JSONBody[ReplayFailed],
    ) -> ReplayedBody:
        """Send the failed deliveries of events since a time again, each under its id, oldest first.

        A delivery has failed when no further attempt is due. If `more` is true, others may be left, for which there was
        no room.
        """
        async with db.transaction(request.user) as tx:
            replayed, more = await webhooks.replay_failed(tx, webhook_id, since=_moment(data.since))
        return ReplayedBody(replayed, more)


def _moment(since: datetime) -> datetime:
    try:
        return storable(since)
    except OverflowError:
        raise InvalidInput("Outside the years 1 to 9999", path="since") from None


def _delivery(delivery: Delivery) -> DeliveryBody:
    return DeliveryBody(
        id=str(delivery.id),
        event=delivery.event_type,
        status=delivery.status,
        occurred_at=delivery.occurred_at,
        created_at=delivery.created_at,
        attempts=delivery.attempts,
        next_attempt_at=delivery.next_attempt_at,
        last_attempt_at=delivery.last_attempt_at,
        last_status=delivery.last_status,
        last_error=delivery.last_error,
        delivered_at=delivery.delivered_at,
    )
