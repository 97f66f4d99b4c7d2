"""How commands ask a gateway again that is busy or away."""

import httpx2
import pytest

from recollect_cli.gateway import Gateway, GatewayUnavailable


def gateway_of(*statuses: int) -> tuple[Gateway, list[int]]:
    """A gateway that answers so, one after the other, and what is still to be answered."""
    left = list(statuses)

    def respond(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(left.pop(0), json={"detail": "Busy."}, headers={"retry-after": "0"})

    client = httpx2.Client(transport=httpx2.MockTransport(respond), base_url="http://memory.test")
    return Gateway(client), left


@pytest.mark.parametrize("status", [429, 503])
def test_a_request_that_bears_repeating_is_sent_again(status: int) -> None:
    gateway, left = gateway_of(status, status, 200)
    assert gateway.post("/jobs", b"{}", media_type="application/json") == b'{"detail":"Busy."}'
    assert left == []


def test_an_upload_is_sent_once() -> None:
    gateway, left = gateway_of(503, 200)
    with pytest.raises(GatewayUnavailable, match=r"Busy\."):
        gateway.upload("/imports", iter([b"x"]), media_type="text/csv")
    assert left == [200]
