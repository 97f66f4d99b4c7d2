"""MCP Apps (`io.modelcontextprotocol/ui`): pages that a client shows beside a tool's answer.

A page is one document that sends no requests: the client that frames it hands it the answer. It is the same for
everybody and holds nothing of any tenant. Clients that show no pages show the tool's text.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from mcp.server.apps import APP_MIME_TYPE, client_supports_apps
from mcp_types import ReadResourceResult, TextResourceContents

from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import GRAPH_VIEW
from recollect_gateway.mcp_endpoint.prompts_and_resources.resources import ResourceSpec
from recollect_gateway.mcp_endpoint.request import Context

_SCRIPTS = ("host.js", "places.js", "drawing.js")

_NO_ORIGIN: dict[str, list[str]] = {
    "connectDomains": [],
    "resourceDomains": [],
    "frameDomains": [],
    "baseUriDomains": [],
}
"""The origins that a page may reach: none."""


def may_show_apps(context: Context) -> bool:
    """Whether the client can show pages, as far as it is known.

    Before 2026-07-28 a client says so when it begins a session. No sessions are kept, so True for all of these.
    """
    return context.session.client_capabilities is None or client_supports_apps(context)


def read_app(uri: str) -> ReadResourceResult | None:
    """Read the page at an address; None for an address of something else."""
    if uri != GRAPH_VIEW:
        return None
    meta = {"ui": {"csp": _NO_ORIGIN, "prefersBorder": True}}
    page = TextResourceContents(uri=uri, mime_type=APP_MIME_TYPE, text=graph_page(), _meta=meta)
    return ReadResourceResult(contents=[page])


@cache
def graph_page() -> str:
    """The page that draws what `explore` found, as one document.

    Its own content security policy, beside the client's, allows this style and this script by their hashes, and nothing
    else.
    """
    style, script = _asset("style.css"), "\n".join(map(_asset, _SCRIPTS))
    policy = f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; base-uri 'none'"
    page = _asset("page.html").replace("{policy}", f"{policy}; form-action 'none'")
    return page.replace("{style}", style).replace("{script}", script)


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / "graph_view" / name).read_text("utf-8")


GRAPH_APP = ResourceSpec(None, read_app)
"""The page that draws a graph. No list has it: tools name its address, and no person would choose it."""
