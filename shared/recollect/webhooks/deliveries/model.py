"""Deliveries: what is sent, how it is signed, and when it is tried again.

After the Standard Webhooks specification, version 1.0.0:
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import hashlib
import hmac
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

import msgspec

from recollect.crypto.encryption import Cipher
from recollect.graph.graphs.model import Change

SEND_WEBHOOKS = "send_webhooks"
"""The wake-up that has a worker look for due deliveries."""

GRAPH_CHANGED = "graph.changed"
"""The one event whose data is not stored with its delivery: it is read from the graph's log."""

MAX_PENDING = 1_000
"""The most pending deliveries of one webhook (a few more if they are requested at the same instant). Beyond that, its
events stay where they happened and are collected later."""

MAX_STORED = 10_000
"""About how many deliveries of a webhook are kept: beyond that, the oldest finished ones are deleted after an hour."""

MAX_CHANGES = 50
"""The most changes of a graph in one event."""

MAX_IDS = 20
"""The most ids of a change in an event."""

AT_ONCE_EACH = 2
"""The most concurrent requests of all workers to one webhook."""

RETRY_WAITS = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""The wait after each failed attempt; the attempt after the last wait is the last. The specification's example."""

JITTER = 0.2
"""Each wait is randomly longer or shorter by up to this part, so that attempts that failed together spread out."""

LONGEST_RETRY_AFTER = timedelta(hours=24)
"""The longest wait that an answer may ask for."""

FAILING_FOR = timedelta(days=5)
"""A webhook is disabled when none of its attempts succeeded for this long."""

PURPOSE = "webhook secrets"
"""The purpose of the cipher that encrypts secrets."""

DeliveryStatus = Literal["pending", "delivered", "failed"]


class AttemptError(StrEnum):
    """Why an attempt failed, as tenants see it: never the text of an answer, nor facts about our network."""

    NO_ANSWER = "no_answer"
    REFUSED = "refused"
    REDIRECTED = "redirected"
    GONE = "gone"
    SECRET_UNREADABLE = "secret_unreadable"  # noqa: S105 - a word for an error


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event for one webhook, and the state of sending it. Its id is the `webhook-id` of every attempt.

    `next_attempt_at` is null where no attempt follows.
    """

    id: UUID
    event_type: str
    occurred_at: datetime
    created_at: datetime
    attempts: int
    next_attempt_at: datetime | None
    last_attempt_at: datetime | None
    last_status: int | None
    last_error: str | None
    delivered_at: datetime | None

    @property
    def status(self) -> DeliveryStatus:
        """Whether the delivery is pending, was accepted, or was given up."""
        if self.delivered_at is not None:
            return "delivered"
        return "failed" if self.next_attempt_at is None else "pending"


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """An event to send. `source` identifies its cause: a webhook gets one event for each source.

    Changes of a graph are described by its id and a range of revisions, `after_revision` excluded; other events have
    their `data`.
    """

    event_type: str
    source: str
    occurred_at: datetime
    data: Mapping[str, Any] | None = None
    graph_id: UUID | None = None
    after_revision: int | None = None
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that a worker has claimed for one attempt, with its address and the encrypted signing secrets.

    `claimed_at` is by the clock of the database.
    """

    id: UUID
    webhook_id: UUID
    event_type: str
    occurred_at: datetime
    graph_id: UUID | None
    after_revision: int | None
    revision: int | None
    data: dict[str, Any] | None
    attempts: int
    lease: UUID
    claimed_at: datetime
    url: str
    secret: bytes = field(repr=False)
    previous_secret: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeliveryContent:
    """The content of an attempt, without the signature."""

    delivery: ClaimedDelivery
    body: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt: the status of the answer, if there was one, and why it failed, if it did.

    `retry_after`: how long the answer asked to wait.
    """

    status: int | None = None
    error: AttemptError | None = None
    retry_after: timedelta | None = None


def outcome_of(status: int, retry_after: str | None) -> Outcome:
    """The outcome by an answer's status and its `Retry-After` in seconds; a redirect is never followed."""
    if 200 <= status < 300:
        return Outcome(status)
    if 300 <= status < 400:
        return Outcome(status, AttemptError.REDIRECTED)
    if status == 410:
        return Outcome(status, AttemptError.GONE)
    text = retry_after.strip() if retry_after else ""
    wait = timedelta(seconds=int(text)) if text.isdecimal() and len(text) < 10 else None
    return Outcome(status, AttemptError.REFUSED, wait and min(wait, LONGEST_RETRY_AFTER))


def wait_after(attempts: int, outcome: Outcome) -> timedelta | None:
    """How long to wait after this many attempts, the last of which failed; None where no other follows."""
    if outcome.error is AttemptError.GONE or attempts > len(RETRY_WAITS):
        return None
    wait = RETRY_WAITS[attempts - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret
    return max(wait, outcome.retry_after or wait)


def event_body(delivery: ClaimedDelivery, data: Mapping[str, Any]) -> bytes:
    """The body of an event, the same at every attempt."""
    return msgspec.json.encode({"type": delivery.event_type, "timestamp": delivery.occurred_at, "data": data})


def changes_data(graph_id: UUID, after_revision: int, revision: int, changes: Sequence[Change]) -> dict[str, Any]:
    """The data of `graph.changed`: never stored text or names."""
    entries = [
        {
            "revision": change.revision,
            "at": change.at,
            "operation": change.operation,
            "actor": change.actor,
            "counts": change.counts,
            "ids": change.ids[:MAX_IDS],
            "more_ids": change.cut or len(change.ids) > MAX_IDS,
        }
        for change in changes
    ]
    return {"graph": graph_id, "after_revision": after_revision, "revision": revision, "changes": entries}


def signed_headers(message: DeliveryContent, cipher: Cipher, tenant_id: UUID) -> dict[str, str]:
    """The headers of an attempt, signed by the previous secret, too, while that is valid.

    Its time is that of the claim, moments ago: receivers refuse what a worker signs by its own clock if that is wrong.
    Raises ValueError where a secret cannot be decrypted: it was encrypted under another RECOLLECT_KEY_SECRET.
    """
    delivery, seconds = message.delivery, str(int(message.delivery.claimed_at.timestamp()))
    bound_to = secret_binding(tenant_id, delivery.webhook_id)
    content = b".".join([str(delivery.id).encode(), seconds.encode(), message.body])
    secrets = [secret for secret in (delivery.secret, delivery.previous_secret) if secret is not None]
    signatures = [signature(cipher.decrypt(secret, bound_to=bound_to), content) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "webhook-id": str(delivery.id),
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(signatures),
    }


def signature(secret: bytes, content: bytes) -> str:
    """The signature of `id.timestamp.body` under one secret."""
    return "v1," + base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()


def secret_binding(tenant_id: UUID, webhook_id: UUID) -> str:
    """The binding of an encrypted secret: in another webhook's row it cannot be decrypted."""
    return f"{tenant_id} {webhook_id}"
