"""A desk and a receiver for every test of webhooks."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.webhooks import Receiver, WebhookDesk, at_desk, receiving


@pytest.fixture
async def desk(
    settings: Settings, db: Database, owner: asyncpg.Connection, caller: Caller
) -> AsyncIterator[WebhookDesk]:
    async with at_desk(settings, db, owner, caller) as desk:
        yield desk


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def other(new_tenant: NewTenant) -> Caller:
    """The operator of another tenant, with every scope."""
    return operator_caller(await new_tenant())
