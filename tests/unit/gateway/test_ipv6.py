"""Addresses of IPv6, as clients, proxies and operators write them."""

import asyncio
import socket
from typing import Any

import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from recollect.accounts.oauth.clients.model import is_loopback
from recollect.settings import Settings
from recollect.settings.addresses.public_url import read_public_url
from recollect_http.client_addresses import UNKNOWN, TrustedProxies, site_of
from recollect_http.server.hosts import HostNames
from recollect_http.server.uvicorn_server import server_config


def test_an_address_that_stands_for_one_of_ipv4_counts_as_that(subtests: pytest.Subtests) -> None:
    for host, site in {
        "::ffff:192.0.2.33": "192.0.2.33",
        "64:ff9b::192.0.2.33": "192.0.2.33",
        "64:ff9b::c000:222": "192.0.2.34",
        "64:ff9b:1::c000:222": "64:ff9b:1::/64",
        "2002:c000:221::1": "192.0.2.33",
        "2002:c000:221:ffff::1": "192.0.2.33",
        "fe80::1%eth0": "fe80::/64",
        "fe80::1%25eth0": "fe80::/64",
        "[2001:db8::1]": UNKNOWN,
    }.items():
        with subtests.test(host):
            assert site_of(host) == site


def test_only_what_the_operator_names_is_a_proxy() -> None:
    """A mapped address is the same peer; one that could be made up to stand for a proxy is not."""
    proxies = TrustedProxies(["10.0.0.0/8", "fd00::/8"])
    assert {"10.0.0.1", "::ffff:10.0.0.1", "fd00::1"} == {
        host
        for host in ("10.0.0.1", "::ffff:10.0.0.1", "fd00::1", "64:ff9b::a00:1", "2002:a00:1::1", "::10.0.0.1")
        if host in proxies
    }


async def client_behind(peer: str, forwarded: str) -> str:
    """The client that the server finds for a request of this peer, which may be a proxy, with this header."""
    seen = list[str]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])

    networks = TrustedProxies(Settings(trusted_proxies=["10.0.0.0/8", "2001:db8:9::/48"]).trusted_proxies).networks
    scope = {"type": "http", "client": (peer, 1), "headers": [(b"x-forwarded-for", forwarded.encode())]}
    await ProxyHeadersMiddleware(app, networks)(scope, None, None)  # type: ignore[arg-type]
    return seen[0]


async def test_a_forwarded_address_is_found_however_it_is_written(subtests: pytest.Subtests) -> None:
    for peer, forwarded, site in (
        ("10.0.0.1", "2001:db8:1:2::3", "2001:db8:1:2::/64"),
        ("10.0.0.1", "[2001:db8:1:2::3]", "2001:db8:1:2::/64"),
        ("10.0.0.1", "[2001:db8:1:2::3]:4711", "2001:db8:1:2::/64"),
        ("10.0.0.1", "192.0.2.1:4711", "192.0.2.1"),
        ("10.0.0.1", "fe80::1%eth0", "fe80::/64"),
        ("10.0.0.1", "[fe80::1%eth0]:80", "fe80::/64"),
        ("10.0.0.1", "6.6.6.6, ::ffff:192.0.2.1, ::ffff:10.0.0.2", "192.0.2.1"),
        ("::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("2001:db8:9::1", "6.6.6.6, 192.0.2.1, 2001:db8:9:5::1", "192.0.2.1"),
        ("::ffff:11.0.0.1", "192.0.2.1", "11.0.0.1"),
        ("64:ff9b::a00:1", "192.0.2.1", "10.0.0.1"),
        ("2001:db8:8::1", "192.0.2.1", "2001:db8:8::/64"),
    ):
        with subtests.test(f"{peer}: {forwarded}"):
            assert site_of(await client_behind(peer, forwarded)) == site


def test_a_host_is_the_same_however_its_address_is_written(subtests: pytest.Subtests) -> None:
    named = Settings(allowed_hosts=["[::1]:*", "2001:DB8:0::5", "[2001:db8::6]:80"]).allowed_hosts
    names = HostNames.of(named)
    for host, is_served in {
        "[::1]:8080": True,
        "[0:0:0:0:0:0:0:1]:8080": True,
        "[::1]": True,
        "[2001:db8::5]": True,
        "[2001:db8:0:0::5]": True,
        "[2001:db8::5]:9": False,
        "[2001:0db8::6]:80": True,
        "[2001:db8::6]": False,
        "::1": False,
        "[::1": False,
        "[::1]x:8080": False,
        "[::1%25lo]:8080": False,
        "[::ffff:127.0.0.1]:8080": False,
    }.items():
        with subtests.test(host):
            assert names.has(host) is is_served


@pytest.mark.parametrize("address", ["https://[fe80::1%25eth0]", "https://[fe80::1%eth0]:8443", "https://[::1"])
def test_an_address_that_means_something_on_one_machine_only_is_no_public_address(address: str) -> None:
    with pytest.raises(ValueError, match=r"zone|Invalid|IPv6"):
        read_public_url(address)


def test_only_the_plain_loopback_address_is_one(subtests: pytest.Subtests) -> None:
    for uri, expected in {
        "http://[::1]:8080/cb": True,
        "http://127.0.0.2/cb": True,
        "http://localhost:1/cb": True,
        "http://[::ffff:127.0.0.1]/cb": False,
        "http://[::1%25lo]/cb": False,
        "http://[0:0:0:0:0:0:0:1]/cb": False,
        "http://[::]/cb": False,
        "http://127.1/cb": False,
    }.items():
        with subtests.test(uri):
            assert is_loopback(uri) is expected


async def test_all_addresses_are_those_of_both_kinds() -> None:
    config = server_config(None, Settings(host="::"))
    listening = await asyncio.get_running_loop().create_server(asyncio.Protocol, config.host, 0)
    async with listening:
        assert {each.family for each in listening.sockets} == {socket.AF_INET, socket.AF_INET6}
    assert Settings(host="::").base_url == "http://[::1]:8787"
    assert server_config(None, Settings(host="2001:db8::1")).host == "2001:db8::1"


@pytest.mark.parametrize("server", ["2001:db8::53", "[2001:db8::53]", "[2001:db8::53]:5353", "10.0.0.2", "10.0.0.2:53"])
def test_a_name_server_may_have_an_address_of_either_kind(server: str) -> None:
    assert Settings(dns_servers=[server]).dns_servers == [server]


@pytest.mark.parametrize(
    "server", ["dns.example", "[10.0.0.2]:53", "[2001:db8::53]x", "10.0.0.2:0", "10.0.0.2:dns", "["]
)
def test_a_name_server_without_an_address_is_refused_at_startup(server: str) -> None:
    with pytest.raises(ValueError, match="dns_servers"):
        Settings(dns_servers=[server])
