"""/v1/docs: the page that describes the API, without inline scripts and without anything from another host."""

import gzip
import re

import httpx2
import pytest

from tests.support.gateway import RunningGateway

SOURCES = re.compile(r"(?:src|href)=\"([^\"]+)\"")


async def fetch(gateway: RunningGateway, path: str, encoding: str = "identity") -> httpx2.Response:
    async with gateway.http() as http:
        response = await http.get(path, headers={"Accept-Encoding": encoding})
    assert response.status_code == 200, response.text
    return response


def directives(response: httpx2.Response) -> dict[str, set[str]]:
    """The content security policy of an answer, by directive."""
    parts = [part.split() for part in response.headers["Content-Security-Policy"].split(";")]
    return {part[0]: set(part[1:]) for part in parts}


@pytest.mark.proves("security: documentation-page")
async def test_the_page_has_only_our_scripts_and_none_inline(gateway: RunningGateway) -> None:
    page = await fetch(gateway, "/v1/docs")
    assert page.headers["Content-Type"].startswith("text/html")
    policy = directives(page)
    assert policy["default-src"] == {"'none'"}
    assert policy["script-src"] == policy["connect-src"] == {"'self'"}
    assert policy["frame-ancestors"] == policy["base-uri"] == {"'none'"}
    assert [path for path in SOURCES.findall(page.text) if not re.match("/[^/]", path)] == []
    assert re.findall(r"<script(?![^>]*\ssrc=)", page.text) == []
    assert re.findall(r"\son\w+=", page.text) == []
    for path in SOURCES.findall(page.text):
        assert (await fetch(gateway, path)).content


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_the_script_is_scalar_and_is_served_by_us(gateway: RunningGateway, encoding: str) -> None:
    async with (
        gateway.http() as http,
        http.stream("GET", "/v1/docs/scalar.js", headers={"Accept-Encoding": encoding}) as response,
    ):
        raw = b"".join([part async for part in response.aiter_raw()])
    assert response.headers["Content-Type"].startswith("text/javascript")
    assert response.headers["Vary"] == "Accept-Encoding"
    assert response.headers.get("Content-Encoding", "identity") == encoding
    script = gzip.decompress(raw) if encoding == "gzip" else raw
    assert b"createApiReference" in script
    assert encoding == "identity" or len(raw) < len(script) / 3


async def test_the_page_loads_our_document_and_sends_no_telemetry(gateway: RunningGateway) -> None:
    begin = (await fetch(gateway, "/v1/docs/begin.js")).text
    assert 'url: "/v1/openapi.json"' in begin
    assert "jitless: true" in begin, "else Scalar tries as it is loaded whether it may make code of text"
    page = (await fetch(gateway, "/v1/docs")).text
    assert page.index("begin.js") < page.index("scalar.js")
    assert "telemetry: false" in begin
    assert "http" not in begin
