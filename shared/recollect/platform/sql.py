"""Queries live in `queries.sql` files: a name, a sentence, the statement.

    -- name: find_graph
    -- The graph of that name.
    SELECT … WHERE tenant_id = :tenant_id AND name = :name;

Parameters have names, and whoever asks gives each by its name.

What several of them say alike is a fragment, likewise named and described, and stands where a line ends in its name, of
another fragment, too:

    WHERE -- include: fits

`queries = Queries(__package__)` reads the file when the first query is asked for.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from typing import Any

_HEADER = re.compile(r"^-- (?P<what>name|fragment): (?P<name>[a-z_]+)$", re.MULTILINE)
_INCLUDE = re.compile(r"-- include: (?P<name>[a-z_]+)$", re.MULTILINE)
_DESCRIPTION = re.compile(r"\A(--[^\n]*\n)+")
_PARAMETER = re.compile(r"(?<![:\w]):(?P<name>[a-z_]+)")
"""`:name`, but neither a cast (`::uuid`) nor a colon within a word of a comment."""
_TYPE = re.compile(r"[a-z]+(\([0-9]+\))?")


@dataclass(frozen=True, slots=True)
class Query:
    """A statement as PostgreSQL takes it, and the names of its parameters in the order of their numbers."""

    text: str
    parameters: tuple[str, ...] = ()
    past: "Query | None" = None
    """The same of the past, where there is one: the query of the same name that ends in `_at`."""

    @classmethod
    def compile(cls, text: str) -> "Query":
        """The query of a statement that names its parameters: each name becomes one number, wherever it stands."""
        numbers: dict[str, int] = {}
        numbered = _PARAMETER.sub(lambda found: f"${numbers.setdefault(found['name'], len(numbers) + 1)}", text)
        return cls(numbered, tuple(numbers))

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the parameters' numbers; raises TypeError unless they are just these."""
        if values.keys() != set(self.parameters):
            name = self.text.partition("*/")[0]
            raise TypeError(f"{name}*/ has the parameters {sorted(self.parameters)}, not {sorted(values)}")
        return [values[name] for name in self.parameters]

    def with_types(self, **types: str) -> "Query":
        """The query with types that PostgreSQL wants written out, in the place of their names in braces.

        Raises ValueError for what is no type's name with a length, such as `halfvec(384)`.
        """
        text = self.text
        for name, type_ in types.items():
            if not _TYPE.fullmatch(type_):
                raise ValueError(f"{type_!r} is no type")
            text = text.replace(f"{{{name}}}", type_)
        return replace(self, text=text, past=self.past and self.past.with_types(**types))


class Queries:
    """The named statements of one package's `queries.sql`, as attributes."""

    def __init__(self, package: str) -> None:
        self.package = package

    @cached_property
    def by_name(self) -> dict[str, Query]:
        """Every query by its name, which it also carries as a comment: for whoever reads a slow-query log."""
        named = parse((files(self.package) / "queries.sql").read_text(encoding="utf-8"))
        capability = self.package.rpartition(".")[2]
        by_name = {name: Query.compile(f"/* {capability}.{name} */ {text}") for name, text in named.items()}
        return {name: replace(query, past=by_name.get(f"{name}_at")) for name, query in by_name.items()}

    def __getattr__(self, name: str) -> Query:
        by_name = self.by_name
        try:
            return by_name[name]
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

    def put_in(text: str) -> str:
        return _INCLUDE.sub(lambda included: put_in(fragments[included["name"]]), text)

    return {name: put_in(statement) for name, statement in named.items()}
