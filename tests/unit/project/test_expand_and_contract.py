"""Migrations of a release keep what the previous release uses, because its processes run beside the new ones.

`make upgrade-drill` shows that the queries of the previous release still work. A migration that drops or renames
something says in a `-- contract:` comment that nothing uses it any more.
"""

import re

import pytest

from recollect.postgres.migrate import Migration, migrations

DROPS = re.compile(
    r"\bDROP\s+(?:TABLE|COLUMN|VIEW|MATERIALIZED\s+VIEW|FUNCTION|PROCEDURE|TYPE|DOMAIN|SCHEMA|SEQUENCE)\b"
    r"|\bRENAME\s+(?:TO|COLUMN)\b|\bRENAME\s+\w+\s+TO\b|\bSET\s+SCHEMA\b",
    re.IGNORECASE,
)
REPLACED = re.compile(
    r"\bDROP\s+(FUNCTION|VIEW)\s+(?:IF\s+EXISTS\s+)?(?P<name>\w+)[^;]*;(?=.*\bCREATE\s+\1\s+(?P=name)\b)", re.S
)
REASON = re.compile(r"^-- contract: \S.*$", re.MULTILINE)
"""`-- contract: nothing since 0.3.0 reads it`: the reason, with the release from which it is true."""


def breaks(migration: Migration) -> list[str]:
    """What a migration drops or renames without a reason. A function or view may be recreated in the same file."""
    left = REPLACED.sub("", migration.sql)
    found = DROPS.findall(re.sub(r"--.*$", "", left, flags=re.MULTILINE))
    return [] if REASON.search(migration.sql) else found


def test_a_migration_drops_nothing_that_the_previous_release_uses(subtests: pytest.Subtests) -> None:
    for migration in migrations():
        with subtests.test(migration.name):
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
def test_dropping_and_renaming_statements_are_recognized(sql: str, is_broken: bool) -> None:
    assert bool(breaks(Migration("9999_tried", sql))) is is_broken
