"""Queries live in `queries.sql` files: a name, a sentence, the statement.

    -- name: find_graph
    -- The graph of that name.
    SELECT … ;

`queries = Queries(__package__)` reads the file when the first query is asked for.
"""

import re
from functools import cached_property
from importlib.resources import files

_HEADER = re.compile(r"^-- name: (?P<name>[a-z_]+)$", re.MULTILINE)
_DESCRIPTION = re.compile(r"\A(--[^\n]*\n)+")


class Queries:
    """The named statements of one package's `queries.sql`, as attributes."""

    def __init__(self, package: str) -> None:
        self.package = package

    @cached_property
    def statements(self) -> dict[str, str]:
        """Every statement by its name, which it also carries as a comment: for whoever reads a slow-query log."""
        named = parse((files(self.package) / "queries.sql").read_text(encoding="utf-8"))
        capability = self.package.rpartition(".")[2]
        return {name: f"/* {capability}.{name} */ {statement}" for name, statement in named.items()}

    def __getattr__(self, name: str) -> str:
        try:
            return self.statements[name]
        except KeyError:
            raise AttributeError(f"{self.package}/queries.sql has no query named {name}") from None


def parse(text: str) -> dict[str, str]:
    """Split a `queries.sql` into its statements, without their descriptions; a name given twice is an error."""
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    bodies = [_DESCRIPTION.sub("", text[h.end() : end].strip()) for h, end in zip(headers, ends, strict=True)]
    statements = {h["name"]: body.rstrip(";") for h, body in zip(headers, bodies, strict=True)}
    if len(statements) != len(headers):
        raise ValueError("a queries.sql names two queries alike")
    return statements
