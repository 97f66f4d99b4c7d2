"""The page with which a client shows the results of `explore`: in Chromium, in a frame as specified."""

from typing import Any

from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import GRAPH_VIEW
from tests.verify.app_host import AppHost, app_client
from tests.verify.browser import Chromium
from tests.verify.processes import DeployedGateway

HOSTILE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>parent.hacked = true</script>"
TRIPLES = [
    {"subject": "Ada", "predicate": "knows", "object": HOSTILE},
    {"subject": "Ada", "predicate": SCRIPT, "object": "Babbage"},
    {"subject": "Babbage", "predicate": "built", "object": "Engine"},
    {"subject": "Ada", "predicate": "trusts", "object": "Ada"},
]
ITEMS = [
    {"text": f"writes {HOSTILE} by hand", "about": ["Ada"]},
    {"text": "likes steam", "about": ["Babbage"]},
    {"text": "is odd", "about": [HOSTILE]},
    {"text": "has wheels", "about": ["Engine"]},
]
NODES = "[...document.querySelectorAll('.node')].map(node => node.getAttribute('aria-label').split(',')[0]).sort()"
LISTED = "[...document.querySelectorAll('#relation-list li')].map(item => item.textContent).sort()"
PLACES = "[...document.querySelectorAll('.node circle')].map(({ cx, cy }) => [cx.baseVal.value, cy.baseVal.value])"
FOCUSED = "document.activeElement.getAttribute('aria-label').split(',')[0]"


async def text_of(host: AppHost, what: str) -> str:
    found: str = await host.see(f"document.getElementById({what!r}).textContent")
    return found


async def fill(client: Any) -> None:
    for tool, arguments in (("relate", {"triples": TRIPLES}), ("remember", {"items": ITEMS})):
        assert not (await client.call_tool(tool, arguments)).is_error


async def test_the_explored_graph_is_drawn_and_can_be_walked_by_keyboard(
    deployed: DeployedGateway, key: str, page: Chromium
) -> None:
    async with app_client(deployed.gateway, key) as client:
        await fill(client)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["explore"].meta == {"ui": {"resourceUri": GRAPH_VIEW}}
        async with AppHost.showing(page, client, GRAPH_VIEW) as host:
            await host.show("explore", {"start": "Ada"})
            await host.wait_for(".node.centre")
            assert await host.see(NODES) == sorted([HOSTILE, "Ada", "Babbage"])
            drawn = [f"Ada — {SCRIPT} → Babbage", "Ada — trusts → Ada", f"Ada — knows → {HOSTILE}"]
            assert await host.see(LISTED) == sorted(drawn)
            assert await host.see("document.querySelectorAll('path.edge').length") == 3
            assert await host.see("document.querySelectorAll('img, main script').length") == 0
            assert await text_of(host, "status") == "3 nodes, 3 relations."
            await assert_no_barriers(host)

            await page.do("page.focus", "iframe")
            await page.press("Tab")
            assert await host.see(FOCUSED) == "Ada"
            assert HOSTILE in await text_of(host, "node-text")
            seen = {"Ada"}
            for arrow in ("ArrowDown", "ArrowUp", "ArrowUp"):
                await page.press(arrow)
                seen.add(await host.see(FOCUSED))
            assert seen == {"Ada", "Babbage", HOSTILE}, "arrows lead to every node"
            await host.see("document.querySelector('[aria-label^=Babbage]').focus()")
            await page.press("Enter")
            call = await host.call_the_requested_tool()
            assert call["name"] == "explore"
            await page.do("frame.waitForFunction", "document.title && title.textContent === 'Around Babbage'")
            assert await host.see(NODES) == ["Ada", "Babbage", "Engine"]
            assert await host.see(FOCUSED) == "Babbage"
            await host.see("document.getElementById('back').focus()")
            await page.press("Enter")
            assert await text_of(host, "title") == "Around Ada"
            await host.tell(method="ui/notifications/host-context-changed", params={"theme": "dark"})
            await host.see("new Promise(done => setTimeout(done, 1))")
            assert await host.see("getComputedStyle(document.body).backgroundColor") == "rgb(22, 26, 34)"
            await assert_no_barriers(host)
            assert await page.do("page.evaluate", "window.hacked ?? null") is None


async def assert_no_barriers(host: AppHost) -> None:
    """Fail if axe finds barriers, or the page violated its policy."""
    assert (await host.page.do("axeOfFrame"), await host.page.faults()) == ([], [])


async def test_a_click_requests_a_tool_from_the_host_which_may_refuse(
    deployed: DeployedGateway, key: str, page: Chromium
) -> None:
    async with app_client(deployed.gateway, key) as client:
        await fill(client)
        async with AppHost.showing(page, client, GRAPH_VIEW) as host:
            await host.show("explore", {"start": "Ada", "depth": 2, "max_nodes": 10})
            await host.wait_for(".node.centre")
            assert await host.see(NODES) == sorted([HOSTILE, "Ada", "Babbage", "Engine"])
            await page.do("frame.click", "[aria-label^=Engine] circle")
            request = await host.heard("tools/call")
            assert request["params"]["arguments"].items() >= {"depth": 2, "max_nodes": 10}.items()
            await host.tell(id=request["id"], error={"code": -32000, "message": f"No. {HOSTILE}"})
            await page.do("frame.waitForFunction", "document.getElementById('status').textContent.includes('No.')")
            assert await text_of(host, "title") == "Around Ada"
            await host.show("explore", {"start": "nobody"})
            await host.wait_for("#text:not([hidden])")
            assert "nobody" in await text_of(host, "text")
            await assert_no_barriers(host)
        async with AppHost.showing(page, client, GRAPH_VIEW, may_call=False) as host:
            await host.show("explore", {"start": "Ada", "to": "Engine", "depth": 3})
            await host.wait_for(".node.centre")
            await page.do("frame.click", "[aria-label^=Engine] circle")
            assert "lets nothing be explored" in await text_of(host, "status")


def name(place: int) -> str:
    return f"n{place}, which has a name that is too long to be drawn whole"


async def test_a_large_neighbourhood_is_drawn(deployed: DeployedGateway, key: str, page: Chromium) -> None:
    async with app_client(deployed.gateway, key) as client:
        triples = [{"subject": name(place // 3), "predicate": "to", "object": name(place)} for place in range(1, 100)]
        items = [{"text": f"says {place}", "about": [name(place)]} for place in range(100)]
        for begin in (0, 50):
            assert not (await client.call_tool("remember", {"items": items[begin : begin + 50]})).is_error
            assert not (await client.call_tool("relate", {"triples": triples[begin : begin + 50]})).is_error
        async with AppHost.showing(page, client, GRAPH_VIEW, theme="dark") as host:
            await host.show("explore", {"start": name(0), "depth": 6, "max_nodes": 100})
            await host.wait_for(".node.centre")
            drawn = await host.see(PLACES)
            assert len(drawn) == 100
            near = [(a, b) for a in drawn for b in drawn if a is not b and abs(a[0] - b[0]) + abs(a[1] - b[1]) < 32]
            assert near == [], "no node hides another"
            await assert_no_barriers(host)
