"""Parsing a `queries.sql`: named statements, with shared fragments included."""

import pytest

from recollect.postgres.sql import Query, parse

FRAGMENT = """-- fragment: lives
-- Whether it lives.
removed_revision IS NULL;

"""


def test_a_fragment_is_inserted_where_it_is_included() -> None:
    text = "-- name: count_live\n-- How many live.\nSELECT count(*) FROM nodes\nWHERE -- include: lives\nLIMIT 1;\n"
    statements = parse(FRAGMENT + text)
    assert statements == {"count_live": "SELECT count(*) FROM nodes\nWHERE removed_revision IS NULL\nLIMIT 1"}


def test_a_fragment_may_include_others() -> None:
    text = "-- fragment: named\n-- Whether one has a name.\nname IS NOT NULL AND -- include: lives\n\n"
    statement = "-- name: count_named\n-- How many have names.\nSELECT count(*) FROM nodes WHERE -- include: named\n;\n"
    statements = parse(FRAGMENT + text + statement)
    assert statements["count_named"].endswith("WHERE name IS NOT NULL AND removed_revision IS NULL\n")


def test_a_missing_fragment_is_an_error() -> None:
    with pytest.raises(KeyError, match="lives"):
        parse("-- name: count_live\n-- How many live.\nSELECT count(*) FROM nodes WHERE -- include: lives\n;\n")


@pytest.mark.parametrize("what", ["name", "fragment"])
def test_a_duplicate_name_is_an_error(what: str) -> None:
    with pytest.raises(ValueError, match="alike"):
        parse(FRAGMENT + f"-- {what}: lives\n-- Another.\nSELECT 1;\n")


class TestQuery:
    def test_each_parameter_has_one_number_wherever_it_occurs(self) -> None:
        query = Query.compile("SELECT :id::uuid FROM nodes WHERE id = :id AND kind = ANY (:kinds::text[])")
        assert query.text == "SELECT $1::uuid FROM nodes WHERE id = $1 AND kind = ANY ($2::text[])"
        assert query.arguments({"kinds": ["person"], "id": 7}) == [7, ["person"]]

    def test_a_colon_in_a_word_is_no_parameter(self) -> None:
        query = Query.compile("SELECT tag -- prefix:value\nFROM tags WHERE text = ': '")
        assert query.parameters == ()

    @pytest.mark.parametrize("given", [{}, {"id": 1}, {"id": 1, "kind": "x", "tenant_id": 2}, {"id": 1, "kinds": "x"}])
    def test_missing_or_unknown_parameters_are_an_error(self, given: dict[str, object]) -> None:
        query = Query.compile("/* nodes.find */ SELECT :id, :kind")
        with pytest.raises(TypeError, match=r"/\* nodes.find \*/ has the parameters \['id', 'kind'\]"):
            query.arguments(given)

    def test_a_type_is_filled_in(self) -> None:
        query = Query.compile("SELECT embedding::{vector} <=> :vector::{vector}, '{}'::text[]")
        assert (
            query.with_types(vector="halfvec(3)").text
            == "SELECT embedding::halfvec(3) <=> $1::halfvec(3), '{}'::text[]"
        )

    @pytest.mark.parametrize("type_", ["halfvec(3); DROP TABLE nodes", "halfvec(-1)", "", "text[]"])
    def test_only_a_type_can_be_filled_in(self, type_: str) -> None:
        with pytest.raises(ValueError, match="is no type"):
            Query("SELECT 1::{vector}").with_types(vector=type_)
