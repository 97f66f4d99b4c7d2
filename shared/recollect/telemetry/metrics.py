"""Recollect's own metrics, as OpenTelemetry instruments: `docs/metrics.md` lists them.

Nothing reports them unless `RECOLLECT_OTLP_ENDPOINT` or `RECOLLECT_METRICS_PORT` is set. Values of attributes are words
of the code, such as the name of a tool or a cache: never a tenant, a graph, an id or a text.
"""

import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TypeVar
from uuid import UUID

from cachetools import LRUCache
from opentelemetry import metrics
from opentelemetry.metrics import Histogram, Meter

T = TypeVar("T")

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_STEP_SECONDS = (*_SECONDS, 60, 120)
"""Up to twice the default lease of a job's step: a step that takes about as long as the lease is cut off."""

_JOB_SECONDS = (1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400)
_LAG_SECONDS = (0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 86_400)

_PASSAGES = (0, 1, 10, 100, 1_000, 10_000)
_TALLIED_TENANTS = 10_000
_SHARES = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1)


class Instruments:
    """Every instrument, by what it measures, made by a meter."""

    def __init__(self, meter: Meter) -> None:
        def seconds(name: str, description: str, bounds: Sequence[float] = _SECONDS) -> Histogram:
            return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=bounds)

        self.cache_requests = meter.create_counter("recollect.cache.requests", "{request}", "Lookups in a cache")
        self.mcp_request_seconds = seconds("mcp.server.operation.duration", "Duration of MCP requests")
        self.passages_embedded = meter.create_counter("recollect.passages.embedded", "{passage}", "Passages embedded")
        self.passages_refused = meter.create_counter(
            "recollect.passages.refused", "{passage}", "Passages refused by the embedder"
        )
        self.passages_waiting = meter.create_histogram(
            "recollect.passages.waiting",
            "{passage}",
            "Passages without a vector in the graph searched by a recall",
            explicit_bucket_boundaries_advisory=_PASSAGES,
        )
        self.recall_audit = meter.create_histogram(
            "recollect.recall.audit",
            "1",
            "recall@k of the vector index, of sampled recalls",
            explicit_bucket_boundaries_advisory=_SHARES,
        )
        self.calls_uncounted = meter.create_counter(
            "recollect.usage.uncounted", "{call}", "Calls missing from the usage of tenants"
        )
        self.requests_refused = meter.create_counter(
            "recollect.requests.refused", "{request}", "Requests refused for a limit"
        )
        self.rate_fallbacks = meter.create_counter(
            "recollect.rate.fallbacks", "{fallback}", "Times that counting fell back from Redis to the gateway"
        )
        self.redis_unreachable = meter.create_gauge(
            "recollect.redis.away", "{process}", "1 while the process counts requests without Redis"
        )
        self.gateway_ready = meter.create_gauge("recollect.gateway.ready", "{process}", "1 while the gateway is ready")
        self.calls_waiting = meter.create_up_down_counter(
            "recollect.calls.waiting", "{call}", "Calls waiting for their turn"
        )
        self.call_wait_seconds = seconds("recollect.call.wait.duration", "Time that calls wait for their turn")
        self.job_seconds = seconds(
            "recollect.job.duration", "Duration of jobs from their first step to their end", _JOB_SECONDS
        )
        self.jobs_failed = meter.create_counter("recollect.jobs.failed", "{job}", "Jobs that failed")
        self.embedding_lag = seconds(
            "recollect.embedding.lag", "Time that passages waited for their vectors", _LAG_SECONDS
        )
        self.queue_waiting = meter.create_gauge(
            "recollect.queue.waiting", "{item}", "Items that wait for workers, per queue"
        )
        self.queue_oldest = meter.create_gauge("recollect.queue.oldest.age", "s", "Age of the oldest item of a queue")
        self.moves = meter.create_gauge("recollect.moves", "{move}", "Moves of tenants under way")
        self.move_step_ages = meter.create_gauge(
            "recollect.move.step.age", "s", "Time that the oldest move has been at a step"
        )
        self.embedder_seconds = seconds("gen_ai.client.operation.duration", "Duration of calls of the embedder")
        self.connections = meter.create_up_down_counter(
            "db.client.connection.count", "{connection}", "Connections in use"
        )
        self.connection_waits = seconds("db.client.connection.wait_time", "Time that calls wait for a connection")
        self.connection_timeouts = meter.create_counter(
            "db.client.connection.timeouts", "{timeout}", "Waits for a connection that timed out"
        )
        self.connection_failures = meter.create_counter(
            "recollect.database.failures", "{failure}", "Failed connections to PostgreSQL"
        )
        self.replica_reads = meter.create_counter("recollect.replica.reads", "{read}", "Reads eligible for a replica")
        self.job_steps = meter.create_counter("recollect.job.steps", "{step}", "Steps of jobs")
        self.job_step_seconds = seconds("recollect.job.step.duration", "Duration of steps of jobs", _STEP_SECONDS)
        self.webhook_attempts = meter.create_counter("recollect.webhook.attempts", "{attempt}", "Requests to webhooks")
        self.notifications = meter.create_counter(
            "recollect.notifications", "{notification}", "Changes of graphs reported to Redis, or dropped"
        )
        self.notification_lags = seconds(
            "recollect.notification.lag", "Time from a write's report to Redis until listeners are woken"
        )
        self.open_streams = meter.create_up_down_counter(
            "recollect.streams.open", "{stream}", "Open streams of change notifications"
        )
        self.ended_streams = meter.create_counter(
            "recollect.streams.ended", "{stream}", "Streams of change notifications ended by the gateway"
        )


