"""A key secret that is not the one of the database is told in the log, once in a while."""

from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import generate_secret
from recollect.caller import Caller
from recollect.errors import CredentialEnded, TenantSuspended, Unauthenticated
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_http.unknown_keys import LOG_INTERVAL_SECONDS, UnknownKeys
from tests.support.gateway import NewApiKey, RunningGateway, serving


def with_another_secret(settings: Settings) -> Settings:
    return settings.model_copy(update={"key_secret": SecretStr(f"another secret {uuid4()}")})


def warnings(logs: list[Any]) -> list[tuple[int, int]]:
    """The counts of unknown and of known credentials in each warning."""
    told = [entry for entry in logs if entry["event"] == "unknown keys refused"]
    assert all(entry["log_level"] == "warning" and "RECOLLECT_KEY_SECRET" in entry["likely_causes"] for entry in told)
    return [(entry["unknown"], entry["known"]) for entry in told]


async def status(gateway: RunningGateway, secret: str, path: str = "/v1/graphs") -> int:
    async with gateway.http(secret) as http:
        return (await http.get(path)).status_code


async def test_a_gateway_with_another_secret_warns_once(settings: Settings, key: str) -> None:
    with capture_logs() as logs, serving(with_another_secret(settings)) as gateway:
        assert await status(gateway, "rcl_agent_of a wrong form") == 401
        assert await status(gateway, key[:-1] + ("a" if key[-1] != "a" else "b")) == 401
        assert warnings(logs) == []
        assert await status(gateway, key) == 401
        assert warnings(logs) == [(1, 0)]
        assert await status(gateway, generate_secret("agent")) == 401
        assert await status(gateway, generate_secret("access"), "/mcp") in (401, 405)
        assert warnings(logs) == [(1, 0)]
    assert key not in str(logs)


async def test_keys_that_hold_and_keys_that_ended_are_known(
    settings: Settings, key: str, issue: NewApiKey, caller: Caller, db: Database
) -> None:
    ended = await issue(caller)
    async with db.transaction(caller) as tx:
        await identity.revoke_key(tx, ended.key.id)
    with capture_logs() as logs, serving(settings) as gateway:
        assert [await status(gateway, secret) for secret in (key, ended.secret)] == [200, 401]
    assert warnings(logs) == []


def test_the_warning_comes_once_an_hour_and_counts_what_was_known() -> None:
    now = 0.0
    keys = UnknownKeys(lambda: now)

    def look_up(*errors: Unauthenticated | None) -> list[tuple[int, int]]:
        with capture_logs() as logs:
            for error in errors:
                if error is None:
                    with keys.watched():
                        pass
                    continue
                with pytest.raises(type(error)), keys.watched():
                    raise error
        return warnings(logs)

    unknown, ended, suspended = Unauthenticated("no"), CredentialEnded("no"), TenantSuspended("no")
    assert look_up(None, ended, suspended) == []
    assert look_up(unknown, unknown, None, unknown) == [(1, 3)]
    now = LOG_INTERVAL_SECONDS - 1
    assert look_up(unknown) == []
    now = LOG_INTERVAL_SECONDS
    assert look_up(None, unknown) == [(4, 2)]
