"""What tools and routes take alike: patterns, the names of graphs, and metadata within its bound."""

import re
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from recollect.errors import InvalidInput
from recollect.times import in_plain_words

END = r"$(?!\n)"
"""The end of a text in a pattern. To Python `$` alone is also before a last line's end, which to JSON Schema it is not:
where a schema is for others to read, `plain_pattern` takes the rest away."""

GRAPH_NAME = f"^[A-Za-z0-9_@-]{{1,128}}{END}"
GraphName = Annotated[str, Meta(pattern=GRAPH_NAME)]
"""What may name a graph."""


GraphChoice = Annotated[GraphName, Meta(description="Its name or id; default: the credential's")]
AsOf = Annotated[
    Annotated[str, Meta(max_length=40)] | int,
    Meta(description="Read as it was: a revision, or a time like 2027-01-31T12:00:00Z"),
]
"""As it is told. A revision may come as a number; `as_text` makes it the text that use cases take."""


MAX_ITEMS = 100
"""Items of one call of an agent, at most."""

Name = Annotated[str, Meta(min_length=1, max_length=512)]
SoughtName = Annotated[str, Meta(max_length=512)]
"""A name to look for: one that nothing can have is simply not there."""
Kind = Annotated[str, Meta(max_length=256)]
EntityType = Annotated[str, Meta(min_length=1, max_length=256)]
RelationType = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(max_length=10_000)]
Tag = Annotated[str, Meta(min_length=1, max_length=128)]
Importance = Annotated[float, Meta(ge=0, le=10)]
Time = Annotated[datetime, Meta(tz=True)]
Ttl = Annotated[float, Meta(ge=0, le=3650)]
"""Days that a memory lasts; 0: for ever."""

Reason = Annotated[str, Meta(max_length=1_000)]


def plain_pattern(said: str) -> str:
    """A pattern, or what is said of one, with `$` for its end, as every dialect reads it: some know no lookahead."""
    return said.replace(END, "$").replace(repr(END)[1:-1], "$")


_BOUND = re.compile(
    r"^Expected `(?P<type>str|array|object|int|float|number)` (?P<of>of length )?(?P<sign>[<>]=?) (?P<bound>\S+)$"
)
_SIGNS = {"<=": "less than or equal to", ">=": "greater than or equal to", "<": "less than", ">": "greater than"}
_COUNTED = {"str": ("String", "character"), "array": ("Array", "element"), "object": ("Object", "key")}


def plain_words(said: str) -> str:
    """What the parser says, in the words that validators of JSON are known for, which the references quote."""
    match = _BOUND.match(said)
    if match is None:
        return plain_pattern(in_plain_words(said))
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


def as_text(told: str | int | None) -> str | None:
    """The `as_of` of arguments as text; None for now."""
    return None if told is None else str(told)
