"""`recollect migrate`: migrate the database to this version."""

import asyncio
import os

from recollect.postgres import migrate as migrations
from recollect.settings import Settings
from recollect.settings.unknown import unknown_settings
from recollect_cli.tables import echo


def migrate() -> None:
    """Migrate the database to this version, and the database of each cell.

    Connects to RECOLLECT_OWNER_DATABASE_URL, or RECOLLECT_DATABASE_URL if that is unset.
    """
    settings = Settings()
    for unknown in unknown_settings(Settings.model_fields, os.environ):
        echo(str(unknown))
    for cell in settings.cell_names:
        url = settings.of_cell(cell).migration_url
        applied = asyncio.run(migrations.migrate(url, lock_timeout_seconds=settings.lock_timeout_seconds))
        of_cell = f" in the cell {cell}" if settings.cells else ""
        for name in applied:
            print(f"applied {name}{of_cell}")
        if not applied:
            print(f"nothing to do{of_cell}: the database is up to date")
