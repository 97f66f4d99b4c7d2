"""Every argument of a tool that is a time takes a day alone, whatever the tool."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args, get_origin

import msgspec
import pytest

from recollect.errors import InvalidInput, InvalidInputs
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from recollect_gateway.requests.lenient_parsing import parse_leniently
from recollect_http.requests.parsing import unwrapped

DAY = "2026-11-25"
TIMES = {
    *("remember.items.0.at", "recall.since", "recall.until", "archive_entities.olderThan", "put_node.freshness_at"),
    *("put_node.at", "get_node_by_lineage.at_time", "usage.from", "usage.to"),
}
"""Those there are at least. Others are texts which the tool reads itself (`as_of`, `startDate`), or numbers."""


def times_of(type_: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of the times among the arguments of a type; 0 stands for an item of a list."""
    inner, _ = unwrapped(type_)
    if inner is datetime:
        yield path
    elif get_origin(inner) is list:
        yield from times_of(get_args(inner)[0], (*path, "0"))
    elif isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        for field in msgspec.structs.fields(inner):
            yield from times_of(field.type, (*path, field.encode_name))


def test_a_day_is_taken_wherever_a_time_is(subtests: pytest.Subtests) -> None:
    seen = set()
    for tool in CATALOGUE:
        for path in times_of(tool.arguments):
            seen.add(".".join((tool.name, *path)))
            with subtests.test(tool.name, path=path):
                assert ".".join(path) not in faults(tool.arguments, at(path, DAY))
                assert ".".join(path) in faults(tool.arguments, at(path, "no day"))
    assert seen >= TIMES


@pytest.mark.parametrize("text", ["tomorrow", "28.11.2026 10:00", "2026-13-01", "10:00"])
def test_what_is_no_time_is_refused_without_a_word_on_offsets(text: str) -> None:
    """Tools take days and times without an offset: a message about offsets would lead the agent astray."""
    recall = next(tool for tool in CATALOGUE if tool.name == "recall")
    with pytest.raises(InvalidInput, match=r"^since: Must be a time, such as 2026-11-20T00:00:00Z$"):
        parse_leniently(recall.arguments, {"query": "tea", "since": text})


def at(path: tuple[str, ...], value: str) -> Any:
    """Arguments with a value at this path, and nothing else."""
    for name in reversed(path):
        value = [value] if name == "0" else {name: value}  # type: ignore[assignment]
    return value


def faults(type_: type[msgspec.Struct], arguments: Any) -> set[str | None]:
    """The paths of the faults of some arguments."""
    try:
        parse_leniently(type_, arguments)
    except InvalidInputs as error:
        return {fault.path for fault in error.faults}
    except InvalidInput as error:
        return {error.path}
    return set()
