"""A person in Chromium allows a client whose redirect address has a scheme of its own: the browser goes there."""

import asyncio

from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.people.model import Person
from recollect.caller import Caller
from recollect.postgres.database import Database
from tests.support.gateway import eventually
from tests.support.oauth import HandClient
from tests.support.web_server import web_server
from tests.verify.browser import Chromium, Keyboarder
from tests.verify.processes import DeployedGateway

CURSOR = "cursor://anysphere.cursor-mcp/oauth/callback"
FORM = b"<!doctype html><title>Form</title><form method=post><button autofocus>Allow</button></form>"


async def test_a_policy_without_the_scheme_would_stop_the_browser(page: Chromium) -> None:
    """What the other test is about: Chromium holds redirects after a form to the policy, for such schemes, too."""

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        if head.startswith(b"POST"):
            writer.write(f"HTTP/1.1 303 See Other\r\nLocation: {CURSOR}\r\nContent-Length: 0\r\n\r\n".encode())
            return
        policy = b"Content-Type: text/html\r\nContent-Security-Policy: form-action 'self' https:"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n\r\n%s" % (len(FORM), policy, FORM))

    said: list[str] = []

    async def refused() -> bool:
        await page.press("Enter")  # A key that comes before the button has the focus does nothing.
        said.extend(await page.faults())
        return any("form-action" in fault for fault in said)

    async with web_server(answer) as server:
        await page.open(f"http://127.0.0.1:{server.port}/")
        await eventually(refused)


async def test_the_browser_may_go_to_the_program(
    deployed: DeployedGateway, page: Chromium, person: Person, caller: Caller, db: Database
) -> None:
    async with deployed.gateway.http() as http:
        client = await HandClient.register(deployed.gateway, http, redirect_uris=[CURSOR])

    async def allowed() -> bool:
        async with db.transaction(caller, read_only=True) as tx:
            return bool(await grants.list_grants(tx))

    await page.open(client.request())
    await Keyboarder(page, person.email, CURSOR).sign_in()
    await page.arrive("**/oauth/authorize?**")
    assert "leads to a program on this device" in await page.text()
    assert await page.faults() == []
    await page.tab_to("Allow")
    await page.press("Enter")
    await eventually(allowed)
    await page.do("page.waitForLoadState", "networkidle")
    assert await page.faults() == []
