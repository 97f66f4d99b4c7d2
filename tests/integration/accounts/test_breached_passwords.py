"""Breached passwords: refused where a range service knows them, which never learns which one was asked for."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from recollect.accounts.people import service as people
from recollect.accounts.people.breached import BreachedPasswords
from recollect.errors import InvalidInput
from recollect.platform.db import Database
from recollect.platform.outbound import Outbound
from recollect.settings import Settings
from tests.support.people import PASSWORD, new_email
from tests.support.web_server import Answering, WebServer, plain, web_server

DIGEST = hashlib.sha1(PASSWORD.encode()).hexdigest().upper()
OTHERS = "0018A45C4D1DEF81644B54AB7F969B88D65:3\r\n00D4F6E8FA6EECAD2A3AA415EEC418D38EC:0\r\n"


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    made = Outbound(Settings(outbound_networks=["127.0.0.0/8"]))
    yield made
    await made.close()


def of(outbound: Outbound, server: WebServer, seconds: float = 3.0) -> BreachedPasswords:
    url = f"http://127.0.0.1:{server.port}/range/"
    found = BreachedPasswords.of(Settings(breached_passwords_url=url, breached_passwords_seconds=seconds), outbound)
    assert found is not None
    return found


def telling(suffix: str, times: int) -> Answering:
    return plain(f"{OTHERS}{suffix}:{times}".encode(), "Content-Type: text/plain")


async def test_one_that_is_known_is_refused_and_nothing_is_written(db: Database, outbound: Outbound) -> None:
    email = new_email()
    async with web_server(telling(DIGEST[5:], 42)) as server:
        with pytest.raises(InvalidInput, match="stolen") as refusal:
            await people.register(db, email, "Ada", PASSWORD, breached=of(outbound, server))
    assert refusal.value.path == "password"
    assert not await people.is_known(db, email)


async def test_the_service_learns_five_digits_and_is_asked_for_padding(outbound: Outbound) -> None:
    async with web_server(telling(DIGEST[5:].lower(), 1)) as server:
        assert await of(outbound, server).holds(PASSWORD)
    (head,) = server.heads()
    assert head.startswith(f"get /range/{DIGEST[:5].lower()} http/1.1")
    assert "add-padding: true" in head
    assert DIGEST[5:12].lower() not in head


@pytest.mark.parametrize(("suffix", "times"), [(DIGEST[5:], 0), (DIGEST[5:-1], 9), ("0" * 35, 9)])
async def test_padding_and_others_hashes_are_not_it(outbound: Outbound, suffix: str, times: int) -> None:
    async with web_server(telling(suffix, times)) as server:
        assert not await of(outbound, server).holds(PASSWORD)


async def test_a_service_that_is_away_or_slow_leaves_the_estimate_and_a_line_in_the_log(
    db: Database, outbound: Outbound
) -> None:
    async def never(_: bytes, writer: object) -> None:
        await asleep.wait()

    asleep = asyncio.Event()
    async with web_server(never) as server:
        slow = of(outbound, server, seconds=0.1)
        with capture_logs() as told:
            await people.register(db, new_email(), "Ada", PASSWORD, breached=slow)
        assert [line["event"] for line in told] == ["password not looked up among breached ones"]
        asleep.set()
    with pytest.raises(InvalidInput, match="easy to guess"):
        await people.register(db, new_email(), "Ada", "password1234", breached=of(outbound, server))
    async with web_server(plain(b"", status="503 Away")) as server:
        assert not await of(outbound, server).holds(PASSWORD)


def test_none_is_looked_up_where_nothing_is_set(outbound: Outbound) -> None:
    assert BreachedPasswords.of(Settings(), outbound) is None
