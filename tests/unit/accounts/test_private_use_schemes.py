"""Addresses of schemes that a client's program has claimed on its device (RFC 8252, 7.1)."""

import pytest

from recollect.accounts.oauth.clients.model import (
    MAX_URI,
    OAuthClient,
    destination,
    is_loopback,
    private_scheme,
    redirect_uris,
)
from recollect.errors import InvalidInput

PROGRAMS = {
    "cursor://anysphere.cursor-mcp/oauth/callback": "cursor://anysphere.cursor-mcp",
    "windsurf://codeium.windsurf/oauth": "windsurf://codeium.windsurf",
    "vscode://vscode.github-authentication/did-authenticate?windowId=1": "vscode://vscode.github-authentication",
    "vscode-insiders://localhost/cb": "vscode-insiders://localhost",
    "warp://mcp/oauth2callback": "warp://mcp",
    "raycast://oauth?package_name=Extension": "raycast://oauth",
    "com.example.app:/oauth": "com.example.app:",
    "com.example.app:oauth": "com.example.app:",
    "goose:///callback": "goose:",
    "Zed://callback": "zed://callback",
}
"""Addresses of programs, and how people are told where they lead."""

NO_PROGRAMS = (
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "javascript://client.example/%0aalert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://client.example/1",
    "filesystem:https://client.example/temporary/x",
    "about:blank",
    "view-source:https://client.example",
    "chrome://settings",
    "ftp://client.example/cb",
    "ws://127.0.0.1/cb",
    "wss://client.example/cb",
    "http://client.example/cb",
    "mailto:x@client.example",
    "tel:1",
    "intent://cb#Intent;scheme=x;end",
    "urn:ietf:wg:oauth:2.0:oob",
    "ms-msdt:/id",
    "search-ms:query=x",
    "x-apple.systempreferences:com.apple",
    "web+memory://cb",
    "c:/windows/system32/calc.exe",
    "1password://cb",
    "cursor:",
    "cursor",
    "://cb",
    "cursor ://cb",
    " cursor://cb",
    "cur\tsor://cb",
    "java\nscript:alert(1)",
    "cursor://cb\r\nSet-Cookie: x",
    "cursor://cb#fragment",
    "cursor://user@cb/",
    "cursor://cb\\x",
    'cursor://cb"onclick="x',
    "cursor://cb/<script>",
    "cursor://cb/é",
    "сursor://cb",
    "cursor;script-src *://cb",
)


def test_a_programs_own_scheme_is_accepted_and_told(subtests: pytest.Subtests) -> None:
    for uri, told in PROGRAMS.items():
        with subtests.test(uri):
            assert redirect_uris([uri]) == (uri,)
            assert private_scheme(uri) == uri.partition(":")[0].lower()
            assert destination(uri) == told
    assert redirect_uris([*PROGRAMS][:10]) == tuple(PROGRAMS)


@pytest.mark.proves("security: private-use-schemes")
def test_an_address_that_is_no_programs_own_is_refused(subtests: pytest.Subtests) -> None:
    for uri in NO_PROGRAMS:
        with subtests.test(uri):
            assert private_scheme(uri) is None
            with pytest.raises(InvalidInput, match="Must be"):
                redirect_uris(["cursor://cb", uri])
    with pytest.raises(InvalidInput, match="Must be"):
        redirect_uris(["cursor://" + "x" * MAX_URI])


@pytest.mark.proves("security: private-use-schemes")
def test_only_exactly_the_named_address_of_a_program_is_redirected_to(subtests: pytest.Subtests) -> None:
    named = "vscode://localhost:1/cb"
    client = OAuthClient("rcl_client_x", "A client", None, (named,), refreshes=True)
    assert client.may_redirect_to(named)
    assert not is_loopback(named)
    for other in ("vscode://localhost:2/cb", "VSCODE://localhost:1/cb", "vscode://localhost:1/cb?x=1", "vscode:/cb"):
        with subtests.test(other):
            assert not client.may_redirect_to(other)
