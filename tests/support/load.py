"""Agents at work: calls of several tools and routes, one after the other, each of which must be answered.

Acknowledged writes are recorded, so that tests can look for them afterwards.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from recollect_gateway.mcp_endpoint.errors import ERROR_META
from tests.support.balancer import NoGatewayError
from tests.support.gateway import rpc_answer, rpc_headers, until
from tests.support.timeouts import MAX_WAIT_SECONDS

ADDRESS = "http://127.0.0.1:8080"
"""The address of the balancer for agents."""

GRAPHS = 2
"""The number of graphs, which agents share so that they wait for each other."""


class CallFailed(Exception):
    """A call without the expected answer. `code` is empty if there was no answer, or none of ours.

    `may_be_repeated`: the answer says after how many seconds. `went_unsent`: the balancer had no ready gateway.
    """

    def __init__(
        self, what: str, code: str, detail: str, *, may_be_repeated: bool = False, went_unsent: bool = False
    ) -> None:
        super().__init__(f"{what}: {code or 'no answer'}: {detail}")
        self.code, self.may_be_repeated, self.went_unsent = code, may_be_repeated, went_unsent


@dataclass(slots=True)
class Load:
    """The record of the agents. `repeats`: they also rewrite, and repeat a failed call until it is answered.
    `pause`: seconds between two calls of an agent.
    """

    http: httpx2.AsyncClient
    repeats: bool = False
    pause: float = 0.0
    calls: Counter[str] = field(default_factory=Counter)
    failures: list[CallFailed] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    observations: list[str] = field(default_factory=list)
    versions: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    @asynccontextmanager
    async def at_work(self, agents: int) -> AsyncIterator["Load"]:
        """Run this number of agents until the block ends; each finishes its current call."""
        stopping = asyncio.Event()
        work = [asyncio.create_task(self._agent(number, stopping)) for number in range(agents)]
        try:
            yield self
        finally:
            stopping.set()
            await asyncio.gather(*work)

    async def wait_for(self, more: int) -> None:
        """Wait for this number of further answered calls."""
        wanted = self.calls.total() + more
        await until(lambda: self.calls.total() >= wanted)

    async def _agent(self, number: int, stopping: asyncio.Event) -> None:
        graph, turn = f"load-{number % GRAPHS}", 0
        while not stopping.is_set():
            turn += 1
            for step in self._steps(graph, f"a{number}t{turn}"):
                await self._answered(step, stopping)
                await asyncio.sleep(self.pause)

    def _steps(self, graph: str, word: str) -> list[Callable[[], Awaitable[None]]]:
        fact, observation = f"{word} is said of bees", f"{word} was seen"

        async def remember() -> None:
            await self.tool("remember", {"graph": graph, "items": [{"text": fact}]})
            self.facts.append(fact)

        async def create() -> None:
            entity = {"name": word, "entityType": "thing", "observations": []}
            await self.tool("create_entities", {"graph": graph, "entities": [entity]}, "/mcp/x/memory")
            self.entities.append(word)

        async def observe() -> None:
            said = {"graph": graph, "observations": [{"entityName": word, "contents": [observation]}]}
            await self.tool("add_observations", said, "/mcp/x/memory")
            self.observations.append(observation)

        async def post() -> None:
            text = f"{word} was posted"
            await self._request("POST", f"/v1/graphs/{graph}/memories", {"items": [{"text": text}]}, key=word)
            self.facts.append(text)

        async def read() -> None:
            await self.tool("recall", {"graph": graph, "query": f"what is said of {word}"})
            await self._request("GET", "/v1/graphs")

        return [remember, create, observe, post, read, *(self._rewrites(graph, word) if self.repeats else ())]

    def _rewrites(self, graph: str, word: str) -> list[Callable[[], Awaitable[None]]]:
        """Write a fact, and versions of it with each tool that writes one, without a base version."""
        texts = [f"{word} was {done}" for done in ("drafted", "put", "put with others", "revised", "updated")]

        async def draft() -> None:
            told = await self.tool("remember", {"graph": graph, "items": [{"text": texts[0]}]})
            self.versions[graph, told["memories"][0]["node"]] = texts[:1]

        def rewrite(tool: str, path: str, text: str, arguments: Callable[[str], Any]) -> Callable[[], Awaitable[None]]:
            async def write() -> None:
                node = next(node for (_, node), said in self.versions.items() if said[0] == texts[0])
                await self.tool(tool, {"graph": graph, **arguments(node)}, path)
                self.versions[graph, node].append(text)

            write.__name__ = tool
            return write

        _, put, others, revised, updated = texts
        version = {"kind": "note", "content": put}
        return [
            draft,
            rewrite("put_node", "/mcp/x/lineage", put, lambda node: {"lineage_id": node, **version}),
            rewrite(
                "put_subgraph",
                "/mcp/x/lineage",
                others,
                lambda node: {"nodes": [{"lineage_id": node, **version, "content": others}]},
            ),
            rewrite("revise", "/mcp", revised, lambda node: {"id": node, "text": revised}),
            rewrite("update_node", "/mcp/x/facts", updated, lambda node: {"node_id": node, "text": updated}),
        ]

    async def _answered(self, step: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
        while True:
            try:
                await step()
            except CallFailed as failed:
                self.failures.append(failed)
                if not self.repeats:
                    return
                await asyncio.sleep(0.1)
            else:
                self.calls[step.__name__] += 1
                return

    async def tool(self, name: str, arguments: dict[str, Any], path: str = "/mcp") -> Any:
        """The structured content of a tool's result; raises CallFailed."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        response = await self._sent("POST", path, name, content=json.dumps(call), headers=rpc_headers())
        result = rpc_answer(response.text).get("result")
        if result is None or result["isError"]:
            told = (result or {}).get("_meta", {}).get(ERROR_META, {})
            raise CallFailed(name, told.get("code", ""), response.text, may_be_repeated="retry_after" in told)
        return result["structuredContent"]

    async def _request(self, method: str, path: str, body: Any = None, key: str | None = None) -> None:
        headers = {"Idempotency-Key": key} if key else {}
        await self._sent(method, path, f"{method} {path}", json=body, headers=headers)

    async def _sent(self, method: str, path: str, what: str, **request: Any) -> httpx2.Response:
        try:
            response = await self.http.request(method, path, **request)
        except httpx2.TransportError as error:
            raise CallFailed(what, "", repr(error), went_unsent=isinstance(error, NoGatewayError)) from error
        if not response.is_success:
            problem = response.json() if "json" in response.headers.get("content-type", "") else {}
            raise CallFailed(
                what,
                problem.get("code", ""),
                f"{response.status_code} {response.text}",
                may_be_repeated="retry-after" in response.headers,
            )
        return response


@asynccontextmanager
async def agents_of(transport: httpx2.AsyncBaseTransport, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client for agents with this key, which uses the address of a balancer."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url=ADDRESS, headers=headers, timeout=MAX_WAIT_SECONDS
    ) as http:
        yield http


async def stored_once(load: Load) -> None:
    """Require that each acknowledged write is stored, and that nothing is stored twice, versions included."""
    for (graph_name, node), said in load.versions.items():
        told = await load.tool("history", {"graph": graph_name, "lineage_id": node}, "/mcp/x/lineage")
        assert [version["content"] for version in told["versions"]] == said[::-1]
    texts: Counter[str] = Counter()
    for number in range(GRAPHS):
        exported = await load.http.get(f"/v1/graphs/load-{number}/export", params={"format": "json"})
        assert exported.status_code == 200, exported.text
        graph = exported.json()
        texts.update(fact["text"] for fact in graph["facts"])
        for entity in graph["entities"]:
            texts.update([entity["name"], *entity["observations"]])
    acknowledged = [*load.facts, *load.entities, *load.observations]
    assert not [text for text in acknowledged if texts[text] == 0], "acknowledged, and not there"
    assert not [text for text, times in texts.items() if times > 1], "there more than once"
