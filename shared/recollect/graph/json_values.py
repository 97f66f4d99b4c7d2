"""Values of JSON documents, such as metadata."""

from typing import Any


def same_json(left: Any, right: Any) -> bool:
    """Whether two values are equal in JSON, where `true` is not `1`: in Python they are equal."""
    match left, right:
        case dict(), dict():
            return left.keys() == right.keys() and all(same_json(value, right[key]) for key, value in left.items())
        case list(), list():
            return len(left) == len(right) and all(map(same_json, left, right))
    return left == right and isinstance(left, bool) is isinstance(right, bool)
