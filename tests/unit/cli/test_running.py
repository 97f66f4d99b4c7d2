"""The message of a command that cannot use the database names the settings of its address, once."""

import pytest

from recollect.errors import ErrorCode, InvalidInput, Unavailable
from recollect_cli.running import without_database

AWAY = "The database is unavailable. Try again in a moment."
ADDRESSES = ("RECOLLECT_DATABASE_URL", "RECOLLECT_OWNER_DATABASE_URL")


@pytest.fixture(autouse=True)
def _no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ADDRESSES:
        monkeypatch.delenv(name, raising=False)


def test_without_an_address_the_message_does_not_advise_to_retry() -> None:
    """It names the ways that need none: the stack on this machine, and a gateway."""
    error = without_database(AWAY, ErrorCode.DATABASE_UNAVAILABLE)
    assert isinstance(error, InvalidInput)
    assert "again" not in error.message
    assert all(name in error.message for name in ADDRESSES)
    assert "`recollect local`" in error.message
    assert "--url" in error.message


def test_an_outdated_schema_is_reported_without_any_address() -> None:
    error = without_database("It lacks a migration.", ErrorCode.SCHEMA_OUTDATED)
    assert error.message.startswith("It lacks a migration. ")
    assert error.code is ErrorCode.SCHEMA_OUTDATED


@pytest.mark.parametrize("name", ADDRESSES)
def test_with_an_address_the_message_names_its_settings(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "postgresql://nobody@127.0.0.1:9/nowhere")
    error = without_database(AWAY, ErrorCode.DATABASE_UNAVAILABLE)
    assert isinstance(error, Unavailable)
    assert error.message == f"{AWAY} Check RECOLLECT_DATABASE_URL and RECOLLECT_OWNER_DATABASE_URL."
    error_of_setting = without_database(f"Check {name}.", ErrorCode.DATABASE_UNAVAILABLE)
    assert error_of_setting.message == f"Check {name}."
    assert without_database("Busy.", ErrorCode.BUSY).message == "Busy."
