"""Deliveries of a webhook: what was sent, what became of it, and sending it again."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.response import Redirect

from recollect.errors import RecollectError
from recollect.webhooks.endpoints import service as webhooks
from recollect_console.access import ADMIN
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.pages import IdCursor
from recollect_http.web.refusals import FormRefusal, refusal_of

REPLAYED_SINCE = timedelta(days=7)
"""How old the failed deliveries may be that are sent again together."""

OfStatus = Annotated[Literal["", "pending", "delivered", "failed"], QueryParameter()]
STATUSES = [("", "All"), ("pending", "Waiting"), ("delivered", "Delivered"), ("failed", "Failed")]
REASONS = {
    "no_answer": "no answer came",
    "refused": "it was refused",
    "redirected": "it was redirected, which is not followed",
    "gone": "the address is gone",
    "secret_unreadable": "the secret cannot be read: rotate it",
}
DONE = {
    "again": "It is sent again.",
    "tested": "A test event is on its way.",
    "replayed": "The failed deliveries of the last 7 days are sent again.",
    "none": "No delivery failed in the last 7 days.",
    "more": "As many failed deliveries as there is room for are sent again. Others are left: repeat it later.",
}


class DeliveryPages(Controller):
    """The deliveries of one webhook, for admins."""

    path = "/webhooks/{webhook_id:uuid}"
    opt = ADMIN

    @get("/")
    async def show(
        self,
        visit: NamedDependency[Visit],
        webhook_id: FromPath[UUID],
        status: OfStatus = "",
        cursor: IdCursor = None,
    ) -> Response[str]:
        """One page of the deliveries, newest first."""
        return await _page(visit, webhook_id, status=status, before=cursor)

    @post("/test")
    async def test(self, visit: NamedDependency[Visit], webhook_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Send a test event."""
        try:
            async with visit.changing_tenant() as tx:
                await webhooks.test_webhook(tx, webhook_id)
        except RecollectError as error:
            return await _page(visit, webhook_id, refusal_of(error))
        return visit.go(f"webhooks/{webhook_id}", done="tested")

    @post("/deliveries/{delivery_id:uuid}/replay")
    async def replay(
        self, visit: NamedDependency[Visit], webhook_id: FromPath[UUID], delivery_id: FromPath[UUID]
    ) -> Redirect | Response[str]:
        """Send a delivery again, under its id."""
        try:
            async with visit.changing_tenant() as tx:
                await webhooks.replay(tx, webhook_id, delivery_id)
        except RecollectError as error:
            return await _page(visit, webhook_id, refusal_of(error))
        return visit.go(f"webhooks/{webhook_id}", done="again")

    @post("/replay")
    async def replay_failed(
        self, visit: NamedDependency[Visit], webhook_id: FromPath[UUID]
    ) -> Redirect | Response[str]:
        """Send the failed deliveries of the last days again."""
        try:
            async with visit.changing_tenant() as tx:
                since = datetime.now(UTC) - REPLAYED_SINCE
                count, has_more = await webhooks.replay_failed(tx, webhook_id, since=since)
        except RecollectError as error:
            return await _page(visit, webhook_id, refusal_of(error))
        return visit.go(f"webhooks/{webhook_id}", done="more" if has_more else "replayed" if count else "none")


async def _page(
    visit: Visit,
    webhook_id: UUID,
    refusal: FormRefusal | None = None,
    *,
    status: OfStatus = "",
    before: UUID | None = None,
) -> Response[str]:
    async with visit.reading_tenant() as tx:
        webhook = await webhooks.get_webhook(tx, webhook_id)
        found = await webhooks.list_deliveries(tx, webhook_id, status=status or None, before=before, limit=PAGE + 1)
    shown = list(found[:PAGE])
    return render(
        visit,
        "webhooks/deliveries.html",
        status=refusal.status if refusal else 200,
        done=DONE,
        webhook=webhook,
        deliveries=shown,
        chosen=status,
        statuses=STATUSES,
        reasons=REASONS,
        paging=paging_of(visit, shown[-1].id if len(found) > PAGE else None),
        fault=refusal.text if refusal else "",
    )
