"""How many values a body holds is counted without parsing it: separators in texts are none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import ErrorCode, TooLarge
from recollect_gateway.bodies import MAX_VALUES, _values_of, require_few_values

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
    assert _values_of(json.dumps(value).encode()) == separators(value)


async def test_as_many_as_may_be_pass_and_one_more_does_not() -> None:
    await require_few_values(json.dumps([0] * MAX_VALUES).encode())
    await require_few_values(json.dumps(["," * 2 * MAX_VALUES]).encode())
    await require_few_values(b"[" * MAX_VALUES + b"is no JSON")
    with pytest.raises(TooLarge, match="Send less in one call") as refused:
        await require_few_values(json.dumps([0] * (MAX_VALUES + 1)).encode())
    assert refused.value.code == ErrorCode.REQUEST_TOO_LARGE
