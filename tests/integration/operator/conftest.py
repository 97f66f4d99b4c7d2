"""The operator API on its own port, with its own role, and a key for it."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import httpx2
import pytest

from recollect.accounts.operator_keys import service as operator_keys
from recollect.postgres.connections import OPERATOR_ROLE
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from recollect_operator.app import create_app
from tests.support.gateway import RunningGateway, serving


@pytest.fixture(scope="module")
def operator_settings(settings: Settings, postgres: LocalPostgres) -> Settings:
    """Settings of the operator API alone, which has no other access to the database."""
    nowhere = "postgresql://nobody@127.0.0.1:9/nowhere"
    return settings.model_copy(
        update={
            "operator_database_url": postgres.url(OPERATOR_ROLE),
            "database_url": nowhere,
            "owner_database_url": nowhere,
        }
    )


@pytest.fixture(scope="module")
def operator_api(operator_settings: Settings) -> Iterator[RunningGateway]:
    """The operator API, over HTTP."""
    with serving(operator_settings, create_app(operator_settings)) as api:
        yield api


@pytest.fixture
async def operator_key(operator: Operator, settings: Settings) -> str:
    """The secret of a key."""
    pepper = settings.key_secret.get_secret_value().encode()
    return (await operator_keys.create_key(operator, "test", lifetime=timedelta(hours=1), pepper=pepper))[1]


@pytest.fixture
async def operating(operator_api: RunningGateway, operator_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with that key."""
    async with operator_api.http(operator_key) as http:
        http.base_url = httpx2.URL(f"{operator_api.url}/operator/v1")
        yield http
