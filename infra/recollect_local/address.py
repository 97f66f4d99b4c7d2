"""The address that the gateway listens on, and what a client needs to reach it."""

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
    """What a client needs: both addresses, the key, and the slug of the tenant that the key belongs to."""

    mcp_url: str
    management_url: str
    api_key: str
    tenant: str


@contextmanager
def claimed_port(host: str, port: int, *, until: ExitStack | None = None) -> Iterator[int]:
    """Hold `host:port` (0: any free one) for the gateway, and yield the port. Nobody else claims it meanwhile.

    It is bound but not listened on, so that a client that is too early is refused, and not left waiting.
    `until`: on Linux nobody else claims it before that ends, so that none does between our letting go and the gateway's
    listening. Raises InvalidInput, naming the option, if the address cannot be had.
    """
    family, address = _resolve(host, port)
    with socket.socket(family, socket.SOCK_STREAM) as claim, ExitStack() as held:
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the gateway: after a restart it is free
        try:
            claim.bind(address)
            if sys.platform == "linux":
                (until or held).enter_context(_sole_claim(*claim.getsockname()[:2]))
        except OSError as error:
            raise InvalidInput(_refusal(error, host, port)) from error
        yield claim.getsockname()[1]


def _sole_claim(host: str, port: int) -> socket.socket:
    """What one process has of an address, until it closes it or ends. Raises OSError where another one has it.

    Linux lets many sockets be bound to one address as long as none listens, where other systems let one. A name that
    starts with a zero byte is the network's, as ports are, and stands for no file.
    """
    sole = socket.socket(socket.AF_UNIX)
    try:
        sole.bind(f"\0recollect local {host} {port}")
    except OSError:
        sole.close()
        raise
    return sole


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
