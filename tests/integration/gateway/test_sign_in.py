"""Pages for people over real HTTP: sign-in, joining, the account, and forged forms."""

import re
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members import service as members
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway, serving
from tests.support.people import PASSWORD, browser, joined, new_email, send_form, sign_in, submit
from tests.support.timeouts import MAX_WAIT_SECONDS


@pytest.fixture
async def http(gateway: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    async with browser(gateway) as client:
        yield client


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def other_caller(new_tenant: NewTenant) -> Caller:
    """The operator of another tenant."""
    return operator_caller(await new_tenant())


async def invitation_link(db: Database, caller: Caller, email: str, pepper: bytes, role: Role = Role.MEMBER) -> str:
    async with db.transaction(caller) as tx:
        return f"/join/{(await members.invite(tx, email, role, pepper=pepper)).secret}"


class TestSignIn:
    async def test_a_sign_in_leads_to_the_requested_page(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        asked = await http.get("/account")
        assert (asked.status_code, asked.headers["location"]) == (303, "/sign-in?next=%2Faccount")
        answer = await submit(http, asked.headers["location"], "/sign-in", email=person.email, password=PASSWORD)
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")
        account = await http.get("/account")
        assert account.status_code == 200
        assert f"/t/{caller.tenant}/mcp" in account.text
        assert (await http.get("/sign-in?next=/account")).headers["location"] == "/account"

    async def test_a_sign_in_that_comes_from_nowhere_leads_to_the_console(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        person = await joined(databases, caller, Role.MEMBER, pepper=pepper)
        answer = await sign_in(http, person.email)
        assert (answer.status_code, answer.headers["location"]) == (303, "/app")
        landed = await http.get("/app", follow_redirects=True)
        assert landed.url.path == f"/app/{caller.tenant}/default/memory"
        assert 'href="/account"' in landed.text, "one's own account is a link away"
        assert (await http.get("/sign-in")).headers["location"] == "/app"

    @pytest.mark.proves("security: forms")
    @pytest.mark.parametrize(
        "place",
        [
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "javascript:alert(1)",
            "/\t/evil.example",
            "a" * 9999,
        ],
    )
    async def test_a_sign_in_does_not_lead_to_another_site(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes, place: str
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        shown = await http.get("/sign-in", params={"next": place})
        answer = await send_form(http, shown.text, "/sign-in", email=person.email, password=PASSWORD)
        assert (answer.status_code, answer.headers["location"]) == (303, "/app")
        again = await send_form(http, shown.text, "/sign-in", email=person.email, password=PASSWORD, next=place)
        assert again.headers["location"] == "/app"

    @pytest.mark.proves("security: refused-sign-ins")
    async def test_a_wrong_password_and_an_unknown_address_look_alike(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        wrong = await sign_in(http, person.email, "wrong")
        unknown = await sign_in(http, "nobody@example.com")
        assert (wrong.status_code, unknown.status_code) == (401, 401)
        assert wrong.text.replace(person.email, "") == unknown.text.replace("nobody@example.com", "")
        assert "recollect_session" not in http.cookies

    @pytest.mark.proves("security: sessions")
    async def test_the_cookie_is_hidden_from_scripts_and_other_sites(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        set_cookie = (await sign_in(http, person.email)).headers["set-cookie"]
        assert "HttpOnly" in set_cookie
        assert "samesite=lax" in set_cookie.lower()
        assert "Domain" not in set_cookie

    @pytest.mark.proves("security: sessions")
    async def test_signing_out_ends_the_session_everywhere(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        await sign_in(http, person.email)
        stolen = http.cookies["recollect_session"]
        assert (await submit(http, "/account", "/sign-out")).headers["location"] == "/sign-in"
        http.cookies.set("recollect_session", stolen)
        assert (await http.get("/account")).status_code == 303

    async def test_input_is_escaped(self, http: httpx2.AsyncClient) -> None:
        answer = await submit(http, "/sign-in", email='"><script>alert(1)</script>', password="x")
        assert "<script>" not in answer.text


class TestForms:
    @pytest.mark.proves("security: forms")
    @pytest.mark.parametrize("origin", ["https://evil.example", "null"])
    async def test_another_site_cannot_send_forms(self, http: httpx2.AsyncClient, origin: str) -> None:
        shown = await http.get("/sign-in")
        token = re.findall(r'name="form_token" value="(\w+)"', shown.text)[0]
        answer = await http.post(
            "/sign-in", data={"form_token": token, "email": "a@b.example"}, headers={"Origin": origin}
        )
        assert answer.status_code == 403

    @pytest.mark.proves("security: forms")
    async def test_a_form_token_belongs_to_its_browser(self, http: httpx2.AsyncClient, gateway: RunningGateway) -> None:
        async with browser(gateway) as other:
            foreign = await other.get("/sign-in")
        await http.get("/sign-in")
        assert (await send_form(http, foreign.text, "/sign-in", email="a@b.example", password="x")).status_code == 403
        assert (await http.post("/sign-in", data={"email": "a@b.example"})).status_code == 403

    @pytest.mark.parametrize("value", ["%ff", "%ED%A0%80", "a%0Ab", "a b", "x" * 101, ""])
    async def test_an_invalid_form_cookie_is_replaced(self, http: httpx2.AsyncClient, value: str) -> None:
        """It was repeated in the page's answer, which failed if no header can contain it."""
        shown = await http.get("/sign-in", headers={"Cookie": f"recollect_form={value}"})
        assert shown.status_code == 200
        assert re.fullmatch(r"[\w-]{43}", http.cookies["recollect_form"])

    async def test_only_forms_of_limited_size_are_read(self, http: httpx2.AsyncClient) -> None:
        await http.get("/sign-in")
        assert (await http.post("/sign-in", json={"email": "a"})).status_code == 400
        long = await http.post("/sign-in", data={"email": "a" * 40_000})
        many = await http.post("/sign-in", data={f"f{i}": "" for i in range(1_000)})
        assert (long.status_code, many.status_code) == (400, 400)

    async def test_assets_of_a_page_exist(self, http: httpx2.AsyncClient) -> None:
        """So does an icon: a browser without one requests another address, and complains."""
        at_name = {"Host": f"localhost:{http.base_url.port}"}  # Passkeys, and their script, need a name.
        named = re.findall(r'(?:src|href)="(/assets/[^"]+)"', (await http.get("/sign-in", headers=at_name)).text)
        answers = {path.partition("?")[0]: await http.get(path) for path in named}
        assert {path: answer.headers["content-type"].partition(";")[0] for path, answer in answers.items()} == {
            "/assets/icon.svg": "image/svg+xml",
            "/assets/icons.svg": "image/svg+xml",
            "/assets/tokens.css": "text/css",
            "/assets/components.css": "text/css",
            "/assets/recollect.css": "text/css",
            "/assets/elements.js": "text/javascript",
            "/assets/passkeys.js": "text/javascript",
        }
        assert {answer.headers["cache-control"] for answer in answers.values()} == {
            "public, max-age=31536000, immutable"
        }

    async def test_pages_cannot_be_framed_scripted_or_cached(self, http: httpx2.AsyncClient) -> None:
        headers = (await http.get("/sign-in")).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"


class TestJoining:
    async def test_a_new_person_joins_and_is_signed_in(
        self, http: httpx2.AsyncClient, db: Database, caller: Caller, pepper: bytes
    ) -> None:
        email = new_email()
        link = await invitation_link(db, caller, email, pepper)
        weak = await submit(http, link, name="Grace", password="password1234")
        assert weak.status_code == 400
        assert "easy to guess" in weak.text
        answer = await submit(http, link, name="Grace", password=PASSWORD)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/app/{caller.tenant}")
        assert caller.tenant in (await http.get("/account")).text
        assert (await http.get(link)).status_code == 404

    async def test_a_known_person_signs_in_before_joining(
        self,
        http: httpx2.AsyncClient,
        db: Database,
        databases: Databases,
        caller: Caller,
        other_caller: Caller,
        pepper: bytes,
    ) -> None:
        person = await joined(databases, other_caller, Role.READER, pepper=pepper)
        link = await invitation_link(db, caller, person.email, pepper)
        (to_sign_in,) = re.findall(r'href="(/sign-in\?next=[^"]+)"', (await http.get(link)).text)
        await submit(http, to_sign_in, "/sign-in", email=person.email, password=PASSWORD)
        assert (await submit(http, link)).headers["location"] == f"/app/{caller.tenant}"
        account = (await http.get("/account")).text
        assert f"/t/{caller.tenant}/mcp" in account
        assert f"/t/{other_caller.tenant}/mcp" in account

    async def test_another_person_cannot_join(
        self,
        http: httpx2.AsyncClient,
        db: Database,
        databases: Databases,
        caller: Caller,
        other_caller: Caller,
        pepper: bytes,
    ) -> None:
        person = await joined(databases, other_caller, Role.READER, pepper=pepper)
        link = await invitation_link(db, caller, new_email(), pepper)
        await sign_in(http, person.email)
        answer = await submit(http, link)
        assert answer.status_code == 403
        assert f"/t/{caller.tenant}/mcp" not in (await http.get("/account")).text


@pytest.fixture(scope="module")
def few(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway that allows few attempts of an address, which `X-Forwarded-For` says."""
    update = {
        "sign_ins_per_minute": 3,
        "trusted_proxies": ["127.0.0.0/8"],
        "rate_limit_wait_seconds": MAX_WAIT_SECONDS,
    }
    with serving(settings.model_copy(update=update)) as gateway:
        yield gateway


class TestAttempts:
    """With a limit that a test can reach, on a gateway of their own, each from addresses of its own."""

    async def test_attempts_of_an_address_are_limited(self, few: RunningGateway) -> None:
        async with few.http(**{"X-Forwarded-For": "198.51.100.7"}) as http:
            statuses = [(await sign_in(http, new_email())).status_code for _ in range(5)]
            assert statuses == [401, 401, 401, 429, 429]
            reports = [(await http.post("/v1/keys/report", json={"key": "x"})).status_code for _ in range(4)]
            assert reports == [204, 204, 204, 429]

    @pytest.mark.proves("security: refused-sign-ins")
    async def test_attempts_on_an_account_are_limited_from_all_addresses_together(
        self, few: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        statuses = []
        for site in range(5):
            async with few.http(**{"X-Forwarded-For": f"203.0.113.{site}"}) as http:
                statuses.append((await sign_in(http, person.email.upper(), "wrong")).status_code)
        assert statuses == [401, 401, 401, 429, 429]

    @pytest.mark.proves("security: known-browsers")
    async def test_attempts_of_others_do_not_lock_out_a_known_browser(
        self, few: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        """A browser in which the person signed in before, or is signed in, has attempts of its own."""
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        async with few.http(**{"X-Forwarded-For": "198.51.100.31"}) as known:
            assert (await sign_in(known, person.email)).status_code == 303
            async with few.http(**{"X-Forwarded-For": "203.0.113.31"}) as stranger:
                statuses = [(await sign_in(stranger, person.email, "wrong")).status_code for _ in range(3)]
            assert statuses == [401, 401, 429]
            changed = await submit(known, "/account", "/account/password", old_password="wrong", password="x")
            assert changed.status_code == 400
            await submit(known, "/account", "/sign-out")
            assert (await sign_in(known, f" {person.email.upper()}")).status_code == 303

    @pytest.mark.proves("security: known-browsers")
    async def test_attempts_of_a_known_browser_are_limited_to_its_account(
        self, few: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        """It has no additional attempts for another account."""
        own, others = [await joined(databases, caller, Role.READER, pepper=pepper) for _ in range(2)]
        async with few.http(**{"X-Forwarded-For": "203.0.113.100"}) as http:

            async def try_from(site: int, email: str) -> int:
                http.headers["X-Forwarded-For"] = f"203.0.113.{site}"
                return (await sign_in(http, email, "wrong")).status_code

            await sign_in(http, own.email)
            await submit(http, "/account", "/sign-out")
            assert [await try_from(site, own.email) for site in range(101, 105)] == [401, 401, 401, 429]
            assert [await try_from(site, others.email) for site in range(111, 115)] == [401, 401, 401, 429]
            async with few.http(**{"X-Forwarded-For": "198.51.100.41"}) as unknown:
                assert (await sign_in(unknown, others.email)).status_code == 429

    async def test_a_known_browser_is_not_known_to_an_account_with_a_similar_address(
        self, few: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        """Whoever may choose an address could put parts of another one into the cookie."""
        victim = await joined(databases, caller, Role.READER, pepper=pepper)
        other = await joined(databases, caller, Role.READER, pepper=pepper, email=f"x:{victim.email}")
        async with few.http(**{"X-Forwarded-For": "203.0.113.61"}) as http:
            statuses = [(await sign_in(http, victim.email, "wrong")).status_code for _ in range(3)]
            assert statuses == [401, 401, 401]
            http.headers["X-Forwarded-For"] = "203.0.113.62"
            assert (await sign_in(http, other.email)).status_code == 303
            number, _, proof = http.cookies["recollect_known"].partition(".")
            await submit(http, "/account", "/sign-out")
            for known in (f"{number}:x.{proof}", f"{number}.{proof}", f"{number}x:.{proof}"):
                http.cookies.set("recollect_known", known)
                assert (await sign_in(http, victim.email, "wrong")).status_code == 429

    async def test_password_attempts_of_a_signed_in_person_are_limited(
        self, few: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        async with few.http(**{"X-Forwarded-For": "198.51.100.51"}) as http:
            await sign_in(http, person.email)
            told = {"old_password": "wrong", "password": "x"}
            answers = [await submit(http, "/account", "/account/password", **told) for _ in range(4)]
            assert [answer.status_code for answer in answers] == [400, 400, 400, 429]

    async def test_password_attempts_for_deleting_the_account_are_limited(
        self, few: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        person = await joined(databases, caller, Role.READER, pepper=pepper)
        async with few.http(**{"X-Forwarded-For": "203.0.113.77"}) as http:
            await sign_in(http, person.email)
            tried = [await submit(http, "/account", "/account/delete", password="wrong") for _ in range(4)]
        assert [answer.status_code for answer in tried] == [400, 400, 400, 429]

    async def test_invented_sessions_are_throttled(self, settings: Settings) -> None:
        """Without a database lookup for each, as with keys."""
        update = {
            "failed_keys_per_minute": 3,
            "trusted_proxies": ["127.0.0.0/8"],
            "rate_limit_wait_seconds": MAX_WAIT_SECONDS,
        }
        with serving(settings.model_copy(update=update)) as gateway:
            async with gateway.http(**{"X-Forwarded-For": "198.51.100.8", "X-Recollect-Tenant": "acme"}) as http:
                tried = [{"Cookie": f"recollect_session=made-up-{number}"} for number in range(5)]
                statuses = [(await http.get("/v1/graphs", headers=cookie)).status_code for cookie in tried]
                assert statuses == [401, 401, 401, 429, 429]
                assert (await http.get("/account", headers=tried[-1])).status_code == 429
