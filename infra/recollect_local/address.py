"""The address on which the gateway listens, and the connection data of clients."""

import errno
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from recollect.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The connection data of a client: both addresses, the keys, and the slug of their tenant.

    `api_key` reads and writes memory, and is for agents; `admin_key` manages the tenant, and is for commands.
    """

    mcp_url: str
    management_url: str
    api_key: str
    tenant: str
    admin_key: str


@contextmanager
def claimed_port(host: str, port: int, *, until: ExitStack | None = None) -> Iterator[int]:
    """Reserve `host:port` (0: any free one) for the gateway, and yield the port. Meanwhile no other stack claims it.

    The socket is bound but does not listen, so that a client that is too early is refused and does not wait.
    `until`: on Linux no other stack claims the address before that ends, which covers the time between our release and
    the gateway's listening. Raises InvalidInput, naming the option, if the address is not available.
    """
    family, address = _resolve(host, port)
    with socket.socket(family, socket.SOCK_STREAM) as claim, ExitStack() as own_stack:
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the gateway: after a restart it is free
        try:
            claim.bind(address)
            if sys.platform == "linux":
                (until or own_stack).enter_context(_exclusive_claim(*claim.getsockname()[:2]))
        except OSError as error:
            raise InvalidInput(_refusal(error, host, port)) from error
        yield claim.getsockname()[1]


def _exclusive_claim(host: str, port: int) -> socket.socket:
    """A socket that one process holds for an address, until it closes it or ends. Raises OSError if another holds it.

    Linux lets many sockets be bound to one address as long as none listens; other systems allow one. A name that starts
    with a zero byte belongs to the network namespace, as ports do, and needs no file.
    """
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0recollect local {host} {port}")
    except OSError:
        claim.close()
        raise
    return claim


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    if not 0 <= port <= 65535:
        raise InvalidInput(f"{port} is not a port. Set --port to a number from 0 (any free port) to 65535.")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"{host!r} is not an address to listen on. Set another with --host.") from error
    return family, address


def _refusal(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Stop what uses it, or set another port with --port (0: any free one)."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine. Set another with --host."
    return f"Cannot listen on {host}, port {port}: {error.strerror}. Set others with --host and --port."
