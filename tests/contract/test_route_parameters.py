"""Routes refuse unknown query parameters: a misspelt dry run must not become a real run."""

import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from recollect.times import NEEDED
from tests.contract.test_route_toolsets import toolsets_of_routes
from tests.support.documents import DOCUMENT
from tests.support.gateway import RunningGateway
from tests.support.routes import stand_ins


@pytest.fixture
async def http(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as http:
        yield http


async def test_an_unknown_query_parameter_is_refused(http: httpx2.AsyncClient, subtests: pytest.Subtests) -> None:
    for name in toolsets_of_routes():
        with subtests.test(name):
            method, path = name.split(" ")
            response = await http.request(method, path.format(**stand_ins(path)), params={"dryRun": "true"})
            assert response.status_code == 400
            assert (response.json()["code"], response.json()["path"]) == ("invalid_input", "dryRun")


async def test_a_misspelt_dry_run_deletes_no_graph(gateway: RunningGateway, admin_key: str) -> None:
    async with gateway.http(admin_key) as http:
        assert (await http.post("/v1/graphs", json={"name": "kept"})).status_code == 201
        refused = await http.delete("/v1/graphs/kept?dryRun=true")
        assert "dry_run" in refused.json()["detail"], "what it takes is told"
        assert (await http.delete("/v1/graphs/kept?dry_run=true")).json()["dry_run"] is True
        assert [graph["name"] for graph in (await http.get("/v1/graphs")).json()["items"]].count("kept") == 1


async def test_a_body_of_optional_fields_may_be_left_out(gateway: RunningGateway, admin_key: str) -> None:
    async with gateway.http(admin_key) as http:
        assert (await http.post("/v1/graphs", json={"name": "old"})).status_code == 201
        bare = await http.post("/v1/graphs/old/reembed")
        assert bare.status_code == 202, bare.text
        assert (await http.post("/v1/graphs/old/reembed", json={})).json()["id"] == bare.json()["id"]


TIMES = sorted(
    (path, parameter["name"])
    for path, methods in DOCUMENT["paths"].items()
    for parameter in methods.get("get", {}).get("parameters", ())
    if "date-time" in json.dumps(parameter["schema"])
)
"""Query parameters that are times."""

NO_TIMES = ["2026-11-20", "1700000000", "1.7e9"]


def test_some_query_parameters_are_times() -> None:
    """Otherwise the test below would prove nothing."""
    assert ("/v1/audit/export", "since") in TIMES


async def test_an_invalid_time_is_refused_by_its_name_with_an_example(
    http: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    for method, path, body, said in [
        *[("GET", f"{path}?{name}={time}", None, name) for path, name in TIMES for time in NO_TIMES],
        ("POST", "/v1/keys", {"name": "k", "expires_at": "2026-11-20"}, "expires_at"),
        ("POST", "/v1/graphs/default/exports", {"filter": {"since": "2026-11-20"}}, "filter.since"),
    ]:
        with subtests.test(f"{method} {path} {said}"):
            response = await http.request(method, path.format(**stand_ins(path)), json=body)
            assert response.status_code == 400
            told = response.json()
            assert (told["code"], told["detail"].removeprefix(f"{said}: ")) == ("invalid_input", NEEDED)
            assert told["path"] == said


async def test_an_invalid_query_parameter_is_named(gateway: RunningGateway, admin_key: str) -> None:
    """As with a field of a body: the path names the first, the detail names all."""
    async with gateway.http(admin_key) as http:
        one = (await http.get("/v1/keys?limit=0")).json()
        several = (await http.get("/v1/usage?from=noon&to=never")).json()
    assert (one["code"], one["path"]) == ("invalid_input", "limit")
    assert (several["path"], several["detail"]) == ("from", f"from: {NEEDED}; to: {NEEDED}")
