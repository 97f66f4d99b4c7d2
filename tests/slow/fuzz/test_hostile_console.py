"""Every page of the console answers hostile queries and forms: with a page or a refusal, and never with 5xx.

Pages, their parameters and the forms on them come from the application: a new one is part of this at once.
"""

import inspect
from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote, quote_from_bytes
from uuid import uuid4

import httpx2
import pytest
from litestar import Litestar
from litestar.routes import HTTPRoute

from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.app import create_app
from tests.support.console import Form, Page, Visitor, visiting
from tests.support.gateway import RunningGateway
from tests.support.memories import Agent

PREFIX = "/app/{tenant:str}/{graph:str}"
STREAM = "/timeline/live"
"""It does not end."""

HOSTILE = (
    b"",
    b"\x00",
    b"-1",
    b"1e400",
    b"99999999999999999999",
    b"\xed\xa0\x80",
    b"\xff\xfe",
    b"'; --\xe2\x80\x8b",
    b"a" * 4_000,
)
"""Nothing, a NUL, numbers out of any range, half a character, what is no UTF-8, an invisible character, a long text."""


@pytest.fixture(scope="module")
def routes(settings: Settings) -> dict[str, list[str]]:
    """The pages that are read, under PREFIX, with the names of their parameters."""
    return dict(_pages(create_app(settings)))


def _pages(app: Litestar) -> Iterator[tuple[str, list[str]]]:
    for route in app.routes:
        if isinstance(route, HTTPRoute) and route.path.startswith(PREFIX) and "GET" in route.methods:
            handler = route.route_handler_map["GET"][0]
            names = inspect.signature(handler.fn).parameters.keys() - {"self", "visit", "request"}
            yield route.path.removeprefix(PREFIX), sorted(names)


@pytest.fixture
async def visitor(
    gateway: RunningGateway, db: Database, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    await Agent(db, caller).create(NewEntity("Ada", "person", ("likes tea",)))
    async with visiting(gateway, databases, settings, caller) as visitor:
        yield visitor


async def test_pages_answer_hostile_queries(
    visitor: Visitor, routes: dict[str, list[str]], subtests: pytest.Subtests
) -> None:
    """All parameters of a page at once; and the moment, which all pages have, by itself."""
    for path, names in routes.items():
        for value in HOSTILE if path != STREAM else ():
            with subtests.test(path, value=value[:30]):
                await opened(visitor, path, *(f"{name}={quote_from_bytes(value)}" for name in names))
    for value in HOSTILE:
        with subtests.test("as_of", value=value[:30]):
            await opened(visitor, "/memory", f"as_of={quote_from_bytes(value)}")


async def opened(visitor: Visitor, path: str, *query: str) -> None:
    answer = await visitor.http.get(f"{visitor.path(filled(path))}?{'&'.join(query)}")
    assert answer.status_code < 500, answer.text[-600:]


async def test_forms_answer_hostile_fields(
    visitor: Visitor, routes: dict[str, list[str]], subtests: pytest.Subtests
) -> None:
    """Each form that a page shows, with each field of it."""
    sent: set[tuple[str, ...]] = set()
    for path in routes:
        if path == STREAM:
            continue
        answer = await visitor.http.get(visitor.path(filled(path)))
        if answer.status_code != 200 or "html" not in answer.headers["content-type"]:
            continue
        for form in Page(answer).forms:
            fields = tuple(sorted(form.fields.keys() - {"form_token"}))
            if form.method.lower() != "post" or (form.action, *fields) in sent or not form.action.startswith("/app"):
                continue
            sent.add((form.action, *fields))
            for name in fields:
                for value in HOSTILE:
                    with subtests.test(form.action, name=name, value=value[:30]):
                        answer = await posted(visitor, form, name, value)
                        assert answer.status_code < 500, answer.text[-600:]


async def posted(visitor: Visitor, form: Form, name: str, value: bytes) -> httpx2.Response:
    body = "&".join(
        f"{quote(key)}={quote_from_bytes(value) if key == name else quote(kept)}" for key, kept in form.fields.items()
    )
    headers = {
        "Origin": str(visitor.http.base_url).rstrip("/"),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return await visitor.http.post(form.action, content=body, headers=headers)


def filled(path: str) -> str:
    """The path with ids of nothing in the place of its parameters."""
    ends = {"uuid}": str(uuid4()), "str}": "Ada", "int}": "1"}
    return "/".join(ends.get(part.rpartition(":")[2], part) for part in path.strip("/").split("/"))
