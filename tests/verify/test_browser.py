"""People in headless Chromium, with a keyboard and no mouse, and the OAuth client of the SDK that sends them there."""

import asyncio
from dataclasses import replace

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.gateway import answer
from tests.support.oauth import HandClient, Wallet, client_document, oauth_client
from tests.support.people import PASSWORD, new_email
from tests.support.web_server import CertificateAuthority, plain, web_server
from tests.verify.browser import NARROW, Chromium, Keyboarder, examine
from tests.verify.processes import DeployedGateway

ENTITY = {"name": "Ada", "entityType": "person", "observations": []}
WRITE = "Remember, change and forget"


async def test_a_registered_client_is_authorized_and_refreshes_its_tokens(
    reaching: DeployedGateway, keyboarder: Keyboarder
) -> None:
    gateway, wallet = reaching.gateway, Wallet()
    async with oauth_client(gateway, keyboarder, wallet, callback=keyboarder.callback) as client:
        assert (await answer(client, "create_entities", entities=[ENTITY]))["entities"][0]["name"] == "Ada"
    assert "Test client" in keyboarder.shown[0]
    assert keyboarder.callback.split("/")[2] in keyboarder.shown[0], "the page says where the browser goes"
    assert wallet.client is not None
    assert not wallet.client.client_id.startswith("https://")
    sessions = [replace(wallet), replace(wallet)]
    for _ in range(2):
        for session in sessions:
            session.make_stale()
        read = await asyncio.gather(*(read_names(reaching, keyboarder, session) for session in sessions))
        assert read == [["Ada"], ["Ada"]]
    assert sessions[0].current_tokens.refresh_token != sessions[1].current_tokens.refresh_token
    assert keyboarder.visits == 1, "nobody is asked again"
    assert reaching.faults() == []


async def read_names(reaching: DeployedGateway, keyboarder: Keyboarder, wallet: Wallet) -> list[str]:
    """The names in the default graph, as read by a client with this wallet."""
    async with oauth_client(reaching.gateway, keyboarder, wallet, callback=keyboarder.callback) as client:
        return [entity["name"] for entity in (await answer(client, "read_graph"))["entities"]]


async def test_a_client_with_a_metadata_document_is_authorized(
    reaching: DeployedGateway, keyboarder: Keyboarder, authority: CertificateAuthority, caller: Caller
) -> None:
    """The client comes to the address of the tenant, with a client metadata document."""
    wallet = Wallet()
    async with client_document(authority, client_name="Described") as (client_id, site):
        path = f"/t/{caller.tenant}/mcp/x/memory"
        async with oauth_client(
            reaching.gateway, keyboarder, wallet, path=path, metadata_url=client_id, callback=keyboarder.callback
        ) as client:
            assert (await answer(client, "read_graph"))["entities"] == []
        assert site.connections == 1
    assert "“Described”" in keyboarder.shown[0]
    assert "localhost" in keyboarder.shown[0]
    assert wallet.client is not None
    assert wallet.client.client_id == client_id


async def test_a_refused_scope_is_requested_again_when_it_is_needed(
    reaching: DeployedGateway, keyboarder: Keyboarder
) -> None:
    wallet = Wallet()
    keyboarder.refused = [WRITE]
    async with oauth_client(reaching.gateway, keyboarder, wallet, callback=keyboarder.callback) as client:
        assert "create_entities" not in {tool.name for tool in (await client.list_tools()).tools}
        assert "memory:write" not in (wallet.current_tokens.scope or "").split()
        keyboarder.refused = []
        assert (await answer(client, "create_entities", entities=[ENTITY]))["entities"][0]["name"] == "Ada"
    assert {"memory:read", "memory:write"} <= set((wallet.current_tokens.scope or "").split())
    assert keyboarder.visits == 2


async def test_a_person_revokes_the_access_of_a_client(reaching: DeployedGateway, keyboarder: Keyboarder) -> None:
    wallet, page = Wallet(), keyboarder.page
    async with oauth_client(reaching.gateway, keyboarder, wallet, callback=keyboarder.callback) as client:
        await answer(client, "read_graph")
        await page.open(f"{reaching.gateway.url}/account")
        await examine(page)
        assert "Test client" in await page.text()
        await page.tab_to("End")
        await page.press("Enter")
        await page.do("page.waitForSelector", "text=Test client", {"state": "detached"})
        assert keyboarder.visits == 1
        await answer(client, "read_graph")
    assert keyboarder.visits == 2, "the person is asked again"


async def test_a_person_opens_an_invitation_and_joins(
    reaching: DeployedGateway, page: Chromium, db: Database, caller: Caller, pepper: bytes
) -> None:
    email = f"a.{'long.' * 8}{new_email()}"
    async with db.transaction(caller) as tx:
        secret = (await members.invite(tx, email, Role.READER, pepper=pepper)).secret
    await page.open(f"{reaching.gateway.url}/join/{secret}")
    await examine(page)
    await page.type("Grace")
    await page.tab_to("A password")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.arrive("**/app/**/memory")
    await examine(page)
    await page.open(f"{reaching.gateway.url}/account")
    assert email in await page.text()
    async with db.transaction(caller, read_only=True) as tx:
        assert [(each.email, each.name) for each in await members.list_members(tx)] == [(email, "Grace")]


