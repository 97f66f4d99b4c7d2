"""Parsing the parameters of forms and queries."""

import pytest

from recollect_http.requests.urlencoded import MAX_FORM_BYTES, MalformedParameters, parameters


def test_each_parameter_has_one_value() -> None:
    assert parameters(b"a=1&b=&c=%C3%A4+o", limit=3) == {"a": ["1"], "b": [""], "c": ["\u00e4 o"]}


def test_only_repeatable_parameters_may_be_repeated() -> None:
    assert parameters(b"a=1&a=2&b=3", limit=3, several={"a", "c"}) == {"a": ["1", "2"], "b": ["3"]}
    with pytest.raises(MalformedParameters, match="twice"):
        parameters(b"a=1&b=3&b=3", limit=3, several={"a"})


@pytest.mark.parametrize(
    "hostile",
    [b"a=%00", b"a=%FF", b"a=\xc3\xa4", b"a=1&b=2&c=3&d=4", b"a=" + b"x" * MAX_FORM_BYTES],
    ids=["U+0000", "no UTF-8", "no ASCII", "too many", "too long"],
)
def test_malformed_parameters_are_refused(hostile: bytes) -> None:
    with pytest.raises(MalformedParameters):
        parameters(hostile, limit=3)
