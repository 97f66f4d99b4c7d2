"""The whole catalogue against another tenant's ids and names: they look like unknown ones, and nothing moves."""

import json
from typing import Any
from uuid import uuid4

from recollect.caller import Caller
from recollect.identity.model import operator_caller
from recollect.platform.db import Database
from recollect_gateway.mcp_endpoint.catalogue import TOOLS
from tests.conftest import NewTenant
from tests.contract.examples import EXAMPLES, Played
from tests.gateway import Gateway, NewApiKey, revision_of, rpc_headers

ALL = "/mcp/x/all"


async def test_foreign_ids_and_names_look_like_unknown_ones(
    gateway: Gateway, issue: NewApiKey, caller: Caller, new_tenant: NewTenant, db: Database
) -> None:
    mine = (await issue(caller)).secret
    theirs = (await issue(operator_caller(await new_tenant()))).secret
    async with gateway.http(mine, **rpc_headers()) as owner, gateway.http(theirs, **rpc_headers()) as stranger:
        played = await play(gateway, owner)
        before, revision = await everything(gateway, owner), await revision_of(db, caller)
        nowhere = Played()
        nowhere.ids = {stand_in: str(uuid4()) for stand_in in played.ids}
        secrets = words_of(before) | set(played.ids.values())
        for name in [name for name in EXAMPLES if TOOLS[name].read_only]:
            foreign = await gateway.call(stranger, name, played.fill(EXAMPLES[name]), path=ALL)
            unknown = await gateway.call(stranger, name, nowhere.fill(EXAMPLES[name]), path=ALL)
            assert nameless(foreign, played) == nameless(unknown, nowhere), name
            asked = json.dumps(played.fill(EXAMPLES[name]))
            assert [word for word in secrets if word in json.dumps(foreign) and word not in asked] == [], name
        for name in [name for name in EXAMPLES if not TOOLS[name].read_only]:
            await gateway.call(stranger, name, played.fill(EXAMPLES[name]), path=ALL)
        assert await revision_of(db, caller) == revision
        assert await everything(gateway, owner) == before


async def play(gateway: Gateway, http: Any) -> Played:
    """Write all that the examples write, and keep the ids that they answer."""
    played = Played()
    for name, arguments in EXAMPLES.items():
        if not TOOLS[name].read_only and not TOOLS[name].destructive:
            played.keep(name, await gateway.call(http, name, played.fill(arguments), path=ALL))
    assert played.ids
    return played


async def everything(gateway: Gateway, http: Any) -> Any:
    """What the tenant's default graph shows."""
    return (await gateway.call(http, "read_graph", {}, path=ALL))["structuredContent"]


def words_of(graph: dict[str, Any]) -> set[str]:
    """The names and the texts of a graph as `read_graph` shows it."""
    words = {entity["name"] for entity in graph["entities"]}
    words |= {text for entity in graph["entities"] for text in entity["observations"]}
    assert len(words) > 10
    return words


def nameless(result: dict[str, Any], played: Played) -> str:
    """A result without the ids that were asked for, which a refusal repeats."""
    text = json.dumps(result, sort_keys=True)
    for answered in played.ids.values():
        text = text.replace(answered, "…")
    return text
