"""The page that shows what `explore` finds, and which clients learn of it."""

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from recollect_gateway.mcp_endpoint.apps import graph_page
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import GRAPH_VIEW
from tests.support.gateway import LEGACY, MODERN, MODES, RunningGateway

VIEW = {"ui": {"resourceUri": GRAPH_VIEW}}
TRIPLES = [{"subject": "Ada", "predicate": "knows", "object": "Babbage"}]


@pytest.mark.parametrize(
    ("revision", "declared", "told"),
    [
        (MODERN, {"mimeTypes": [APP_MIME_TYPE]}, VIEW),
        (MODERN, {"mimeTypes": ["text/html"]}, None),
        (MODERN, None, None),
        (LEGACY, {"mimeTypes": [APP_MIME_TYPE]}, VIEW),
        (LEGACY, None, VIEW),
    ],
    ids=["shows apps", "shows others", "shows none", "older", "older, which nobody knows of"],
)
async def test_the_page_is_offered_unless_the_client_cannot_show_it(
    gateway: RunningGateway, key: str, revision: str, declared: dict[str, list[str]] | None, told: object
) -> None:
    extensions = [] if declared is None else [advertise(EXTENSION_ID, declared)]
    async with (
        gateway.http(key) as http,
        Client(
            streamable_http_client(f"{gateway.url}/mcp", http_client=http), mode=MODES[revision], extensions=extensions
        ) as client,
    ):
        metas = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
        assert metas.pop("explore") == told
        assert not any(metas.values())
        await client.call_tool("relate", {"triples": TRIPLES})
        explored = await client.call_tool("explore", {"start": "Ada"})
        [text] = explored.content
        assert "Ada -knows-> Babbage" in getattr(text, "text", ""), "whoever shows no page reads the same"


async def test_the_extension_is_declared(gateway: RunningGateway, key: str) -> None:
    async with (
        gateway.http(key) as http,
        Client(streamable_http_client(f"{gateway.url}/mcp", http_client=http), mode="auto") as client,
    ):
        assert (client.server_capabilities.extensions or {})[EXTENSION_ID] == {}


async def test_the_page_is_read_by_its_uri_and_is_not_listed(client: Client) -> None:
    [page] = (await client.read_resource(GRAPH_VIEW)).contents
    assert isinstance(page, TextResourceContents)
    assert (page.uri, page.mime_type, page.text) == (GRAPH_VIEW, APP_MIME_TYPE, graph_page())
    nowhere: dict[str, list[str]] = {
        "connectDomains": [],
        "resourceDomains": [],
        "frameDomains": [],
        "baseUriDomains": [],
    }
    assert (page.meta or {})["ui"]["csp"] == nowhere
    assert GRAPH_VIEW not in {resource.uri for resource in (await client.list_resources()).resources}
    with pytest.raises(MCPError, match="Unknown resource"):
        await client.read_resource(f"{GRAPH_VIEW}/")


@pytest.mark.proves("security: app-pages")
def test_the_page_fetches_nothing_and_runs_only_its_own_script() -> None:
    page = graph_page()
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    for name in ("script", "style"):
        [text] = re.findall(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)
        assert f"{name}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert set(re.findall(r"https?://[^\s\"'`)]+", page)) == {"http://www.w3.org/2000/svg"}, "the name of a language"


@pytest.mark.proves("security: app-pages")
def test_no_text_becomes_markup() -> None:
    """The page only sets texts and attributes of elements that it creates."""
    written = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc|setTimeout"
    )
    assets = files("recollect_gateway.mcp_endpoint") / "assets" / "graph_view"
    for asset in assets.iterdir():
        assert not re.search(written, asset.read_text("utf-8")), asset.name
