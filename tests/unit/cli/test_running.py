"""What a command says that could not use the database: which settings lead there, once."""

import pytest

from recollect.errors import ErrorCode, InvalidInput, Unavailable
from recollect_cli.running import without_database

AWAY = "The database is unavailable. Try again in a moment."
ADDRESSES = ("RECOLLECT_DATABASE_URL", "RECOLLECT_OWNER_DATABASE_URL")


@pytest.fixture(autouse=True)
def _no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ADDRESSES:
        monkeypatch.delenv(name, raising=False)


def test_without_any_address_no_trying_again_is_advised() -> None:
    """As beside `make run`, whose database is at no address."""
    error = without_database(AWAY, ErrorCode.DATABASE_UNAVAILABLE)
    assert isinstance(error, InvalidInput)
    assert "again" not in error.message
    assert all(name in error.message for name in ADDRESSES)
    assert "POST /v1/keys" in error.message


def test_a_database_that_answers_says_what_it_lacks_at_whichever_address() -> None:
    error = without_database("It lacks a migration.", ErrorCode.SCHEMA_OUTDATED)
    assert error.message.startswith("It lacks a migration. ")
    assert error.code is ErrorCode.SCHEMA_OUTDATED


@pytest.mark.parametrize("name", ADDRESSES)
def test_with_an_address_the_settings_say_where_it_is(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "postgresql://nobody@127.0.0.1:9/nowhere")
    error = without_database(AWAY, ErrorCode.DATABASE_UNAVAILABLE)
    assert isinstance(error, Unavailable)
    assert error.message == f"{AWAY} RECOLLECT_DATABASE_URL and RECOLLECT_OWNER_DATABASE_URL say where it is."
    told = without_database(f"Check {name}.", ErrorCode.DATABASE_UNAVAILABLE)
    assert told.message == f"Check {name}."
    assert without_database("Busy.", ErrorCode.BUSY).message == "Busy."
