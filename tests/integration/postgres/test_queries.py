"""Every query of every queries.sql, compared with the migrated schema and with the values that its store makes of
rows.
"""

import ast
import importlib
import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args
from uuid import UUID

import asyncpg
import pytest
from msgspec import Struct

import recollect
from recollect.accounts.usage.model import UsagePoint, UsageRow
from recollect.postgres.connections import APP_ROLE, OWNER_ROLE, session_settings
from recollect.postgres.sql import Queries
from recollect.retrieval.recall.ranking import Candidate, Hit
from recollect.retrieval.vector_indexes.model import VectorIndex
from recollect.settings import Settings

CORE = Path(recollect.__file__).parent
CAPABILITIES = sorted(".".join(file.parent.relative_to(CORE).parts) for file in CORE.rglob("queries.sql"))
VIEW_PARAMETERS = {"graph_id", "reachable_graphs", "as_of_revision", "as_of_time"}
"""Parameters that a view adds to its queries, and a store does not."""
NOT_READ: Mapping[type, set[str]] = {
    Candidate: {"win", "date", "asked", "first_match"},
    Hit: {"is_near_best"},
    VectorIndex: {"other_language", "thoroughness"},
    UsageRow: {"p50_ms", "p95_ms"},
    UsagePoint: {"p50_ms", "p95_ms"},
}
"""Fields that no query fills, but the second stage of recall, the rule for building an index, or counts of usage."""
OPERATORS_CAPABILITIES = {
    "accounts.deletions",
    "accounts.operator_keys",
    "accounts.operator_log",
    "accounts.plans",
    "accounts.tenants",
    "moves",
    "cells.directory",
    "retrieval.vector_indexes",
}
"""Their queries run as the owner. Those of the operator API also run as its role, in tests/integration/operator."""
OPERATORS_QUERIES = {"accounts.quotas.use_of_tenants", "jobs.backlog.failed_work"}
"""Queries of the operator API alone in capabilities whose other queries run as the application."""


DRIVER_TYPES: Mapping[str, set[Any]] = {
    "bool": {bool},
    "bytea": {bytes},
    "float8": {float},
    "int2": {int},
    "int4": {int},
    "int8": {int},
    "jsonb": {dict[str, int], str},  # As it is where the connection has no codec.
    "text": {str},
    "text[]": {list[str]},
    "timestamptz": {datetime},
    "uuid": {UUID},
    "uuid[]": {list[UUID]},
}
"""What the driver makes of a value of each type of PostgreSQL."""


@dataclass(frozen=True)
class Filling:
    """A store's function that makes `value` of each row of `query`; `whole`: of every column; `in_order`: by
    position.
    """

    query: str
    value: type
    whole: bool
    in_order: bool = False


async def test_each_query_can_be_run_by_its_role_and_fits_its_store(
    settings: Settings, subtests: pytest.Subtests
) -> None:
    async with (
        _connected(settings, settings.migration_url, OWNER_ROLE) as owner,
        _connected(settings, settings.database_url, APP_ROLE) as app,
    ):
        for capability in CAPABILITIES:
            fillings, values = list(_fillings(capability)), dict(_values(capability))
            for name, query in Queries(f"recollect.{capability}").by_name.items():
                is_operators = capability in OPERATORS_CAPABILITIES or f"{capability}.{name}" in OPERATORS_QUERIES
                connection = owner if is_operators else app
                with subtests.test(f"{capability}.{name}"):
                    columns = await _columns(connection, query.with_types(vector="halfvec").text)
                    for filled in [filling for filling in fillings if filling.query == name]:
                        _require_fit(columns, filled)
                    if name in values:
                        column, *_ = (await connection.prepare(query.text)).get_attributes()
                        assert values[name] in DRIVER_TYPES.get(column.type.name, set()), column.type.name


@asynccontextmanager
async def _connected(settings: Settings, url: str, role: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url, server_settings=session_settings(role, settings))
    yield connection
    await connection.close()


