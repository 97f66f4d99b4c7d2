"""Hooks send whole prompts as questions: by MCP and by the routes, up to 8,000 characters."""

import pytest

from recollect.retrieval.recall.prompts import MAX_QUESTION
from tests.support.gateway import RunningGateway, rpc_headers

PADDING = (
    "My coffee is cold, the auditors from Zurich arrive tomorrow, and nobody on the third floor answers the phone. "
)
ASKS = "What was the matter with INV-20417 again? "
PATH = "/mcp/x/agent,facts,lineage"


def prompt(length: int) -> str:
    """A question among other sentences."""
    half = (length - len(ASKS)) // 2
    return f"{(PADDING * 80)[:half]}{ASKS}{(PADDING * 80)[: length - half - len(ASKS)]}"


@pytest.mark.proves("agent: recall")
async def test_a_prompt_finds_what_it_names(gateway: RunningGateway, key: str, subtests: pytest.Subtests) -> None:
    async with gateway.http(key, **rpc_headers()) as http:
        items = [{"text": f"Invoice INV-{20400 + n} was sent to customer {n}"} for n in range(30)]
        answer = await gateway.call(http, "remember", {"items": items}, path=PATH)
        assert not answer["isError"], answer
        for tool, name in (("recall", "query"), ("search_graph", "text"), ("search", "query")):
            for length in (1_000, 1_001, MAX_QUESTION):
                with subtests.test(tool, length=length):
                    assert len(prompt(length)) == length
                    answer = await gateway.call(http, tool, {name: prompt(length)}, path=PATH)
                    assert not answer["isError"], answer
                    assert "INV-20417" in str(answer)
            refused = await gateway.call(http, tool, {name: prompt(MAX_QUESTION + 1)}, path=PATH)
            assert refused["isError"]
        route = await http.get("/v1/graphs/default/search", params={"q": prompt(MAX_QUESTION)})
        assert route.status_code == 200, route.text
        assert "INV-20417" in route.text
