"""Operators of several cells: each tenant is in one cell, and plans are in all."""

from collections.abc import AsyncIterator

import asyncpg
import httpx2
import pytest

from recollect.accounts.tenants import service as tenants
from recollect.errors import Unavailable
from recollect.postgres.connections import OWNER_ROLE
from recollect.settings import Settings
from recollect.settings.cells import CellUrls
from recollect_operator.app import create_app
from recollect_operator.cells import OperatorCells
from tests.integration.operator.test_operator_api import code_of, done, listed_in_pages, new_slug
from tests.support.cells import OTHER
from tests.support.gateway import serving

AWAY = CellUrls(database_url="postgresql://nobody@127.0.0.1:9/nowhere")


@pytest.fixture
async def operating(celled: Settings, operator_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an operator API of both cells, which uses only its own role."""
    nowhere = AWAY.database_url
    own = {name: urls.model_copy(update={"database_url": nowhere}) for name, urls in celled.cells.items()}
    settings = celled.model_copy(update={"cells": own, "database_url": nowhere, "owner_database_url": nowhere})
    with serving(settings, create_app(settings)) as api:
        async with api.http(operator_key) as http:
            http.base_url = httpx2.URL(f"{api.url}/operator/v1")
            yield http


async def test_a_tenant_is_created_and_erased_in_its_cell(
    operating: httpx2.AsyncClient, owner: asyncpg.Connection, owner_b: asyncpg.Connection
) -> None:
    slug = new_slug()
    made = await done(operating, "POST", "/tenants", {"slug": slug, "cell": OTHER, "admin_key": "first"})
    assert made["cell"] == OTHER
    for cell in (owner, owner_b):
        assert await cell.fetchval("SELECT count(*) FROM tenants WHERE slug = $1", slug) == (cell is owner_b)
    for other in ("home", OTHER):
        taken = await code_of(operating, "POST", "/tenants", {"slug": slug, "cell": other})
        assert taken == (409, "tenant_exists")
    found = await done(operating, "GET", f"/tenants/{slug}")
    assert (found["id"], found["cell"]) == (made["id"], OTHER)
    suspended = await done(operating, "PUT", f"/tenants/{slug}/suspension", {"kind": "read_only"})
    assert suspended["status"] == "read_only"
    assert (await done(operating, "DELETE", f"/tenants/{slug}/suspension"))["status"] == "active"
    assert (await done(operating, "GET", f"/tenants/{slug}/rows"))["rows"]["api_keys"] == 1
    await done(operating, "DELETE", f"/tenants/{slug}", params={"grace_days": 0, "confirm": slug})
    answer = {"state": "more"}
    while answer["state"] != "erased":
        answer = await done(operating, "POST", f"/erasures/{made['id']}")
    [receipt] = (await done(operating, "GET", "/receipts", params={"slug": slug, "cell": OTHER}))["items"]
    assert receipt["rows"]["api_keys"] == 1
    log = await done(operating, "GET", "/log", params={"subject": f"tenant:{slug}", "cell": OTHER})
    assert log["items"][0]["action"] == "tenant.erased"
    assert (await done(operating, "GET", "/log", params={"subject": f"tenant:{slug}"}))["items"] == []


async def test_a_slug_is_free_if_its_tenant_was_never_created_or_is_erased(
    operating: httpx2.AsyncClient, owner: asyncpg.Connection
) -> None:
    slug = new_slug()
    await owner.execute("INSERT INTO tenant_cells (id, slug, cell) VALUES (gen_random_uuid(), $1, 'b')", slug)
    about_to_be = await code_of(operating, "POST", "/tenants", {"slug": slug})
    assert about_to_be == (409, "tenant_exists")
    await owner.execute("UPDATE tenant_cells SET since = now() - interval '2 minutes' WHERE slug = $1", slug)
    assert (await done(operating, "POST", "/tenants", {"slug": slug}))["cell"] == "home"
    failing = new_slug()
    refused = await code_of(operating, "POST", "/tenants", {"slug": failing, "cell": OTHER, "admin_key": "a\tkey"})
    assert refused == (400, "invalid_input")
    assert (await done(operating, "POST", "/tenants", {"slug": failing, "cell": OTHER}))["cell"] == OTHER
    assert await code_of(operating, "POST", "/tenants", {"slug": new_slug(), "cell": "c"}) == (400, "invalid_input")


async def test_a_slug_stays_claimed_if_the_tenant_was_or_may_have_been_created(
    celled: Settings, owner: asyncpg.Connection, owner_b: asyncpg.Connection
) -> None:
    """The commit succeeded and its answer was lost, or the cell is away when that is checked."""
    made, unknown = new_slug(), new_slug()
    claimed = "SELECT count(*) FROM tenant_cells WHERE slug = $1"
    async with OperatorCells.connect(celled, OWNER_ROLE, lambda its: its.migration_url) as cells:
        with pytest.raises(Unavailable):
            await make_and_lose_the_answer(cells, made)
    assert await owner.fetchval(claimed, made) == 1
    assert await owner_b.fetchval("SELECT count(*) FROM tenants WHERE slug = $1", made) == 1
    away = celled.model_copy(update={"cells": {OTHER: AWAY}, "database_acquire_seconds": 1.0})
    async with OperatorCells.connect(away, OWNER_ROLE, lambda its: its.migration_url) as cells:
        with pytest.raises(Unavailable):
            async with cells.claimed(unknown, OTHER), cells.at(OTHER).session():
                pass
    assert await owner.fetchval(claimed, unknown) == 1


async def make_and_lose_the_answer(cells: OperatorCells, slug: str) -> None:
    async with cells.claimed(slug, OTHER) as tenant_id:
        async with cells.at(OTHER).session() as operator:
            await tenants.create_tenant(operator, slug, slug, tenant_id=tenant_id)
        raise Unavailable("the answer is lost")


async def test_tenants_of_all_cells_are_listed_by_slug_in_pages(operating: httpx2.AsyncClient) -> None:
    made = {new_slug(first=number < 5): ("home", OTHER)[number % 2] for number in range(7)}
    for slug, cell in made.items():
        await done(operating, "POST", "/tenants", {"slug": slug, "cell": cell})
    firsts = {slug for slug in made if slug.startswith("0-")}
    found = [(tenant["slug"], tenant["cell"]) for tenant in await listed_in_pages(operating, firsts)]
    assert found == sorted(set(found))
    assert set(found) >= set(made.items())


async def test_a_plan_is_in_every_cell_even_in_one_that_was_added_later(
    operating: httpx2.AsyncClient, owner: asyncpg.Connection, owner_b: asyncpg.Connection
) -> None:
    graphs = "SELECT graphs FROM plans WHERE name = $1"
    await done(operating, "PUT", "/plans/of-cells", {"graphs": 7})
    assert await owner.fetchval(graphs, "of-cells") == await owner_b.fetchval(graphs, "of-cells") == 7
    await owner_b.execute("DELETE FROM plans WHERE name = 'of-cells'")
    await done(operating, "POST", "/tenants", {"slug": new_slug(), "cell": OTHER, "plan": "of-cells"})
    assert await owner_b.fetchval(graphs, "of-cells") == 7
    await done(operating, "POST", "/tenants", {"slug": new_slug(), "plan": "of-cells"})
    await owner_b.execute("UPDATE tenants SET plan = 'unlimited' WHERE plan = 'of-cells'")
    await owner_b.execute("DELETE FROM plans WHERE name = 'of-cells'")
    await done(operating, "PUT", "/plans/of-cells", {"observations": 9})
    limits = "SELECT graphs, observations FROM plans WHERE name = 'of-cells'"
    assert [tuple(row) for row in await owner_b.fetch(limits)] == [(7, 9)]


async def test_cells_are_listed_even_if_one_is_away(
    operating: httpx2.AsyncClient, celled: Settings, operator_key: str
) -> None:
    [home, other] = (await done(operating, "GET", "/cells"))["items"]
    assert (home["name"], other["name"], other["answers"], other["lacks"]) == ("home", OTHER, True, [])
    assert other["bytes"] > 1_000_000
    settings = celled.model_copy(update={"cells": {OTHER: AWAY}, "database_acquire_seconds": 1.0})
    with serving(settings, create_app(settings)) as api:
        async with api.http(operator_key) as http:
            http.base_url = httpx2.URL(f"{api.url}/operator/v1")
            [home, other] = (await done(http, "GET", "/cells"))["items"]
            assert (home["answers"], other["answers"], other["tenants"]) == (True, False, None)
            assert (await code_of(http, "PUT", "/plans/of-cells", {"graphs": 8}))[0] == 503
            refused = await http.get("/tenants")
            assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
            assert refused.json()["detail"] == f"Cell {OTHER}: The database is unavailable. Try again in a moment."
            assert (await done(http, "POST", "/tenants", {"slug": new_slug()}))["cell"] == "home"
