"""A look-up that is cancelled leaves no socket open, at whatever moment that happens."""

import asyncio
import socket
import warnings
from collections.abc import Iterator

import pytest

from recollect.event_loop import EventLoop
from recollect.outbound.txt_records import TextRecords
from recollect.settings import Settings

TURNS = 8
"""Turns of the loop after which a look-up waits for its answer."""


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The address of a name server that does not answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        host, port = server.getsockname()
        yield f"{host}:{port}"


async def give_up(records: TextRecords, *, after: int) -> None:
    """Look up, and cancel that after some turns of the loop."""
    asking = asyncio.create_task(records.look_up("example.com", on_behalf_of="tenant"))
    for _ in range(after):
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    for _ in range(TURNS):
        await asyncio.sleep(0)


def test_a_cancelled_look_up_closes_its_socket(silent_server: str, subtests: pytest.Subtests) -> None:
    records = TextRecords(Settings(dns_servers=[silent_server]))
    for turns in range(TURNS + 1):
        with subtests.test(turns=turns), warnings.catch_warnings(record=True) as left_open:
            warnings.simplefilter("always", ResourceWarning)
            with asyncio.Runner(loop_factory=EventLoop) as runner:
                runner.run(give_up(records, after=turns))
            assert [str(warning.message) for warning in left_open] == []
