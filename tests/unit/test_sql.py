"""Reading a `queries.sql`: statements by name, with what they say alike put in."""

import pytest

from recollect.platform.sql import parse

FRAGMENT = """-- fragment: lives
-- Whether it lives.
removed_revision IS NULL;

"""


def test_a_fragment_stands_where_its_name_does() -> None:
    text = "-- name: count_live\n-- How many live.\nSELECT count(*) FROM nodes\nWHERE -- include: lives\nLIMIT 1;\n"
    statements = parse(FRAGMENT + text)
    assert statements == {"count_live": "SELECT count(*) FROM nodes\nWHERE removed_revision IS NULL\nLIMIT 1"}


def test_a_fragment_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="lives"):
        parse("-- name: count_live\n-- How many live.\nSELECT count(*) FROM nodes WHERE -- include: lives\n;\n")


@pytest.mark.parametrize("what", ["name", "fragment"])
def test_a_name_is_given_once(what: str) -> None:
    with pytest.raises(ValueError, match="alike"):
        parse(FRAGMENT + f"-- {what}: lives\n-- Another.\nSELECT 1;\n")
