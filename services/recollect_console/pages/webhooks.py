"""Webhooks: addresses that get events. Made, changed, paused and deleted; their secret is shown once."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.errors import InvalidInput, RecollectError
from recollect.graph.graphs import service as graphs
from recollect.outbound.http_client import MAX_URL_LENGTH, Outbound
from recollect.postgres.transactions import Transaction
from recollect.webhooks.endpoints import service as webhooks
from recollect.webhooks.endpoints.model import MAX_GRAPHS, IssuedWebhook, NewWebhook, Webhook, WebhookPatch
from recollect.webhooks.events.model import EventType
from recollect_console.access import ADMIN, SEVERAL
from recollect_console.authors import authors_of
from recollect_console.paging import PAGE, paging_of
from recollect_console.refusals import unchanged
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.pages import IdCursor
from recollect_http.web.refusals import FormRefusal, mark_of, refusal_of

OVERLAP = timedelta(hours=24)
"""How long the old secret goes on signing after it is replaced."""

SEVERAL_BOXES = {SEVERAL: ("events", "graphs")}
DONE = {
    "saved": "The webhook is changed.",
    "paused": "It is paused: its events wait, and nothing is sent.",
    "resumed": "It is enabled. It gets what happened meanwhile.",
    "deleted": "The webhook is deleted.",
}


class WebhookPages(Controller):
    """Webhooks, for admins."""

    path = "/webhooks"
    opt = ADMIN

    @get("/")
    async def show(self, visit: NamedDependency[Visit], cursor: IdCursor = None) -> Response[str]:
        """One page of the webhooks, oldest first."""
        async with visit.reading_tenant() as tx:
            found = await webhooks.list_webhooks(tx, after=cursor, limit=PAGE + 1)
            authors = await authors_of(tx, (webhook.created_by for webhook in found))
        shown = found[:PAGE]
        paging = paging_of(visit, shown[-1].id if len(found) > PAGE else None)
        names = {graph.id: graph.name for graph in visit.graphs}
        return render(
            visit, "webhooks/list.html", done=DONE, webhooks=shown, authors=authors, graph_names=names, paging=paging
        )

    @get("/new")
    async def ask_for_new(self, visit: NamedDependency[Visit]) -> Response[str]:
        """The form of a new webhook."""
        return await _form(visit)

    @post("/", status_code=200, opt=SEVERAL_BOXES)
    async def create(self, visit: NamedDependency[Visit]) -> Response[str]:
        """Make a webhook; its secret is shown this once."""
        try:
            _require_address(visit)
            async with visit.changing_tenant() as tx:
                new = NewWebhook(
                    visit.value("url"), _events(visit), visit.value("description"), await _graph_ids(tx, visit)
                )
                issued = await webhooks.create_webhook(tx, new, pepper=visit.request.app.state.pepper)
        except RecollectError as error:
            return await _form(visit, refusal_of(error))
        return await _issued(visit, issued)

    @get("/{webhook_id:uuid}/edit")
    async def ask_for_change(self, visit: NamedDependency[Visit], webhook_id: FromPath[UUID]) -> Response[str]:
        """The form of a webhook."""
        return await _form(visit, webhook_id=webhook_id)

    @post("/{webhook_id:uuid}/edit", opt=SEVERAL_BOXES)
    async def save(self, visit: NamedDependency[Visit], webhook_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Change a webhook, where it is still as it was shown."""
        try:
            async with visit.changing_tenant() as tx:
                await webhooks.get_webhook(tx, webhook_id)
                _require_address(visit)
                await webhooks.change_webhook(tx, webhook_id, await _patch(tx, visit), check=unchanged(visit))
        except RecollectError as error:
            return await _form(visit, refusal_of(error), webhook_id=webhook_id)
        return visit.go("webhooks", done="saved")

    @post("/{webhook_id:uuid}/switch")
    async def switch(self, visit: NamedDependency[Visit], webhook_id: FromPath[UUID]) -> Redirect:
        """Pause a webhook, or let it go on."""
        is_on = visit.value("enabled") == "yes"
        async with visit.changing_tenant() as tx:
            await webhooks.change_webhook(tx, webhook_id, WebhookPatch(enabled=is_on))
        return visit.go("webhooks", done="resumed" if is_on else "paused")

    @post("/{webhook_id:uuid}/secret", status_code=200)
    async def rotate_secret(self, visit: NamedDependency[Visit], webhook_id: FromPath[UUID]) -> Response[str]:
        """Give a webhook another secret, shown this once; the old one signs, too, for a day."""
        pepper = visit.request.app.state.pepper
        async with visit.changing_tenant() as tx:
            issued = await webhooks.rotate_secret(tx, webhook_id, overlap=OVERLAP, pepper=pepper)
        return await _issued(visit, issued)

    @get("/{webhook_id:uuid}/delete")
    async def ask_to_delete(self, visit: NamedDependency[Visit], webhook_id: FromPath[UUID]) -> Response[str]:
        """What goes with a webhook."""
        async with visit.reading_tenant() as tx:
            webhook = await webhooks.get_webhook(tx, webhook_id)
        return render(visit, "webhooks/delete.html", webhook=webhook)

    @post("/{webhook_id:uuid}/delete")
    async def delete(self, visit: NamedDependency[Visit], webhook_id: FromPath[UUID]) -> Redirect:
        """Delete a webhook with its deliveries."""
        async with visit.changing_tenant() as tx:
            await webhooks.delete_webhook(tx, webhook_id)
        return visit.go("webhooks", done="deleted")


