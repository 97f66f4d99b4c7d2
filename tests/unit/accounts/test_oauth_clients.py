"""Which redirect URIs a client may use, and which addresses can be a client id."""

import pytest

from recollect.accounts.oauth.clients.model import OAuthClient, is_client_id

WEB, NATIVE = "https://client.example.com/cb?x=1", "http://127.0.0.1:3000/cb"


def client(*uris: str) -> OAuthClient:
    return OAuthClient("rcl_client_x", "A client", None, uris, refreshes=True)


@pytest.mark.parametrize(
    ("registered", "requested", "may"),
    [
        (WEB, WEB, True),
        (WEB, "https://client.example.com:444/cb?x=1", False),
        (WEB, "https://client.example.com/cb", False),
        (WEB, "https://CLIENT.example.com/cb?x=1", False),
        (WEB, "https://evil.example/cb?x=1", False),
        (WEB, "http://127.0.0.1/cb?x=1", False),
        (NATIVE, "http://127.0.0.1/cb", True),
        (NATIVE, "http://127.0.0.1:1/cb", True),
        (NATIVE, "https://127.0.0.1:3000/cb", False),
        (NATIVE, "http://localhost:3000/cb", False),
        (NATIVE, "http://127.0.0.1:3000/cb#x", False),
        (NATIVE, "http://127.0.0.1:99999/cb", False),
        ("http://[::1]/cb", "http://[::1]:5/cb", True),
        ("http://localhost/cb", "http://localhost:5/cb", True),
        ("http://localhost/cb", "http://localhost.evil.example:5/cb", False),
    ],
)
def test_a_redirect_uri_must_match_exactly_except_for_a_loopback_port(
    registered: str, requested: str, may: bool
) -> None:
    assert client(registered).may_redirect_to(requested) is may


@pytest.mark.parametrize(
    "address",
    [
        "http://client.example.com/x",
        "https://client.example.com",
        "https://client.example.com/",
        "https://client.example.com/a/../x",
        "https://user@client.example.com/x",
        "https://client.example.com/x#y",
        "https://client.example.com/" + "x" * 2000,
        "https://client.example.com:bad/x",
        "",
    ],
)
def test_a_misleading_address_is_not_a_client_id(address: str) -> None:
    assert is_client_id("https://client.example.com/x.json")
    assert not is_client_id(address)
