"""The page at /, to which addresses of MCP lead whoever opens them in a browser; and passkeys on this machine."""

import re
from urllib.parse import urlsplit

import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.authenticator import Authenticator
from tests.support.gateway import RunningGateway, serving
from tests.support.people import PASSWORD, browser, joined, sign_in

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
CLIENTS = (
    "text/event-stream",
    "application/json, text/event-stream",
    "application/json",
    "*/*",
    "text/html, application/json",
    "text/*",
)
SECRET_TENANT = "nobodys-name"


def named(gateway: RunningGateway) -> RunningGateway:
    """The same gateway by the name of this machine."""
    return RunningGateway(f"http://localhost:{urlsplit(gateway.url).port}")


@pytest.mark.proves("security: home-page")
async def test_the_page_says_where_to_go_on_and_sets_no_cookie(gateway: RunningGateway) -> None:
    async with gateway.http() as http:
        answer = await http.get("/", headers={"Accept": BROWSER})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert f"claude mcp add --transport http recollect {gateway.url}/mcp<" in answer.text
        assert "set-cookie" not in answer.headers
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert "unsafe-inline" not in answer.headers["content-security-policy"]
        links = set(re.findall(r'(?:href|src)="([^"]+)"', answer.text))
        pages = {link for link in links if not link.startswith("/assets/")}
        assert pages == {"/", "/sign-in?next=/app", "/v1/docs", "/v1/openapi.json"}
        for link in links:
            assert (await http.get(link)).status_code == 200, link
        assert set(re.findall(r"<script[^>]*>(.*?)</script>", answer.text)) == {""}, "no script is in the page"
        assert "style=" not in answer.text
        assert (await http.head("/")).status_code == 200
        assert (await http.post("/")).status_code == 405


@pytest.mark.proves("security: home-page")
async def test_the_page_names_only_addresses_of_ours(settings: Settings, gateway: RunningGateway) -> None:
    async with named(gateway).http() as http:
        assert f">{named(gateway).url}/mcp<" in (await http.get("/")).text
    public = settings.model_copy(update={"public_url": "https://memory.example.com", "allowed_hosts": ["*"]})
    with serving(public) as behind_proxy:
        async with behind_proxy.http(Host="evil.example") as http:
            answer = await http.get("/")
    assert ">https://memory.example.com/mcp<" in answer.text
    assert "evil.example" not in answer.text


async def test_a_browser_at_an_address_of_mcp_is_led_there(gateway: RunningGateway, subtests: pytest.Subtests) -> None:
    async with gateway.http(Accept=BROWSER) as http:
        for path in ("/mcp", "/mcp/", "/mcp/x/all", f"/t/{SECRET_TENANT}/mcp", f"/t/{SECRET_TENANT}/mcp/x/memory"):
            with subtests.test(path):
                answer = await http.get(path)
                assert (answer.status_code, answer.headers["location"], answer.content) == (303, "/", b"")
                assert answer.headers["vary"] == "Accept"
        assert (await http.get("/mcp", follow_redirects=True)).status_code == 200
        assert (await http.get("/mcp/nothing")).status_code == 404


async def test_clients_get_what_they_got(gateway: RunningGateway, key: str, subtests: pytest.Subtests) -> None:
    """A GET of a client that listens is answered 405, by which it knows that there is no stream."""
    for accept in CLIENTS:
        with subtests.test(accept):
            async with gateway.http(Accept=accept) as http:
                answer = await http.get("/mcp")
            assert answer.status_code == 405
    with subtests.test("with a key"):
        async with gateway.http(key, Accept=BROWSER) as http:
            assert (await http.get("/mcp")).status_code == 405
    with subtests.test("other methods"):
        async with gateway.http(Accept=BROWSER) as http:
            assert (await http.post("/mcp", json={})).status_code == 401
            assert (await http.delete("/mcp")).status_code == 405


@pytest.fixture
def local(gateway: RunningGateway) -> RunningGateway:
    """The run's gateway as `make run` serves it: its public address is 127.0.0.1, and it also serves `localhost`."""
    assert urlsplit(gateway.url).hostname == "127.0.0.1"
    return gateway


async def test_passkeys_are_offered_where_the_machine_has_a_name(
    local: RunningGateway, databases: Databases, caller: Caller, settings: Settings
) -> None:
    pepper = settings.key_secret.get_secret_value().encode()
    person, place = await joined(databases, caller, Role.READER, pepper=pepper), named(local)
    async with browser(local) as http:
        assert "data-passkey" not in (await http.get("/sign-in")).text
        await sign_in(http, person.email)
        account = (await http.get("/account")).text
        assert "data-passkey" not in account
        assert f'href="{place.url}/account"' in account
    async with browser(place) as http:
        assert "data-passkey" in (await http.get("/sign-in")).text
        await sign_in(http, person.email)
        page = (await http.get("/account")).text
        assert "data-passkey" in page
        token = re.findall(r'name="form_token" value="(\w+)"', page)[0]
        options = (await http.post("/account/passkeys/options", data={"form_token": token})).json()
        assert options["rp"]["id"] == "localhost"
        _, credential = Authenticator(place.url).make(options)
        fields = {"form_token": token, "name": "Laptop", "password": PASSWORD, "credential": credential}
        added = await http.post("/account/passkeys", data=fields)
        assert (added.status_code, 'value="Laptop"' in added.text) == (200, True), added.text


@pytest.mark.proves("security: passkey-site")
async def test_the_host_header_chooses_no_site_where_the_address_is_public(settings: Settings) -> None:
    """A proxy may have set it: passkeys are those of the public address."""
    both = ["https://memory.example.org", "*"]
    public = settings.model_copy(update={"public_url": "https://memory.example.com", "allowed_hosts": both})
    with serving(public) as behind_proxy:
        async with behind_proxy.http(Host="memory.example.org") as http:
            page = await http.get("/sign-in")
            token = re.findall(r'name="form_token" value="(\w+)"', page.text)[0]
            cookie = page.headers["set-cookie"].partition(";")[0]
            answer = await http.post(
                "/passkeys/sign-in/options",
                data={"form_token": token},
                headers={"Cookie": cookie, "Origin": "https://memory.example.com"},
            )
    assert answer.status_code == 200, answer.text
    assert answer.json()["rpId"] == "memory.example.com"
    assert "data-passkey" in page.text
