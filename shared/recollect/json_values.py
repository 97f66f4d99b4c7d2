"""Values of JSON documents, such as metadata."""

from typing import Any


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where `true` is not `1`: Python takes those for equal."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
        case list(), list():
            return len(one) == len(other) and all(map(same_json, one, other))
    return one == other and isinstance(one, bool) is isinstance(other, bool)
