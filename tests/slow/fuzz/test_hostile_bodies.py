"""Every route with a body refuses hostile bodies with a plain error, and never with a 500."""

import json
from typing import Any

import httpx2
import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect_http.problems import MEDIA_TYPE
from tests.support.gateway import RunningGateway

LIBRARY_WORDS = ("msgspec", "pydantic", "litestar", "recursion", "traceback", "0x", "https://", "object at")

BODIES = {
    "open": b"[" * 1_000,
    "deep": b"[" * 1_000 + b"]" * 1_000,
    "deeper": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 1_000 + b"1" + b"}" * 1_000,
    "deeper objects": b'{"a":' * 100_000,
    "batch": b"[{}, {}]",
    "number": b"7",
    "huge number": b"1" + b"0" * 5_000,
    "text": b'"x"',
    "not JSON": b"hello",
    "two": b"{}{}",
    "invalid UTF-8": b'{"a": "\xff\xc3\x28"}',
    "lone surrogate": b'{"a": "\\ud800"}',
    "UTF-16": json.dumps({"a": 1}).encode("utf-16"),
    "NaN": b'{"a": NaN}',
    "unknown field": b'{"sesame": {"open": 1}}',
}
NULL = {"null": b"null"}

TYPES = ("application/json", "text/plain", "multipart/form-data; boundary=x")

READ_WHOLE = {("post", "/v1/graphs/{name}/imports")}
"""This route stores a body of any length for a job, which reports problems."""
NO_BODY_NEEDED = {("post", "/v1/graphs/{name}/reembed")}


@pytest.fixture
async def routes(gateway: RunningGateway, admin_key: str) -> list[tuple[str, str]]:
    """Method and path of every route with a body."""
    async with gateway.http(admin_key) as http:
        described = (await http.get("/v1/openapi.json")).json()["paths"]
    found = [
        (method, path) for path, here in described.items() for method, told in here.items() if "requestBody" in told
    ]
    assert len(found) >= 8
    return [route for route in found if route not in READ_WHOLE]


async def send(http: httpx2.AsyncClient, route: tuple[str, str], body: bytes, kind: str) -> tuple[int, str, str]:
    method, path = route
    address = path.replace("{name}", "hostile").replace("{key_id}", "x").replace("{job_id}", "x")
    response = await http.request(method, address, content=body, headers={"Content-Type": kind} if kind else {})
    return response.status_code, response.headers.get("Content-Type", ""), response.text


@pytest.mark.proves("rules: malformed-messages", "security: bodies")
@pytest.mark.parametrize("body", [*BODIES.values(), *NULL.values()], ids=[*BODIES, *NULL])
async def test_every_route_refuses_hostile_bodies(
    gateway: RunningGateway, admin_key: str, routes: list[tuple[str, str]], body: bytes, caller: Caller, db: Database
) -> None:
    async with gateway.http(admin_key) as http:
        await http.post("/v1/graphs", json={"name": "hostile"})
        for route in routes:
            if body == b"null" and route in NO_BODY_NEEDED:
                continue
            for kind in TYPES:
                status, media, text = await send(http, route, body, kind)
                if status == 200 and route[1].endswith("/import"):
                    answer: dict[str, Any] = json.loads(text)
                    assert answer["errors"], (route, kind, text)
                else:
                    assert status in (400, 404, 413, 415), (route, kind, status, text)
                    assert media.startswith(MEDIA_TYPE), (route, kind, media)
                assert not [word for word in LIBRARY_WORDS if word in text.lower()], (route, kind, text)
    async with db.transaction(caller, read_only=True) as tx:
        assert await tx.fetchval(Query.compile("SELECT count(*) FROM nodes")) == 0


async def test_all_errors_of_a_body_are_reported_with_their_paths(gateway: RunningGateway, admin_key: str) -> None:
    async with gateway.http(admin_key) as http:
        body = {"name": "", "kind": "king", "graphs": ["fine", 1], "sesame": True}
        response = await http.post("/v1/keys", json=body)
    problem = response.json()
    assert (response.status_code, problem["code"], problem["path"]) == (400, "invalid_input", "name")
    assert [line.partition(":")[0] for line in problem["detail"].split("\n")] == ["name", "kind", "graphs.1", "sesame"]
