"""Values of JSON documents, such as metadata."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from recollect.fairness.computing import collect_yielding

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def same_json(left: Any, right: Any) -> bool:
    """Whether two values are equal in JSON, where `true` is not `1`: in Python they are equal.

    Nothing here goes through the values one by one: metadata may have tens of thousands.
    """
    return left is right or (left == right and _as_written(left, right))


async def encoded_sizes(values: Iterable[Any]) -> list[int]:
    """The bytes that each of these values takes in JSON. Other calls go on in between."""
    return await collect_yielding(len(msgspec.json.encode(value)) for value in values)


def _as_written(left: Any, right: Any) -> bool:
    """Whether two values that Python takes for equal have numbers, and not true or false, at the same places."""
    ours, theirs = (msgspec.json.encode(value, order="sorted") for value in (left, right))
    return ours == theirs or _NUMBER.sub(b"0", ours) == _NUMBER.sub(b"0", theirs)  # 1 is 1.0. Equal texts stay equal.