@cache
def _instruments() -> Instruments:
    # Made on first use. The API returns proxies, which find the provider whether it is set earlier or later.
    return Instruments(metrics.get_meter("recollect"))


@dataclass(slots=True)
class CacheTally:
    """Hits and misses of one tenant in a cache of this process, since it started."""

    hits: int = 0
    misses: int = 0

    @property
    def hit_rate(self) -> float:
        """Hits divided by lookups, 0 to 1; 0 before the first lookup."""
        return self.hits / (self.hits + self.misses) if self.hits else 0.0


class CacheTallies:
    """The tallies of one cache, by tenant, for recently active tenants. A tenant sees only its own."""

    def __init__(self, cache: str) -> None:
        self._cache = cache
        self._tenants: LRUCache[UUID, CacheTally] = LRUCache(_TALLIED_TENANTS)

    def of(self, tenant_id: UUID) -> CacheTally:
        """The tally of a tenant."""
        return self._tenants.setdefault(tenant_id, CacheTally())

    def count(self, tenant_id: UUID, *, hits: int = 0, misses: int = 0) -> None:
        """Count lookups, for the tenant and in the metric of all tenants."""
        tally = self.of(tenant_id)
        tally.hits += hits
        tally.misses += misses
        for outcome, number in (("hit", hits), ("miss", misses)):
            if number:
                _instruments().cache_requests.add(
                    number, {"recollect.cache.name": self._cache, "recollect.cache.outcome": outcome}
                )


def record_tool(tool: str, seconds: float, error: str | None) -> None:
    """Record a call of a tool: its name in the catalogue, and the code of its error, if it failed."""
    attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": tool}
    _instruments().mcp_request_seconds.record(
        seconds, attributes if error is None else attributes | {"error.type": error}
    )


def record_operation(method: str, seconds: float, error: str | None) -> None:
    """Record an MCP request that is no tool call: its method, a name of the protocol, and the code of its error."""
    attributes = {"mcp.method.name": method}
    _instruments().mcp_request_seconds.record(
        seconds, attributes if error is None else attributes | {"error.type": error}
    )


def record_embedded(passages: int, lags: Iterable[float] = ()) -> None:
    """Record how many passages were embedded, and for how many seconds each had waited."""
    _instruments().passages_embedded.add(passages)
    for lag in lags:
        _instruments().embedding_lag.record(lag)


