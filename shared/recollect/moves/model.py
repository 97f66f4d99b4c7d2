"""Moves of tenants: their steps, the comparison of two cells, and the DDL statements, which take no parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from recollect.postgres.sql import Query

HOLD_SECONDS = 30.0
"""The longest time for which a tenant's writes are refused, until the tenant is in its new cell."""

SWITCH_SECONDS = 10.0
"""How long only the mover of a tenant may end its switch, which takes some milliseconds."""

ROWS_AT_ONCE = 10_000
"""Rows that one statement erases, which takes a second or two."""

OWN = 1
"""Slots, WAL senders and replication origins of the process that follows the log, in addition to those of the table
copies."""

ORIGIN_ENDS_WITH_COPY = 160_000
"""The first version in which PostgreSQL drops the replication origin of a table's copy with the copy.

PostgreSQL 15 drops it once the target has followed the log to the point of the copy. Until then, which takes long
if much is written in the source, each table has one.
"""

MIN_SERVER_VERSION_FOR_ORIGIN_LIMIT = 180_000
"""The first version in which `max_replication_slots` does not limit replication origins."""

WORKERS = 2
"""Processes that the target needs: one follows the log, and one copies a table; it uses more if there are any."""

MAX_LAG_BYTES_AT_SWITCH = 16_000_000
"""Bytes of the log that the target may lag when the writes are held: PostgreSQL sends them in about a second."""


class Step(StrEnum):
    """The current step of a move, or the one at which it was interrupted."""

    PREPARE = "prepare"
    COPY = "copy"
    HOLD = "hold"
    CHECK = "check"
    SWITCH = "switch"
    CLEAN = "clean"
    UNDO = "undo"


class TenantState(StrEnum):
    """The state of a tenant in a cell that has rows of it."""

    HERE = "here"
    LEAVING = "leaving"
    ARRIVING = "arriving"
    DEPARTED = "departed"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as the mover reaches it, by a login that owns the tables and may replicate.

    `address_for_cells`: the address by which the other cells' servers reach it, in the same form.
    """

    name: str
    url: str
    address_for_cells: str


@dataclass(frozen=True, slots=True)
class Move:
    """A move that is under way. `id` and `slug` are the tenant's; `source` and `target` are names of cells."""

    id: UUID
    slug: str
    source: str
    target: str
    step: str
    began_at: datetime
    step_at: datetime


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """Options of a move.

    `hold`: the longest time for which writes are refused. `keep_source`: keep the rows in the source until the move is
    continued without this option. `switch`: how long after the departure only the mover may end the switch.
    """

    hold: timedelta = timedelta(seconds=HOLD_SECONDS)
    keep_source: bool = False
    index_memory_mb: int = 64
    switch: timedelta = timedelta(seconds=SWITCH_SECONDS)


@dataclass(frozen=True, slots=True)
class Contents:
    """A tenant's rows in one table: their number, and a digest of their contents."""

    name: str
    total: int
    digest: Decimal | None


@dataclass(frozen=True, slots=True)
class Copying:
    """Progress of the target: tables copied, tables in all, errors after which it began anew, whether it is enabled,
    and whether the process that follows the log hears from the source."""

    ready: int
    tables: int
    errors: int
    enabled: bool
    heard: bool


@dataclass(frozen=True, slots=True)
class SubscriptionWorkers:
    """The number of a subscription, the identifier of its server, and how many processes work on it."""

    number: int
    system: int
    workers: int


@dataclass(frozen=True, slots=True)
class Log:
    """The source's log for this move: by how many bytes the target is behind, and whether PostgreSQL has lost them."""

    behind: int
    lost: bool


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """The properties of a server that a move depends on.

    `version`: such as 160004. `copies`: how many tables it copies at once for one subscription.
    """

    version: int
    wal_level: str
    free_slots: int
    free_senders: int
    free_workers: int
    free_origins: int
    copies: int
    may_replicate: bool
    may_subscribe: bool
    may_publish: bool
    may_erase: bool


