"""The pages of operators where tenants are in several cells, of which one may be away."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_hex

import asyncpg

from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.postgres.connections import OWNER_ROLE
from recollect.settings import Settings
from recollect_operator.app import create_app
from recollect_operator.cells import OperatorCells
from tests.integration.operator.test_cells import AWAY
from tests.integration.operator.test_operator_pages import sign_in
from tests.support.cells import OTHER
from tests.support.console import PageReader
from tests.support.gateway import serving


@asynccontextmanager
async def reading(settings: Settings, key: str) -> AsyncIterator[PageReader]:
    """A browser of an operator who is signed in to a process with these settings."""
    with serving(settings, create_app(settings)) as api:
        async with api.http() as http:
            assert (await sign_in(http, key)).status_code == 303
            yield PageReader(http)


async def test_a_tenant_is_found_and_changed_in_its_cell(
    celled: Settings, operator_key: str, owner: asyncpg.Connection, owner_b: asyncpg.Connection
) -> None:
    mark = token_hex(4)
    slug, at_home = f"{mark}-b", f"{mark}-a"
    async with OperatorCells.connect(celled, OWNER_ROLE, lambda its: its.migration_url) as cells:
        for name, cell in ((slug, OTHER), (at_home, "home")):
            async with cells.claimed(name, cell) as tenant_id, cells.at(cell).session() as operator:
                await tenants.create_tenant(operator, name, name, plan="free", tenant_id=tenant_id)
    async with reading(celled, operator_key) as reader:
        listed = await reader.open_address("/operator/tenants", search=mark)
        assert [text for text in listed.links() if text.startswith(mark)] == [at_home, slug]
        shown = await reader.open_address(listed.links()[slug])
        assert f"recollect tenants move {slug} --to home" in shown.text
        changed = await reader.send(shown, f"{slug}/plan", plan="team")
        assert await owner_b.fetchval("SELECT plan FROM tenants WHERE slug = $1", slug) == "team"
        acts = await reader.open_address(changed.links()["All acts on this tenant"])
        assert "tenant.plan_changed" in acts.text
        assert (
            "tenant.plan_changed" not in (await reader.open_address("/operator/log", subject=f"tenant:{slug}")).text
        ), "the log of home has the acts on its own tenants"
        assert [row.text[: len(OTHER)] for row in (await reader.open_address("/operator/cells")).all("tr")][2] == OTHER
        await reader.open_address("/operator/log", status=400, cell="nowhere")


async def test_a_cell_that_is_away_is_shown_as_such(celled: Settings, operator_key: str, tenant: Tenant) -> None:
    away = celled.model_copy(update={"cells": {OTHER: AWAY}, "database_acquire_seconds": 1.0})
    async with reading(away, operator_key) as reader:
        for page in ("cells", "health"):
            shown = await reader.open_address(f"/operator/{page}")
            assert "does not answer" in shown.text
        assert "Waiting in home" in shown.text
        listed = await reader.open_address("/operator/tenants", search=tenant.slug)
        assert f"the cells do not answer: {OTHER}." in listed.text
        assert tenant.slug in listed.links()
        none = await reader.open_address("/operator/tenants", cursor="zzz")
        assert "There is no tenant yet" not in none.text
    async with reading(celled, operator_key) as reader:
        assert "do not answer" not in (await reader.open_address("/operator/tenants")).text
