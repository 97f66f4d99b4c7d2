"""By which addresses a gateway may be named, and by which only its requests may come."""

import pytest

from recollect.settings import Settings
from recollect_gateway.callers.oauth_resources import Resources
from recollect_http.server.hosts import Origins

LOCAL, PUBLIC = "http://127.0.0.1:8787", "https://memory.example.com"


def origins(base: str, *hosts: str) -> Origins:
    default = Settings.model_fields["allowed_hosts"].default
    return Origins.of(Settings(public_url=base, allowed_hosts=[*default, *hosts]))


def test_a_request_is_answered_with_the_name_that_it_asked(subtests: pytest.Subtests) -> None:
    for base, hosts, asked, told in (
        (LOCAL, (), "127.0.0.1:8787", LOCAL),
        (LOCAL, (), "localhost:8787", "http://localhost:8787"),
        (LOCAL, (), "[::1]:8787", "http://[::1]:8787"),
        (LOCAL, (), "localhost:9000", LOCAL),
        (LOCAL, (), "localhost", LOCAL),
        (LOCAL, ("memory.internal:*",), "memory.internal:9000", "http://memory.internal:9000"),
        (LOCAL, ("*",), "evil.example", LOCAL),
        ("http://localhost", (), "127.0.0.1:80", "http://127.0.0.1"),
        (PUBLIC, (), "memory.example.com:443", PUBLIC),
        (PUBLIC, (), "localhost:8787", PUBLIC),
        (PUBLIC, ("gateway:8787",), "gateway:8787", PUBLIC),
        (PUBLIC, ("https://memory.acme.example",), "memory.acme.example", "https://memory.acme.example"),
        (PUBLIC, ("http://memory.internal:8000",), "memory.internal:8000", "http://memory.internal:8000"),
        (PUBLIC, ("http://memory.internal:8000",), "memory.internal:8001", PUBLIC),
    ):
        with subtests.test(f"{base} {hosts} {asked}"):
            assert origins(base, *hosts).asked_at(asked) == told


@pytest.mark.proves("security: own-addresses")
def test_only_addresses_of_this_gateway_name_its_resources(subtests: pytest.Subtests) -> None:
    """A token is issued for what a client names: if that could be another server, it would get the token."""
    for base, hosts, named, is_ours in (
        (LOCAL, (), "http://localhost:8787/mcp/x/memory", True),
        (LOCAL, (), "HTTP://LOCALHOST:8787/mcp/", True),
        (LOCAL, (), "https://localhost:8787/mcp", False),
        (LOCAL, (), "http://localhost:9000/mcp", False),
        (LOCAL, (), "http://localhost:8787@evil.example/mcp", False),
        (LOCAL, (), "http://x@localhost:8787/mcp", False),
        (LOCAL, ("*",), "http://evil.example/mcp", False),
        (PUBLIC, (), "http://localhost:8787/mcp", False),
        (PUBLIC, ("gateway:8787",), "https://gateway:8787/mcp", False),
        (PUBLIC, ("https://memory.acme.example",), "https://memory.acme.example:443/t/acme/mcp", True),
        (PUBLIC, ("https://memory.acme.example",), "http://memory.acme.example/mcp", False),
        (PUBLIC, ("*",), "https://evil.example/mcp", False),
    ):
        with subtests.test(f"{base} {hosts} {named}"):
            found = Resources(origins(base, *hosts)).find(named)
            assert (found is not None) is is_ours
            assert found is None or found.uri.startswith(base), "tokens are for the endpoint, by its one name"


def test_an_allowed_host_with_a_scheme_is_an_address(subtests: pytest.Subtests) -> None:
    assert Settings(allowed_hosts=["HTTPS://Memory.Example:443/", "x:*"]).allowed_hosts == [
        "https://memory.example",
        "x:*",
    ]
    for wrong in ("ftp://memory.example", "https://memory.example/path", "https://x@memory.example"):
        with subtests.test(wrong), pytest.raises(ValueError, match="allowed_hosts"):
            Settings(allowed_hosts=[wrong])