async def _columns(connection: asyncpg.Connection, query: str) -> list[str]:
    """The columns of a query that its role can run; each has its own name."""
    await _plan(connection, query)
    columns = [column.name for column in (await connection.prepare(query)).get_attributes()]
    assert len(set(columns)) == len(columns)
    return columns


def _require_fit(columns: list[str], filled: Filling) -> None:
    wanted = set(_names(filled.value)) - NOT_READ.get(filled.value, set())
    assert set(columns) == wanted if filled.whole else set(columns) >= wanted, filled
    assert not filled.in_order or columns == [name for name in _names(filled.value) if name in wanted], filled


def _is_value(value: type) -> bool:
    return is_dataclass(value) or issubclass(value, Struct)


def _names(value: Any) -> list[str]:
    """The names of the fields of a dataclass or a Struct."""
    return list(value.__struct_fields__) if issubclass(value, Struct) else [field.name for field in fields(value)]


async def _plan(connection: asyncpg.Connection, query: str) -> None:
    """Have a query planned, which checks the rights, too, unlike PREPARE."""
    if connection.get_server_version().major >= 16:
        await connection.execute(f"EXPLAIN (GENERIC_PLAN) {query}")
        return
    count = len((await connection.prepare(query)).get_parameters())
    given = f"({', '.join(['NULL'] * count)})" if count else ""
    await connection.execute(f"PREPARE asked AS {query}; EXPLAIN EXECUTE asked{given}; DEALLOCATE asked")


def test_each_query_is_described_and_used_by_one_store_function(subtests: pytest.Subtests) -> None:
    for capability in CAPABILITIES:
        with subtests.test(capability):
            described = re.findall(r"^-- name: ([a-z_]+)\n-- \S", _text(capability), re.MULTILINE)
            assert sorted(described) == sorted(Queries(f"recollect.{capability}").by_name)
            assert sorted(name for _, name in _uses(capability)) == sorted(described)


def test_each_query_gets_the_parameters_that_it_has(subtests: pytest.Subtests) -> None:
    """If a call names all of them. A parameter missing from a dictionary (`**`) is found when the call runs."""
    for capability in CAPABILITIES:
        with subtests.test(capability):
            queries = Queries(f"recollect.{capability}").by_name
            asked = list(_asked(capability))
            assert asked
            for query, given, known, is_all in asked:
                parameters = set(queries[query].parameters)
                wanted = parameters - (known - given)
                assert given == wanted if is_all else given <= wanted, query


def test_each_fragment_is_described_and_used_by_several_queries(subtests: pytest.Subtests) -> None:
    for capability in CAPABILITIES:
        with subtests.test(capability):
            text = _text(capability)
            fragments = re.findall(r"^-- fragment: (.*)$", text, re.MULTILINE)
            assert re.findall(r"^-- fragment: ([a-z_]+)\n-- \S", text, re.MULTILINE) == fragments
            assert [name for name in fragments if text.count(f"-- include: {name}\n") < 2] == []


def test_fillings_are_found_in_the_stores() -> None:
    """This guards the reading of the stores: it finds as many as there are, however they are written."""
    sources = [inspect.getsource(_store(capability)) for capability in CAPABILITIES]
    filled = sum(len(re.findall(r"\(\*\*row|\(\*row|\.fetch_objects?\(", source)) for source in sources)
    assert filled > 10
    assert len([f for capability in CAPABILITIES for f in _fillings(capability) if f.whole]) >= filled


def test_values_are_found_in_the_stores() -> None:
    """This guards the reading of the stores, too."""
    assert len([query for capability in CAPABILITIES for query, _ in _values(capability)]) > 70


@cache
def _store(capability: str) -> Any:
    return importlib.import_module(f"recollect.{capability}.store")


def _text(capability: str) -> str:
    return CORE.joinpath(*capability.split("."), "queries.sql").read_text(encoding="utf-8")


