"""The language of the boolean search: what queries mean, which are refused, and the plan of a query."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput
from recollect.retrieval.search.boolean import (
    MAX_CONJUNCTIONS,
    MAX_DEPTH,
    MAX_TERMS,
    AllOf,
    AnyOf,
    Expression,
    Not,
    SubstringTerm,
    parse,
    plan,
)
from tests.support.expressions import EXPRESSIONS, holds, written


def shape(expression: Expression) -> Any:
    """Nested tuples, without depths."""
    match expression:
        case SubstringTerm():
            return expression.text if expression.field is None else (expression.field, expression.text)
        case Not():
            return ("NOT", shape(expression.of))
        case AllOf():
            return ("AND", *map(shape, expression.of))
        case AnyOf():
            return ("OR", *map(shape, expression.of))


@pytest.mark.proves("enhanced-server: boolean-search")
@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("tea", "tea"),
        ("name:Alice", ("name", "Alice")),
        ("NAME:Alice", ("name", "Alice")),
        ("entityType:person", ("type", "person")),
        ("observations:x", ("observation", "x")),
        ("tags:x", ("tag", "x")),
        ("name: Alice", ("name", "Alice")),
        ("a b", ("AND", "a", "b")),
        ("a AND b AND c", ("AND", "a", "b", "c")),
        ("a and b", ("AND", "a", "b")),
        ("a OR b AND c", ("OR", "a", ("AND", "b", "c"))),
        ("(a OR b) AND c", ("AND", ("OR", "a", "b"), "c")),
        ("NOT a b", ("AND", ("NOT", "a"), "b")),
        ("NOT (a b)", ("NOT", ("AND", "a", "b"))),
        ("NOT NOT a", ("NOT", ("NOT", "a"))),
        ("NOT(a)OR(b)", ("OR", ("NOT", "a"), "b")),
        ('"AND" "a b"', ("AND", "AND", "a b")),
        ('name:"Alice (the \\"first\\") \\\\ \\n"', ("name", 'Alice (the "first") \\ \\n')),
        ("name:AND", ("name", "AND")),
        ("android nothing ore", ("AND", "android", "nothing", "ore")),
        ("https://example.org foo:bar", ("AND", "https://example.org", "foo:bar")),
        ("100% it's _x_", ("AND", "100%", "it's", "_x_")),
        ("東京 😀", ("AND", "東京", "😀")),
        (
            "name:Alice AND (type:person OR observation:engineer)",
            ("AND", ("name", "Alice"), ("OR", ("type", "person"), ("observation", "engineer"))),
        ),
    ],
)
def test_a_query_is_parsed(query: str, meant: Any) -> None:
    assert shape(parse(query)) == meant


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "A term is missing at the end"),
        (" ", "A term is missing at the end"),
        ("a OR", "A term is missing at the end"),
        ("NOT", "A term is missing at the end"),
        ("name:", "A term is missing at the end"),
        ("(a OR b", "A ) is missing at the end"),
        ("a )", "Unexpected ) at character 3"),
        ("()", "Unexpected ) at character 2"),
        ("AND a", "Unexpected AND at character 1"),
        ("a AND OR b", "Unexpected OR at character 7"),
        ('a "b c', 'The quote at character 3 is not closed with "'),
        ("NOT " * (MAX_DEPTH + 1) + "a", f"At most {MAX_DEPTH} levels of nested operators"),
    ],
)
def test_a_syntax_error_is_reported_with_its_position(query: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(query)
    assert (refused.value.message, refused.value.path) == (message, "query")


@given(st.text(alphabet='ab ()":\\ANDORNOT', max_size=60))
def test_any_text_is_parsed_or_refused(query: str) -> None:
    with suppress(InvalidInput):
        assert plan(parse(query)).conjunctions is not None


def test_parentheses_nest_as_deep_as_a_query_is_long() -> None:
    assert shape(parse("(" * 400 + "a" + ")" * 400)) == "a"


def test_a_query_with_too_many_terms_or_alternatives_is_refused() -> None:
    with pytest.raises(InvalidInput, match=f"this query has {MAX_TERMS + 1}"):
        plan(parse(" ".join(f"t{n}" for n in range(MAX_TERMS + 1))))
    with pytest.raises(InvalidInput, match=f"more than {MAX_CONJUNCTIONS} alternatives"):
        plan(parse(" ".join(f"(a{n} OR b{n})" for n in range(10))))
    assert len(plan(parse(" ".join(f"(a{n} OR b{n})" for n in range(9)))).conjunctions) == 512


@given(EXPRESSIONS)
def test_a_written_query_parses_to_the_same_expression(expression: Expression) -> None:
    assert shape(parse(written(expression))) == shape(expression)


@given(expression=EXPRESSIONS, matched=st.sets(st.sampled_from("abcde")))
def test_the_plan_of_a_query_matches_what_its_expression_matches(expression: Expression, matched: set[str]) -> None:
    """For any set of matching terms, the bits of the plan give the result of the expression."""
    planned = plan(expression)
    bits = sum(1 << n for n, term in enumerate(planned.terms) if term.text in matched)
    by_plan = any(bits & required == required and not bits & forbidden for required, forbidden in planned.conjunctions)
    assert by_plan == holds(expression, lambda term: term.text in matched)
    assert planned.is_universal or not holds(expression, lambda _: False)
