"""Which addresses count as one client."""

import pytest

from recollect.settings import Settings
from recollect_http.client_addresses import UNKNOWN, TrustedProxies, site_of


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("no address", UNKNOWN),
        ("", UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_a_client_is_identified_by_its_ipv4_address_or_ipv6_network(host: str | None, site: str) -> None:
    assert site_of(host) == site


def test_proxies_are_trusted_by_address_and_network() -> None:
    proxies = TrustedProxies(Settings(trusted_proxies=["10.0.0.0/8", "2001:db8::1"]).trusted_proxies)
    for host in ("10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1"):
        assert host in proxies
    for other in ("11.0.0.1", "2001:db8::2", "*", None):
        assert other not in proxies


@pytest.mark.parametrize("proxy", ["*", "proxy.internal", "10.0.0.1/8"])
def test_a_malformed_proxy_address_is_refused_at_startup(proxy: str) -> None:
    with pytest.raises(ValueError, match="trusted_proxies"):
        Settings(trusted_proxies=[proxy])
