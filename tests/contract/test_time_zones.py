"""The time zone of a call, of a graph and of an organisation: by tool and by route."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import RunningGateway, issue_key, rpc_headers

ALL = "/mcp/x/all"
BERLIN, TOKYO = "Europe/Berlin", "Asia/Tokyo"


@pytest.fixture
async def http(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key, **rpc_headers()) as http:
        yield http


@pytest.fixture
async def v1(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as http:
        yield http


async def call(gateway: RunningGateway, http: httpx2.AsyncClient, tool: str, **arguments: Any) -> Any:
    result = await gateway.call(http, tool, arguments, path=ALL)
    assert not result["isError"], result
    return result


async def found(gateway: RunningGateway, http: httpx2.AsyncClient, **arguments: Any) -> list[str]:
    told = await call(gateway, http, "recall", **({"query": "who moved where"} | arguments))
    return sorted(memory["text"] for memory in told["structuredContent"]["memories"])


NIGHT, NOON = "Ada moved at night.", "Bob moved at noon."


@pytest.fixture
async def moved(gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
    """Said at 00:30 in Berlin, which is still the day before in UTC, and at noon of that day."""
    items = [{"text": NIGHT, "at": "2026-11-25T00:30"}, {"text": NOON, "at": "2026-11-25 12:00"}]
    await call(gateway, http, "remember", items=items, time_zone=BERLIN)


@pytest.mark.usefixtures("moved")
class TestCall:
    async def test_a_day_is_one_of_the_zone(self, gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
        assert await found(gateway, http, since="2026-11-25", time_zone=BERLIN) == [NIGHT, NOON]
        assert await found(gateway, http, since="2026-11-25") == [NOON]
        assert await found(gateway, http, until="2026-11-24", time_zone=BERLIN) == []
        assert await found(gateway, http, until="2026-11-24") == [NIGHT]
        assert await found(gateway, http, since="2026-11-25T00:15", until="2026-11-25T01:00", time_zone=BERLIN) == [
            NIGHT
        ]
        assert await found(gateway, http, since="2026-11-25T00:15:00+01:00", time_zone=TOKYO) == [NIGHT, NOON]

    async def test_a_memory_keeps_the_clock_of_who_said_it(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        told = await call(gateway, http, "recall", query="What happened on 2026-11-25?")
        times = {memory["text"]: memory["at"] for memory in told["structuredContent"]["memories"]}
        assert times == {NIGHT: "2026-11-25T00:30:00+01:00", NOON: "2026-11-25T12:00:00+01:00"}
        assert told["content"][0]["text"].count("(2026-11-25 UTC+01:00)") == 2

    async def test_a_moment_of_the_past_is_one_of_the_zone(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        assert await found(gateway, http, as_of="2100-01-01", time_zone=BERLIN) == [NIGHT, NOON]
        assert await found(gateway, http, as_of="2020-01-01T12:00", time_zone=BERLIN) == []

    async def test_an_export_keeps_the_clock_and_an_import_restores_it(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        await call(
            gateway,
            http,
            "remember",
            items=[{"text": "Ada moved.", "about": ["Ada"], "at": "2026-11-25T00:30"}],
            time_zone=BERLIN,
        )
        exported = await call(gateway, http, "export_graph", format="json")
        [file, *_] = [part["text"] for part in exported["content"]]
        assert "2026-11-25T00:30:00+01:00" in file
        await call(gateway, http, "import_graph", format="json", data=file, graph="copy")
        told = await call(gateway, http, "recall", query="What happened on 2026-11-25?", graph="copy")
        times = {memory["text"]: memory["at"] for memory in told["structuredContent"]["memories"]}
        night = "2026-11-25T00:30:00+01:00"
        assert times == {"Ada moved.": night, NIGHT: night, NOON: "2026-11-25T12:00:00+01:00"}

    async def test_by_route_a_day_and_a_time_without_offset_are_taken_too(self, v1: httpx2.AsyncClient) -> None:
        item = {"text": "Cleo moved in the morning.", "at": "2026-11-25T00:10"}
        await done(v1, "POST", "/v1/graphs/default/memories", items=[item], time_zone=BERLIN)
        body = {"query": "who moved where", "since": "2026-11-25", "time_zone": BERLIN}
        told = await done(v1, "POST", "/v1/graphs/default/recall", **body)
        assert {one["text"]: one["at"] for one in told["memories"]} == {
            NIGHT: "2026-11-25T00:30:00+01:00",
            NOON: "2026-11-25T12:00:00+01:00",
            "Cleo moved in the morning.": "2026-11-25T00:10:00+01:00",
        }
        told = await done(v1, "POST", "/v1/graphs/default/recall", query="who moved", until="2026-11-24")
        assert len(told["memories"]) == 2


@pytest.mark.usefixtures("moved")
class TestGraph:
    async def test_its_zone_holds_for_calls_that_name_none(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        changed = await call(gateway, http, "update_graph_config", time_zone=BERLIN)
        assert changed["structuredContent"]["graph"]["time_zone"] == BERLIN
        assert await found(gateway, http, since="2026-11-25") == [NIGHT, NOON]
        assert await found(gateway, http, since="2026-11-25", time_zone="UTC") == [NOON]
        await call(gateway, http, "remember", items=[{"text": "Dan moved."}])
        [dan] = (await call(gateway, http, "recall", query="Dan moved"))["structuredContent"]["memories"][:1]
        assert dan["at"][-6:] in ("+01:00", "+02:00")
        same = await call(gateway, http, "update_graph_config", time_zone="")
        assert same["structuredContent"]["graph"]["time_zone"] == BERLIN, "clients fill in every argument"
        await call(gateway, http, "update_graph_config", time_zone="UTC")
        assert NIGHT not in await found(gateway, http, since="2026-11-25")

    async def test_by_route(self, v1: httpx2.AsyncClient) -> None:
        created = await done(v1, "POST", "/v1/graphs", name="tokyo", time_zone=TOKYO)
        assert created["time_zone"] == TOKYO
        assert (await done(v1, "GET", "/v1/graphs/tokyo"))["time_zone"] == TOKYO
        assert (await done(v1, "PATCH", "/v1/graphs/tokyo", time_zone=None))["time_zone"] is None
        renamed = await done(v1, "PATCH", "/v1/graphs/tokyo", time_zone=BERLIN, conflict_policy="manual")
        assert renamed["time_zone"] == BERLIN
        assert (await done(v1, "PATCH", "/v1/graphs/tokyo", conflict_policy="lww"))["time_zone"] == BERLIN


@pytest.mark.usefixtures("moved")
class TestTenant:
    async def test_its_zone_holds_for_graphs_that_have_none_and_for_no_other_tenant(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        v1: httpx2.AsyncClient,
        db: Database,
        settings: Settings,
        new_tenant: NewTenant,
    ) -> None:
        key = (await issue_key(db, settings, operator_caller(await new_tenant()))).secret
        async with gateway.http(key, **rpc_headers()) as theirs:
            items = [{"text": NIGHT, "at": "2026-11-24T23:30:00Z"}, {"text": NOON, "at": "2026-11-25T11:00:00Z"}]
            await call(gateway, theirs, "remember", items=items)
            told = await done(v1, "PATCH", "/v1/tenant", settings={"time_zone": BERLIN})
            assert told["settings"]["time_zone"] == BERLIN
            assert await found(gateway, http, since="2026-11-25") == [NIGHT, NOON]
            assert await found(gateway, theirs, since="2026-11-25") == [NOON]
        await call(gateway, http, "update_graph_config", time_zone="UTC")
        assert await found(gateway, http, since="2026-11-25") == [NOON], "the graph's own zone goes first"
        told = await done(v1, "PATCH", "/v1/tenant", settings={"time_zone": None})
        assert told["settings"]["time_zone"] is None


class TestErrors:
    async def test_a_name_that_no_zone_has_is_refused_with_its_path(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, subtests: pytest.Subtests
    ) -> None:
        for tool, arguments in (
            ("recall", {"query": "x"}),
            ("recall", {"query": "x", "since": "2026-11-25"}),
            ("remember", {"items": [{"text": "x"}]}),
            ("remember", {"items": [{"text": "x", "at": "2026-11-25"}]}),
            ("create_graph", {"name": "other"}),
            ("update_graph_config", {}),
        ):
            for zone in ("Mars/Olympus", "../etc/passwd"):
                with subtests.test(tool, zone=zone, arguments=arguments):
                    result = await gateway.call(http, tool, arguments | {"time_zone": zone}, path=ALL)
                    assert result["isError"]
                    assert result["_meta"][ERROR_META]["path"] == "time_zone"
                    assert "Europe/Berlin" in result["content"][0]["text"]

    async def test_by_route(self, v1: httpx2.AsyncClient, subtests: pytest.Subtests) -> None:
        for method, path, body, at in (
            ("POST", "/v1/graphs/default/recall", {"query": "x", "time_zone": "Mars"}, "time_zone"),
            (
                "POST",
                "/v1/graphs/default/recall",
                {"query": "x", "since": "2026-11-25", "time_zone": "Mars"},
                "time_zone",
            ),
            ("POST", "/v1/graphs/default/memories", {"items": [{"text": "x"}], "time_zone": "Mars"}, "time_zone"),
            ("POST", "/v1/graphs", {"name": "mars", "time_zone": "Mars"}, "time_zone"),
            ("PATCH", "/v1/graphs/default", {"time_zone": "Mars"}, "time_zone"),
            ("PATCH", "/v1/tenant", {"settings": {"time_zone": "Mars"}}, "settings.time_zone"),
        ):
            with subtests.test(path, method=method):
                told = problem(await v1.request(method, path, json=body), 400)
                assert told["path"] == at
                assert "Europe/Berlin" in told["detail"]

    async def test_a_time_outside_the_calendar_is_refused_in_any_zone(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, subtests: pytest.Subtests
    ) -> None:
        for since in ("0001-01-01", "2026-13-01", "2026-11-25T25:00"):
            with subtests.test(since):
                arguments = {"query": "x", "since": since, "time_zone": TOKYO}
                result = await gateway.call(http, "recall", arguments, path=ALL)
                assert result["isError"]
                assert result["_meta"][ERROR_META]["path"] == "since"
