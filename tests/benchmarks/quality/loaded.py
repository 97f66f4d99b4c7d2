"""The loaded conversations. `--keep` keeps them, so that another run only asks, for tuning the ranking."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from recollect.postgres.migrate import migrate
from recollect.settings import Settings
from tests.benchmarks.memory import new_tenant


@dataclass(slots=True)
class Loaded:
    """The key of the tenant, the embedder, and for each graph the memory of each turn, in order."""

    key: str
    embedder: str
    graphs: dict[str, list[str]] = field(default_factory=dict)


def read_kept(path: Path, embedder: str) -> Loaded | None:
    """The kept conversations, if there are any; raises RuntimeError if another embedder was used for them."""
    if not path.exists():
        return None
    kept = msgspec.json.decode(path.read_bytes(), type=Loaded)
    if kept.embedder != embedder:
        raise RuntimeError(f"{path.parent} was made with the embedder {kept.embedder}; take another folder")
    return kept


async def open_loaded(path: Path, settings: Settings) -> Loaded:
    """The kept conversations, with their database migrated, or a new tenant in a new database."""
    kept = read_kept(path, settings.embedder)
    if kept is None:
        _, key = await new_tenant(settings)
        return Loaded(key, settings.embedder)
    await migrate(settings.migration_url)
    return kept


def keep(path: Path, loaded: Loaded) -> None:
    """Write the file, readable by its owner only, because it contains a key."""
    path.touch(mode=0o600)
    os.truncate(path, 0)
    path.write_bytes(msgspec.json.encode(loaded))
