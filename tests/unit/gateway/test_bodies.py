"""How many values a body holds and how long its numbers are is seen without parsing it; what texts say is left out."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import ErrorCode, InvalidInput, TooLarge
from recollect.numbers import MAX_DIGITS
from recollect_gateway.bodies import MAX_VALUES, _count_values, require_quick_to_parse

TEXTS = st.text('ab,[{"\\\\', max_size=8)
VALUES = st.recursive(
    st.none() | st.integers(0, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def separators(value: Any) -> int:
    """Those between the parts of a value and before them."""
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(map(separators, value.values()))
    if isinstance(value, list):
        return 1 + max(len(value) - 1, 0) + sum(map(separators, value))
    return 0


@given(value=VALUES)
def test_what_stands_in_texts_does_not_count(value: Any) -> None:
    assert _count_values(json.dumps(value).encode()) == separators(value)


async def test_as_many_as_may_be_pass_and_one_more_does_not() -> None:
    await require_quick_to_parse(json.dumps([0] * MAX_VALUES).encode())
    await require_quick_to_parse(json.dumps(["," * 2 * MAX_VALUES]).encode())
    await require_quick_to_parse(b"[" * MAX_VALUES + b"is no JSON")
    with pytest.raises(TooLarge, match="Send less in one call") as refused:
        await require_quick_to_parse(json.dumps([0] * (MAX_VALUES + 1)).encode())
    assert refused.value.code == ErrorCode.REQUEST_TOO_LARGE


@pytest.mark.parametrize(
    "value",
    [
        10**MAX_DIGITS - 1,
        [10**MAX_DIGITS - 1, -(10**MAX_DIGITS - 1)],
        "7" * 10 * MAX_DIGITS,
        {"7" * 10 * MAX_DIGITS: '"' + "7" * 10 * MAX_DIGITS},
        ["\\", "7" * 10 * MAX_DIGITS],
    ],
)
async def test_numbers_that_are_not_too_long_and_texts_of_digits_pass(value: Any) -> None:
    await require_quick_to_parse(json.dumps(value).encode())


@pytest.mark.parametrize("number", [10**MAX_DIGITS, -(10**MAX_DIGITS), [1, {"a": 10**MAX_DIGITS}], ["\\", 10**4000]])
async def test_a_number_of_too_many_digits_does_not(number: Any) -> None:
    with pytest.raises(InvalidInput, match=f"A number may have at most {MAX_DIGITS} digits"):
        await require_quick_to_parse(json.dumps(number).encode())
