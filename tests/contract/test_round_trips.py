"""The queries of each tool, in order: each entry is one round trip to PostgreSQL, so that none is added unnoticed.

A deliberate change updates the snapshot. The look-up of the caller is not counted, because a gateway caches it.
"""

import re

import httpx2
from syrupy.assertion import SnapshotAssertion

from tests.contract.examples import EXAMPLES, Played
from tests.support.gateway import RunningGateway, rpc_headers
from tests.support.quick_embedder import OF_WORDLLAMA
from tests.support.statements import sent_statements

ALL = "/mcp/x/all"
WAITS = {"get_job"}
"""Tools that poll."""
WHO_CALLS = "identity.find_api_key"

_NAME = re.compile(r"/\* (?P<name>[a-z_]+\.[a-z_]+) \*/")
_ASKED = re.compile(r"SELECT (?P<function>[a-z_]+)\(")


def name_of(statement: str) -> str:
    """The name of a query; for a statement that begins or ends a transaction a keyword and the functions it calls."""
    if (named := _NAME.match(statement)) is not None:
        return named["name"]
    asked = ", ".join(_ASKED.findall(statement))
    words = statement.replace(";", " ").split()
    word = words[0] if words[0] == "BEGIN" or words[-1] == "off" else words[-1]
    return f"{word} ({asked})" if asked else word


async def asked_by(gateway: RunningGateway, http: httpx2.AsyncClient, tool: str, played: Played) -> list[str]:
    """The queries of a tool's example for the present state of a graph that the gateway knows."""
    await gateway.call(http, "get_entity", {"name": "nobody"}, path=ALL)
    now = {name: value for name, value in EXAMPLES[tool].items() if name != "as_of"}
    with sent_statements() as sent:
        result = await gateway.call(http, tool, played.fill(now), path=ALL)
    assert not result["isError"], (tool, result)
    played.keep(tool, result)
    return [name for name in map(name_of, sent) if name != WHO_CALLS]


@OF_WORDLLAMA
async def test_no_tool_makes_more_round_trips_than_is_known(
    gateway: RunningGateway, admin_key: str, snapshot: SnapshotAssertion
) -> None:
    played = Played()
    async with gateway.http(admin_key, **rpc_headers()) as http:
        asked = {tool: await asked_by(gateway, http, tool, played) for tool in EXAMPLES}
    told = [f"{tool}: {len(asked[tool])}: {', '.join(asked[tool])}" for tool in sorted(asked.keys() - WAITS)]
    assert "\n".join(told) == snapshot
