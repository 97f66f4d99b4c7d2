"""What tools and routes take alike: patterns, the names of graphs, and metadata within its bound."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from recollect.errors import InvalidInput

END = r"$(?!\n)"
"""The end of a text in a pattern. To Python `$` alone is also before a last line's end, which to JSON Schema it is not:
where a schema is for others to read, `plain_pattern` takes the rest away."""

GRAPH_NAME = f"^[A-Za-z0-9_@-]{{1,128}}{END}"
GraphName = Annotated[str, Meta(pattern=GRAPH_NAME)]
"""What may name a graph."""


def plain_pattern(said: str) -> str:
    """A pattern, or what is said of one, with `$` for its end, as every dialect reads it: some know no lookahead."""
    return said.replace(END, "$").replace(repr(END)[1:-1], "$")


def check_metadata(metadata: dict[str, Any] | None, path: str, max_size: int) -> None:
    """Raise InvalidInput for metadata that takes more than `max_size` bytes of JSON."""
    if metadata and len(msgspec.json.encode(metadata)) > max_size:
        raise InvalidInput(f"Metadata too large (max {max_size} bytes)", path=path)