async def test_a_member_of_several_tenants_chooses_one(
    reaching: DeployedGateway,
    keyboarder: Keyboarder,
    person: Person,
    db: Database,
    databases: Databases,
    new_tenant: NewTenant,
    pepper: bytes,
) -> None:
    page, other = keyboarder.page, await new_tenant()
    async with db.transaction(operator_caller(other)) as tx:
        secret = (await members.invite(tx, person.email, Role.READER, pepper=pepper)).secret
    await members.join(databases, await members.open_invitation(databases, secret, pepper=pepper), person)
    async with reaching.gateway.http() as http:
        client = await HandClient.register(reaching.gateway, http)
    await page.open(client.request())
    await keyboarder.sign_in()
    await page.arrive("**/oauth/authorize?**")
    await examine(page)
    await page.tab_to(other.name)
    await page.press("Enter")
    await page.arrive(f"**&tenant={other.slug}")
    await examine(page)
    assert f"asks for access to {other.name}" in await page.text()


async def test_the_sign_in_page_leads_to_help_with_a_forgotten_password(
    reaching: DeployedGateway, page: Chromium
) -> None:
    await page.open(f"{reaching.gateway.url}/sign-in")
    await page.tab_to("Forgotten your password?")
    await page.press("Enter")
    await page.arrive("**/forgot")
    await examine(page)


async def test_an_address_of_mcp_leads_to_the_page_for_people(reaching: DeployedGateway, page: Chromium) -> None:
    await page.open(f"{reaching.gateway.url}/mcp")
    assert await page.address() == f"{reaching.gateway.url}/"
    await examine(page)
    assert f"claude mcp add --transport http recollect {reaching.gateway.url}/mcp" in await page.text()
    await page.tab_to("Sign in")
    await page.press("Enter")
    await page.arrive("**/sign-in?next=/app")


async def test_a_passkey_is_made_and_used_at_the_name_of_the_machine(
    reaching: DeployedGateway, keyboarder: Keyboarder
) -> None:
    """The public address is 127.0.0.1, for which no browser makes one: that page leads to `localhost`, as it says."""
    page, numbered = keyboarder.page, reaching.gateway.url
    named = numbered.replace("127.0.0.1", "localhost")
    await page.do("addAuthenticator")
    await page.open(f"{numbered}/account")
    await keyboarder.sign_in()
    await page.arrive("**/account")
    await examine(page)
    assert "Add a passkey" not in await page.text()
    await page.tab_to(f"{named}/account")
    await page.press("Enter")
    await page.arrive(f"{named}/sign-in?**")
    await keyboarder.sign_in()
    await page.arrive(f"{named}/account")
    await page.tab_to("Name of a new passkey")
    await page.type("Laptop")
    await page.tab_to("Current password")
    await page.type(PASSWORD)
    await page.press("Enter")
    await page.do("page.waitForSelector", "text=The passkey was added")
    await page.tab_to("Sign out")
    await page.press("Enter")
    await page.arrive(f"{named}/sign-in")
    await page.tab_to("Sign in with a passkey")
    await page.press("Enter")
    await page.arrive(f"{named}/app/**/memory")
    await page.open(f"{named}/account")
    await examine(page)
    assert keyboarder.email in await page.text()


async def test_the_page_about_the_api_causes_no_complaints(reaching: DeployedGateway, page: Chromium) -> None:
    await page.open(f"{reaching.gateway.url}/v1/docs")
    await page.do("page.waitForSelector", "text=graphs")
    assert await page.do("page.title") == "Recollect API: memory and management"
    await page.press(*["PageDown"] * 5)
    await page.do("page.waitForLoadState", "networkidle")
    assert await page.faults() == []


async def test_faults_of_a_page_are_found(page: Chromium) -> None:
    """Otherwise none of the tests above could fail."""
    wrong = b"<p>none of it is named</p><input style=width:400px><script>1</script><script src=data:,></script>"
    policy = "Content-Security-Policy: script-src 'nonce-none'"
    async with web_server(plain(wrong, "Content-Type: text/html", policy)) as site:
        await page.open(f"http://127.0.0.1:{site.port}/")
    faults = await page.faults()
    assert any(fault.startswith("content security policy: script-src") for fault in faults), faults
    assert any(fault.startswith("console: ") for fault in faults), faults
    assert await page.narrow_width() > NARROW
    barriers = {barrier.split(":")[0] for barrier in await page.barriers()}
    assert {"document-title", "html-has-lang", "label"} <= barriers
    await page.do("page.evaluate", "setTimeout(() => { throw new Error('out of order') })")
    await page.do("page.evaluate", "new Promise(done => setTimeout(done, 1))")
    assert any("out of order" in fault for fault in await page.faults())
