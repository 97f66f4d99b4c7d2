"""Confirmation: calls that delete much ask first, and the state of a question is valid for that caller and call
only.
"""

import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import asyncpg
import httpx2
import mcp.server.request_state
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect_gateway.mcp_endpoint import request_state
from recollect_gateway.mcp_endpoint.confirmation import MAX_UNCONFIRMED
from tests.conftest import NewTenant
from tests.support.gateway import MODERN, NewApiKey, RunningGateway, revision_of, rpc_answer, rpc_headers

MANY = [f"e{n}" for n in range(MAX_UNCONFIRMED + 1)]
DELETE_MANY = ("delete_entities", {"entityNames": MANY})
YES: dict[str, Any] = {"action": "accept", "content": {"confirm": True}}
ELICITS: dict[str, Any] = {"elicitation": {}}


@pytest.fixture
async def http(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as http:
        yield http


@pytest.fixture(autouse=True)
async def many(gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
    """A graph with one node more than may be deleted without a question."""
    entities = [{"name": name, "entityType": "t", "observations": []} for name in MANY]
    await gateway.call(http, "create_entities", {"entities": entities})


async def answer(
    http: httpx2.AsyncClient, tool: str, arguments: Any, capabilities: Any = ELICITS, **more: Any
) -> dict[str, Any]:
    """The answer to one round of a call in revision 2026-07-28."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta, **more}
    headers = rpc_headers(MODERN) | {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return rpc_answer((await http.post("/mcp/x/all", json=body, headers=headers)).text)


async def question_of(http: httpx2.AsyncClient, tool: str, arguments: Any) -> tuple[str, str]:
    """The question of a call, and its state."""
    result = (await answer(http, tool, arguments))["result"]
    assert result["resultType"] == "input_required", result
    return result["inputRequests"]["confirm"]["params"]["message"], result["requestState"]


def confirming(state: str, said: dict[str, Any] = YES) -> dict[str, Any]:
    """What a client adds to its call in the second round."""
    return {"inputResponses": {"confirm": said}, "requestState": state}


class TestQuestions:
    async def test_nothing_is_done_before_a_confirmation(
        self, http: httpx2.AsyncClient, db: Database, caller: Caller
    ) -> None:
        question, state = await question_of(http, *DELETE_MANY)
        assert f"{MAX_UNCONFIRMED + 1} entities of the graph default" in question
        assert await revision_of(db, caller) == 1
        done = await answer(http, *DELETE_MANY, **confirming(state))
        assert not done["result"]["isError"]
        assert await revision_of(db, caller) == 2

    @pytest.mark.parametrize(
        "said",
        [{"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"confirm": False}}],
        ids=["declined", "cancelled", "not ticked"],
    )
    async def test_a_declined_question_changes_nothing(
        self, http: httpx2.AsyncClient, db: Database, caller: Caller, said: dict[str, Any]
    ) -> None:
        _, state = await question_of(http, *DELETE_MANY)
        result = (await answer(http, *DELETE_MANY, **confirming(state, said)))["result"]
        assert result["isError"]
        assert "not confirmed" in result["content"][0]["text"]
        assert await revision_of(db, caller) == 1

    async def test_an_answer_without_the_state_is_asked_again(self, http: httpx2.AsyncClient) -> None:
        result = (await answer(http, *DELETE_MANY, inputResponses={"confirm": YES}))["result"]
        assert result["resultType"] == "input_required"

    async def test_a_confirmation_is_valid_only_for_what_the_question_said(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        question, state = await question_of(http, "delete_graph", {"graph": "default"})
        assert f"{len(MANY)} nodes" in question
        one_more = {"entities": [{"name": "late", "entityType": "t", "observations": []}]}
        await gateway.call(http, "create_entities", one_more)
        again = await answer(http, "delete_graph", {"graph": "default"}, **confirming(state))
        assert again["result"]["resultType"] == "input_required"
        state = again["result"]["requestState"]
        done = await answer(http, "delete_graph", {"graph": "default"}, **confirming(state))
        assert done["result"]["structuredContent"] == {"graph": "default", "deleted": True}

    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("forget", {"names": MANY[:100], "ids": ["00000000-0000-4000-8000-000000000000"], "mode": "delete"}),
            ("merge_entities", {"entityNames": MANY}),
            ("undo_changes", {"since_revision": 0}),
            ("delete_graph", {"graph": "default"}),
        ],
    )
    async def test_each_tool_that_deletes_much_asks(
        self, http: httpx2.AsyncClient, db: Database, caller: Caller, tool: str, arguments: dict[str, Any]
    ) -> None:
        await question_of(http, tool, arguments)
        assert await revision_of(db, caller) == 1

    async def test_a_large_compaction_asks(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
    ) -> None:
        await gateway.call(http, *DELETE_MANY)
        for table in ("changes", "graph_heads"):
            older = f"UPDATE {table} SET at = at - interval '31 days' WHERE tenant_id = $1"
            await owner.execute(older, caller.tenant_id)
        question, state = await question_of(http, "compact", {})
        assert "from the history" in question
        done = await answer(http, "compact", {}, **confirming(state))
        assert done["result"]["structuredContent"]["freed"]["nodes"] == len(MANY)

    async def test_a_small_deletion_does_not_ask(self, http: httpx2.AsyncClient) -> None:
        for tool, arguments in [
            ("delete_entities", {"entityNames": MANY[:2]}),
            ("forget", {"names": MANY[:100], "ids": ["00000000-0000-4000-8000-000000000000"]}),
            ("undo_changes", {"since_revision": 0, "dry_run": True}),
            ("compact", {}),
            ("delete_graph", {"graph": "not_there"}),
        ]:
            assert not (await answer(http, tool, arguments))["result"].get("isError"), tool

    async def test_clients_without_elicitation_are_served_without_a_question(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        only_urls: dict[str, Any] = {"elicitation": {"url": {}}}
        assert not (await answer(http, *DELETE_MANY, only_urls))["result"]["isError"]
        assert not (await answer(http, *DELETE_MANY, {}))["result"]["isError"]
        assert not (await gateway.call(http, *DELETE_MANY))["isError"]  # In an older revision.


class TestState:
    @pytest.mark.proves("security: request-state")
    async def test_a_state_of_another_call_or_credential_is_refused(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        issue: NewApiKey,
        new_tenant: NewTenant,
        db: Database,
        caller: Caller,
    ) -> None:
        """A state that was changed, or that belongs to another call, another credential of the tenant, or another
        tenant.
        """
        _, state = await question_of(http, *DELETE_MANY)
        middle = len(state) // 2
        changed = state[:middle] + ("A" if state[middle] != "A" else "B") + state[middle + 1 :]
        for wrong in (changed, state[:-4], "", "101"):
            await self._refused(http, *DELETE_MANY, wrong)
        await self._refused(http, "delete_entities", {"entityNames": [*MANY, "another"]}, state)
        await self._refused(http, "merge_entities", DELETE_MANY[1], state)
        for whose in (caller, operator_caller(await new_tenant())):
            async with gateway.http((await issue(whose, kind="admin")).secret) as other:
                await self._refused(other, *DELETE_MANY, state)
        assert await revision_of(db, caller) == 1

    async def test_a_state_expires(self, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
        _, state = await question_of(http, *DELETE_MANY)
        expired = time.time() + request_state.STATE_SECONDS + 1
        monkeypatch.setattr(mcp.server.request_state, "time", SimpleNamespace(time=lambda: expired))
        await self._refused(http, *DELETE_MANY, state)

    async def _refused(self, http: httpx2.AsyncClient, tool: str, arguments: Any, state: str) -> None:
        error = (await answer(http, tool, arguments, **confirming(state)))["error"]
        assert (error["code"], error["message"]) == (-32602, "Invalid or expired requestState")
