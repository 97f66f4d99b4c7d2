"""An address with a zone (RFC 4007) means something on one machine only: others do not name such."""

import pytest

from recollect.errors import InvalidInput
from recollect.outbound.http_client import Outbound
from recollect.outbound.private_addresses import PublicNetworks
from recollect.settings import Settings


def test_an_address_with_a_zone_is_not_reached(subtests: pytest.Subtests) -> None:
    for address in ("2606:4700:4700::1111%eth0", "2606:4700:4700::1111%1", "fe80::1%eth0", "::1%lo"):
        with subtests.test(address):
            assert address not in PublicNetworks(allowed=["::/0"])


async def test_an_address_with_a_zone_is_refused_where_it_is_given(subtests: pytest.Subtests) -> None:
    outbound = Outbound(Settings())
    outbound.require_address("https://[2606:4700:4700::1111]/hook", path="url")
    for host in ("[2606:4700:4700::1111%25eth0]", "[fe80::1%25eth0]", "[fe80::1%eth0]"):
        with subtests.test(host), pytest.raises(InvalidInput):
            outbound.require_address(f"https://{host}/hook", path="url")
    await outbound.close()
