"""How commands retry requests to a gateway that is busy or away."""

import httpx2
import pytest

from recollect_cli.gateway import Gateway, GatewayUnavailable


def gateway_of(*statuses: int) -> tuple[Gateway, list[int]]:
    """A gateway that answers with these statuses in order, and the list of those that are left."""
    left = list(statuses)

    def respond(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(left.pop(0), json={"detail": "Busy."}, headers={"retry-after": "0"})

    client = httpx2.Client(transport=httpx2.MockTransport(respond), base_url="http://memory.test")
    return Gateway(client), left


@pytest.mark.parametrize("status", [429, 503])
def test_a_repeatable_request_is_retried(status: int) -> None:
    gateway, left = gateway_of(status, status, 200)
    assert gateway.post("/jobs", b"{}", media_type="application/json") == b'{"detail":"Busy."}'
    assert left == []


def test_an_upload_is_not_retried() -> None:
    gateway, left = gateway_of(503, 200)
    with pytest.raises(GatewayUnavailable, match=r"Busy\."):
        gateway.upload("/imports", iter([b"x"]), media_type="text/csv")
    assert left == [200]
