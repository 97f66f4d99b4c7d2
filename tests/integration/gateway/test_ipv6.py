"""A gateway that listens on an address of IPv6, for clients and proxies of both kinds."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.gateway import NewApiKey, RunningGateway, serving
from tests.support.people import browser, joined, sign_in


@pytest.fixture(scope="module")
def gateway_on_six(settings: Settings) -> Iterator[RunningGateway]:
    """One that is reached by IPv4, too, and trusts a proxy there."""
    with serving(settings.model_copy(update={"trusted_proxies": ["127.0.0.1"]}), host="::") as gateway:
        yield gateway


@pytest.fixture
async def key(issue: NewApiKey, caller: Caller) -> str:
    return (await issue(caller, kind="admin")).secret


def port_of(gateway: RunningGateway) -> int:
    return urlsplit(gateway.url).port or 0


async def test_it_is_served_at_its_address(gateway_on_six: RunningGateway, key: str, subtests: pytest.Subtests) -> None:
    assert gateway_on_six.url == f"http://[::1]:{port_of(gateway_on_six)}"
    async with gateway_on_six.http(key) as http:
        assert (await http.get("/v1/graphs")).status_code == 200
        metadata = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert metadata["resource"] == f"{gateway_on_six.url}/mcp"
        for host, status in ((f"[0:0::1]:{port_of(gateway_on_six)}", 200), ("[2001:db8::1]", 421), ("[::1%25lo]", 421)):
            with subtests.test(host):
                assert (await http.get("/v1/graphs", headers={"Host": host})).status_code == status


async def test_people_sign_in_at_its_address(
    gateway_on_six: RunningGateway, databases: Databases, caller: Caller, settings: Settings
) -> None:
    """The forms and the cookie are of this host; a page of another address sends none."""
    person = await joined(databases, caller, Role.MEMBER, pepper=settings.pepper)
    async with browser(gateway_on_six) as http:
        assert (await sign_in(http, person.email)).status_code in (302, 303)
        assert (await http.get("/account")).status_code == 200
        answer = await http.post("/sign-out", data={}, headers={"Origin": "http://[::2]:1"})
        assert (answer.status_code, answer.json()["code"]) == (403, "origin_not_allowed")


async def test_the_client_of_a_proxy_is_found_on_a_socket_of_both_kinds(
    gateway_on_six: RunningGateway, key: str, subtests: pytest.Subtests
) -> None:
    """The proxy connects by IPv4: the socket sees a mapped address. Its audit entries have the client's."""
    url = f"http://127.0.0.1:{port_of(gateway_on_six)}"
    async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}) as http:
        for forwarded, address in {
            "[2001:db8:1:2::3]:4711": "2001:db8:1:2::/64",
            "64:ff9b::192.0.2.33": "192.0.2.33",
            "192.0.2.34": "192.0.2.34",
        }.items():
            with subtests.test(forwarded):
                new = {"name": "made", "scopes": ["memory:read"]}
                made = await http.post("/v1/keys", json=new, headers={"X-Forwarded-For": forwarded})
                assert made.status_code == 201, made.text
                newest = (await http.get("/v1/audit", params={"action": "key.created"})).json()["items"]
                assert address in {entry["address"] for entry in newest}


def test_the_machine_has_an_address_of_this_kind() -> None:
    """Without one, nothing above was tested."""
    with socket.socket(socket.AF_INET6) as listener:
        listener.bind(("::1", 0))
