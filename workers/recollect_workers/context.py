"""What every job is given."""

import asyncio
from dataclasses import dataclass

from recollect.platform.db import Database
from recollect.platform.embedding import Embedder
from recollect.platform.queue import Wakeups
from recollect.settings import Settings


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The parts of a running worker. Once `stopping` is set, a job finishes what it has in hand and returns."""

    settings: Settings
    database: Database
    embedder: Embedder
    wakeups: Wakeups
    stopping: asyncio.Event
