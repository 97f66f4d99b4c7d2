"""Usage as its tool and routes report it, counted by gateways and a worker."""

from collections import Counter as Sums
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.usage import store
from recollect.accounts.usage.model import Counter, Counts, count_duration
from recollect.caller import Caller, Scope
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers, serving
from tests.support.memories import Agent

ADMIN = "/mcp/x/admin"
JANUARY, MARCH = "2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z"
ROWS = [
    ("2026-01-01T10:00:00Z", "tool", "recall", 3, 1, 0, 30),
    ("2026-01-01T10:00:00Z", "tool", "remember", 2, 0, 0, 20),
    ("2026-01-01T11:00:00Z", "tool", "recall", 4, 0, 0, 40),
    ("2026-01-02T00:00:00Z", "route", "GET /v1/graphs/{name}", 5, 5, 0, 0),
    ("2026-02-28T23:00:00Z", "work", "embed_passages", 1, 0, 250, 0),
]
"""Since, kind, name, calls, errors, passages, bytes. They were counted before calls were timed."""


@pytest.fixture(scope="module")
def gateways(settings: Settings) -> Iterator[tuple[RunningGateway, RunningGateway]]:
    """Two gateways that write their counts at once."""
    quick = settings.model_copy(update={"usage_flush_seconds": 0.05})
    with serving(quick) as one, serving(quick) as other:
        yield one, other


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


@pytest.fixture
async def past(owner: asyncpg.Connection, caller: Caller) -> None:
    """Usage of the tenant that was counted some months ago."""
    for since, *rest in ROWS:
        hour = datetime.fromisoformat(since)
        await owner.execute(
            "INSERT INTO usage_hourly VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", caller.tenant_id, hour, *rest
        )


async def usage_of(gateway: RunningGateway, http: httpx2.AsyncClient, **arguments: Any) -> dict[str, Any]:
    result = await gateway.call(http, "usage", arguments, path=ADMIN)
    assert not result["isError"], result
    answer: dict[str, Any] = result["structuredContent"]
    return answer


async def refused(gateway: RunningGateway, http: httpx2.AsyncClient, **arguments: Any) -> dict[str, str]:
    result = await gateway.call(http, "usage", arguments, path=ADMIN)
    assert result["isError"], result
    error: dict[str, str] = result["_meta"][ERROR_META]
    return error


def flat(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(value for name, value in row.items() if name not in ("p50_ms", "p95_ms")) for row in rows]


async def counted(owner: asyncpg.Connection, caller: Caller) -> dict[tuple[str, str], tuple[int, int]]:
    """The calls and errors of the tenant in all hours, by kind and name."""
    rows = await owner.fetch(
        "SELECT kind, name, sum(calls)::int AS calls, sum(errors)::int AS errors FROM usage_hourly "
        "WHERE tenant_id = $1 GROUP BY kind, name",
        caller.tenant_id,
    )
    return {(row["kind"], row["name"]): (row["calls"], row["errors"]) for row in rows}


