"""Names of our cookies: whether browsers send them by https decides."""

from typing import Any

from litestar.connection import ASGIConnection

AnyConnection = ASGIConnection[Any, Any, Any, Any]


def is_secure(request: AnyConnection) -> bool:
    """Whether browsers use https for the address of this process, which its application has as `page_address`."""
    address: str = request.app.state.page_address
    return address.startswith("https://")


def cookie_name(request: AnyConnection, name: str) -> str:
    """The cookie's name; with https, one with a prefix that no other host and no path of this server can set."""
    return f"__Host-recollect_{name}" if is_secure(request) else f"recollect_{name}"
