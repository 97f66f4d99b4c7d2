"""What an attacker, a hurry or a fault elsewhere does to the pages of operators, and to the operator API."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from secrets import token_hex

import asyncpg
import httpx2
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from recollect.accounts.identity.model import generate_secret
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.tenants.model import Tenant
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_operator.app import create_app
from recollect_operator.database import CONNECTIONS
from recollect_operator.server import served_settings
from tests.integration.operator.test_operator_pages import SESSION, sign_in
from tests.support.cells import OTHER
from tests.support.console import PageReader
from tests.support.gateway import RunningGateway, eventually, serving
from tests.support.timeouts import MAX_WAIT_SECONDS


@pytest.fixture(scope="module")
def operator_settings(operator_settings: Settings) -> Settings:
    """Settings by which nobody waits long for a lock."""
    return operator_settings.model_copy(update={"lock_timeout_seconds": 0.2})


@pytest.fixture(scope="module")
def operator_api(operator_settings: Settings) -> Iterator[RunningGateway]:
    """The operator API with these settings."""
    with serving(operator_settings, create_app(operator_settings)) as api:
        yield api


@pytest.fixture
async def reader(operator_api: RunningGateway, operator_key: str) -> AsyncIterator[PageReader]:
    """A browser of an operator who is signed in."""
    async with operator_api.http() as http:
        assert (await sign_in(http, operator_key)).status_code == 303
        yield PageReader(http)


class TestErrorsOfTheDatabase:
    async def test_a_tenant_that_is_in_use_is_busy(
        self, reader: PageReader, operating: httpx2.AsyncClient, owner: asyncpg.Connection, tenant: Tenant
    ) -> None:
        page = f"/operator/tenants/{tenant.slug}/suspend"
        form = await reader.open_address(page)
        async with owner.transaction():
            await owner.execute("SELECT FROM tenants WHERE id = $1 FOR UPDATE", tenant.id)
            refused = await reader.send(form, "suspend", status=503, typed=tenant.slug)
            answer = await operating.put(f"/tenants/{tenant.slug}/suspension", json={"kind": "whole"})
        assert "Try again." in refused.text
        assert (answer.status_code, answer.json()["code"]) == (503, "busy")

    async def test_a_text_that_cannot_be_stored_is_refused(
        self, reader: PageReader, operating: httpx2.AsyncClient
    ) -> None:
        assert "U+0000" in (await reader.open_address("/operator/log?subject=%00", status=400)).text
        assert (await operating.get("/log?subject=%00")).json()["code"] == "invalid_input"
        assert (await operating.get("/receipts?slug=%00")).json()["code"] == "invalid_input"


async def test_the_access_log_says_who_used_what_and_no_secret(operator_settings: Settings, operator: Operator) -> None:
    logging = operator_settings.model_copy(update={"access_log": True})
    key, secret = await operator_keys.create_key(
        operator, "test", lifetime=timedelta(hours=1), pepper=operator_settings.pepper
    )

    async def are_written() -> bool:
        return len([line for line in lines if line["event"] == "request"]) == 4

    with capture_logs() as lines, serving(logging, create_app(logging)) as api:
        async with api.http() as http, api.http(secret) as with_key:
            await sign_in(http, secret)
            session = http.cookies[SESSION]
            await http.get("/operator/tenants/no-such-tenant")
            await with_key.get("/operator/v1/plans")
            await eventually(are_written)
    credentials = {line["route"]: line.get("credential") for line in lines if line["event"] == "request"}
    holder = f"operator_key:{key.id}"
    used = {"/operator/sign-in": None, "/operator/tenants/{slug}": holder, "/operator/v1/plans": holder}
    assert credentials == used
    assert [text for text in (secret, session, "no-such-tenant") if text in str(lines)] == []


class TestPlans:
    async def test_a_form_made_before_somebody_changed_the_plan_is_refused(self, reader: PageReader) -> None:
        name = f"plan-{token_hex(4)}"
        await reader.send(await reader.open_address("/operator/new-plan"), "new-plan", name=name, graphs="1")
        first, second = [await reader.open_address(f"/operator/plans/{name}") for _ in range(2)]
        await reader.send(first, name, graphs="5")
        mistyped = await reader.send(second, name, status=400, observations="many")
        refused = await reader.send(mistyped, name, status=409, observations="7")
        assert "Somebody changed this" in refused.text
        assert (refused.form(name).fields["graphs"], "Now: 5" in refused.text) == ("1", True)
        kept = (await reader.open_address(f"/operator/plans/{name}")).form(name).fields
        assert (kept["graphs"], kept["observations"]) == ("5", "")
        await reader.send(refused, name, graphs="5")
        changed = (await reader.open_address(f"/operator/plans/{name}")).form(name).fields
        assert (changed["graphs"], changed["observations"]) == ("5", "7")

    async def test_no_page_takes_a_parameter_that_it_does_not_have(
        self, reader: PageReader, owner: asyncpg.Connection, subtests: pytest.Subtests
    ) -> None:
        for address in ("/operator/plans?cell=b", "/operator/tenants?cell=b", "/operator/log?subjects=tenant:a"):
            with subtests.test(address):
                refused = await reader.open_address(address, status=400)
                assert "no such query parameter" in refused.text
        name = f"plan-{token_hex(4)}"
        form = await reader.open_address("/operator/new-plan")
        form.form("new-plan").action += "?cell=home"
        await reader.send(form, "new-plan", status=400, name=name)
        assert await owner.fetchval("SELECT count(*) FROM plans WHERE name = $1", name) == 0


class TestTextsOfTheGateway:
    """The gateway's role can store more than the gateway does."""

    async def test_a_text_that_is_no_code_of_an_error_is_not_shown(
        self, reader: PageReader, owner: asyncpg.Connection, tenant: Tenant
    ) -> None:
        kind = f"stored_{token_hex(4).translate(str.maketrans('0123456789', 'ghijklmnop'))}"
        secret = "what a tenant stored " * 1_000
        await owner.executemany(
            """INSERT INTO jobs (tenant_id, id, kind, status, error_code, created_by, finished_at)
            VALUES ($1, gen_random_uuid(), $2, 'failed', $3, 'test', now())""",
            [(tenant.id, kind, code) for code in (secret, "code_1", "code\n", "")],
        )
        page = await reader.open_address("/operator/health")
        assert secret[:20] not in page.text
        rows = [row.text for row in page.all("tr") if kind.replace("_", " ") in row.text]
        assert [("code_1" in row, "–3" in row) for row in rows] == [(False, True), (True, False)]

    async def test_the_name_of_a_tenant_is_short(self, owner: asyncpg.Connection, tenant: Tenant) -> None:
        for name in ("", "x" * 201):
            with pytest.raises(asyncpg.CheckViolationError):
                await owner.execute("UPDATE tenants SET name = $2 WHERE id = $1", tenant.id, name)
        await owner.execute("UPDATE tenants SET name = $2 WHERE id = $1", tenant.id, "ä" * 200)


