"""Clients whose redirect addresses have a scheme of their own: registration, the consent page, and the way back."""

import re
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.gateway import RunningGateway, serving
from tests.support.oauth import CALLBACK, METADATA, HandClient, Visitor, client_document
from tests.support.people import browser, joined, sign_in
from tests.support.web_server import CertificateAuthority, trusted_authority

CURSOR = "cursor://anysphere.cursor-mcp/oauth/callback"
OF_CURSOR = [CURSOR, "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"]
"""What Cursor registers."""


@pytest.fixture
async def person(databases: Databases, caller: Caller, settings: Settings) -> Person:
    return await joined(databases, caller, Role.MEMBER, pepper=settings.key_secret.get_secret_value().encode())


@pytest.fixture
async def visitor(gateway: RunningGateway, person: Person) -> AsyncIterator[Visitor]:
    async with browser(gateway) as http:
        yield Visitor(http, person.email)


async def test_addresses_of_programs_are_registered(gateway: RunningGateway, subtests: pytest.Subtests) -> None:
    async with gateway.http() as http:
        for uris in ([CURSOR], OF_CURSOR, ["com.example.app:/oauth"], ["windsurf://x/cb", CALLBACK]):
            with subtests.test(str(uris)):
                answer = await http.post("/oauth/register", json=METADATA | {"redirect_uris": uris})
                assert (answer.status_code, answer.json().get("redirect_uris")) == (201, uris)
        refused = await http.post("/oauth/register", json=METADATA | {"redirect_uris": [CURSOR, "javascript:x"]})
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_redirect_uri")
        assert "redirect_uris.1" in refused.json()["error_description"]


@pytest.mark.proves("security: private-use-schemes")
async def test_the_page_tells_that_it_leads_to_a_program_on_the_device(
    gateway: RunningGateway, visitor: Visitor
) -> None:
    client = await HandClient.register(gateway, visitor.http, redirect_uris=OF_CURSOR)
    await visitor.visit(client.request())
    assert "cursor://anysphere.cursor-mcp</strong>" in visitor.shown
    assert "leads to a program on this device" in visitor.shown
    await visitor.visit(client.request(redirect_uri=OF_CURSOR[1]))
    assert "this device" not in visitor.shown


async def test_the_policy_of_the_page_lets_the_form_lead_to_the_program(
    gateway: RunningGateway, visitor: Visitor
) -> None:
    """Browsers that hold redirects after a form to `form-action` would stop at the consent page otherwise."""
    client = await HandClient.register(gateway, visitor.http, redirect_uris=["com.example.app:/oauth", CURSOR])
    await visitor.visit(client.request())
    for uri, scheme in (("com.example.app:/oauth", "com.example.app:"), (CURSOR, "cursor:")):
        answer = await visitor.http.get(client.request(redirect_uri=uri))
        assert f"form-action 'self' https: {scheme};" in answer.headers["content-security-policy"]


async def test_a_code_comes_to_exactly_the_named_address_and_is_redeemed(
    gateway: RunningGateway, visitor: Visitor, subtests: pytest.Subtests
) -> None:
    for uri in (CURSOR, "com.example.app:/oauth", "goose:///callback", "vscode://x/cb?windowId=1"):
        with subtests.test(uri):
            client = await HandClient.register(gateway, visitor.http, redirect_uris=[uri])
            assert (await client.tokens(visitor))["access_token"]
            assert visitor.landed.startswith(f"{uri}{'&' if '?' in uri else '?'}code=rcl_code_")
    client.redirect_uri = "vscode://x/cb"
    assert (await visitor.http.get(client.request())).status_code == 400, "another address of the same program"


@pytest.mark.proves("security: private-use-schemes")
async def test_without_pkce_a_program_gets_no_code(gateway: RunningGateway, visitor: Visitor) -> None:
    """Any program can claim the scheme of another: only the one that made the challenge can use the code."""
    client = await HandClient.register(gateway, visitor.http, redirect_uris=[CURSOR])
    await sign_in(visitor.http, visitor.email)
    answer = await visitor.http.get(client.request(code_challenge=None, code_challenge_method=None))
    (link,) = re.findall(r'<a href="([^"]*)" rel="noreferrer">', answer.text)
    assert link.startswith(f"{CURSOR}?error=invalid_request")
    assert "Go back to cursor://anysphere.cursor-mcp" in answer.text
    code = await client.code(visitor)
    assert (await client.redeem(code, code_verifier="x" * 43)).json()["error"] == "invalid_grant"


@pytest.fixture
def authority(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> CertificateAuthority:
    """An authority that is trusted by gateways that start from now on."""
    return trusted_authority(tmp_path_factory.mktemp("authority"), monkeypatch)


@pytest.fixture
def near_gateway(settings: Settings, authority: CertificateAuthority) -> Iterator[RunningGateway]:
    """A gateway that may read documents on this machine."""
    with serving(settings.model_copy(update={"outbound_networks": ["127.0.0.0/8", "::1/128"]})) as gateway:
        yield gateway


async def test_a_clients_document_may_name_addresses_of_programs(
    near_gateway: RunningGateway, person: Person, authority: CertificateAuthority
) -> None:
    async with browser(near_gateway) as http:
        visitor = Visitor(http, person.email)
        async with client_document(authority, redirect_uris=OF_CURSOR) as (client_id, _):
            client = HandClient(near_gateway, http, client_id, redirect_uri=CURSOR)
            assert (await client.tokens(visitor))["access_token"]
        async with client_document(authority, "/other.json", redirect_uris=["data:text/html,x"]) as (client_id, _):
            client = HandClient(near_gateway, http, client_id, redirect_uri="data:text/html,x")
            refused: httpx2.Response = await http.get(client.request())
            assert (refused.status_code, "description of the client is not valid" in refused.text) == (400, True)
