"""Migrations of one release leave in place what the previous release names: its processes go on beside the new ones.

That its queries are taken, `make upgrade-drill` shows. What drops or renames says here that nobody names it any more.
"""

import re

import pytest

from recollect.platform.migrate import Migration, migrations

LAST_WITHOUT = "0043_waiting_work"
"""Written before any release that could be upgraded from."""

DROPS = re.compile(
    r"\bDROP\s+(?:TABLE|COLUMN|VIEW|MATERIALIZED\s+VIEW|FUNCTION|PROCEDURE|TYPE|DOMAIN|SCHEMA|SEQUENCE)\b"
    r"|\bRENAME\s+(?:TO|COLUMN)\b|\bRENAME\s+\w+\s+TO\b|\bSET\s+SCHEMA\b",
    re.IGNORECASE,
)
REPLACED = re.compile(
    r"\bDROP\s+(FUNCTION|VIEW)\s+(?:IF\s+EXISTS\s+)?(?P<name>\w+)[^;]*;(?=.*\bCREATE\s+\1\s+(?P=name)\b)", re.S
)
REASON = re.compile(r"^-- contract: \S.*$", re.MULTILINE)
"""`-- contract: nothing since 0.3.0 reads it`, which says from which release on."""


def breaks(migration: Migration) -> list[str]:
    """What it drops or renames without a reason. A function or view that is made anew in the same file is there."""
    left = REPLACED.sub("", migration.sql)
    found = DROPS.findall(re.sub(r"--.*$", "", left, flags=re.MULTILINE))
    return [] if REASON.search(migration.sql) else found


@pytest.mark.parametrize(
    "migration", [each for each in migrations() if each.name > LAST_WITHOUT], ids=lambda migration: migration.name
)
def test_a_migration_takes_nothing_away_that_the_previous_release_names(migration: Migration) -> None:
    assert breaks(migration) == []


@pytest.mark.parametrize(
    ("sql", "is_broken"),
    [
        ("ALTER TABLE graphs DROP COLUMN name;", True),
        ("ALTER TABLE graphs RENAME COLUMN name TO title;", True),
        ("ALTER TABLE graphs RENAME name TO title;", True),
        ("DROP FUNCTION told(uuid);", True),
        ("DROP FUNCTION told(uuid);\nCREATE FUNCTION told(uuid) RETURNS TABLE (a int, b int);", False),
        ("-- contract: nothing since 0.2.0 reads it\nALTER TABLE graphs DROP COLUMN name;", False),
        ("ALTER TABLE graphs ADD COLUMN title text; -- DROP TABLE is not meant", False),
        ("ALTER TABLE graphs DROP CONSTRAINT positive;", False),
    ],
)
def test_what_is_taken_for_taking_away(sql: str, is_broken: bool) -> None:
    assert bool(breaks(Migration("9999_tried", sql))) is is_broken
