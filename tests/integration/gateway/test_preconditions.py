"""Entity tags over real HTTP: unchanged resources are not sent again, and changed ones are not overwritten."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.people import joined

PEPPER = b"pepper"
THINGS = ["key", "member", "graph", "tenant", "plan", "job"]
CHANGED = ["key", "member", "graph", "tenant"]


@pytest.fixture
async def http(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as client:
        yield client


async def position_of(thing: str, http: httpx2.AsyncClient, databases: Databases, caller: Caller) -> str:
    """The address of a new resource of this kind."""
    match thing:
        case "key":
            return f"/v1/keys/{(await http.post('/v1/keys', json={'name': 'laptop'})).json()['id']}"
        case "member":
            return f"/v1/members/{(await joined(databases, caller, Role.MEMBER, pepper=PEPPER)).id}"
        case "graph":
            assert (await http.post("/v1/graphs", json={"name": "notes"})).is_success
            return "/v1/graphs/notes"
        case "plan" | "tenant":
            return f"/v1/{thing}"
        case _:
            return f"/v1/jobs/{(await http.post('/v1/graphs/default/deduplicate')).json()['id']}"


async def tag_of(http: httpx2.AsyncClient, place: str) -> str:
    answer = await http.get(place)
    assert answer.is_success, answer.text
    return answer.headers["etag"]


def refused(response: httpx2.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text


class TestReading:
    @pytest.mark.parametrize("thing", THINGS)
    async def test_an_unchanged_resource_is_not_sent_again(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, thing: str
    ) -> None:
        place = await position_of(thing, http, databases, caller)
        tag = await tag_of(http, place)
        assert tag == await tag_of(http, place)
        for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
            again = await http.get(place, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), known
        for unknown in ('"other"', '"*"'):
            assert (await http.get(place, headers={"If-None-Match": unknown})).status_code == 200

    async def test_a_graph_changes_its_tag_with_every_write(
        self, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        tag = await tag_of(http, "/v1/graphs/default")
        assert (await http.post("/v1/graphs/default/memories", json={"items": [{"text": "tea"}]})).is_success
        again = await http.get("/v1/graphs/default", headers={"If-None-Match": tag})
        assert (again.status_code, again.json()["facts"]) == (200, 1)
        assert again.headers["etag"] != tag

    @pytest.mark.parametrize("header", ["x", '"x', '"x" "y"', ",".join(f'"{n}"' for n in range(51))])
    async def test_an_invalid_header_is_refused(self, http: httpx2.AsyncClient, header: str) -> None:
        refused(await http.get("/v1/plan", headers={"If-None-Match": header}), 400, "invalid_input")


class TestChanging:
    async def change(self, thing: str, http: httpx2.AsyncClient, place: str, **headers: str) -> httpx2.Response:
        if thing == "member":
            return await http.patch(place, json={"role": "reader"}, headers=headers)
        if thing == "tenant":
            return await http.patch(place, json={"name": "Engines"}, headers=headers)
        return await http.delete(place, headers=headers)

    @pytest.mark.parametrize("thing", CHANGED)
    async def test_an_unchanged_resource_can_be_changed(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, thing: str
    ) -> None:
        place = await position_of(thing, http, databases, caller)
        tag = await tag_of(http, place)
        answer = await self.change(thing, http, place, **{"If-Match": f'"other", {tag}'})
        assert answer.is_success, answer.text

    @pytest.mark.proves("security: preconditions")
    @pytest.mark.parametrize("thing", CHANGED)
    @pytest.mark.parametrize("known", ['"other"', "W/{tag}", '"*"'])
    async def test_a_change_with_another_tag_is_refused_and_writes_nothing(
        self,
        http: httpx2.AsyncClient,
        databases: Databases,
        caller: Caller,
        thing: str,
        known: str,
    ) -> None:
        place = await position_of(thing, http, databases, caller)
        tag = await tag_of(http, place)
        refused(
            await self.change(thing, http, place, **{"If-Match": known.format(tag=tag)}), 412, "precondition_failed"
        )
        assert await tag_of(http, place) == tag
        assert (await self.change(thing, http, place, **{"If-Match": "*"})).is_success

    async def test_a_member_whose_role_was_changed_cannot_be_changed_with_the_old_tag(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller
    ) -> None:
        place = await position_of("member", http, databases, caller)
        tag = await tag_of(http, place)
        assert (await http.patch(place, json={"role": "admin"})).is_success
        refused(await http.patch(place, json={"role": "reader"}, headers={"If-Match": tag}), 412, "precondition_failed")
        refused(await http.delete(place, headers={"If-Match": tag}), 412, "precondition_failed")
        assert (await http.get(place)).json()["role"] == "admin"

    @pytest.mark.parametrize("body", [{"metadata": {"team": "blue"}}, {"kind_whitelist": ["person"]}])
    async def test_replacing_a_graphs_configuration_requires_a_tag(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, body: dict[str, Any]
    ) -> None:
        place = await position_of("graph", http, databases, caller)
        tag = await tag_of(http, place)
        refused(await http.patch(place, json=body), 428, "precondition_required")
        assert await tag_of(http, place) == tag
        assert (await http.patch(place, json=body, headers={"If-Match": tag})).is_success
        other = {"metadata": {"team": "red"}}
        refused(await http.patch(place, json=other, headers={"If-Match": tag}), 412, "precondition_failed")
        told = (await http.get(place)).json()
        assert {field: told[field] for field in body} == body
        assert told["metadata"] != other["metadata"]
        assert (await http.patch(place, json={"conflict_policy": "manual"})).is_success

    async def test_use_of_a_key_and_writes_to_a_graph_do_not_fail_a_precondition(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        place = await position_of("key", http, databases, caller)
        tag = await tag_of(http, place)
        await owner.execute("UPDATE api_keys SET last_used_at = now() WHERE id = $1::uuid", place.rpartition("/")[2])
        assert await tag_of(http, place) != tag
        rotated = await http.post(f"{place}/rotate", json={}, headers={"If-Match": tag})
        assert rotated.is_success, rotated.text
        refused(await http.delete(place, headers={"If-Match": tag}), 412, "precondition_failed")  # It expires now.
        graph = await position_of("graph", http, databases, caller)
        tag = await tag_of(http, graph)
        assert (await http.post(f"{graph}/memories", json={"items": [{"text": "tea"}]})).is_success
        assert (await http.delete(graph, headers={"If-Match": tag})).is_success

    @pytest.mark.proves("security: preconditions")
    async def test_of_concurrent_changes_with_the_same_tag_one_is_made(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller
    ) -> None:
        place = await position_of("member", http, databases, caller)
        tag = await tag_of(http, place)
        roles = ["admin", "reader", "admin", "reader"]
        answers: list[Any] = await asyncio.gather(
            *(http.patch(place, json={"role": role}, headers={"If-Match": tag}) for role in roles)
        )
        assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]

    async def test_a_repeated_request_is_answered_before_its_precondition_is_checked(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller
    ) -> None:
        place = await position_of("member", http, databases, caller)
        headers = {"If-Match": await tag_of(http, place), "Idempotency-Key": "one"}
        answers = [await http.patch(place, json={"role": "admin"}, headers=headers) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200]


class TestTenants:
    @pytest.mark.proves("security: entity-tags")
    async def test_tags_reveal_nothing_of_another_tenants_resources(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, databases: Databases, new_tenant: NewTenant
    ) -> None:
        other = operator_caller(await new_tenant())
        mine, theirs = [(await issue(each, kind="admin")).secret for each in (caller, other)]
        async with gateway.http(mine) as http:
            places = {thing: await position_of(thing, http, databases, caller) for thing in THINGS}
            tags = {thing: await tag_of(http, place) for thing, place in places.items()}
        async with gateway.http(theirs) as http:
            for thing in ("key", "member", "job"):
                nowhere = places[thing].rpartition("/")[0] + "/01a20672-f375-708a-8a3c-ac5056de3d08"
                for headers in ({"If-Match": tags[thing]}, {"If-Match": '"other"'}, {"If-None-Match": tags[thing]}):
                    method = "GET" if thing == "job" or "If-None-Match" in headers else "DELETE"
                    answers = [await http.request(method, place, headers=headers) for place in (places[thing], nowhere)]
                    assert answers[0].status_code == answers[1].status_code == 404
                    assert answers[0].content == answers[1].content
            assert await tag_of(http, "/v1/plan") != tags["plan"], "equal plans have other tags"
            assert (await http.get("/v1/plan", headers={"If-None-Match": tags["plan"]})).status_code == 200
