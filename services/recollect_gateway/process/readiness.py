"""Whether a gateway may be sent requests, as `/health/ready` answers and its metrics report."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import structlog
from opentelemetry.instrumentation.utils import suppress_instrumentation

from recollect.embedding import MeasuredEmbedder
from recollect.errors import ErrorCode, Unavailable
from recollect.postgres.clock_difference import warning
from recollect.postgres.database import Database
from recollect.postgres.schema_version.service import SchemaCheck, require_any_usable
from recollect.telemetry.metrics import record_readiness
from recollect_http.server.draining import Drain

AWAIT_SECONDS = 1.0
"""How often a gateway that has started asks whether it is ready, until it is for the first time."""

REPORT_SECONDS = 10.0
"""How often readiness is reported to the metrics: at least as often as most systems scrape them."""

log = structlog.get_logger(__name__)


class Readiness:
    """Readiness of one process: it needs a database as new as this version, and must not be stopping.

    It needs no embedder: recall works by words alone without one.
    """

    def __init__(self, drain: Drain, cells: Sequence[Database], embedder: MeasuredEmbedder | None = None) -> None:
        self._drain, self._embedder = drain, embedder
        self._home, *self._others = [SchemaCheck(cell) for cell in cells]
        self._logged: str | None = None

    @property
    def is_ending(self) -> bool:
        """Whether the process is stopping."""
        return self._drain.begun

    async def require(self) -> None:
        """Return if the process may be sent requests; raises Unavailable, which says why it may not."""
        if self.is_ending:
            raise Unavailable("This gateway is stopping. Try again: another one will answer.", code=ErrorCode.DRAINING)
        await require_any_usable(self._home, self._others)
        self._log_clock()

    @property
    def degraded(self) -> str | None:
        """What keeps a process from all that it should do although it is ready; None if nothing is known to."""
        mismatch = self._embedder.mismatch if self._embedder is not None else None
        by_words = mismatch and f"{mismatch} Until they agree, recall searches by words alone."
        return " ".join(filter(None, (by_words, self._clock_warning))) or None

    @property
    def _clock_warning(self) -> str | None:
        """What to say of the cell whose clock differs most."""
        return warning(max((cell.clock_ahead for cell in (self._home, *self._others)), key=abs))

    def _log_clock(self) -> None:
        """Log once that clocks differ, and once that they agree again."""
        found = self._clock_warning
        if (found is None) != (self._logged is None):
            self._logged = found
            if found:
                log.warning("clocks differ", reason=found)
            else:
                log.info("clocks agree again")


@asynccontextmanager
async def awaited_readiness(readiness: Readiness, server: str, seconds: float = AWAIT_SECONDS) -> AsyncIterator[None]:
    """Log, in the background, why a gateway that has just started is not ready: each reason once.

    `server`: host and port of its database, which only the log may name.
    """
    waiting = asyncio.create_task(_await_ready(readiness, server, seconds), name="first readiness")
    try:
        yield
    finally:
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting


async def _await_ready(readiness: Readiness, server: str, seconds: float) -> None:
    logged_reason = ""
    with suppress_instrumentation():
        while not readiness.is_ending:
            try:
                await readiness.require()
                break
            except Unavailable as error:
                if str(error) != logged_reason and not readiness.is_ending:
                    logged_reason = str(error)
                    log.warning("waiting for the database", reason=logged_reason, server=server)
            except Exception:
                log.exception("readiness check failed")
                return
            await asyncio.sleep(seconds)
    if logged_reason and not readiness.is_ending:
        log.info("the gateway is ready")


@asynccontextmanager
async def checked_embedder(embedder: MeasuredEmbedder) -> AsyncIterator[None]:
    """Ask an embedder once, in the background, so that it is known from the start whether its vectors can be used.

    Later calls update it. An embedder that does not answer now is no fault of its configuration.
    """
    checking = asyncio.create_task(_check(embedder), name="embedder check")
    try:
        yield
    finally:
        checking.cancel()
        with suppress(asyncio.CancelledError):
            await checking


async def _check(embedder: MeasuredEmbedder) -> None:
    try:
        await embedder.embed(["Recollect"])
    except Unavailable as error:
        log.warning("embedder check failed", reason=str(error))


@asynccontextmanager
async def reported_readiness(readiness: Readiness, seconds: float = REPORT_SECONDS) -> AsyncIterator[None]:
    """Report readiness to the metrics every `seconds`, from the start on."""
    reporting = asyncio.create_task(_keep_reporting(readiness, seconds), name="readiness")
    try:
        yield
    finally:
        reporting.cancel()
        with suppress(asyncio.CancelledError):
            await reporting


async def _keep_reporting(readiness: Readiness, seconds: float) -> None:
    with suppress_instrumentation():  # Spans are for calls, and this belongs to none.
        while True:
            record_readiness(is_ready=await _is_ready(readiness))
            await asyncio.sleep(seconds)


async def _is_ready(readiness: Readiness) -> bool:
    try:
        await readiness.require()
    except Unavailable:
        return False
    except Exception:
        log.exception("readiness check failed")
        return False
    return True
