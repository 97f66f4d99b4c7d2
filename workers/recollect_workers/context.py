"""What every job is given."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeVar

from recollect.caller import Caller
from recollect.jobs.model import Job, StepFunction
from recollect.platform.db import Database
from recollect.platform.embedding import Embedder
from recollect.platform.queue import Wakeups
from recollect.settings import Settings
from recollect_workers.patience import Patience

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The parts of a running worker. Once `stopping` is set, a job finishes what it has in hand and returns.

    `kinds` are the kinds of tenants' jobs that it can do; `jobs_due` is set when one may have become due. `previous` is
    the embedder of graphs that are not changed over yet; each embedder has a patience of its own, and when a wait for
    either is over, `patience.due` is set. `links_due` is set when facts were embedded that may have to be related.
    """

    settings: Settings
    database: Database
    embedder: Embedder
    wakeups: Wakeups
    stopping: asyncio.Event
    kinds: "Mapping[str, Kind]" = field(default_factory=dict)
    jobs_due: asyncio.Event = field(default_factory=asyncio.Event)
    patience: Patience = field(default_factory=Patience)
    links_due: asyncio.Event = field(default_factory=asyncio.Event)
    previous: Embedder | None = None
    previous_patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        self.previous_patience.due = self.patience.due

    @property
    def embedders(self) -> tuple[Embedder, ...]:
        """Those at hand: the one that is configured, and the one that was before."""
        return (self.embedder,) if self.previous is None else (self.embedder, self.previous)

    def until_stopping(self, turns: Iterable[T]) -> Iterator[T]:
        """Those of the turns that come before the worker is to stop."""
        return takewhile(lambda _: not self.stopping.is_set(), turns)

    def patience_with(self, embedder: Embedder) -> Patience:
        """The waits of one of the embedders at hand."""
        return self.previous_patience if embedder is self.previous else self.patience

    @property
    def waiting(self) -> bool:
        """Whether every embedder is to be left alone still."""
        return all(self.patience_with(embedder).waiting for embedder in self.embedders)


Preparation = Callable[[WorkerContext, Caller, Job], Awaitable[StepFunction]]


@dataclass(frozen=True, slots=True)
class PreparedKind:
    """A kind of job whose steps need what is across a network: `prepare` fetches it and answers the step to be done."""

    prepare: Preparation


Kind = StepFunction | PreparedKind
"""One kind of job."""
