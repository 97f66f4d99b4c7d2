"""The number of members of objects is bounded before a body is parsed; colons in texts do not count."""

import json

import pytest

from recollect.errors import ErrorCode, TooLarge
from recollect_http.requests.bodies import MAX_MEMBERS, require_quick_to_parse


async def test_a_body_with_one_member_too_many_is_refused() -> None:
    await require_quick_to_parse(json.dumps({str(n): ":" for n in range(MAX_MEMBERS)}).encode())
    await require_quick_to_parse(json.dumps([{"a": 1}] * MAX_MEMBERS).encode())
    await require_quick_to_parse(json.dumps([":" * 2 * MAX_MEMBERS, '":"']).encode())
    with pytest.raises(TooLarge, match="members") as refused:
        await require_quick_to_parse(json.dumps({str(n): 0 for n in range(MAX_MEMBERS + 1)}).encode())
    assert refused.value.code == ErrorCode.REQUEST_TOO_LARGE
