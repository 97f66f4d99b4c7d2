"""Every instrument is used and documented, and its attributes have few values."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from recollect.embedding import UNMEASURED, MeasuredEmbedder, Vectors
from recollect.errors import ErrorCode, Unavailable
from recollect.telemetry import metrics
from tests.support.measured import Measured

DOCUMENTED = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
TENANT = UUID(int=7)

BOUNDED = {
    "mcp.method.name": "methods that the protocol has",
    "gen_ai.tool.name": "tools of the catalogue",
    "gen_ai.operation.name": "one",
    "gen_ai.request.model": "one or two of the settings",
    "error.type": "codes of errors",
    "db.client.connection.pool.name": "three",
    "db.client.connection.state": "one",
    "recollect.cache.name": "two",
    "recollect.cell": "names of the settings, up to sixteen; absent where there is one",
    "recollect.cache.outcome": "two",
    "recollect.recall.k": "one",
    "recollect.replica.outcome": "ten",
    "recollect.limit": "the limits",
    "recollect.job.kind": "the kinds",
    "recollect.job.outcome": "five",
    "recollect.job.status": "three",
    "recollect.webhook.outcome": "six",
    "recollect.queue.name": "three",
    "recollect.move.step": "seven",
    "recollect.notification.outcome": "two",
    "recollect.stream.transport": "two",
    "recollect.stream.reason": "codes of errors, and one word more",
}
"""Every attribute that a metric may have, and why its values are few. None of a tenant, a graph, a key or a text."""

RECORDS: dict[str, Callable[[], object]] = {
    "record_tool": lambda: metrics.record_tool("recall", 0.1, "busy"),
    "record_operation": lambda: metrics.record_operation("tools/list", 0.1, "unavailable"),
    "record_embedded": lambda: metrics.record_embedded(2, [0.5, 1]),
    "record_embedding_call": lambda: metrics.record_embedding_call("minilm", 0.1, "embedder_unavailable"),
    "record_backlog": lambda: metrics.record_backlog("passages", 3, 1.5, "home"),
    "record_moves": lambda: metrics.record_moves("hold", 1, 0.5),
    "record_replica_read": lambda: metrics.record_replica_read("behind"),
    "record_refused": lambda: metrics.record_refused(1),
    "record_waiting": lambda: metrics.record_waiting(1),
    "record_audit": lambda: metrics.record_audit(1, k=10),
    "record_uncounted": lambda: metrics.record_uncounted(1),
    "record_refused_request": lambda: metrics.record_refused_request("tenant"),
    "record_redis_unreachable": lambda: metrics.record_redis_unreachable(unreachable=True),
    "record_readiness": lambda: metrics.record_readiness(is_ready=True),
    "begin_failed_jobs": lambda: metrics.begin_failed_jobs(["export_graph"], ["busy"]),
    "record_job_step": lambda: metrics.record_job_step("export_graph", "done", 0.1),
    "record_job": lambda: metrics.record_job("export_graph", "failed", 0.1, "busy"),
    "record_webhook_attempt": lambda: metrics.record_webhook_attempt("delivered"),
    "record_notification_lag": lambda: metrics.record_notification_lag(0.1),
    "record_unanswered": lambda: metrics.record_unanswered("tenants", "b"),
    "record_notifications": lambda: metrics.record_notifications("told", 1),
    "record_ended_stream": lambda: metrics.record_ended_stream("draining"),
    "CacheTallies": lambda: metrics.CacheTallies("search").count(TENANT, hits=1, misses=1),
}
OTHERS = {"waiting_call", "used_connection", "open_stream", "of_cell"}
"""Functions that do not simply record a value: tested below, or recording nothing."""


@asynccontextmanager
async def connection(*, fails: type[Exception] | None = None) -> AsyncIterator[str]:
    if fails is not None:
        raise fails
    yield "connection"


async def record_connections() -> None:
    """Call what is in `OTHERS`: a waiting call, a stream, a used connection, and failed attempts to get one."""
    with metrics.waiting_call(), metrics.open_stream("mcp"):
        pass
    async with metrics.used_connection("tenants", connection()):
        pass
    for failure in (TimeoutError, ConnectionRefusedError):
        with pytest.raises(failure):
            async with metrics.used_connection("reserved", connection(fails=failure), "b"):
                pass


async def test_every_instrument_is_used_and_documented_with_bounded_attributes(measured: Measured) -> None:
    functions = {
        name for name, _ in inspect.getmembers(metrics, inspect.isfunction) if _.__module__ == metrics.__name__
    }
    assert functions - set(RECORDS) - OTHERS - {"_instruments"} == set(), "a new record needs an example here"
    for record in RECORDS.values():
        record()
    await record_connections()
    points = measured.points()
    assert len(points) == len(vars(metrics._instruments()))
    assert [name for name in points if f"`{name}`" not in DOCUMENTED] == []
    for name, of_instrument in points.items():
        for attributes, _ in of_instrument:
            assert attributes.keys() <= BOUNDED.keys(), name
            assert str(TENANT) not in str(attributes)
            assert not re.search(r"tenant_?id|graph|key", str(list(attributes)))


async def test_each_wait_for_a_connection_is_measured_even_if_it_times_out(measured: Measured) -> None:
    async with metrics.used_connection("tenants", connection()) as held:
        assert held == "connection"
        [(attributes, point)] = measured.of("db.client.connection.count")
        assert (attributes["db.client.connection.state"], point.value) == ("used", 1)
    with pytest.raises(TimeoutError):
        async with metrics.used_connection("tenants", connection(fails=TimeoutError)):
            raise AssertionError("nothing was acquired")
    assert [point.value for _, point in measured.of("db.client.connection.count")] == [0]
    assert [point.value for _, point in measured.of("db.client.connection.timeouts")] == [1]
    assert [point.count for _, point in measured.of("db.client.connection.wait_time")] == [2]


async def test_a_timeout_while_a_connection_is_in_use_does_not_count_as_a_pool_timeout(measured: Measured) -> None:
    with pytest.raises(TimeoutError):
        async with metrics.used_connection("tenants", connection()), asyncio.timeout(0):
            await asyncio.sleep(1)
    assert measured.of("db.client.connection.timeouts") == []


async def test_metrics_name_the_cell_where_there_are_several(measured: Measured) -> None:
    for cell in (None, "home", "b"):
        with pytest.raises(ConnectionRefusedError):
            async with metrics.used_connection("tenants", connection(fails=ConnectionRefusedError), cell):
                raise AssertionError("nothing was acquired")
        metrics.record_backlog("jobs", 1, 0.5, cell)
    for name in ("recollect.database.failures", "db.client.connection.wait_time", "recollect.queue.waiting"):
        assert [attributes.get("recollect.cell") for attributes, _ in measured.of(name)] == [None, "home", "b"], name


class FickleEmbedder:
    """An embedder that fails on "bad"."""

    model, dimensions, similarity_thresholds = "fickle", 2, UNMEASURED

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if "bad" in texts:
            raise Unavailable("away", code=ErrorCode.EMBEDDER_UNAVAILABLE)
        return np.zeros((len(texts), 2), np.float32)

    async def close(self) -> None:
        """Nothing is open."""


async def test_embedder_calls_are_measured_with_their_error_codes(measured: Measured) -> None:
    embedder = MeasuredEmbedder(FickleEmbedder(), "openai")
    assert (await embedder.embed(["a", "b"])).shape == (2, 2)
    with pytest.raises(Unavailable):
        await embedder.embed(["bad"])
    counts = {at.get("error.type"): point.count for at, point in measured.of("gen_ai.client.operation.duration")}
    assert counts == {None: 1, "embedder_unavailable": 1}
