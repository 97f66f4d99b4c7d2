"""The context that every job of the worker gets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeVar
from uuid import UUID

from recollect.caller import Caller
from recollect.embedding import Embedder
from recollect.jobs.model import Job, StepFunction
from recollect.outbound.http_client import Outbound
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.wakeups import Wakeups
from recollect_workers.embedder_backoff import Backoff
from recollect_workers.pace import Pace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The parts of a running worker. Once `stopping` is set, a job finishes its current step and returns.

    `kinds`: the kinds of tenants' jobs that the worker can do; `jobs_due` is set when one may have become due.
    `previous`: the embedder of graphs that have not changed to the new model yet; each embedder has its own backoff.
    `backoff.due` is set when a wait for either is over, or when a wake-up left work to the sweep. `woken`: the tenants
    whose wake-ups are being served, and whether another one came in the meantime. `links_due` is set when facts were
    embedded that may have to be related, `webhooks_due` when there may be something to send; a worker without
    `outbound` leaves that to other workers. `pace`: the pace of bulk work; without one it never rests.
    """

    settings: Settings
    database: Database
    embedder: Embedder
    wakeups: Wakeups
    stopping: asyncio.Event
    kinds: "Mapping[str, Kind]" = field(default_factory=dict)
    jobs_due: asyncio.Event = field(default_factory=asyncio.Event)
    backoff: Backoff = field(default_factory=Backoff)
    links_due: asyncio.Event = field(default_factory=asyncio.Event)
    woken: dict[UUID, bool] = field(default_factory=dict)
    previous: Embedder | None = None
    previous_backoff: Backoff = field(default_factory=Backoff)
    outbound: Outbound | None = None
    webhooks_due: asyncio.Event = field(default_factory=asyncio.Event)
    pace: Pace | None = None

    def __post_init__(self) -> None:
        self.previous_backoff.due = self.backoff.due

    @property
    def embedders(self) -> tuple[Embedder, ...]:
        """The configured embedder and, if there is one, the previous one."""
        return (self.embedder,) if self.previous is None else (self.embedder, self.previous)

    @asynccontextmanager
    async def part(self, tenant_id: UUID) -> AsyncIterator[None]:
        """Do a part of a tenant's bulk work in the block, at the pace of the worker."""
        if self.pace is None:
            yield
            return
        async with self.pace.part(tenant_id):
            yield

    async def is_slow(self, tenant_id: UUID) -> bool:
        """Whether a tenant's bulk work rests between its parts now, which should be short then."""
        return self.pace is not None and await self.pace.is_slow(tenant_id)

    def until_stopping(self, items: Iterable[T]) -> Iterator[T]:
        """The turns, until the worker has to stop."""
        return takewhile(lambda _: not self.stopping.is_set(), items)

    def backoff_of(self, embedder: Embedder) -> Backoff:
        """The backoff of one of the embedders."""
        return self.previous_backoff if embedder is self.previous else self.backoff

    @property
    def waiting(self) -> bool:
        """Whether the worker waits for every embedder."""
        return all(self.backoff_of(embedder).waiting for embedder in self.embedders)


Preparation = Callable[[WorkerContext, Caller, Job], Awaitable[StepFunction]]


@dataclass(frozen=True, slots=True)
class PreparedKind:
    """A kind of job with work before its step's transaction: network requests or computing, during which none is open.

    `prepare` does that work and returns the step.
    """

    prepare: Preparation


Kind = StepFunction | PreparedKind
"""One kind of job."""
