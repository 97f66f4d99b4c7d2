"""What was remembered where. With `--keep` it stays, so that another run only asks: ranking is tuned that way."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from recollect.platform.migrate import migrate
from recollect.settings import Settings
from tests.benchmarks.memory import new_tenant


@dataclass(slots=True)
class Loaded:
    """The key of the tenant, the embedder, and for each graph the memory of each turn, in order."""

    key: str
    embedder: str
    graphs: dict[str, list[str]] = field(default_factory=dict)


def read_kept(path: Path, embedder: str) -> Loaded | None:
    """What is kept there, if anything is; raises RuntimeError where another embedder made it."""
    if not path.exists():
        return None
    kept = msgspec.json.decode(path.read_bytes(), type=Loaded)
    if kept.embedder != embedder:
        raise RuntimeError(f"{path.parent} was made with the embedder {kept.embedder}; take another folder")
    return kept


async def open_loaded(path: Path, settings: Settings) -> Loaded:
    """What is kept there, its database migrated, or a new tenant in a new database."""
    kept = read_kept(path, settings.embedder)
    if kept is None:
        _, key = await new_tenant(settings)
        return Loaded(key, settings.embedder)
    await migrate(settings.migration_url)
    return kept


def keep(path: Path, loaded: Loaded) -> None:
    """Write it down, readable by its owner only, since it holds a key."""
    path.touch(mode=0o600)
    os.truncate(path, 0)
    path.write_bytes(msgspec.json.encode(loaded))
