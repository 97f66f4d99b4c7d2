"""A worker tells what its configuration lacks: no connection that builds indexes, a secret that fits no key."""

import asyncio
from pathlib import Path

from pydantic import SecretStr
from structlog.testing import capture_logs

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers.configuration import warn_of_missing_indexes, warn_of_other_secret
from tests.support.gateway import issue_key
from tests.support.workers import working

MISSING = "no vector index will be built, and recall gets slower as graphs grow"


async def test_a_worker_without_its_maintenance_database_says_so(settings: Settings, tmp_path: Path) -> None:
    with working(settings.model_copy(update={"maintenance_database_url": None}), tmp_path) as worker:
        await asyncio.to_thread(worker.wait_for, MISSING)
        [line] = worker.lines(MISSING)
    assert (line["level"], line["missing"]) == ("warning", "RECOLLECT_MAINTENANCE_DATABASE_URL")


def test_a_worker_that_can_build_indexes_says_nothing(settings: Settings) -> None:
    with capture_logs() as logs:
        warn_of_missing_indexes(settings.model_copy(update={"maintenance_database_url": "postgresql://x@y/z"}))
    assert logs == []


async def test_a_secret_with_which_no_key_is_hashed_is_told(settings: Settings, db: Database, caller: Caller) -> None:
    await issue_key(db, settings, caller)
    own = settings.model_copy(update={"maintenance_database_url": settings.migration_url})
    other = own.model_copy(update={"key_secret": SecretStr("another secret of thirty-two bytes")})
    unreachable = other.model_copy(update={"maintenance_database_url": "postgresql://nobody@127.0.0.1:9/nowhere"})
    told = []
    for each in (own, other, unreachable):
        with capture_logs() as logs:
            await warn_of_other_secret(each)
        told.append([line["event"] for line in logs if line["log_level"] == "warning"])
    assert told[0] == told[2] == []
    [event] = told[1]
    assert event.startswith("no valid API key is known to be hashed with RECOLLECT_KEY_SECRET")