def lacking(move: Move, source: ServerCapabilities, target: ServerCapabilities, *, tables: int) -> list[str]:
    """The requirements of this move, with this many tables, that the servers do not meet; [] where they meet all."""
    slots = OWN + target.copies
    origins = OWN + (target.copies if target.version >= ORIGIN_ENDS_WITH_COPY else tables)
    setting = (
        "max_active_replication_origins"
        if target.version >= MIN_SERVER_VERSION_FOR_ORIGIN_LIMIT
        else "max_replication_slots"
    )
    requirements = [
        (source.wal_level == "logical", f"wal_level of {move.source} is {source.wal_level}, not logical"),
        (source.free_slots >= slots, f"{move.source} has {source.free_slots} free replication slots, not {slots}"),
        (source.free_senders >= slots, f"{move.source} has {source.free_senders} free WAL senders, not {slots}"),
        (
            target.free_workers >= WORKERS,
            f"{move.target} has {target.free_workers} free workers, not {WORKERS}",
        ),
        (
            target.free_origins >= origins,
            f"{move.target} has {target.free_origins} free replication origins ({setting}), not {origins}",
        ),
        (source.may_replicate, f"the login at {move.source} may not replicate"),
        (source.may_publish, f"the login at {move.source} may not publish the tables"),
        (target.may_subscribe, f"the login at {move.target} may not subscribe"),
        (source.may_erase, f"the login at {move.source} may not set session_replication_role"),
        (target.may_erase, f"the login at {move.target} may not set session_replication_role"),
    ]
    return [problem for is_met, problem in requirements if not is_met]


def schema_mismatch(cell: str, applied: Sequence[str], own: Sequence[str]) -> str | None:
    """Why a process with its `own` migrations cannot work on a cell where others are `applied`, and what to do.

    None where they are the same.
    """
    if lacks := [name for name in own if name not in applied]:
        return (
            f"{cell} lacks {lacks[0]}, which this command needs. Run `recollect migrate`, then run this command again."
        )
    if unknown := [name for name in applied if name not in own]:
        return (
            f"{cell} has {unknown[0]}, which this command does not know. Use the command of the version that migrated "
            "the cell."
        )
    return None


def differences(source: Sequence[Contents], target: Sequence[Contents]) -> list[str]:
    """The tables whose rows differ, each with its number of rows in both cells; [] where all are equal."""
    in_target: Mapping[str, Contents] = {contents.name: contents for contents in target}
    empty = Contents("", 0, None)
    different = [
        f"{table.name} ({table.total} and {in_target.get(table.name, empty).total} rows)"
        for table in source
        if in_target.get(table.name) != table
    ]
    only_in_target = sorted(in_target.keys() - {table.name for table in source})
    return different + [f"{name} (0 and {in_target[name].total} rows)" for name in only_in_target]


def name_of(tenant_id: UUID) -> str:
    """The common name of publication, slot and subscription of a tenant's move: 47 characters of 63."""
    return f"recollect_move_{tenant_id.hex}"


def create_publication(tenant_id: UUID, tables: Sequence[str]) -> Query:
    """The DDL that publishes only a tenant's rows of these tables; those of search vectors by their root table."""
    rows = ", ".join(f"\"{table}\" WHERE (tenant_id = '{UUID(str(tenant_id))}')" for table in tables)
    return Query(f"CREATE PUBLICATION {name_of(tenant_id)} FOR TABLE {rows} WITH (publish_via_partition_root = true)")


def create_subscription(tenant_id: UUID, address: str) -> Query:
    """The DDL by which a target copies the rows and follows the log.

    The slot is created before: on one server, the two statements would wait for each other.
    """
    name, quoted = name_of(tenant_id), address.replace("'", "''")
    return Query(
        f"CREATE SUBSCRIPTION {name} CONNECTION '{quoted}' PUBLICATION {name} "
        f"WITH (create_slot = false, slot_name = '{name}')"
    )


def stop_subscription(tenant_id: UUID) -> Query:
    """The DDL that stops a target from following the log."""
    return Query(f"ALTER SUBSCRIPTION {name_of(tenant_id)} DISABLE")


def drop_subscription(tenant_id: UUID) -> tuple[Query, ...]:
    """The DDL that drops a stopped subscription. Its slot stays in the source, and is dropped there."""
    name = name_of(tenant_id)
    return (
        Query(f"ALTER SUBSCRIPTION {name} SET (slot_name = NONE)"),
        Query(f"DROP SUBSCRIPTION {name}"),
    )


def drop_publication(tenant_id: UUID) -> Query:
    """The DDL that drops the publication of a tenant's rows."""
    return Query(f"DROP PUBLICATION IF EXISTS {name_of(tenant_id)}")
