"""The address by which clients reach the gateway."""

import pytest
from pydantic import ValidationError

from recollect.settings import Settings
from recollect.settings.addresses.public_url import local_url, read_public_url


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("https://memory.example.com", "https://memory.example.com"),
        ("https://Memory.Example.com:443/", "https://memory.example.com"),
        ("http://localhost:8787", "http://localhost:8787"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("https://[2001:0DB8::1]:8443", "https://[2001:db8::1]:8443"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
    ],
)
def test_a_public_url_is_normalized(text: str, canonical: str) -> None:
    assert read_public_url(text) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "memory.example.com",
        "ftp://memory.example.com",
        "https://",
        "https:///v1",
        "https://memory.example.com/recollect",
        "https://memory.example.com/../v1",
        "https://memory.example.com//",
        "https://memory.example.com?tenant=a",
        "https://memory.example.com?",
        "https://memory.example.com#",
        "https://user@memory.example.com",
        "https://memory.example.com:port",
        "https://memory.example.com:70000",
        "https://memory_example.com",
        "https://-memory.example.com",
        "https://memory.example.com\\@other.example",
        "https://memory.example.com\r\nX-Other: 1",
        "https://bücher.example",
        "https://memory.example.com ",
        "https://[::1",
    ],
)
def test_a_public_url_with_other_parts_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="public_url"):
        Settings(public_url=text)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8787"),
        ("0.0.0.0", "http://127.0.0.1:8787"),
        ("::", "http://[::1]:8787"),
        ("memory.example.com", "http://memory.example.com:8787"),
    ],
)
def test_the_default_is_the_address_where_the_gateway_listens(host: str, url: str) -> None:
    assert local_url(host, 8787) == url
    assert Settings(host=host, port=8787).base_url == url
    assert Settings(host=host, public_url="https://memory.example.com/").base_url == "https://memory.example.com"
