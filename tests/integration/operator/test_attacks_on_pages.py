"""What an attacker, a hurry or a fault elsewhere does to the pages of operators, and to the operator API."""

from collections.abc import AsyncIterator, Iterator

import asyncpg
import httpx2
import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.settings import Settings
from recollect_operator.app import create_app
from tests.integration.operator.test_operator_pages import sign_in
from tests.support.console import PageReader
from tests.support.gateway import RunningGateway, serving


@pytest.fixture(scope="module")
def operator_settings(operator_settings: Settings) -> Settings:
    """Settings by which nobody waits long for a lock."""
    return operator_settings.model_copy(update={"lock_timeout_seconds": 0.2})


@pytest.fixture(scope="module")
def operator_api(operator_settings: Settings) -> Iterator[RunningGateway]:
    """The operator API with these settings."""
    with serving(operator_settings, create_app(operator_settings)) as api:
        yield api


@pytest.fixture
async def reader(operator_api: RunningGateway, operator_key: str) -> AsyncIterator[PageReader]:
    """A browser of an operator who is signed in."""
    async with operator_api.http() as http:
        assert (await sign_in(http, operator_key)).status_code == 303
        yield PageReader(http)


class TestErrorsOfTheDatabase:
    async def test_a_tenant_that_is_in_use_is_busy(
        self, reader: PageReader, operating: httpx2.AsyncClient, owner: asyncpg.Connection, tenant: Tenant
    ) -> None:
        page = f"/operator/tenants/{tenant.slug}/suspend"
        form = await reader.open_address(page)
        async with owner.transaction():
            await owner.execute("SELECT FROM tenants WHERE id = $1 FOR UPDATE", tenant.id)
            refused = await reader.send(form, "suspend", status=503, typed=tenant.slug)
            answer = await operating.put(f"/tenants/{tenant.slug}/suspension", json={"kind": "whole"})
        assert "Try again." in refused.text
        assert (answer.status_code, answer.json()["code"]) == (503, "busy")

    async def test_a_text_that_cannot_be_stored_is_refused(
        self, reader: PageReader, operating: httpx2.AsyncClient
    ) -> None:
        assert "U+0000" in (await reader.open_address("/operator/log?subject=%00", status=400)).text
        assert (await operating.get("/log?subject=%00")).json()["code"] == "invalid_input"
        assert (await operating.get("/receipts?slug=%00")).json()["code"] == "invalid_input"
