"""Breached passwords are refused if a range service knows them; the service never learns the password."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from recollect.accounts.people import service as people
from recollect.accounts.people.breached import BreachedPasswords
from recollect.cells.databases import Databases
from recollect.errors import InvalidInput
from recollect.outbound.http_client import Outbound
from recollect.postgres.database import Database
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


def passwords_of(outbound: Outbound, server: WebServer, seconds: float = 3.0) -> BreachedPasswords:
    url = f"http://127.0.0.1:{server.port}/range/"
    found = BreachedPasswords.of(Settings(breached_passwords_url=url, breached_passwords_seconds=seconds), outbound)
    assert found is not None
    return found


def range_answer(suffix: str, times: int) -> Answering:
    return plain(f"{OTHERS}{suffix}:{times}".encode(), "Content-Type: text/plain")


@pytest.mark.proves("security: breached-passwords")
async def test_a_breached_password_is_refused_and_nothing_is_written(
    db: Database, databases: Databases, outbound: Outbound
) -> None:
    email = new_email()
    async with web_server(range_answer(DIGEST[5:], 42)) as server:
        with pytest.raises(InvalidInput, match="stolen") as refusal:
            await people.register(databases, email, "Ada", PASSWORD, breached=passwords_of(outbound, server))
    assert refusal.value.path == "password"
    assert not await people.is_known(db, email)


@pytest.mark.proves("security: breached-passwords")
async def test_the_service_gets_five_digits_and_a_request_for_padding(outbound: Outbound) -> None:
    async with web_server(range_answer(DIGEST[5:].lower(), 1)) as server:
        assert await passwords_of(outbound, server).contains(PASSWORD)
    (head,) = server.heads()
    assert head.startswith(f"get /range/{DIGEST[:5].lower()} http/1.1")
    assert "add-padding: true" in head
    assert DIGEST[5:12].lower() not in head


@pytest.mark.parametrize(("suffix", "times"), [(DIGEST[5:], 0), (DIGEST[5:-1], 9), ("0" * 35, 9)])
async def test_padding_and_other_hashes_do_not_match(outbound: Outbound, suffix: str, times: int) -> None:
    async with web_server(range_answer(suffix, times)) as server:
        assert not await passwords_of(outbound, server).contains(PASSWORD)


@pytest.mark.proves("security: breached-passwords")
async def test_without_an_answer_only_the_strength_counts_and_a_warning_is_logged(
    databases: Databases, outbound: Outbound
) -> None:
    async def never(_: bytes, writer: object) -> None:
        await asleep.wait()

    asleep = asyncio.Event()
    async with web_server(never) as server:
        slow = passwords_of(outbound, server, seconds=0.1)
        with capture_logs() as told:
            await people.register(databases, new_email(), "Ada", PASSWORD, breached=slow)
        assert [line["event"] for line in told] == ["breached password check failed"]
        asleep.set()
    with pytest.raises(InvalidInput, match="easy to guess"):
        await people.register(databases, new_email(), "Ada", "password1234", breached=passwords_of(outbound, server))
    async with web_server(plain(b"", status="503 Away")) as server:
        assert not await passwords_of(outbound, server).contains(PASSWORD)


def test_nothing_is_looked_up_without_a_configured_service(outbound: Outbound) -> None:
    assert BreachedPasswords.of(Settings(), outbound) is None
