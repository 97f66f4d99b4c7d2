"""Comparison of JSON values, some of which Python takes for equal."""

from typing import Any

import pytest

from recollect.graph.json_values import same_json


@pytest.mark.parametrize("inside", [lambda v: v, lambda v: {"a": v}, lambda v: [v], lambda v: {"a": [0, {"b": v}]}])
def test_a_boolean_differs_from_a_number_at_any_depth(inside: Any) -> None:
    for truth, number in ((True, 1), (False, 0), (True, 1.0)):
        assert not same_json(inside(truth), inside(number))
        assert not same_json(inside(number), inside(truth))
        assert same_json(inside(truth), inside(truth))
        assert same_json(inside(number), inside(number))
    assert same_json(inside(1), inside(1.0)), "PostgreSQL compares numbers so, too"


@pytest.mark.parametrize("other", [{}, {"a": 1, "b": 2}, {"b": 1}, {"a": None}, {"a": [1]}, {"a": "1"}, [1], None])
def test_other_differences_are_found(other: Any) -> None:
    assert not same_json({"a": 1}, other)
