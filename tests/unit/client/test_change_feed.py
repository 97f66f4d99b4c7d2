"""Where a client is in a stream of changes, and when it connects again."""

import httpx2
import pytest

from recollect_client import ChangesLostError, ConnectionError, NotFoundError, UnauthenticatedError
from recollect_client.changes import RECONNECT_SECONDS, ChangeFeed
from recollect_client.errors import Problem, error_of
from recollect_client.retries import Retries

CHANGE = (
    '{"revision":42,"at":"2027-01-31T12:00:00Z","actor":"key:1","operation":"remember",'
    '"counts":{"entities_added":1},"ids":["a"],"ids_cut":false,"of_tomorrow":1}'
)
LOST = ConnectionError("cut")


@pytest.fixture
def feed() -> ChangeFeed:
    return ChangeFeed("/v1/graphs/work/changes", {}, Retries(attempts=3, total_wait=60.0))


def test_a_change_is_told_and_gone_on_after(feed: ChangeFeed) -> None:
    assert feed.headers() == {"Accept": "text/event-stream"}
    assert feed.take(httpx2.ServerSentEvent(id="aa-41")) is None
    change = feed.take(httpx2.ServerSentEvent("change", CHANGE, "aa-42"))
    assert change
    assert (change.revision, change.operation, change.at.year) == (42, "remember", 2027)
    assert feed.headers()["Last-Event-ID"] == "aa-42"


def test_an_event_of_tomorrow_is_passed_over(feed: ChangeFeed) -> None:
    assert feed.take(httpx2.ServerSentEvent("weather", "{}", "aa-43")) is None
    assert feed.last_id == "aa-43"


def test_a_gateway_that_stops_is_left_at_once(feed: ChangeFeed) -> None:
    assert feed.next_wait == RECONNECT_SECONDS
    assert feed.take(httpx2.ServerSentEvent("end", '{"reason":"draining"}', "aa-42")) is None
    assert (feed.next_wait, feed.last_id) == (0.0, "aa-42")


def test_an_end_for_good_is_an_error(feed: ChangeFeed) -> None:
    with pytest.raises(UnauthenticatedError):
        feed.take(httpx2.ServerSentEvent("end", '{"reason":"unauthenticated"}', "aa-42"))


def test_another_graph_is_told(feed: ChangeFeed) -> None:
    with pytest.raises(ChangesLostError) as lost:
        feed.take(httpx2.ServerSentEvent("refetch", '{"revision":7}', "bb-7"))
    assert lost.value.revision == 7


def test_failures_in_a_row_are_bounded(feed: ChangeFeed) -> None:
    for _ in range(2):
        feed.failed(LOST)
    feed.take(httpx2.ServerSentEvent(id="aa-42"))  # It worked in between.
    for _ in range(2):
        feed.failed(LOST)
    with pytest.raises(ConnectionError, match="cut"):
        feed.failed(LOST)


def test_a_busy_gateway_says_when_to_come_back(feed: ChangeFeed) -> None:
    feed.failed(error_of(429, Problem("too_many_streams"), 5.0))
    assert feed.next_wait == 5.0
    with pytest.raises(NotFoundError):
        feed.failed(error_of(404, Problem("graph_not_found")))
