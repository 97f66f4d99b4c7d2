"""Types and checks that tools and routes share: patterns, names of graphs, and bounded metadata."""

import re
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.graph.nodes.model import ACTIVE
from recollect.times import MAX_ZONE, explain_time_error

END = r"$(?!\n)"
"""The end of a text in a pattern. In Python `$` alone also matches before a final newline, which it does not in JSON
Schema: for schemas that others read, `plain_pattern` removes the rest."""

GRAPH_NAME = f"^[A-Za-z0-9_@-]{{1,128}}{END}"
GraphName = Annotated[str, Meta(pattern=GRAPH_NAME)]
"""The name of a graph."""


GraphChoice = Annotated[GraphName, Meta(description="Name or id of the graph; default: the credential's")]
AsOf = Annotated[
    Annotated[str, Meta(max_length=40)] | int,
    Meta(description="Read the graph as of this revision, or a time like 2027-01-31T12:00:00Z"),
]
"""The moment of the past as clients send it. A revision may be a number; `as_text` gives the text for use cases."""


MAX_ITEMS = 100
"""Items of one call of an agent, at most."""

VISIBLE = "has a visible character"
"""Marks a type of texts of which the parser refuses those that show nothing."""

Name = Annotated[str, Meta(min_length=1, max_length=512), VISIBLE]
SoughtName = Annotated[str, Meta(max_length=512)]
"""A name to look for: one that nothing can have is simply not there."""
Kind = Annotated[str, Meta(max_length=256)]
EntityType = Annotated[str, Meta(min_length=1, max_length=256), VISIBLE]
RelationType = Annotated[str, Meta(min_length=1, max_length=256), VISIBLE]
Text = Annotated[str, Meta(max_length=10_000), VISIBLE]
SoughtText = Annotated[str, Meta(max_length=10_000)]
"""A text to look for."""
Tag = Annotated[str, Meta(min_length=1, max_length=128), VISIBLE]
Importance = Annotated[float, Meta(ge=0, le=10)]
UP_TO = "up_to"
"""In `extra` of a time that is an upper bound: sent as a day, it is the end of that day."""

EMPTY_IS_A_VALUE = "empty_is_a_value"
"""In `extra` of an argument that may be left out, and whose empty text does not count as left out: it narrows what a
call takes away, which a client that fills in every argument must not widen, or it clears a field."""

Time = Annotated[datetime, Meta(tz=True)]
Until = Annotated[datetime, Meta(tz=True, extra={UP_TO: True})]
TimeZone = Annotated[
    str,
    Meta(
        max_length=MAX_ZONE,
        description="IANA time zone of who calls, for days, times without offset and `yesterday`; default: the graph's",
    ),
]
Ttl = Annotated[float, Meta(ge=0, le=3650)]
"""Days that a memory lasts; 0: for ever."""

Reason = Annotated[str, Meta(max_length=1_000)]
OBSERVATIONS_TO_SKIP = "Number of the newest observations to skip, where an answer had no room for all"
MAX_OBSERVATIONS_OFFSET = 10_000_000
ObservationsOffset = Annotated[int, Meta(ge=0, le=MAX_OBSERVATIONS_OFFSET, description=OBSERVATIONS_TO_SKIP)]


def plain_pattern(text: str) -> str:
    """A pattern, or a text that quotes one, with `$` for its end: some dialects know no lookahead."""
    return text.replace(END, "$").replace(repr(END)[1:-1], "$")


_BOUND = re.compile(
    r"^Expected `(?P<type>str|array|object|int|float|number)` (?P<of>of length )?(?P<sign>[<>]=?) (?P<bound>\S+)$"
)
_SIGNS = {"<=": "less than or equal to", ">=": "greater than or equal to", "<": "less than", ">": "greater than"}
_COUNTED = {"str": ("String", "character"), "array": ("Array", "element"), "object": ("Object", "key")}


def plain_words(message: str) -> str:
    """A message of the parser in the usual words of JSON validators, which the reference servers use."""
    match = _BOUND.match(message)
    if match is None:
        return plain_pattern(explain_time_error(message))
    bound = match["bound"].removesuffix(".0")
    if not match["of"]:
        return f"Number must be {_SIGNS[match['sign']]} {bound}"
    thing, part = _COUNTED[match["type"]]
    least_or_most = "at least" if match["sign"] == ">=" else "at most"
    return f"{thing} must contain {least_or_most} {bound} {part}{'' if bound == '1' else 's'}"


def check_metadata(metadata: dict[str, Any] | None, path: str, max_size: int) -> None:
    """Raise InvalidInput for metadata that takes more than `max_size` bytes of JSON."""
    if metadata and len(msgspec.json.encode(metadata)) > max_size:
        raise InvalidInput(f"Metadata too large (max {max_size} bytes)", path=path)


class OmittedObservations(Struct, frozen=True):
    """How many older observations of an entity an answer leaves out, and what tells the next of them."""

    count: int
    next: str


def omitted_observations(count: int, listed: int, tool: str) -> OmittedObservations | None:
    """The mark of observations that are left out, after the `listed` newest; None where none are.

    `tool`: what tells them, with the name of the argument that says how many were told before.
    """
    return OmittedObservations(count, f"{tool} {listed}") if count else None


def hidden_status(status: str) -> str | None:
    """The mark of what recall leaves out, `outdated` or `archived`; None of what is active."""
    return None if status == ACTIVE else status


def as_text(as_of: str | int | None) -> str | None:
    """The `as_of` of arguments as text; None for now."""
    return None if as_of is None else str(as_of)