async def _form(visit: Visit, refusal: FormRefusal | None = None, *, webhook_id: UUID | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        webhook = None if webhook_id is None else await webhooks.get_webhook(tx, webhook_id)
    names = {graph.id: graph.name for graph in visit.graphs}
    entered = _entered(visit) if refusal or webhook is None else _fields(webhook, names)
    context: dict[str, Any] = {
        "webhook": webhook,
        "seen": "" if webhook is None else mark_of(webhook),
        "now": None if webhook is None else _fields(webhook, names),
        "entered": entered,
        "refusal": refusal,
        "event_types": [event.value for event in EventType],
    }
    return render(visit, "webhooks/form.html", status=refusal.status if refusal else 200, **context)


async def _issued(visit: Visit, issued: IssuedWebhook) -> Response[str]:
    async with visit.reading_tenant():
        return render(visit, "webhooks/secret.html", webhook=issued.webhook, secret=issued.secret)


def _entered(visit: Visit) -> dict[str, Any]:
    texts = {name: visit.value(name) for name in ("url", "description")}
    return texts | {name: list(visit.form.get(name, ())) for name in ("events", "graphs")}


def _fields(webhook: Webhook, names: dict[UUID, str]) -> dict[str, Any]:
    """What the form shows of a webhook."""
    chosen = [names.get(graph_id, str(graph_id)) for graph_id in webhook.graph_ids or ()]
    return {
        "url": webhook.url,
        "description": webhook.description,
        "events": list(webhook.event_types),
        "graphs": chosen,
    }


def _require_address(visit: Visit) -> None:
    url, outbound = visit.value("url"), visit.request.app.state.outbound
    assert isinstance(outbound, Outbound)
    if not 0 < len(url) <= MAX_URL_LENGTH:
        raise InvalidInput("Give the address to which events are sent", path="url")
    outbound.require_address(url, path="url")


def _events(visit: Visit) -> tuple[EventType, ...]:
    try:
        return tuple(dict.fromkeys(EventType(name) for name in visit.form.get("events", ())))
    except ValueError:
        raise InvalidInput("There is no such event", path="events") from None


async def _graph_ids(tx: Transaction, visit: Visit) -> tuple[UUID, ...] | None:
    """The chosen graphs; None for all, also those to come."""
    names = list(visit.form.get("graphs", ()))[:MAX_GRAPHS]
    if not names:
        return None
    ids = await graphs.graph_ids(tx, names)
    return tuple(dict.fromkeys(ids[name] for name in names))


async def _patch(tx: Transaction, visit: Visit) -> WebhookPatch:
    chosen = await _graph_ids(tx, visit)
    return WebhookPatch(
        url=visit.value("url"),
        description=visit.value("description"),
        event_types=_events(visit),
        graph_ids=chosen,
        every_graph=chosen is None,
    )
