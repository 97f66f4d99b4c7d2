"""Texts of older memories in the answer of `remember`: a call may return three hundred of them."""

from mcp import Client

from recollect_gateway.operations.remember import MAX_CLOSE_TEXT
from tests.support.gateway import answer

ENCODED = "QUJDRA" * 300
"""A text of one word, as encoded data is."""


async def test_of_a_long_memory_that_is_close_the_beginning_is_returned(client: Client) -> None:
    long, short = f"The certificate of host seven is {ENCODED}", "The certificates are renewed on Mondays"
    await answer(client, "remember", items=[{"text": long}, {"text": short}])
    similar = [{"text": f"The certificate of host eight is {ENCODED}"}, {"text": "Certificates are renewed on Mondays"}]
    remembered = await answer(client, "remember", items=similar)
    [of_long], [of_short] = ([close["text"] for close in each["close"]] for each in remembered["memories"])
    assert len(of_long) == MAX_CLOSE_TEXT < len(long)
    assert long.startswith(of_long.removesuffix("…"))
    assert of_short == short
