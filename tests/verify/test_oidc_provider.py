"""npm's oidc-provider as the provider of a tenant: people sign in with it in Chromium, agents use its tokens."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from recollect.caller import Caller
from recollect_local.address import claimed_port
from tests.integration.gateway.test_management import done
from tests.support.dns_server import NameServer
from tests.support.gateway import answer, eventually, rpc_headers
from tests.verify.browser import Chromium, examine
from tests.verify.oidc_provider import PERSONS, SECRET, OidcProvider, signing_key
from tests.verify.processes import DeployedGateway

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
async def admin(reaching: DeployedGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with reaching.gateway.http(admin_key) as http:
        yield http


@pytest.fixture
def port() -> Iterator[int]:
    with claimed_port("127.0.0.1", 0) as port:
        yield port


@pytest.fixture
async def provider(admin: httpx2.AsyncClient, port: int, tmp_path: Path) -> OidcProvider:
    """The provider of the tenant, configured on both sides, and not running yet."""
    new = {"name": "Acme Login", "issuer": f"http://127.0.0.1:{port}", "client_id": PERSONS, "client_secret": SECRET}
    made = await done(admin, "POST", "/v1/identity-providers", **new)
    return OidcProvider(port, made["redirect_uri"], tmp_path / "provider.log")


@pytest.fixture
async def domain(admin: httpx2.AsyncClient, dns: NameServer) -> str:
    """A verified domain of the tenant: people with an address there join as readers."""
    claim = await done(admin, "POST", "/v1/email-domains", domain=f"{uuid4().hex}.example", role="reader")
    dns.records[claim["record_name"]] = [claim["record_value"]]
    assert (await done(admin, "POST", f"/v1/email-domains/{claim['id']}/verify"))["verified_at"]
    return str(claim["domain"])


async def sign_in(page: Chromium, gateway_url: str, provider: OidcProvider, email: str, organization: str) -> None:
    """Go from our sign-in page to the provider, through its pages, and back, with the keyboard."""
    await page.open(f"{gateway_url}/sign-in?organization={organization}&next=/account")
    await examine(page)
    await page.tab_to("Sign in by Acme Login")
    await page.press("Enter")
    await page.arrive(f"{provider.issuer}/interaction/**")
    await page.do("page.waitForSelector", "input[name=login]")
    await page.type(email)
    await page.press("Tab")
    await page.type("any password")
    await page.press("Enter")
    await page.do("page.waitForSelector", "text=Continue")
    await page.faults()  # Those are of the provider's own pages.
    await page.press("Enter")
    await page.arrive(f"{gateway_url}/**")


async def test_a_person_joins_by_the_provider_and_signs_in_again_after_its_key_changed(
    reaching: DeployedGateway,
    admin: httpx2.AsyncClient,
    caller: Caller,
    provider: OidcProvider,
    domain: str,
    page: Chromium,
) -> None:
    url, email = reaching.gateway.url, f"grace@{domain}"
    with provider.running(signing_key("first")):
        await sign_in(page, url, provider, email, caller.tenant)
        await examine(page)
        assert email in await page.text()
        (request,) = provider.logged("asked")
    assert (request["client_id"], request["code_challenge_method"]) == (PERSONS, "S256")
    assert all(len(request[name]) >= 32 for name in ("state", "nonce", "code_challenge"))
    (joined,) = (await done(admin, "GET", "/v1/members"))["items"]
    assert (joined["email"], joined["name"], joined["role"]) == (email, "Grace", "reader")

    with provider.running(signing_key("second")):

        async def comes_again() -> bool:
            """Not at once: for a key that it does not know, the gateway asks again every 30 seconds at most."""
            await page.do("context.clearCookies")
            await sign_in(page, url, provider, email, caller.tenant)
            await page.faults()  # That one is turned away, too, as long as the key is not known.
            return (await page.address()).endswith("/account")

        await eventually(comes_again)
    assert len((await done(admin, "GET", "/v1/members"))["items"]) == 1
    assert provider.logged("error") == []


async def test_access_tokens_are_valid_only_at_the_endpoint_that_they_name(
    reaching: DeployedGateway, admin: httpx2.AsyncClient, caller: Caller, provider: OidcProvider
) -> None:
    gateway, path = reaching.gateway, f"/t/{caller.tenant}/mcp"

    async def status(token: str) -> int:
        async with gateway.http(token, **rpc_headers()) as http:
            return (await http.post(path, json=LIST_TOOLS)).status_code

    with provider.running(signing_key("first")):
        early = await provider.access_token(gateway.url + path)
        assert await status(early) == 401, "nobody trusts the issuer yet"
        await done(admin, "POST", "/v1/trusted-issuers", name="Acme Tokens", issuer=provider.issuer)
        async with gateway.client(early, f"{path}/x/agent") as client:
            await answer(client, "remember", items=[{"text": "The depot in Hull closes at four."}])
            assert "Hull" in str(await answer(client, "recall", query="When does the depot close?"))
        for resource in (f"{gateway.url}/mcp", f"{gateway.url}/t/another/mcp", "https://elsewhere.example/mcp"):
            assert await status(await provider.access_token(resource)) == 401, resource
    with provider.running(signing_key("second")):
        later = await provider.access_token(gateway.url + path)

        async def accepted() -> bool:
            return await status(later) == 200

        await eventually(accepted, every=2)
        assert await status(early) == 401, "its key is not published any more"
    assert reaching.faults() == []
