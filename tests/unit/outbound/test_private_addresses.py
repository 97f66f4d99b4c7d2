"""Which addresses belong to the public internet."""

import pytest

from recollect.outbound.private_addresses import PublicNetworks, is_loopback

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00:1450::1"]

NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]


def test_a_public_address_is_allowed(subtests: pytest.Subtests) -> None:
    for address in PUBLIC:
        with subtests.test(address):
            assert address in PublicNetworks()
            assert address not in PublicNetworks(refused=["0.0.0.0/0", "::/0"])


@pytest.mark.proves("security: public-addresses")
def test_an_address_that_is_not_public_is_refused(subtests: pytest.Subtests) -> None:
    for address in [*NOT_PUBLIC, "", "localhost", "0x7f.1", "2130706433", "127.1", "1.1.1.1 "]:
        with subtests.test(address):
            assert address not in PublicNetworks()


def test_an_allowed_network_allows_nothing_else() -> None:
    networks = PublicNetworks(allowed=["10.1.2.0/24"], refused=["10.1.2.3/32", "8.8.8.8/32"])
    assert "10.1.2.4" in networks
    assert "10.1.3.4" not in networks
    assert "::ffff:10.1.2.4" not in networks
    assert "10.1.2.3" not in networks
    assert "8.8.8.8" not in networks
    assert not networks.loopback_allowed


@pytest.mark.parametrize("allowed", ["127.0.0.1/32", "127.0.0.0/8", "::1/128", "0.0.0.0/0"])
def test_loopback_is_allowed_only_explicitly(allowed: str) -> None:
    assert PublicNetworks(allowed=[allowed]).loopback_allowed


def test_loopback_addresses_are_recognized() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("::ffff:127.0.0.1")
    assert not is_loopback("10.0.0.1")
