"""A graph's changes as they come: where a client is in the stream, and when it connects again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec
from msgspec import Struct

from recollect_client.answers.graphs import Change
from recollect_client.errors import ApiError, ChangesLostError, ConnectionError, stream_ended
from recollect_client.retries import Retries, is_transient

FOLLOWING = Retries(attempts=60, total_wait=300.0)
"""How long a gateway may be unreachable, in a row, before a stream of changes gives up."""

RECONNECT_SECONDS = 1.0
"""How long to wait after a connection that ended without a word."""

DRAINING = "draining"


class _Refetch(Struct):
    revision: int


class _End(Struct):
    reason: str


@dataclass(slots=True)
class ChangeFeed:
    """The changes of a graph from a place on; `last_id` is that of the last event."""

    path: str
    query: Mapping[str, Any]
    retries: Retries = FOLLOWING
    last_id: str = ""
    failures: int = 0
    waited: float = 0.0
    next_wait: float = RECONNECT_SECONDS

    def headers(self) -> dict[str, str]:
        """The headers with which to connect, or to connect again."""
        resume = {"Last-Event-ID": self.last_id} if self.last_id else {}
        return {"Accept": "text/event-stream", **resume}

    def take(self, event: httpx2.ServerSentEvent) -> Change | None:
        """The change that an event is, if it is one.

        Raises ChangesLostError where the graph is not the one that was followed, and ApiError where the stream ended
        for good.
        """
        self.failures, self.waited, self.next_wait = 0, 0.0, RECONNECT_SECONDS
        self.last_id = event.id or self.last_id
        if event.event == "refetch":
            raise ChangesLostError(msgspec.json.decode(event.data, type=_Refetch).revision)
        if event.event == "end":
            self._end(msgspec.json.decode(event.data, type=_End).reason)
        return msgspec.json.decode(event.data, type=Change) if event.event == "change" else None

    def failed(self, error: ApiError | ConnectionError) -> None:
        """Note that a connection failed; raises the error where it is no use to try again."""
        self.failures += 1
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        self.next_wait = self.retries.wait_before(self.failures + 1, retry_after)
        self.waited += self.next_wait
        if not is_transient(error) or self.failures >= self.retries.attempts or self.waited > self.retries.total_wait:
            raise error

    def _end(self, reason: str) -> None:
        if reason != DRAINING:
            raise stream_ended(reason)
        self.next_wait = 0.0
