"""Queries live in `queries.sql` files: a name, a sentence, the statement.

    -- name: find_graph
    -- The graph of that name.
    SELECT … WHERE tenant_id = :tenant_id AND name = :name;

Parameters have names, and callers give each by its name.

Text that several queries share is a fragment, named and described like a query. It is included where a line ends in its
name, in other fragments, too:

    WHERE -- include: fits

A line below a query's name may say how it is planned (`QueryPlan`), whatever transaction it runs in:

    -- name: find_similar
    -- plan: with values
    -- Facts that mean nearly the same.

`queries = Queries(__package__)` reads the file when the first query is used.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from importlib.resources import files
from typing import Any

_HEADER = re.compile(r"^-- (?P<kind>name|fragment): (?P<name>[a-z_]+)$", re.MULTILINE)
_PLANNED = re.compile(r"^-- name: (?P<name>[a-z_]+)\n-- plan: (?P<plan>.+)$", re.MULTILINE)
_INCLUDE = re.compile(r"-- include: (?P<name>[a-z_]+)$", re.MULTILINE)
_DESCRIPTION = re.compile(r"\A(--[^\n]*\n)+")
_PARAMETER = re.compile(r"(?<![:\w]):(?P<name>[a-z_]+)")
"""`:name`, but neither a cast (`::uuid`) nor a colon within a word of a comment."""
_TYPE = re.compile(r"[a-z]+(\([0-9]+\))?")


class QueryPlan(StrEnum):
    """How PostgreSQL plans a query."""

    ONCE = "once"
    """Once a session: the query looks rows up by keys, so that one plan is as good for all values."""

    ONCE_FROM_HERE = "once from here"
    """Once a session, and so are the queries after it in its transaction that do not say how."""

    WITH_VALUES = "with values"
    """Each time, with its values: the query searches."""


@dataclass(frozen=True, slots=True)
class Query:
    """A statement as PostgreSQL takes it, and the names of its parameters in the order of their numbers.

    `plan`: how it is planned; None: as the transaction is.
    """

    text: str
    parameters: tuple[str, ...] = ()
    plan: QueryPlan | None = None
    past: "Query | None" = None
    """The twin for the past, if there is one: the query of the same name with the suffix `_at`."""

    @classmethod
    def compile(cls, text: str) -> "Query":
        """The query for a statement with named parameters: each name becomes one number, wherever it occurs."""
        numbers: dict[str, int] = {}
        numbered = _PARAMETER.sub(lambda found: f"${numbers.setdefault(found['name'], len(numbers) + 1)}", text)
        return cls(numbered, tuple(numbers))

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the parameters' numbers; raises TypeError unless the names match exactly."""
        if values.keys() != set(self.parameters):
            name = self.text.partition("*/")[0]
            raise TypeError(f"{name}*/ has the parameters {sorted(self.parameters)}, not {sorted(values)}")
        return [values[name] for name in self.parameters]

    def with_types(self, **types: str) -> "Query":
        """The query with types, which PostgreSQL takes as no parameter, instead of their names in braces.

        Raises ValueError for anything but the name of a type and its length, such as `halfvec(384)`.
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
        """Every query by its name, which its text also has as a comment, to be found in a slow-query log."""
        text = (files(self.package) / "queries.sql").read_text(encoding="utf-8")
        plans = {found["name"]: QueryPlan(found["plan"]) for found in _PLANNED.finditer(text)}
        capability = self.package.rpartition(".")[2]
        by_name = {
            name: replace(Query.compile(f"/* {capability}.{name} */ {statement}"), plan=plans.get(name))
            for name, statement in parse(text).items()
        }
        return {name: replace(query, past=by_name.get(f"{name}_at")) for name, query in by_name.items()}

    def __getattr__(self, name: str) -> Query:
        by_name = self.by_name
        try:
            return by_name[name]
        except KeyError:
            raise AttributeError(f"{self.package}/queries.sql has no query named {name}") from None


def parse(text: str) -> dict[str, str]:
    """Split a `queries.sql` into its statements, without descriptions and with fragments included.

    Raises ValueError for a name given twice, KeyError for a missing fragment.
    """
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    bodies = [_DESCRIPTION.sub("", text[h.end() : end].strip()) for h, end in zip(headers, ends, strict=True)]
    statements = {h["name"]: body.rstrip(";") for h, body in zip(headers, bodies, strict=True)}
    if len(statements) != len(headers):
        raise ValueError("a queries.sql names two queries alike")
    fragments = {h["name"]: statements.pop(h["name"]) for h in headers if h["kind"] == "fragment"}

    def include_fragments(text: str) -> str:
        return _INCLUDE.sub(lambda include: include_fragments(fragments[include["name"]]), text)

    return {name: include_fragments(statement) for name, statement in statements.items()}
