"""`recollect migrate`: bring a database to this version."""

import asyncio

from recollect.platform import migrate as migrations
from recollect.settings import Settings


def migrate() -> None:
    """Apply the migrations that RECOLLECT_OWNER_DATABASE_URL (else RECOLLECT_DATABASE_URL) still lacks."""
    settings = Settings()
    applied = asyncio.run(
        migrations.migrate(settings.migration_url, lock_timeout_seconds=settings.lock_timeout_seconds)
    )
    for name in applied:
        print(f"applied {name}")
    if not applied:
        print("nothing to do: the database is up to date")
