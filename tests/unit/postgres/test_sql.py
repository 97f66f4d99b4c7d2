"""Parsing a `queries.sql`: named statements, with shared fragments included."""

from pathlib import Path

import pytest

import recollect
from recollect.postgres.sql import Queries, Query, QueryPlan, parse

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


def test_a_query_may_say_how_it_is_planned() -> None:
    queries = Queries("recollect.retrieval.recall")
    assert Queries("recollect.retrieval.similarity").find_near_duplicates.plan is QueryPlan.WITH_VALUES
    assert queries.find_narrowed_candidates.with_types(vector="halfvec").plan is QueryPlan.WITH_VALUES
    assert queries.find_candidates.plan is None


def test_each_plan_in_a_file_is_read(subtests: pytest.Subtests) -> None:
    core = Path(recollect.__file__).parent
    for file in sorted(core.rglob("queries.sql")):
        package = ".".join(("recollect", *file.parent.relative_to(core).parts))
        with subtests.test(package):
            planned = [query for query in Queries(package).by_name.values() if query.plan]
            assert len(planned) == file.read_text(encoding="utf-8").count("-- plan: ")


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
