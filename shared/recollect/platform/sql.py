"""Queries live in `queries.sql` files: a name, a sentence, the statement.

    -- name: find_graph
    -- The graph of that name.
    SELECT … ;

What several of them say alike is a fragment, likewise named and described, and stands where a line ends in its name:

    WHERE -- include: fits

`queries = Queries(__package__)` reads the file when the first query is asked for.
"""

import re
from functools import cached_property
from importlib.resources import files

_HEADER = re.compile(r"^-- (?P<what>name|fragment): (?P<name>[a-z_]+)$", re.MULTILINE)
_INCLUDE = re.compile(r"-- include: (?P<name>[a-z_]+)$", re.MULTILINE)
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
        statements = self.statements
        try:
            return statements[name]
        except KeyError:
            raise AttributeError(f"{self.package}/queries.sql has no query named {name}") from None


def parse(text: str) -> dict[str, str]:
    """Split a `queries.sql` into its statements, without descriptions and with fragments put in.

    Raises ValueError for a name given twice, KeyError for a fragment that is not there.
    """
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    bodies = [_DESCRIPTION.sub("", text[h.end() : end].strip()) for h, end in zip(headers, ends, strict=True)]
    named = {h["name"]: body.rstrip(";") for h, body in zip(headers, bodies, strict=True)}
    if len(named) != len(headers):
        raise ValueError("a queries.sql names two queries alike")
    fragments = {h["name"]: named.pop(h["name"]) for h in headers if h["what"] == "fragment"}
    return {
        name: _INCLUDE.sub(lambda included: fragments[included["name"]], statement) for name, statement in named.items()
    }
