"""The port that is reserved for the gateway while everything else starts."""

import socket
import sys
from contextlib import ExitStack

import pytest

from recollect.errors import InvalidInput
from recollect_local.address import claimed_port

HOST = "127.0.0.1"


def test_a_port_can_be_claimed_once_at_a_time() -> None:
    with claimed_port(HOST, 0) as port:
        with pytest.raises(InvalidInput, match=f"Port {port} on {HOST} is in use"), claimed_port(HOST, port):
            pytest.fail("it was claimed twice")
        with claimed_port(HOST, 0) as another:
            assert another != port
    with claimed_port(HOST, port) as again:
        assert again == port


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere two sockets are not bound to one address")
def test_a_port_stays_claimed_while_the_gateway_begins_to_listen() -> None:
    with ExitStack() as serving:
        with claimed_port(HOST, 0, until=serving) as port:
            pass
        with pytest.raises(InvalidInput, match=f"Port {port} on {HOST} is in use"), claimed_port(HOST, port):
            pytest.fail("it was claimed in between")
        with socket.create_server((HOST, port)):
            pass
    with claimed_port(HOST, port) as again:
        assert again == port


def test_a_port_that_somebody_listens_on_is_taken() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"Port {port} on {HOST} is in use"), claimed_port(HOST, port):
            pytest.fail("it was claimed")


def test_a_port_is_free_after_its_server_ends_although_connections_linger() -> None:
    """Connections that the server closed wait for late packets (TIME_WAIT)."""
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((HOST, port)) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""
    with claimed_port(HOST, port) as claimed:
        assert claimed == port