class TestSigningIn:
    async def test_a_page_with_a_long_address_leads_to_the_sign_in_page(self, operator_api: RunningGateway) -> None:
        async with operator_api.http() as http:
            sent_on = await http.get("/operator/log", params={"subject": "漢" * 299})
            page = await PageReader(http).open_address(sent_on.headers["location"])
        assert page.form("sign-in").fields["next"] == "/operator/tenants"

    async def test_signing_in_again_ends_the_session_that_the_browser_had(
        self, reader: PageReader, operator_api: RunningGateway, operator_key: str
    ) -> None:
        earlier = reader.http.cookies[SESSION]
        assert (await sign_in(reader.http, operator_key)).status_code == 303
        async with operator_api.http(Cookie=f"{SESSION}={earlier}") as stolen:
            assert (await stolen.get("/operator/plans")).status_code == 303
        await reader.open_address("/operator/plans")

    async def test_a_new_session_holds_although_its_address_has_guessed_keys(
        self, operator_settings: Settings, operator: Operator
    ) -> None:
        secret = SecretStr(token_hex(32))  # Other tests guess at the same address.
        few = {"failed_keys_per_minute": 1, "key_secret": secret, "rate_limit_wait_seconds": MAX_WAIT_SECONDS}
        settings = operator_settings.model_copy(update=few)
        lifetime = timedelta(hours=1)
        _, key = await operator_keys.create_key(operator, "test", lifetime=lifetime, pepper=settings.pepper)
        with serving(settings, create_app(settings)) as api:
            async with api.http() as http, api.http() as guessing:
                assert (await sign_in(http, key)).status_code == 303
                answers = [(await sign_in(guessing, generate_secret("operator"))).status_code for _ in range(2)]
                assert answers == [401, 429]
                await PageReader(http).open_address("/operator/plans")

    async def test_a_session_outlives_its_secret_and_its_cookie_goes_by_https(
        self, operator_settings: Settings, operator_api: RunningGateway, operator_key: str
    ) -> None:
        """Behind a proxy with TLS, with a new secret beside which that of the session is accepted."""
        public = {"operator_public_url": "https://operators.example", "key_secret": SecretStr(token_hex(32))}
        secrets = {"accepted_key_secrets": [operator_settings.key_secret]}
        settings = served_settings(operator_settings.model_copy(update=public | secrets))
        async with operator_api.http() as http:
            await sign_in(http, operator_key)
            begun = http.cookies[SESSION]
        with serving(settings, create_app(settings)) as api:
            async with api.http(Host="operators.example", Cookie=f"__Host-{SESSION}={begun}") as http:
                page = await PageReader(http).open_address("/operator/plans")
            async with api.http(Host="operators.example", Cookie=f"{SESSION}={begun}") as http:
                assert (await http.get("/operator/plans")).status_code == 303, "a cookie that http may have set"
        [cookie] = page.headers.get_list("set-cookie")
        assert cookie.startswith("__Host-recollect_form=")
        assert {"Secure", "HttpOnly", "Path=/"} <= set(cookie.split("; "))
        assert "strict-transport-security" in page.headers


async def test_a_suspension_of_no_kind_is_refused(reader: PageReader, tenant: Tenant) -> None:
    form = await reader.open_address(f"/operator/tenants/{tenant.slug}/suspend")
    refused = await reader.send(form, "suspend", status=400, typed=tenant.slug, kind="readonly")
    assert "Choose what to refuse" in refused.text


async def test_many_plans_are_given_at_once_in_another_cell(celled: Settings, operator_key: str) -> None:
    slug = f"many-{token_hex(4)}"
    with serving(celled, create_app(celled)) as api:
        async with api.http(operator_key) as http:
            made = await http.post("/operator/v1/tenants", json={"slug": slug, "cell": OTHER})
            assert made.status_code == 201
            address = f"/operator/v1/tenants/{slug}/plan"
            calls = [http.put(address, json={"plan": "unlimited"}) for _ in range(2 * CONNECTIONS)]
            answers = [answer.status_code for answer in await asyncio.gather(*calls)]
    assert answers == [200] * len(answers)
