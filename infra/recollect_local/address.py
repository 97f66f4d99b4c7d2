"""The address that the gateway listens on, and what a client needs to reach it."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from recollect.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a client needs: both addresses, the key, and the slug of the tenant that the key belongs to."""

    mcp_url: str
    management_url: str
    api_key: str
    tenant: str


@contextmanager
def claimed_port(host: str, port: int) -> Iterator[int]:
    """Hold `host:port` (0: any free one) for the gateway, and yield the port.

    It is bound but not listened on, so that a client that is too early is refused, and not left waiting.
    Raises InvalidInput, naming the option, if the address cannot be had.
    """
    family, address = _resolve(host, port)
    with socket.socket(family, socket.SOCK_STREAM) as claim:
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the gateway: after a restart it is free
        try:
            claim.bind(address)
        except OSError as error:
            raise InvalidInput(_refusal(error, host, port)) from error
        yield claim.getsockname()[1]


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    if not 0 <= port <= 65535:
        raise InvalidInput(f"{port} is no port. Choose one from 0 (any free one) to 65535 with --port.")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"{host!r} is no address that can be listened on. Choose another with --host.") from error
    return family, address


def _refusal(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken. Stop what uses it, or choose another with --port (0 takes a free one)."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine. Choose another with --host."
    return f"Cannot listen on {host}, port {port}: {error.strerror}. Choose others with --host and --port."