class TestCounting:
    @pytest.mark.proves("rules: calls-are-counted")
    async def test_calls_of_tools_and_routes_are_counted_with_their_errors(
        self, gateways: tuple[RunningGateway, RunningGateway], key: str, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        gateway, _ = gateways
        expected = {
            ("tool", "remember"): (1, 0),
            ("tool", "recall"): (2, 1),
            ("resource", "resources/read"): (1, 0),
            ("route", "GET /v1/graphs/{name}"): (2, 1),
            ("route", "POST /v1/graphs/{name}/recall"): (1, 0),
            ("route", "GET /v1/graphs/{name}/export"): (1, 0),
            ("work", "embed_passages"): (1, 0),
        }

        async def all_there() -> bool:
            return await counted(owner, caller) == expected

        async with gateway.http(key, **rpc_headers()) as http:
            await gateway.call(http, "remember", {"items": [{"text": "tea is hot"}]}, path="/mcp")
            await gateway.call(http, "recall", {"query": "tea"}, path="/mcp")
            await gateway.call(http, "recall", {}, path="/mcp")
            await gateway.post(http, "tools/call", {"name": "tea", "arguments": {}}, path="/mcp")
            await gateway.post(http, "tools/list", {}, path="/mcp")
            await gateway.post(http, "resources/read", {"uri": "memory://knowledge-graph"})
            assert (await http.get("/v1/graphs/default")).status_code == 200
            assert (await http.get("/v1/graphs/nowhere")).status_code == 404
            assert (await http.get("/v1/nowhere")).status_code == 404
            assert (await http.post("/v1/graphs/default/recall", json={"query": "tea"})).status_code == 200
            assert (await http.get("/v1/graphs/default/export")).status_code == 200
        async with gateway.http("rcl_agent_wrong") as stranger:
            assert (await stranger.get("/v1/graphs/default")).status_code == 401
        await eventually(all_there)
        timed = await owner.fetch(
            "SELECT kind, name, (SELECT sum(d)::int FROM unnest(durations) AS d) AS timed FROM usage_hourly "
            "WHERE tenant_id = $1 AND durations <> '{}'",
            caller.tenant_id,
        )
        calls = {key: calls for key, (calls, _) in expected.items() if key[0] in ("tool", "route")}
        sums = Sums[tuple[str, str]]()
        for row in timed:
            sums[row["kind"], row["name"]] += row["timed"]
        assert sums == calls, "each tool and route was timed once"

    async def test_received_bytes_are_counted(
        self, gateways: tuple[RunningGateway, RunningGateway], key: str, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        gateway, text = gateways[0], "tea " * 1_000
        query = "SELECT min(bytes_received) FROM usage_hourly WHERE tenant_id = $1 HAVING count(*) = 2"

        async def all_there() -> bool:
            least = await owner.fetchval(query, caller.tenant_id)
            return least is not None and len(text) < least < len(text) + 1_000

        async with gateway.http(key, **rpc_headers()) as http:
            await gateway.call(http, "remember", {"items": [{"text": text}]}, path="/mcp")
            await http.post("/v1/graphs/default/memories", json={"items": [{"text": text}]})
        await eventually(all_there)

    @pytest.mark.proves("rules: calls-are-counted")
    async def test_the_counts_of_two_gateways_add_up(
        self, gateways: tuple[RunningGateway, RunningGateway], key: str, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        async def all_there() -> bool:
            return await counted(owner, caller) == {("route", "GET /v1/graphs"): (40, 0)}

        for gateway in gateways:
            async with gateway.http(key) as http:
                for _ in range(20):
                    assert (await http.get("/v1/graphs")).status_code == 200
        await eventually(all_there)

    async def test_counts_are_written_when_a_gateway_stops(
        self, settings: Settings, key: str, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        late = settings.model_copy(update={"usage_flush_seconds": 3600})
        with serving(late) as gateway:
            async with gateway.http(key) as http:
                assert (await http.get("/v1/graphs")).status_code == 200
            assert await counted(owner, caller) == {}
        assert await counted(owner, caller) == {("route", "GET /v1/graphs"): (1, 0)}
        used = "SELECT last_used_at IS NOT NULL FROM api_keys WHERE tenant_id = $1"
        assert await owner.fetchval(used, caller.tenant_id)


@pytest.mark.usefixtures("past")
class TestUsage:
    async def test_usage_is_listed_hour_by_hour_oldest_first(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        answer = await usage_of(gateway, http, **{"from": JANUARY, "to": MARCH})
        assert flat(answer["usage"]) == ROWS
        assert answer["next_cursor"] is None

    async def test_the_first_page_has_the_plan_as_its_route_reports_it(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        first = await usage_of(gateway, http, **{"from": JANUARY, "to": MARCH, "limit": 1})
        assert first["plan"] == (await http.get("/v1/plan")).json()
        assert {"quota": "graphs", "limit": None, "used": 1} in first["plan"]["quotas"]
        assert (await usage_of(gateway, http, limit=1, cursor=first["next_cursor"]))["plan"] is None

    async def test_usage_begins_with_the_hour_of_from_and_ends_before_to(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        answer = await usage_of(gateway, http, **{"from": "2026-01-01T16:29:00+05:30", "to": "2026-01-02T00:00:00Z"})
        assert flat(answer["usage"]) == ROWS[:3]
        assert {row["name"] for row in (await usage_of(gateway, http))["usage"]} <= {"usage"}, (
            "the last day has no more"
        )

    @pytest.mark.parametrize(
        ("per", "sums"),
        [
            ("day", [("2026-01-01", "recall", 7), ("2026-01-01", "remember", 2)]),
            ("month", [("2026-01-01", "GET /v1/graphs/{name}", 5), ("2026-01-01", "recall", 7)]),
            ("all", [("2025-12-31", "GET /v1/graphs/{name}", 5), ("2025-12-31", "recall", 7)]),
        ],
    )
    async def test_usage_is_summed_by_day_month_or_in_all(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, per: str, sums: list[tuple[str, str, int]]
    ) -> None:
        answer = await usage_of(gateway, http, **{"from": "2025-12-31T10:00:00Z", "to": MARCH, "per": per})
        assert [(row["since"][:10], row["name"], row["calls"]) for row in answer["usage"]][:2] == sums

    @pytest.mark.proves("admin: usage")
    @pytest.mark.parametrize("per", ["hour", "day", "month", "all"])
    async def test_pages_contain_every_row(self, gateway: RunningGateway, http: httpx2.AsyncClient, per: str) -> None:
        asked: dict[str, Any] = {"from": JANUARY, "to": MARCH, "per": per}
        whole = await usage_of(gateway, http, **asked)
        rows, cursor = list[Any](), None
        while True:
            page = await usage_of(gateway, http, **asked, limit=1, **({"cursor": cursor} if cursor else {}))
            assert bool(page["stored"]) is (cursor is None)
            rows += page["usage"]
            if (cursor := page["next_cursor"]) is None:
                break
        assert rows == whole["usage"]
        params = asked | {"limit": 2}
        first = (await http.get("/v1/usage", params=params)).json()
        rest = (await http.get("/v1/usage", params=params | {"limit": 50, "cursor": first["next_cursor"]})).json()
        assert first["items"] + rest["items"] == whole["usage"]

    @pytest.mark.parametrize("per", ["hour", "all"])
    async def test_a_cursor_keeps_from_and_to_as_time_passes(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, per: str
    ) -> None:
        """Otherwise the next page would cover the day before a later hour: rows were returned twice."""
        asked: dict[str, Any] = {"from": JANUARY, "to": MARCH, "per": per}
        whole = await usage_of(gateway, http, **asked)
        first = await usage_of(gateway, http, **asked, limit=2)
        rest = await usage_of(gateway, http, per=per, cursor=first["next_cursor"])
        assert first["usage"] + rest["usage"] == whole["usage"]
        page = (await http.get("/v1/usage", params=asked | {"limit": 2})).json()
        rest = (await http.get("/v1/usage", params={"per": per, "cursor": page["next_cursor"]})).json()
        assert page["items"] + rest["items"] == whole["usage"]

    @pytest.mark.parametrize(
        ("asked", "path"),
        [
            ({"from": MARCH, "to": JANUARY}, "to"),
            ({"from": "2020-01-01T00:00:00Z", "to": MARCH}, "from"),
            ({"cursor": "x"}, "cursor"),
        ],
    )
    async def test_an_impossible_span_is_refused_with_its_path(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, asked: dict[str, Any], path: str
    ) -> None:
        assert await refused(gateway, http, **asked) == {"code": "invalid_input", "path": path}
        problem = (await http.get("/v1/usage", params=asked)).json()
        assert (problem["status"], problem["code"], problem["path"]) == (400, "invalid_input", path)

    async def test_sums_have_the_percentiles_of_all_their_calls(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, db: Database, caller: Caller
    ) -> None:
        """Not a mean of the percentiles of the hours. Calls that were not timed weigh nothing."""
        ten = datetime(2026, 1, 1, 10, tzinfo=UTC)
        async with db.transaction(caller) as tx:
            for hour, calls, seconds in ((0, 90, 0.001), (0, 5, 0.3), (1, 5, 4.0)):
                durations = tuple(calls * each for each in count_duration(seconds))
                counter = Counter(int(ten.timestamp()) // 3600 + hour, "tool", "recall")
                await store.add_usage(tx, {counter: Counts(calls, durations=durations)})
        asked = {"from": "2026-01-01T10:00:00Z", "to": "2026-01-01T12:00:00Z"}
        hours = (await usage_of(gateway, http, **asked))["usage"]
        assert [(row["name"], row["p50_ms"], row["p95_ms"]) for row in hours] == [
            ("recall", 1.1, 262.5),
            ("remember", None, None),
            ("recall", 3750.0, 4875.0),
        ]
        whole = (await http.get("/v1/usage", params=asked | {"per": "all"})).json()["items"]
        assert [(row["name"], row["p50_ms"], row["p95_ms"]) for row in whole] == [
            ("recall", 1.1, 500.0),
            ("remember", None, None),
        ]
        points = (await http.get("/v1/usage/series", params=asked | {"per": "day", "kind": "tool"})).json()["points"]
        assert [(point["p50_ms"], point["p95_ms"]) for point in points] == [(1.1, 500.0)]

    async def test_a_time_needs_its_offset(self, http: httpx2.AsyncClient) -> None:
        problem = (await http.get("/v1/usage", params={"from": "2026-01-01T00:00:00"})).json()
        assert (problem["status"], problem["path"]) == (400, "from")

    async def test_usage_of_another_tenant_is_not_shown(
        self, gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant
    ) -> None:
        stranger = await issue(operator_caller(await new_tenant()), kind="admin")
        async with gateway.http(stranger.secret, **rpc_headers()) as http:
            assert (await usage_of(gateway, http, **{"from": JANUARY, "to": MARCH}))["usage"] == []
            assert (await http.get("/v1/usage", params={"from": JANUARY, "to": MARCH})).json()["items"] == []

    async def test_a_confined_key_cannot_read_the_usage_of_the_whole_tenant(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, db: Database
    ) -> None:
        async with db.transaction(caller) as tx:
            default = await graphs.get_graph(tx, "default")
            await graphs.create_graph(tx, NewGraph("other"))
        confined = await issue(caller, graph_ids=(default.id,))
        async with gateway.http(confined.secret, **rpc_headers()) as http:
            assert (await refused(gateway, http))["code"] == "graph_not_allowed"
            assert (await http.get("/v1/usage")).status_code == 403
            stored = (await http.get("/v1/usage/stored")).json()
        assert [each["graph"] for each in stored["items"]] == ["default"]

    async def test_reading_usage_needs_the_read_scope(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller
    ) -> None:
        writer = await issue(caller, scopes=frozenset({Scope.MEMORY_WRITE}))
        async with gateway.http(writer.secret) as http:
            for path in ("/v1/usage", "/v1/usage/stored"):
                assert (await http.get(path)).json()["code"] == "scope_required"


class TestStored:
    @pytest.mark.proves("admin: usage")
    async def test_the_contents_of_graphs_are_counted_by_name(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, db: Database, caller: Caller
    ) -> None:
        agent, other = Agent(db, caller), Agent(db, caller, "other")
        await agent.create("Ada", "Babbage")
        await agent.observe("Ada", "likes tea", "writes programs", "is a countess")
        await agent.relate(("Ada", "Babbage", "knows"))
        await other.remember("the engine was never built")
        expected = [("default", 2, 0, 3, 1), ("other", 0, 1, 0, 0)]
        answer = await usage_of(gateway, http)
        assert [row[:5] for row in flat(answer["stored"])] == expected
        assert answer["stored_more"] is False
        assert [row["passages"] for row in answer["stored"]] == [4, 1], "Babbage is found by his name"
        for row in answer["stored"]:
            assert 100 < row["passage_bytes"] / row["passages"] < 2_000
        assert flat((await usage_of(gateway, http, graph="other"))["stored"])[0][:5] == expected[1]
        assert (await usage_of(gateway, http, graph="nowhere"))["stored"] == []
        first = (await http.get("/v1/usage/stored", params={"limit": 1})).json()
        assert first["next_cursor"] == "default"
        rest = (await http.get("/v1/usage/stored", params={"cursor": "default"})).json()
        assert first["items"] + rest["items"] == answer["stored"]
        assert rest["next_cursor"] is None

    async def test_an_empty_graph_has_zero_counts(self, gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
        assert flat((await usage_of(gateway, http))["stored"]) == [("default", 0, 0, 0, 0, 0, 0)]
        assert (await http.get("/v1/usage/stored", params={"limit": 0})).status_code == 400


def test_the_rows_of_the_tests_are_in_the_past() -> None:
    """So that a gateway neither sweeps nor adds to them during a test."""
    assert all(datetime.fromisoformat(row[0]) < datetime.now(UTC) for row in ROWS)


@pytest.mark.usefixtures("past")
class TestSeries:
    async def series(self, http: httpx2.AsyncClient, **query: str) -> list[tuple[str, int, int, int, int]]:
        response = await http.get("/v1/usage/series", params=query)
        assert response.status_code == 200, response.text
        points = response.json()["points"]
        return [(p["since"], p["calls"], p["errors"], p["passages"], p["bytes_received"]) for p in points]

    async def test_each_hour_has_a_point_even_without_calls(self, http: httpx2.AsyncClient) -> None:
        asked = {"from": "2026-01-01T09:30:00Z", "to": "2026-01-01T12:00:00Z"}
        assert await self.series(http, **asked) == [
            ("2026-01-01T09:00:00Z", 0, 0, 0, 0),
            ("2026-01-01T10:00:00Z", 5, 1, 0, 50),
            ("2026-01-01T11:00:00Z", 4, 0, 0, 40),
        ]
        assert [point[1] for point in await self.series(http, **asked, name="recall", kind="tool")] == [0, 3, 4]
        assert [point[1] for point in await self.series(http, **asked, kind="work")] == [0, 0, 0]

    async def test_days_are_in_utc_and_their_sums_equal_those_of_the_list(self, http: httpx2.AsyncClient) -> None:
        days = await self.series(http, **{"from": JANUARY, "to": MARCH, "per": "day"})
        assert len(days) == 59
        assert {day[0]: day[1] for day in days if day[1]} == {
            "2026-01-01T00:00:00Z": 9,
            "2026-01-02T00:00:00Z": 5,
            "2026-02-28T00:00:00Z": 1,
        }
        listed = (await http.get("/v1/usage", params={"from": JANUARY, "to": MARCH, "per": "all"})).json()["items"]
        assert sum(day[1] for day in days) == sum(row["calls"] for row in listed)

    async def test_the_number_of_points_is_bounded(self, http: httpx2.AsyncClient) -> None:
        for query in (
            {"from": JANUARY, "to": MARCH},
            {"from": "2024-01-01T00:00:00Z", "to": MARCH, "per": "day"},
            {"from": MARCH, "to": JANUARY},
            {"per": "month"},
        ):
            response = await http.get("/v1/usage/series", params=query)
            assert (response.status_code, response.json()["code"]) == (400, "invalid_input"), query
        assert len(await self.series(http, **{"from": JANUARY, "to": "2026-02-01T00:00:00Z"})) == 744
        assert len(await self.series(http, per="day")) in (30, 31)

    @pytest.mark.parametrize(
        ("since", "until"),
        [
            ("0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z"),
            ("9999-12-31T00:00:00Z", "9999-12-31T23:59:59.999999Z"),
        ],
    )
    async def test_the_series_ends_at_the_ends_of_the_calendar(
        self, http: httpx2.AsyncClient, since: str, until: str
    ) -> None:
        """The driver sends these moments as infinity, and PostgreSQL would generate points without end."""
        days = await self.series(http, **{"from": since, "to": until, "per": "day"})
        assert [day[0] for day in days] == [since]
        hours = await self.series(http, **{"from": since, "to": until, "per": "hour"})
        assert (len(hours), hours[0][0]) == (24, since)

    async def test_the_series_hides_other_tenants_and_is_refused_to_a_confined_key(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, new_tenant: NewTenant
    ) -> None:
        asked = {"from": JANUARY, "to": MARCH, "per": "day"}
        other = await issue(operator_caller(await new_tenant()), kind="admin")
        async with gateway.http(other.secret) as http:
            assert {point[1] for point in await self.series(http, **asked)} == {0}
        confined = await issue(caller, graph_ids=())
        async with gateway.http(confined.secret) as http:
            response = await http.get("/v1/usage/series", params=asked)
            assert (response.status_code, response.json()["code"]) == (403, "graph_not_allowed")
