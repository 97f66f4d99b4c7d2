"""The number of values and the length of numbers are bounded before a body is parsed; strings do not count."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import ErrorCode, InvalidInput, TooLarge
from recollect.text.digits import MAX_DIGITS
from recollect_http.requests.bodies import MAX_VALUES, _count_values, require_quick_to_parse

TEXTS = st.text('ab,[{"\\\\', max_size=8)
VALUES = st.recursive(
    st.none() | st.integers(0, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def separators(value: Any) -> int:
    """How many separators a value has: one before its parts and one between each two."""
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(map(separators, value.values()))
    if isinstance(value, list):
        return 1 + max(len(value) - 1, 0) + sum(map(separators, value))
    return 0


@given(value=VALUES)
def test_separators_inside_strings_do_not_count(value: Any) -> None:
    assert _count_values(json.dumps(value).encode()) == separators(value)


async def test_a_body_with_one_value_too_many_is_refused() -> None:
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
async def test_numbers_within_the_bound_and_strings_of_digits_are_accepted(value: Any) -> None:
    await require_quick_to_parse(json.dumps(value).encode())


@pytest.mark.parametrize("number", [10**MAX_DIGITS, -(10**MAX_DIGITS), [1, {"a": 10**MAX_DIGITS}], ["\\", 10**4000]])
async def test_a_number_of_too_many_digits_is_refused(number: Any) -> None:
    with pytest.raises(InvalidInput, match=f"A number may have at most {MAX_DIGITS} digits"):
        await require_quick_to_parse(json.dumps(number).encode())