def record_embedding_call(model: str, seconds: float, error: str | None) -> None:
    """Record a call of the embedder: the name of its model in the settings, and the code of its error, if it failed."""
    attributes = {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": model}
    attributes = attributes if error is None else attributes | {"error.type": error}
    _instruments().embedder_seconds.record(seconds, attributes)


def of_cell(cell: str | None) -> dict[str, str]:
    """The attribute for a cell, which is a name of the settings; no attribute if there is only one cell."""
    return {} if cell is None else {"recollect.cell": cell}


def record_backlog(queue: str, waiting: int, oldest_seconds: float, cell: str | None = None) -> None:
    """Record the length of a queue, for all tenants of a cell together, and the age of its oldest item."""
    attributes = {"recollect.queue.name": queue} | of_cell(cell)
    _instruments().queue_waiting.set(waiting, attributes)
    _instruments().queue_oldest.set(oldest_seconds, attributes)


def record_moves(step: str, moves: int, oldest_seconds: float) -> None:
    """Record the number of moves of tenants at a step, and how long the oldest of them has been there."""
    _instruments().moves.set(moves, {"recollect.move.step": step})
    _instruments().move_step_ages.set(oldest_seconds, {"recollect.move.step": step})


@asynccontextmanager
async def used_connection(
    pool: str, connection: AbstractAsyncContextManager[T], cell: str | None = None
) -> AsyncIterator[T]:
    """Take a connection of a pool (`tenants`, `replica` or `reserved`), and record its use and the wait for it.

    `cell`: the cell of the connection, a name of the settings; None if there is only one cell.
    """
    instruments, began = _instruments(), time.perf_counter()
    attributes = {"db.client.connection.pool.name": pool} | of_cell(cell)
    async with AsyncExitStack() as stack:
        try:
            acquired = await stack.enter_async_context(connection)
        except TimeoutError:
            instruments.connection_timeouts.add(1, attributes)
            raise
        except Exception:
            instruments.connection_failures.add(1, attributes | {"error.type": "refused"})
            raise
        finally:
            instruments.connection_waits.record(time.perf_counter() - began, attributes)
        used = attributes | {"db.client.connection.state": "used"}
        instruments.connections.add(1, used)
        try:
            yield acquired
        finally:
            instruments.connections.add(-1, used)


def record_unanswered(pool: str, cell: str | None) -> None:
    """Record a connection of this pool that the server accepted, or did not refuse, and never answered in time."""
    attributes = {"db.client.connection.pool.name": pool, "error.type": "unanswered"} | of_cell(cell)
    _instruments().connection_failures.add(1, attributes)


def record_replica_read(outcome: str) -> None:
    """Record a read eligible for a replica: `replica`, or the reason why the primary served it (ReplicaOutcome)."""
    _instruments().replica_reads.add(1, {"recollect.replica.outcome": outcome})


def record_refused(passages: int) -> None:
    """Record passages that were set aside because the embedder refused them."""
    _instruments().passages_refused.add(passages)


def record_waiting(passages: int) -> None:
    """Record how many passages of the searched graph could be found by their words only."""
    _instruments().passages_waiting.record(passages)


def record_audit(share: float, *, k: int) -> None:
    """Record recall@k of a sampled recall: the share of the exact search's best `k` that the index found, 0 to 1."""
    _instruments().recall_audit.record(share, {"recollect.recall.k": k})


@contextmanager
def waiting_call() -> Iterator[None]:
    """Record a call that waits for its turn inside this context."""
    instruments, began = _instruments(), time.perf_counter()
    instruments.calls_waiting.add(1)
    try:
        yield
    finally:
        instruments.calls_waiting.add(-1)
        instruments.call_wait_seconds.record(time.perf_counter() - began)


def record_uncounted(calls: int) -> None:
    """Record calls that are missing from the usage of their tenants; 0 begins the count."""
    _instruments().calls_uncounted.add(calls)


def record_refused_request(limit: str) -> None:
    """Record a refused request: `key`, `tenant`, `address`, `concurrent_calls`, `calls_at_work` or `streams`."""
    _instruments().requests_refused.add(1, {"recollect.limit": limit})


def record_redis_unreachable(*, unreachable: bool) -> None:
    """Record whether Redis is unreachable, so that this process counts requests by itself.

    Absences are counted, too. The count starts with 0, as Prometheus sees no increase in a counter's first value.
    """
    _instruments().redis_unreachable.set(int(unreachable))
    _instruments().rate_fallbacks.add(int(unreachable))


def record_readiness(*, is_ready: bool) -> None:
    """Record whether this gateway is ready."""
    _instruments().gateway_ready.set(int(is_ready))


def record_job_step(kind: str, outcome: str, seconds: float) -> None:
    """Record a step of a job: its kind, and `done`, `finished`, `failed`, `put_off` or `lost`."""
    attributes = {"recollect.job.kind": kind, "recollect.job.outcome": outcome}
    _instruments().job_steps.add(1, attributes)
    _instruments().job_step_seconds.record(seconds, attributes)


def record_job(kind: str, status: str, seconds: float, error: str | None = None) -> None:
    """Record the end of a job: its kind, `succeeded`, `failed` or `cancelled`, and the code of its error, if any."""
    attributes = {"recollect.job.kind": kind, "recollect.job.status": status}
    _instruments().job_seconds.record(seconds, attributes if error is None else attributes | {"error.type": error})
    if error is not None:
        _instruments().jobs_failed.add(1, {"recollect.job.kind": kind, "error.type": error})


def begin_failed_jobs(kinds: Iterable[str], errors: Iterable[str]) -> None:
    """Start the counts of failed jobs with 0, as Prometheus sees no increase in a counter's first value."""
    for kind, error in product(kinds, errors):
        _instruments().jobs_failed.add(0, {"recollect.job.kind": kind, "error.type": error})


def record_webhook_attempt(outcome: str) -> None:
    """Record a request to a webhook: `delivered`, or why it failed."""
    _instruments().webhook_attempts.add(1, {"recollect.webhook.outcome": outcome})


def record_notifications(outcome: str, graphs: int) -> None:
    """Record how many changed graphs were published in Redis or not, by the outcome: `told`, `dropped`."""
    _instruments().notifications.add(graphs, {"recollect.notification.outcome": outcome})


def record_notification_lag(seconds: float) -> None:
    """Record the time from a write's report to Redis until its listeners at this gateway were woken."""
    _instruments().notification_lags.record(seconds)


@contextmanager
def open_stream(transport: str) -> Iterator[None]:
    """Record a stream of change notifications, `mcp` or `sse`, that is open inside this context."""
    streams = _instruments().open_streams
    streams.add(1, {"recollect.stream.transport": transport})
    try:
        yield
    finally:
        streams.add(-1, {"recollect.stream.transport": transport})


def record_ended_stream(reason: str) -> None:
    """Record a stream that the gateway ended: `draining`, or the code of an error."""
    _instruments().ended_streams.add(1, {"recollect.stream.reason": reason})
