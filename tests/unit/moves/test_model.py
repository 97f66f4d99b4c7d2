"""What a move requires of servers, how two cells are compared, and the generated statements."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from recollect.moves.model import (
    Contents,
    Move,
    ServerCapabilities,
    create_publication,
    create_subscription,
    differences,
    lacking,
    name_of,
    schema_mismatch,
)

TENANT = UUID("01a2088c-7f2c-707d-8055-f4df1c7adf6c")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOVE = Move(TENANT, "acme", "home", "b", "prepare", NOW, NOW)
ABLE = ServerCapabilities(180000, "logical", 10, 10, 4, 10, 2, True, True, True, True)
TABLES = 40
TWO_FREE = "b has 2 free replication origins"
FEW_ORIGINS = replace(ABLE, version=160004, free_origins=2)


def test_capable_servers_lack_nothing() -> None:
    assert lacking(MOVE, ABLE, ABLE, tables=TABLES) == []
    of_target_alone = replace(ABLE, wal_level="replica", free_slots=0, free_senders=0, may_replicate=False)
    assert lacking(MOVE, ABLE, of_target_alone, tables=TABLES) == []
    of_source_alone = replace(ABLE, version=150020, free_workers=0, free_origins=0, copies=0, may_subscribe=False)
    assert lacking(MOVE, of_source_alone, ABLE, tables=TABLES) == []
    assert lacking(MOVE, ABLE, replace(ABLE, version=150020, free_origins=41), tables=TABLES) == []


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (replace(ABLE, wal_level="replica"), ABLE, "wal_level of home is replica, not logical"),
        (replace(ABLE, free_slots=2), ABLE, "home has 2 free replication slots, not 3"),
        (replace(ABLE, free_senders=0), ABLE, "home has 0 free WAL senders, not 3"),
        (replace(ABLE, free_slots=4), replace(ABLE, copies=4), "home has 4 free replication slots, not 5"),
        (replace(ABLE, free_senders=4), replace(ABLE, copies=4), "home has 4 free WAL senders, not 5"),
        (ABLE, replace(ABLE, free_workers=1), "b has 1 free workers, not 2"),
        (ABLE, replace(ABLE, free_origins=2), f"{TWO_FREE} (max_active_replication_origins), not 3"),
        (ABLE, FEW_ORIGINS, f"{TWO_FREE} (max_replication_slots), not 3"),
        (ABLE, replace(FEW_ORIGINS, version=150020), f"{TWO_FREE} (max_replication_slots), not 41"),
        (replace(ABLE, may_replicate=False), ABLE, "the login at home may not replicate"),
        (replace(ABLE, may_publish=False), ABLE, "the login at home may not publish the tables"),
        (ABLE, replace(ABLE, may_subscribe=False), "the login at b may not subscribe"),
        (ABLE, replace(ABLE, may_erase=False), "the login at b may not set session_replication_role"),
    ],
)
def test_a_missing_capability_of_a_server_is_reported(
    source: ServerCapabilities, target: ServerCapabilities, message: str
) -> None:
    assert lacking(MOVE, source, target, tables=TABLES) == [message]


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        (["0001", "0002"], None),
        (["0001"], "b lacks 0002, which this command needs. Run `recollect migrate`"),
        ([], "b lacks 0001,"),
        (["0001", "0002", "0003"], "b has 0003, which this command does not know. Use the command of the version"),
        (["0001", "0003"], "b lacks 0002,"),
    ],
)
def test_a_cell_of_another_schema_version_is_reported_with_advice(applied: list[str], expected: str | None) -> None:
    message = schema_mismatch("b", applied, ["0001", "0002"])
    assert message is None if expected is None else message is not None and message.startswith(expected)


def test_tables_differ_by_row_count_digest_or_existence() -> None:
    nodes, jobs = Contents("nodes", 2, Decimal(5)), Contents("jobs", 0, None)
    assert differences([nodes, jobs], [jobs, nodes]) == []
    assert differences([nodes], [replace(nodes, total=1)]) == ["nodes (2 and 1 rows)"]
    assert differences([nodes], [replace(nodes, digest=Decimal(6))]) == ["nodes (2 and 2 rows)"]
    assert differences([nodes], [nodes, jobs]) == ["jobs (0 and 0 rows)"]
    assert differences([nodes, jobs], [nodes]) == ["jobs (0 and 0 rows)"]


def test_a_publication_contains_the_rows_of_one_tenant() -> None:
    text = create_publication(TENANT, ["nodes", "jobs"]).text
    assert text.count(f"WHERE (tenant_id = '{TENANT}')") == 2
    assert text.startswith(f"CREATE PUBLICATION {name_of(TENANT)} FOR TABLE ")


def test_the_address_of_a_subscription_is_quoted() -> None:
    assert "CONNECTION 'postgresql://x:it''s@b/recollect' PUBLICATION" in (
        create_subscription(TENANT, "postgresql://x:it's@b/recollect").text
    )
