"""Tool `compact`, and erasure over the management API and by the operator."""

from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import httpx2
import pytest
from mcp import Client

from recollect.accounts.deletions import service as deletions
from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.jobs.kinds import COMPACT_GRAPH
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.retention.compaction import service as compaction
from recollect.settings import Settings
from recollect_workers import job_loop
from tests.conftest import NewTenant
from tests.support.bounds import lower
from tests.support.clocks import clock_ahead
from tests.support.erasures import erase_now
from tests.support.gateway import NewApiKey, RunningGateway, answer
from tests.support.jobs import employed

OLD = "interval '31 days'"


@pytest.fixture
async def admin(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as http:
        yield http


async def create(client: Client, *names: str) -> None:
    entities = [{"name": name, "entityType": "person", "observations": ["likes tea"]} for name in names]
    await answer(client, "create_entities", entities=entities)


async def age(owner: asyncpg.Connection, caller: Caller) -> None:
    """Make everything that was written 31 days old."""
    await owner.execute(f"UPDATE changes SET at = at - {OLD} WHERE tenant_id = $1", caller.tenant_id)
    await owner.execute(f"UPDATE graph_heads SET at = at - {OLD} WHERE tenant_id = $1", caller.tenant_id)


class TestCompact:
    @pytest.mark.proves("memory: compact", "admin: compact", "crate: compaction")
    async def test_data_beyond_the_retention_is_removed_and_counted(
        self, client: Client, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        await create(client, "Ada", "Babbage", "Grace")
        await answer(client, "delete_entities", entityNames=["Babbage"])
        await age(owner, caller)
        await answer(client, "delete_entities", entityNames=["Grace"])
        before = await answer(client, "read_graph")
        told = await answer(client, "compact", dry_run=True)
        done = await answer(client, "compact")
        assert done["freed"].pop("vectors") in {0, 1}, "its passage may have been embedded at once"
        told["freed"].pop("vectors")
        assert done == {
            "dry_run": False,
            "freed": {
                "nodes": 1,
                "versions": 2,
                "observations": 1,
                "relations": 0,
                "aliases": 0,
                "passages": 1,
            },
            "readable_from_revision": 2,
            "job": None,
        }
        assert told == {**done, "dry_run": True}
        assert await answer(client, "read_graph") == before
        past = await answer(client, "read_graph", as_of="2")
        assert [entity["name"] for entity in past["entities"]] == ["Ada", "Grace"]
        refused = await client.call_tool("read_graph", {"as_of": "1"})
        assert refused.is_error
        assert "back to revision 2" in str(refused.content)
        with clock_ahead(timedelta(days=100)):
            for options in ({"dry_run": True}, {}):
                assert sum((await answer(client, "compact", **options))["freed"].values()) == 0, "Grace is still kept"

    async def test_compacting_an_unknown_graph_does_not_create_it(self, client: Client) -> None:
        assert (await answer(client, "compact", graph="nowhere"))["readable_from_revision"] == 0
        assert "nowhere" not in str(await answer(client, "list_graphs"))

    async def test_a_compaction_too_large_for_a_call_continues_as_a_job(
        self,
        client: Client,
        owner: asyncpg.Connection,
        caller: Caller,
        db: Database,
        settings: Settings,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        await create(client, *(f"entity {n}" for n in range(7)))
        await answer(client, "delete_entities", entityNames=[f"entity {n}" for n in range(6)])
        await age(owner, caller)
        lower(monkeypatch, compaction.compact, limit=2)
        async with employed(settings, db) as worker:
            begun = await answer(client, "compact")
            assert 0 < begun["freed"]["nodes"] + begun["freed"]["observations"] < 12, "a beginning"
            await job_loop.sweep(worker)
        done = await answer(client, "get_job", id=begun["job"])
        assert (done["kind"], done["status"]) == (COMPACT_GRAPH, "succeeded")
        freed = {name: count + done["result"][name] for name, count in begun["freed"].items()}
        assert (freed["nodes"], freed["observations"]) == (6, 6)
        assert sum((await answer(client, "compact"))["freed"].values()) == 0


class TestErasure:
    async def test_a_person_is_erased_with_a_receipt(self, client: Client, admin: httpx2.AsyncClient) -> None:
        await create(client, "Ada", "Grace")
        observations = [{"entityName": "Grace", "contents": ["knows Ada"]}]
        await answer(client, "add_observations", observations=observations)
        for dry in (True, False):
            response = await admin.post("/v1/graphs/default/erase", json={"name": "Ada", "dry_run": dry})
            assert response.status_code == 200, response.text
            said = response.json()
            assert (said["dry_run"], said["revision"], said["names"]) == (dry, None if dry else 3, ["Ada"])
            assert (said["erased"]["nodes"], said["erased"]["observations"], said["kept"]) == (1, 2, {})
        left = await answer(client, "read_graph")
        assert [(e["name"], e["observations"]) for e in left["entities"]] == [("Grace", ["likes tea"])]

    async def test_a_graph_is_erased_with_a_receipt(self, client: Client, admin: httpx2.AsyncClient) -> None:
        await answer(client, "create_graph", name="diary")
        for dry in (True, False):
            response = await admin.request("DELETE", "/v1/graphs/diary", params={"dry_run": str(dry).lower()})
            assert (response.status_code, response.json()["erased"]["graphs"]) == (200, 1)
        assert (await admin.request("DELETE", "/v1/graphs/diary")).status_code == 404

    async def test_an_invalid_or_unknown_erasure_is_refused(self, client: Client, admin: httpx2.AsyncClient) -> None:
        await create(client, "Ada")
        for path, body, status in (
            ("default", {}, 400),
            ("default", {"name": ""}, 400),
            ("default", {"name": "a\x00"}, 400),
            ("default", {"name": "Grace"}, 404),
            ("nowhere", {"name": "Ada"}, 404),
        ):
            response = await admin.post(f"/v1/graphs/{path}/erase", json=body)
            assert response.status_code == status, response.text

    async def test_only_an_admin_can_erase(self, gateway: RunningGateway, issue: NewApiKey, caller: Caller) -> None:
        async with gateway.http((await issue(caller)).secret) as http:
            assert (await http.post("/v1/graphs/default/erase", json={"name": "Ada"})).status_code == 403
            assert (await http.request("DELETE", "/v1/graphs/default")).status_code == 403

    async def test_a_graph_of_another_tenant_is_not_found(
        self, gateway: RunningGateway, admin: httpx2.AsyncClient, issue: NewApiKey, new_tenant: NewTenant
    ) -> None:
        assert (await admin.post("/v1/graphs", json={"name": "secret"})).status_code == 201
        other = await issue(operator_caller(await new_tenant()), kind="admin")
        async with gateway.http(other.secret) as http:
            assert (await http.request("DELETE", "/v1/graphs/secret")).status_code == 404
        assert (await admin.get("/v1/graphs/secret")).status_code == 200


class TestTenant:
    async def test_a_tenant_is_erased_from_every_table(
        self, client: Client, tenant: Tenant, operator: Operator, owner: asyncpg.Connection, new_tenant: NewTenant
    ) -> None:
        other = await new_tenant()
        await create(client, "Ada")
        await answer(client, "reindex")
        told = await deletions.count_rows(operator, tenant.slug)
        erased = await erase_now(operator, tenant.slug)
        # The gateway writes usage down at its own times.
        assert erased | {"usage_hourly": 0} == told | {"usage_hourly": 0}
        assert min(erased[table] for table in ("nodes", "passages", "jobs", "api_keys", "changes", "tenants")) > 0
        tables = await owner.fetch(
            """SELECT t.table_name FROM information_schema.tables t
            JOIN information_schema.columns c USING (table_schema, table_name)
            WHERE t.table_schema = 'recollect' AND t.table_type = 'BASE TABLE' AND c.column_name = 'tenant_id'"""
        )
        counted = {table for (table,) in tables if not table.startswith("searched_vectors_")}  # parts are of the whole
        assert counted | {"tenants"} == erased.keys()
        for (table,) in tables:
            assert await owner.fetchval(f"SELECT count(*) FROM {table} WHERE tenant_id = $1", tenant.id) == 0
        assert (await tenants.find_tenant(operator, other.slug)) == other
