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

from recollect.graph.graphs.model import Change
from recollect.platform.encryption import Cipher

SEND_WEBHOOKS = "send_webhooks"
"""The wake-up that has a worker look for due deliveries."""

GRAPH_CHANGED = "graph.changed"
"""The one event whose data is not kept with its delivery: it stands in the graph's log."""

MAX_PENDING = 1_000
"""Deliveries of one webhook that are still to be sent, at most (a few more if they are asked for at the same instant).
Beyond, its events wait where they happened."""

MAX_KEPT = 10_000
"""Deliveries of one webhook that are listed, about: beyond, the oldest that nothing follows for go after an hour."""

MAX_CHANGES = 50
"""Changes of a graph that one event tells, at most."""

MAX_IDS = 20
"""Ids of a change that are told, at most."""

AT_ONCE_EACH = 2
"""Requests of all workers to one webhook that are under way at once, at most."""

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
"""How long to wait after each attempt that failed; after the one more there is none. The specification's example."""

JITTER = 0.2
"""Each wait is this part longer or shorter, by chance, so that what failed together does not come back together."""

LONGEST_RETRY_AFTER = timedelta(hours=24)
"""The longest wait that an answer may ask for."""

FAILING_FOR = timedelta(days=5)
"""A webhook none of whose attempts succeeded for so long is disabled."""

PURPOSE = "webhook secrets"
"""What the cipher is for that secrets are kept by."""

DeliveryStatus = Literal["pending", "delivered", "failed"]


class AttemptError(StrEnum):
    """Why an attempt failed, as far as is told: never what an answer said, nor anything of our network."""

    NO_ANSWER = "no_answer"
    REFUSED = "refused"
    REDIRECTED = "redirected"
    GONE = "gone"
    SECRET_UNREADABLE = "secret_unreadable"  # noqa: S105 - a word for an error


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event for one webhook, and how it goes with sending it. Its id is the `webhook-id` of every attempt.

    `next_attempt_at` is null where none follows.
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
        """Whether it is still to be sent, was taken, or is given up."""
        if self.delivered_at is not None:
            return "delivered"
        return "failed" if self.next_attempt_at is None else "pending"


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """An event to be sent. `source` says what it is of: of one source a webhook gets one event.

    Changes of a graph are told by its id and revisions, from after one to the other; other events have their `data`.
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
    """A delivery that a worker has claimed for one attempt, with where it goes and what signs it, encrypted."""

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
    url: str
    secret: bytes = field(repr=False)
    previous_secret: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """What one attempt sends, but for the signature, which tells its time."""

    delivery: ClaimedDelivery
    body: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: the status of the answer, if there was one, and why it failed, if it did.

    `retry_after`: how long the answer asked to wait.
    """

    status: int | None = None
    error: AttemptError | None = None
    retry_after: timedelta | None = None


def outcome_of(status: int, retry_after: str | None) -> Outcome:
    """What an answer's status means, and its `Retry-After` in seconds; a redirect is never followed."""
    if 200 <= status < 300:
        return Outcome(status)
    if 300 <= status < 400:
        return Outcome(status, AttemptError.REDIRECTED)
    if status == 410:
        return Outcome(status, AttemptError.GONE)
    asked = retry_after.strip() if retry_after else ""
    wait = timedelta(seconds=int(asked)) if asked.isdecimal() and len(asked) < 10 else None
    return Outcome(status, AttemptError.REFUSED, wait and min(wait, LONGEST_RETRY_AFTER))


def wait_after(attempts: int, outcome: Outcome) -> timedelta | None:
    """How long to wait after so many attempts, the last of which failed so; None where no other follows."""
    if outcome.error is AttemptError.GONE or attempts > len(RETRY_WAITS):
        return None
    wait = RETRY_WAITS[attempts - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret
    return max(wait, outcome.retry_after or wait)


def event_body(delivery: ClaimedDelivery, data: Mapping[str, Any]) -> bytes:
    """The body of an event, alike at every attempt."""
    return msgspec.json.encode({"type": delivery.event_type, "timestamp": delivery.occurred_at, "data": data})


def changes_data(graph_id: UUID, after_revision: int, revision: int, changes: Sequence[Change]) -> dict[str, Any]:
    """The data of `graph.changed`: never stored text or names."""
    told = [
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
    return {"graph": graph_id, "after_revision": after_revision, "revision": revision, "changes": told}


def signed_headers(message: Message, cipher: Cipher, tenant_id: UUID, at: datetime) -> dict[str, str]:
    """The headers of an attempt at a time; signed by the previous secret, too, while that one holds.

    Raises ValueError where a secret cannot be read: it was encrypted under another RECOLLECT_KEY_SECRET.
    """
    delivery, seconds = message.delivery, str(int(at.timestamp()))
    bound_to = secret_binding(tenant_id, delivery.webhook_id)
    signed = b".".join([str(delivery.id).encode(), seconds.encode(), message.body])
    secrets = [secret for secret in (delivery.secret, delivery.previous_secret) if secret is not None]
    signatures = [signature(cipher.decrypt(secret, bound_to=bound_to), signed) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "webhook-id": str(delivery.id),
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(signatures),
    }


def signature(secret: bytes, signed: bytes) -> str:
    """The signature of `id.timestamp.body` under one secret."""
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def secret_binding(tenant_id: UUID, webhook_id: UUID) -> str:
    """What a secret is encrypted for: moved to another webhook's row, it opens nothing."""
    return f"{tenant_id} {webhook_id}"
