"""Headless Chromium, and a person who uses it with a keyboard and no mouse."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.auth import AuthorizationCodeResult

from tests.support.oauth import brought_back
from tests.support.people import PASSWORD
from tests.verify.node import node

DRIVER = Path(__file__).parent / "browser.mjs"
NAMES = ("chromium", "chromium-browser", "google-chrome")
"""The names of the program in Debian and elsewhere."""

STEP_SECONDS = 60
NARROW = 320
MOST_TABS = 60
"""How often a person presses Tab before they give up. No page of ours has as many stops."""

FOCUSED = """(() => {
    const at = document.activeElement;
    const label = at.labels?.length ? at.labels[0].innerText : at.getAttribute("aria-label") ?? at.innerText;
    return { label: label.trim(), checked: Boolean(at.checked), shown: at.matches(":focus-visible") };
})()"""


def executable() -> str:
    """The path of this machine's Chromium; nothing is downloaded."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.fail("Chromium is missing. Install it (Debian: the package chromium) and put it on the PATH.")


@dataclass
class Chromium:
    """A browser with one page, its own cookies, and a record of the complaints in its console."""

    process: asyncio.subprocess.Process

    async def do(self, method: str, *given: Any) -> Any:
        """Call a method of Playwright's `page`, or another command of the driver, and return the result."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([method, *given]).encode() + b"\n")
        line = await asyncio.wait_for(self.process.stdout.readline(), STEP_SECONDS)
        assert line, "the browser ended"
        reply = json.loads(line)
        assert "error" not in reply, f"{method} {given}: {reply['error']} {await self.faults()}"
        return reply["value"]

    async def open(self, url: str) -> None:
        await self.do("page.goto", url)

    async def address(self) -> str:
        found: str = await self.do("page.evaluate", "location.href")
        return found

    async def text(self) -> str:
        """The visible text of the page."""
        found: str = await self.do("page.innerText", "body")
        return found

    async def arrive(self, pattern: str) -> str:
        """Wait for a page whose address matches the pattern (`**` is anything); returns the address."""
        await self.do("page.waitForURL", pattern)
        return await self.address()

    async def faults(self) -> list[str]:
        """The complaints of the console and of the content security policy since the last call."""
        found: list[str] = await self.do("faults")
        return found

    async def barriers(self) -> list[str]:
        """What keeps people from using the page, as found by axe."""
        found: list[str] = await self.do("axe")
        return found

    async def narrow_width(self) -> int:
        """The width of the page in a window as wide as a small telephone."""
        await self.do("page.setViewportSize", {"width": NARROW, "height": 640})
        width: int = await self.do("page.evaluate", "document.documentElement.scrollWidth")
        await self.do("page.setViewportSize", {"width": 1280, "height": 720})
        return width

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.do("page.keyboard.press", key)

    async def type(self, text: str) -> None:
        await self.do("page.keyboard.type", text)

    async def tab_to(self, label: str) -> bool:
        """Press Tab until the element with that label has a visible focus; returns whether it is checked."""
        passed: list[str] = []
        for _ in range(MOST_TABS):
            at = await self.do("page.evaluate", FOCUSED)
            if at["label"].startswith(label):
                assert at["shown"], f"{label} has the focus and does not show it"
                return bool(at["checked"])
            passed.append(at["label"][:40])
            await self.press("Tab")
        pytest.fail(f"no key leads to {label}: {passed}")


@asynccontextmanager
async def chromium() -> AsyncIterator[Chromium]:
    """A new browser."""
    process = await asyncio.create_subprocess_exec(
        node(),
        *(str(DRIVER), executable()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    try:
        yield Chromium(process)
        assert process.stdin
        process.stdin.close()
        await asyncio.wait_for(process.wait(), STEP_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def examine(page: Chromium) -> None:
    """Fail unless the page has a title and no barriers, and the browser had no complaints on the way to it.

    Nobody has to scroll it sideways (WCAG 2.2, 1.4.10).
    """
    title = await page.do("page.title")
    assert title.endswith(" · Recollect"), title
    barriers, faults = await page.barriers(), await page.faults()
    assert (barriers, faults) == ([], []), (title, barriers, faults)
    assert await page.narrow_width() == NARROW, title


@dataclass
class Keyboarder:
    """A person whom a client sends to Chromium, and who signs in and consents with the keyboard alone.

    `refused`: the labels of the choices on the consent page that the person unchecks.
    """

    page: Chromium
    email: str
    callback: str
    refused: Sequence[str] = ()
    landed: str = ""
    shown: list[str] = field(default_factory=list)
    visits: int = 0

    async def visit(self, url: str) -> str:
        """Open an address of a client, sign in if required, and consent; returns the address that follows."""
        self.visits += 1
        await self.page.open(url)
        if "/sign-in" in await self.page.address():
            await self.sign_in()
            await self.page.arrive("**/oauth/authorize?**")
        await examine(self.page)
        self.shown.append(await self.page.text())
        for choice in self.refused:
            assert await self.page.tab_to(choice), f"{choice} is not checked"
            await self.page.press("Space")
        await self.page.tab_to("Allow")
        await self.page.press("Enter")
        self.landed = await self.page.arrive(f"{self.callback}?**")
        await self.page.faults()  # Those are of the client's own page: ours sent the browser there.
        return self.landed

    async def sign_in(self) -> None:
        """Fill in the form of the sign-in page, whose first field has the focus."""
        await examine(self.page)
        await self.page.type(self.email)
        await self.page.tab_to("Password")
        await self.page.type(PASSWORD)
        await self.page.press("Enter")

    async def bring_back(self) -> AuthorizationCodeResult:
        """The parameters for the client in the address to which the browser came."""
        return brought_back(self.landed)
