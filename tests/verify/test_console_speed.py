"""The console at a graph of 10,000 nodes: how fast its pages are served, and how smoothly 2,000 of them are drawn.

What was measured is printed (`pytest -s`). Machines differ, and headless Chromium draws WebGL on the processor where
there is no graphics card; so the test demands less than what is promised, and says where the promise was not kept.
"""

from collections.abc import AsyncIterator
from statistics import median

import pytest

from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from tests.support.memories import Agent
from tests.support.people import joined
from tests.verify.browser import Chromium, examine
from tests.verify.processes import DeployedGateway
from tests.verify.test_console import WIDE, Walk, signed_in

BRANCHES, LEAVES = 101, 99
"""A hub has 101 nodes around it, each of which has 99 more: 10,101 altogether."""

LISTED_MS = 300
"""How long the server may take for a page of the list, in the median. That is what is promised."""

FRAMES_PER_SECOND, PROMISED_FRAMES = 20, 30
"""What the test demands where the processor draws and other programs run, and what is promised."""

FRAMES = """(async (step) => {
    const times = [];
    await new Promise((done) => {
        const frame = (now) => {
            times.push(now);
            step(times.length / 10);
            if (times.length < 90) requestAnimationFrame(frame);
            else done();
        };
        requestAnimationFrame(frame);
    });
    return times.slice(1).map((time, index) => time - times[index]).sort((a, b) => a - b);
})"""
"""The milliseconds between frames, in order of length, while something is done in each."""

STILL = f"{FRAMES}(() => undefined)"
TURN = f"""(() => {{
    const camera = document.getElementById("graph").picture.getCamera();
    return {FRAMES}((at) => camera.setState({{ x: 0.5 + 0.2 * Math.cos(at), y: 0.5 + 0.2 * Math.sin(at) }}));
}})()"""
PAN = f"""(async () => {{
    const surface = document.querySelector("#graph-canvas .sigma-mouse");
    const {{ x, y, width, height }} = surface.getBoundingClientRect();
    const send = (name, to, right, down) => to.dispatchEvent(new MouseEvent(name, {{
        bubbles: true, button: 0, buttons: 1, clientX: x + width / 2 + right, clientY: y + height / 2 + down,
    }}));
    send("mousedown", surface, 0, 0);
    const times = await {FRAMES}((at) => send("mousemove", document, 60 * Math.cos(at), 60 * Math.sin(at)));
    send("mouseup", document, 0, 0);
    return times;
}})()"""
CAMERA = "(({ x, y }) => [x, y])(document.getElementById('graph').picture.getCamera().getState())"
PLACES = """(() => {
    const graph = document.getElementById("graph").picture.getGraph();
    return Object.fromEntries(graph.mapNodes((node, { x, y }) => [node, [x, y]]));
})()"""
SERVED = """(() => {
    const [{ requestStart, responseStart }] = performance.getEntriesByType("navigation");
    return responseStart - requestStart;
})()"""
DRAWN_BY = """(() => {
    const context = document.createElement("canvas").getContext("webgl");
    const info = context.getExtension("WEBGL_debug_renderer_info");
    return context.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : context.RENDERER);
})()"""


@pytest.fixture
async def owner_of_many(db: Database, databases: Databases, caller: Caller, pepper: bytes) -> Person:
    agent = Agent(db, caller)
    branches = [f"Branch {b}" for b in range(BRANCHES)]
    for branch in branches:
        leaves = [f"{branch} leaf {n}" for n in range(LEAVES)]
        await agent.create(*(NewEntity(name, f"kind {n % 5}") for n, name in enumerate((branch, *leaves))))
        await agent.relate(*((leaf, branch, "part of") for leaf in leaves))
        await agent.relate(*((a, b, "before") for a, b in zip(leaves[::2], leaves[1::2], strict=False)))
    await agent.relate(*((branch, "Hub", "belongs to") for branch in branches))
    await agent.create(NewEntity("Hub", "hub"))
    return await joined(databases, caller, Role.OWNER, pepper=pepper)


@pytest.fixture
async def many(deployed: DeployedGateway, page: Chromium, caller: Caller, owner_of_many: Person) -> AsyncIterator[Walk]:
    await page.do("page.setViewportSize", WIDE)
    await signed_in(page, deployed, owner_of_many)
    yield Walk(page, deployed.gateway.url, caller.tenant)
    assert deployed.faults() == []


async def test_ten_thousand_nodes_are_listed_and_two_thousand_drawn(many: Walk) -> None:
    for path in ("memory", "graph", "graph?size=2000"):
        took = [await served_ms(many, path) for _ in range(7)]
        print(f"\n{path}: {median(took):.0f} ms of the server")
        assert path != "memory" or median(took) < LISTED_MS, took
    await many.page.do("page.emulateMedia", {"reducedMotion": "reduce"})
    await many.open("graph?size=2000")
    await many.shows("#graph[data-ready]")
    assert len(await many.page.do("page.evaluate", PLACES)) == 2_000
    await examine(many.page)
    await many.page.do("page.setViewportSize", WIDE)
    await many.page.do("page.hover", "#graph-canvas")
    drawn_by = await many.page.do("page.evaluate", DRAWN_BY)
    assert await many.page.do("page.evaluate", CAMERA) == [0.5, 0.5]
    rates = {name: await frames_of(many, code) for name, code in (("still", STILL), ("turn", TURN), ("pan", PAN))}
    print(f"\n2,000 nodes by {drawn_by}, frames per second (promised: {PROMISED_FRAMES} while it is panned): {rates}")
    assert await many.page.do("page.evaluate", CAMERA) != [0.5, 0.5]
    assert rates["pan"] >= FRAMES_PER_SECOND


async def frames_of(walk: Walk, code: str) -> int:
    """Frames per second, by the median of the time between two."""
    times: list[float] = await walk.page.do("page.evaluate", code)
    return round(1000 / median(times))


async def test_what_is_drawn_stays_in_place_when_a_node_is_expanded(many: Walk) -> None:
    for motion in ("reduce", "no-preference"):
        await many.page.do("page.emulateMedia", {"reducedMotion": motion})
        await many.open("graph?node=Branch+7&depth=1&size=50")
        await many.shows("#graph[data-ready]")
        before = await many.page.do("page.evaluate", PLACES)
        assert len(before) == 50
        await many.page.do("page.focus", "#graph-canvas")
        await many.page.press("Home", "Enter")
        await many.shows("#graph[data-expanded]")
        after = await many.page.do("page.evaluate", PLACES)
        assert len(after) == LEAVES + 2
        assert {node: after[node] for node in before} == before
        assert len({tuple(place) for place in after.values()}) == len(after), "no two lie on each other"
    await many.click("text=Next page")
    await many.shows("#graph-table >> text=Page 2 of")


async def served_ms(walk: Walk, path: str) -> float:
    """How long the server took for a page, by the browser's own measure."""
    await walk.open(path)
    took: float = await walk.page.do("page.evaluate", SERVED)
    return took
