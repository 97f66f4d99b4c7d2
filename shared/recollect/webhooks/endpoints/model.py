"""Webhooks as they are created, listed and changed."""

import base64
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.text.control_characters import controls
from recollect.webhooks.events.model import EventType, known_types

MAX_WEBHOOKS = 20
"""The most webhooks of one tenant."""

MAX_DESCRIPTION = 500
MAX_GRAPHS = 200
"""The most graphs to which one webhook may be confined."""

MAX_OVERLAP = timedelta(days=7)
"""How long a secret may go on signing after it is replaced."""

SECRET_LENGTH = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 - how a secret begins, as the specification says


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook as it is listed: never its secret.

    `graph_ids` None: all graphs, future ones included. `disabled_reason`: `asked`, `gone` (it answered 410) or
    `failing`; None while it is enabled. `failing_since`: since when no attempt succeeded.
    """

    id: UUID
    url: str
    description: str
    event_types: tuple[str, ...]
    graph_ids: tuple[UUID, ...] | None
    enabled: bool
    disabled_reason: str | None
    disabled_at: datetime | None
    failing_since: datetime | None
    previous_secret_ends_at: datetime | None
    created_at: datetime
    created_by: str


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """The properties of a webhook to create. `graph_ids` None: all graphs."""

    url: str
    event_types: tuple[EventType, ...]
    description: str = ""
    graph_ids: tuple[UUID, ...] | None = None

    def require_valid(self) -> None:
        """Raise InvalidInput for properties that no webhook may have."""
        require_description(self.description)
        if not self.event_types:
            raise InvalidInput("The webhook needs at least one event type", path="events")


@dataclass(frozen=True, slots=True)
class WebhookPatch:
    """Changes to a webhook. None leaves a field unchanged; `every_graph` removes the confinement to some graphs."""

    url: str | None = None
    description: str | None = None
    event_types: tuple[EventType, ...] | None = None
    graph_ids: tuple[UUID, ...] | None = None
    every_graph: bool = False
    enabled: bool | None = None

    def applied_to(self, webhook: Webhook) -> NewWebhook:
        """The properties of the webhook after these changes."""
        graph_ids = None if self.every_graph else self.graph_ids or webhook.graph_ids
        types = tuple(sorted(known_types(webhook.event_types)))
        return NewWebhook(
            url=self.url or webhook.url,
            event_types=types if self.event_types is None else self.event_types,
            description=webhook.description if self.description is None else self.description,
            graph_ids=graph_ids,
        )


@dataclass(frozen=True, slots=True)
class IssuedWebhook:
    """A webhook at the one moment when its secret can be shown."""

    webhook: Webhook
    secret: str


def new_secret() -> bytes:
    """A new secret: 256 random bits."""
    return secrets.token_bytes(SECRET_LENGTH)


def shown_secret(secret: bytes) -> str:
    """A secret in the form of the specification: `whsec_…`."""
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def require_description(description: str) -> None:
    """Raise InvalidInput for a description that is too long or steers a terminal."""
    if len(description) > MAX_DESCRIPTION:
        raise InvalidInput(f"A description has at most {MAX_DESCRIPTION} characters", path="description")
    if controls(description):
        raise InvalidInput("A description has no control characters, such as line breaks", path="description")
