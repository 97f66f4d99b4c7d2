"""What a test leaves open on the event loop is an error at the loop's end."""

import asyncio

import pytest


async def _leave_open() -> asyncio.BaseTransport:
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
    )
    return transport


def test_a_socket_that_is_left_open_is_reported_and_closed() -> None:
    with pytest.raises(ResourceWarning, match="UDPTransport"):
        asyncio.run(_leave_open())
