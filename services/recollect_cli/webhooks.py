"""`recollect webhooks …`: addresses to which a tenant's events are sent, and the deliveries. Needs an admin's key."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
from cyclopts import App

from recollect.errors import InvalidInput
from recollect.webhooks.deliveries.model import DeliveryStatus
from recollect_cli.gateway import ApiKey, Url, connected
from recollect_cli.tables import AsJson, echo, show, show_items, show_json

app = App(name="webhooks", help="List, create and delete webhooks, and list and replay their deliveries.")


class WebhookView(msgspec.Struct, frozen=True):
    """The fields of a webhook that commands show."""

    id: UUID
    url: str
    events: list[str]
    enabled: bool
    disabled_reason: str | None
    failing_since: datetime | None

    @property
    def status(self) -> str:
        """Whether events are sent to it, in a word or two."""
        if not self.enabled:
            return f"disabled: {self.disabled_reason}"
        return f"failing since {self.failing_since:%Y-%m-%d %H:%M}" if self.failing_since else "enabled"


class IssuedWebhookView(msgspec.Struct, frozen=True):
    """A webhook that was made."""

    id: UUID
    secret: str


class DeliveryView(msgspec.Struct, frozen=True):
    """The fields of a delivery that commands show."""

    id: UUID
    event: str
    status: str
    attempts: int
    last_status: int | None
    last_error: str | None
    created_at: datetime


class Replayed(msgspec.Struct, frozen=True):
    """How many deliveries are sent once more."""

    replayed: int
    more: bool


@app.command(name="list")
def list_webhooks(*, json: AsJson = False, url: Url = None, api_key: ApiKey = None) -> None:
    """List the webhooks of the tenant, oldest first."""
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", "/webhooks?limit=200")
    show_items(
        answer,
        WebhookView,
        ("id", "url", "events", "status"),
        lambda webhook: (str(webhook.id), webhook.url, " ".join(webhook.events), webhook.status),
        json=json,
        empty="There are no webhooks.",
    )


@app.command
def create(
    address: str,
    *,
    event: list[str],
    graph: list[str] | None = None,
    description: str = "",
    json: AsJson = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Create a webhook, and print its id and its secret. The secret is shown only once.

    Parameters
    ----------
    address
        URL to which events are sent, which begins with https://
    event
        Type of event, such as graph.changed. Repeat the option for each type.
    graph
        Name or id of a graph whose events are sent. Repeat the option for each graph. Default: all, including new ones.
    description
        Description of the webhook.
    """
    body = {"url": address, "events": event, "graphs": graph, "description": description}
    with connected(url, api_key) as gateway:
        answer = gateway.send("POST", "/webhooks", msgspec.json.encode(body))
    if json:
        show_json(answer)
        return
    issued = msgspec.json.decode(answer, type=IssuedWebhookView)
    show(("id", "secret"), [(str(issued.id), issued.secret)])


@app.command
def delete(webhook_id: UUID, *, url: Url = None, api_key: ApiKey = None) -> None:
    """Delete a webhook and its deliveries.

    Parameters
    ----------
    webhook_id
        The webhook's id, as `recollect webhooks list` shows it.
    """
    with connected(url, api_key) as gateway:
        gateway.send("DELETE", f"/webhooks/{webhook_id}")
    echo(f"The webhook {webhook_id} was deleted.")


@app.command
def deliveries(
    webhook_id: UUID,
    *,
    status: DeliveryStatus | None = None,
    limit: int = 50,
    json: AsJson = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """List the deliveries of a webhook, newest first.

    Parameters
    ----------
    webhook_id
        The webhook's id, as `recollect webhooks list` shows it.
    status
        Only deliveries with this status.
    limit
        Maximum number of deliveries, 1 to 200.
    """
    query = f"limit={limit}" + (f"&status={status}" if status else "")
    path = f"/webhooks/{webhook_id}/deliveries?{query}"
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", path)
    show_items(
        answer,
        DeliveryView,
        ("id", "event", "status", "attempts", "answer", "error", "created"),
        lambda delivery: (
            str(delivery.id),
            delivery.event,
            delivery.status,
            str(delivery.attempts),
            str(delivery.last_status or "-"),
            delivery.last_error or "-",
            f"{delivery.created_at:%Y-%m-%d %H:%M:%S}",
        ),
        json=json,
        empty="There are no such deliveries.",
    )


@app.command
def replay(
    webhook_id: UUID,
    delivery_id: UUID | None = None,
    *,
    since: datetime | None = None,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Send a delivery again, or all failed deliveries since a time. Each keeps its id.

    Parameters
    ----------
    webhook_id
        The webhook's id, as `recollect webhooks list` shows it.
    delivery_id
        The delivery's id, as `recollect webhooks deliveries` shows it.
    since
        All failed deliveries of events since this time, such as 2027-01-31; UTC unless an offset is given.
    """
    if (delivery_id is None) is (since is None):
        raise InvalidInput("Set the id of a delivery, or --since for all failed ones")
    with connected(url, api_key) as gateway:
        if since is None:
            gateway.send("POST", f"/webhooks/{webhook_id}/deliveries/{delivery_id}/replay")
            echo(f"The delivery {delivery_id} will be sent again.")
            return
        moment = since if since.tzinfo else since.replace(tzinfo=UTC)
        answer = gateway.send("POST", f"/webhooks/{webhook_id}/replay", msgspec.json.encode({"since": moment}))
    result = msgspec.json.decode(answer, type=Replayed)
    more = "; there may be more: repeat the command later" if result.more else ""
    print(f"deliveries to send again: {result.replayed}{more}")
