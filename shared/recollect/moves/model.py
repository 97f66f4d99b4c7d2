"""A move of a tenant: its steps, what two cells are compared by, and the statements that take no parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from recollect.platform.sql import Query

HOLD_SECONDS = 30.0
"""How long a tenant's writes are refused at most, from when they are held until the tenant is in its new cell."""

SWITCH_SECONDS = 10.0
"""How long nobody but whoever moves a tenant ends its switch, which takes that one some milliseconds."""

ROWS_AT_ONCE = 10_000
"""Rows that one statement erases, which takes a second or two."""

OWN = 1
"""Slots, WAL senders and replication origins that a move takes for what follows the log, beside those of its copies."""

ORIGIN_ENDS_WITH_COPY = 160_000
"""The version from which on PostgreSQL drops a copy's replication origin with the copy.

PostgreSQL 15 drops it once the target has followed the log to where the table was copied. Until then, which is long
where much is written in the source, each table has one.
"""

ORIGINS_HAVE_A_SETTING = 180_000
"""The version from which on `max_replication_slots` no longer says how many replication origins there may be."""

WORKERS = 2
"""Processes of the target: one that follows, and one that copies a table; it takes another one where there is."""

NEARLY_THERE = 16_000_000
"""Bytes of the log that the target may be behind when the writes are held: PostgreSQL sends them in about a second."""


class Step(StrEnum):
    """What is being done, or was when it was interrupted."""

    PREPARE = "prepare"
    COPY = "copy"
    HOLD = "hold"
    CHECK = "check"
    SWITCH = "switch"
    CLEAN = "clean"
    UNDO = "undo"


class TenantPlace(StrEnum):
    """What a cell says of a tenant of which it has rows."""

    HERE = "here"
    LEAVING = "leaving"
    ARRIVING = "arriving"
    DEPARTED = "departed"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as whoever moves a tenant reaches it, by a login that owns the tables and may replicate.

    `address_for_cells`: where the other cells' servers reach it, in the same form.
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
    """`hold`: how long writes are refused at most. `keep_source`: the rows stay in the source, until told otherwise.

    `switch`: how long after the tenant departed nobody else ends the switch.
    """

    hold: timedelta = timedelta(seconds=HOLD_SECONDS)
    keep_source: bool = False
    index_memory_mb: int = 64
    switch: timedelta = timedelta(seconds=SWITCH_SECONDS)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a tenant has in one table: rows, and a sum that differs where any of them does."""

    name: str
    total: int
    digest: Decimal | None


@dataclass(frozen=True, slots=True)
class Copying:
    """How far the target is: tables copied, of how many; errors that made it begin anew; whether it is at work; and
    whether what follows the log hears from the source."""

    ready: int
    tables: int
    errors: int
    enabled: bool
    heard: bool


@dataclass(frozen=True, slots=True)
class SubscriptionWorkers:
    """The number of a subscription, the identifier of its server, and how many processes are at work on it."""

    number: int
    system: int
    workers: int


@dataclass(frozen=True, slots=True)
class Log:
    """The source's log for this move: the bytes that the target lacks, and whether PostgreSQL still has them."""

    behind: int
    lost: bool


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """What a server says of itself, as far as a move needs it.

    `version`: as 160004. `copies`: tables that it copies at once for one subscription.
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
    """What keeps these servers from doing this move of so many tables; [] where nothing does."""
    slots = OWN + target.copies
    origins = OWN + (target.copies if target.version >= ORIGIN_ENDS_WITH_COPY else tables)
    setting = "max_active_replication_origins" if target.version >= ORIGINS_HAVE_A_SETTING else "max_replication_slots"
    needs = [
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
    return [told for given, told in needs if not given]


def unlike_schema(cell: str, applied: Sequence[str], own: Sequence[str]) -> str | None:
    """What keeps whoever has these migrations of its `own` from a cell where others are `applied`, and what to do.

    None where they are the same.
    """
    if lacks := [name for name in own if name not in applied]:
        return f"{cell} lacks {lacks[0]}, which this command needs. Run `recollect migrate`, then say this again."
    if unknown := [name for name in applied if name not in own]:
        return f"{cell} has {unknown[0]}, which this command does not know. Use that of the version that migrated it."
    return None


def differences(source: Sequence[Contents], target: Sequence[Contents]) -> list[str]:
    """The tables whose rows are not equal, each with how many rows there are in either; [] where all are."""
    there: Mapping[str, Contents] = {contents.name: contents for contents in target}
    nothing = Contents("", 0, None)
    return [
        f"{each.name} ({each.total} and {there.get(each.name, nothing).total} rows)"
        for each in source
        if there.get(each.name) != each
    ] + [f"{name} (0 and {there[name].total} rows)" for name in sorted(there.keys() - {each.name for each in source})]


def name_of(tenant_id: UUID) -> str:
    """What publication, slot and subscription of a tenant's move are called, all three: 47 characters of 63."""
    return f"recollect_move_{tenant_id.hex}"


def create_publication(tenant_id: UUID, tables: Sequence[str]) -> Query:
    """The DDL that publishes a tenant's rows of these tables, and no others; for the searched vectors by their root."""
    rows = ", ".join(f"\"{table}\" WHERE (tenant_id = '{UUID(str(tenant_id))}')" for table in tables)
    return Query(f"CREATE PUBLICATION {name_of(tenant_id)} FOR TABLE {rows} WITH (publish_via_partition_root = true)")


def create_subscription(tenant_id: UUID, address: str) -> Query:
    """The DDL that has a target copy and follow.

    The slot is made before: on one server the two would wait for each other.
    """
    name, quoted = name_of(tenant_id), address.replace("'", "''")
    return Query(
        f"CREATE SUBSCRIPTION {name} CONNECTION '{quoted}' PUBLICATION {name} "
        f"WITH (create_slot = false, slot_name = '{name}')"
    )


def stop_subscription(tenant_id: UUID) -> Query:
    """The DDL that has a target follow no longer."""
    return Query(f"ALTER SUBSCRIPTION {name_of(tenant_id)} DISABLE")


def drop_subscription(tenant_id: UUID) -> tuple[Query, ...]:
    """The DDL that forgets a subscription that was stopped. Its slot stays in the source, and is dropped there."""
    name = name_of(tenant_id)
    return (
        Query(f"ALTER SUBSCRIPTION {name} SET (slot_name = NONE)"),
        Query(f"DROP SUBSCRIPTION {name}"),
    )


def drop_publication(tenant_id: UUID) -> Query:
    """The DDL that publishes a tenant's rows no longer."""
    return Query(f"DROP PUBLICATION IF EXISTS {name_of(tenant_id)}")