@cache
def _functions(capability: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    body = ast.parse(inspect.getsource(_store(capability))).body
    return [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _uses(capability: str) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """(function, query) for each `queries.<name>` in a store. A view also runs the query's twin of the past."""
    queries = Queries(f"recollect.{capability}").by_name
    for function in _functions(capability):
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "queries":
                yield function, node.attr
                if "view." in ast.unparse(function) and f"{node.attr}_at" in queries:
                    yield function, f"{node.attr}_at"


OF_THE_SESSION = {"prefetch"}
"""Parameters for the session, beside those of a query."""


def _asked(capability: str) -> Iterator[tuple[str, set[str], set[str], bool]]:
    """(query, given names, names known without, whether these are all) for each call that names its query."""
    for function in _functions(capability):
        for call in [node for node in ast.walk(function) if isinstance(node, ast.Call) and node.args]:
            query = call.args[0]
            if isinstance(query, ast.Attribute) and ast.unparse(query.value) == "queries":
                given = {keyword.arg for keyword in call.keywords if keyword.arg is not None} - OF_THE_SESSION
                known = {"tenant_id"} | (VIEW_PARAMETERS if "view." in ast.unparse(call.func) else set())
                yield query.attr, given, known, all(keyword.arg is not None for keyword in call.keywords)


def _values(capability: str) -> Iterator[tuple[str, Any]]:
    """(query, type) for each `return await ….fetchval(queries.<name>)`: the type that it states, without None.

    mypy does not check it, since the driver has no types (`warn_return_any` in pyproject.toml).
    """
    for function in _functions(capability):
        for returned in [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]:
            call = returned.value if isinstance(returned, ast.Await) else None
            if isinstance(call, ast.Call) and ".fetchval(queries." in ast.unparse(call):
                query = ast.unparse(call.args[0]).removeprefix("queries.")
                stated = inspect.get_annotations(getattr(_store(capability), function.name))["return"]
                is_optional = NoneType in get_args(stated)
                yield query, next(part for part in get_args(stated) if part is not NoneType) if is_optional else stated


def _fillings(capability: str) -> Iterator[Filling]:
    """`X(**row)`, `X(*row)` and `fetch_objects(…, X)` fill an X; `_helper(row)` and `fetch_as(…, _helper)` what the
    helper returns."""
    store = _store(capability)
    for function, query in _uses(capability):
        for call in [node for node in ast.walk(function) if isinstance(node, ast.Call)]:
            if any(keyword.arg is None for keyword in call.keywords) and isinstance(call.func, ast.Name):
                yield Filling(query, getattr(store, call.func.id), whole=True)
            elif [ast.unparse(argument) for argument in call.args] == ["*row"] and isinstance(call.func, ast.Name):
                yield Filling(query, getattr(store, call.func.id), whole=True, in_order=True)
            elif [ast.unparse(argument) for argument in call.args] == ["row"] and isinstance(call.func, ast.Name):
                yield from _filled_by(getattr(store, call.func.id), query)
            elif ast.unparse(call.func).endswith((".fetch_object", ".fetch_objects")):
                yield Filling(query, getattr(store, ast.unparse(call.args[1])), whole=True)
            elif ast.unparse(call.func).endswith(".fetch_as") and isinstance(call.args[1], ast.Name):
                helper = getattr(store, call.args[1].id)
                if re.search(r"\(\*\*(\{\*\*)?row", inspect.getsource(helper)):  # Others take the row apart.
                    yield from _filled_by(helper, query)


def _filled_by(helper: Callable[..., Any], query: str) -> Iterator[Filling]:
    """What a helper fills with a row; nothing where it prepares what another call is filled with."""
    value = inspect.get_annotations(helper)["return"]
    if isinstance(value, type) and _is_value(value):
        yield Filling(query, value, "**row" in inspect.getsource(helper))
