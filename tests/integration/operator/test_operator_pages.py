"""The pages of operators: who may see them, and what they show and change."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from secrets import token_hex
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect import __version__
from recollect.accounts.identity.model import generate_secret
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.plans import service as plans
from recollect.accounts.plans.model import Plan
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_operator.app import create_app
from recollect_operator.pages import log
from recollect_operator.pages import tenants as tenant_pages
from tests.support.clocks import clock_ahead
from tests.support.console import Page, PageReader
from tests.support.gateway import RunningGateway, eventually

HOSTILE = '<script>document.title="gone"</script><img src=x onerror=alert(1)>'
SESSION = "recollect_operator_session"
SLUG = "acme"
WAITS = """SELECT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
    )"""
"""Whether a session waits for a lock of another."""


async def sign_in(http: httpx2.AsyncClient, key: str) -> httpx2.Response:
    """Sign in by the form, and return the answer."""
    page = Page(await http.get("/operator/sign-in"))
    origin = {"Origin": str(http.base_url).rstrip("/")}
    return await http.post("/operator/sign-in", data=page.form("sign-in").fields | {"key": key}, headers=origin)


@pytest.fixture
async def http(operator_api: RunningGateway) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser without a session."""
    async with operator_api.http() as http:
        yield http


@pytest.fixture
async def reader(http: httpx2.AsyncClient, operator_key: str) -> PageReader:
    """A browser of an operator who is signed in."""
    answer = await sign_in(http, operator_key)
    assert (answer.status_code, answer.headers["location"]) == (303, "/operator/tenants")
    return PageReader(http)


def page_routes(settings: Settings) -> Iterator[tuple[str, str]]:
    """Method and address of every page that needs a session; names of the path are filled in."""
    for route in create_app(settings).routes:
        if not route.path.startswith("/operator/") or route.path.startswith(("/operator/v1", "/operator/sign-")):
            continue
        for handler in getattr(route, "route_handlers", ()):
            for method in sorted(handler.http_methods - {"OPTIONS", "HEAD"}):
                yield method, re.sub(r"{\w+:str}", SLUG, route.path)


class TestSigningIn:
    async def test_the_session_is_short_and_for_our_own_pages_alone(
        self, http: httpx2.AsyncClient, operator_key: str, owner: asyncpg.Connection
    ) -> None:
        answer = await sign_in(http, operator_key)
        [cookie] = [value for value in answer.headers.get_list("set-cookie") if value.startswith(SESSION)]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert 3_500 < int(cookie.partition("Max-Age=")[2].partition(";")[0]) <= 3_600
        secret = http.cookies[SESSION]
        stored = await owner.fetchval("SELECT array_agg(s::text) FROM operator_sessions s")
        assert not [row for row in stored if secret in row or secret.encode().hex() in row], "its keyed hash alone"
        shown = await PageReader(http).open_address("/operator/tenants")
        assert "test" in [element.text for element in shown.all("bdi")], "the name of the key"

    async def test_a_clock_that_is_ahead_ends_no_session(self, http: httpx2.AsyncClient, operator_key: str) -> None:
        with clock_ahead(timedelta(hours=2)):
            await sign_in(http, operator_key)
        await PageReader(http).open_address("/operator/tenants")

    async def test_signing_out_ends_the_session_everywhere(
        self, reader: PageReader, operator_api: RunningGateway
    ) -> None:
        secret = reader.http.cookies[SESSION]
        shown = await reader.open_address("/operator/tenants")
        assert (await reader.send(shown, "sign-out")).all("h1")[0].text == "Sign in as an operator"
        assert SESSION not in reader.http.cookies
        async with operator_api.http(Cookie=f"{SESSION}={secret}") as stolen:
            assert (await stolen.get("/operator/tenants")).headers["location"].startswith("/operator/sign-in")

    async def test_no_other_credential_signs_in(
        self,
        http: httpx2.AsyncClient,
        operator: Operator,
        settings: Settings,
        admin_key: str,
        subtests: pytest.Subtests,
    ) -> None:
        key, revoked = await operator_keys.create_key(
            operator, "revoked", lifetime=timedelta(hours=1), pepper=settings.pepper
        )
        await operator_keys.revoke_key(operator, key.id)
        for name, secret in {
            "nothing": "",
            "made up": generate_secret("operator"),
            "revoked": revoked,
            "of a tenant": admin_key,
            "markup": HOSTILE[:90],
        }.items():
            with subtests.test(name):
                answer = await sign_in(http, secret)
                page = Page(answer)
                assert answer.status_code == 401
                assert "This key is not valid." in page.text
                assert page.form("sign-in").fields["key"] == "", "what was typed is not shown again"
        assert SESSION not in http.cookies

    async def test_a_session_ends_with_its_time_and_with_its_key(
        self, reader: PageReader, operator: Operator, owner: asyncpg.Connection, settings: Settings
    ) -> None:
        await reader.open_address("/operator/plans")
        key, secret = await operator_keys.create_key(
            operator, "ending", lifetime=timedelta(hours=1), pepper=settings.pepper
        )
        for end in (
            "UPDATE operator_sessions SET expires_at = now() WHERE key_id = $1",
            "UPDATE operator_keys SET revoked_at = now() WHERE id = $1",
        ):
            reader.http.cookies.clear()
            await sign_in(reader.http, secret)
            await reader.open_address("/operator/plans")
            await owner.execute(end, key.id)
            answer = await reader.http.get("/operator/plans")
            assert answer.headers["location"] == "/operator/sign-in?next=%2Foperator%2Fplans"

    async def test_a_key_has_a_few_sessions(
        self, operator: Operator, owner: asyncpg.Connection, settings: Settings
    ) -> None:
        pepper = settings.pepper
        key, _ = await operator_keys.create_key(operator, "many", lifetime=timedelta(hours=1), pepper=pepper)
        issued = [await operator_keys.begin_session(operator, key.id, pepper=pepper) for _ in range(21)]
        assert await owner.fetchval("SELECT count(*) FROM operator_sessions WHERE key_id = $1", key.id) == 20
        assert await operator_keys.find_session(operator, issued[0].secret, pepper=pepper) is None
        found = await operator_keys.find_session(operator, issued[-1].secret, pepper=pepper)
        assert found is not None
        assert (found.actor, found.name) == (f"operator_key:{key.id}", "many")

    async def test_it_leads_on_to_our_own_pages_alone(
        self, http: httpx2.AsyncClient, operator_key: str, subtests: pytest.Subtests
    ) -> None:
        for given, page in {
            "/operator/log?subject=tenant:a": "/operator/log?subject=tenant:a",
            "//elsewhere.example/operator/": "/operator/tenants",
            "/operator//elsewhere.example": "/operator/tenants",
            "/operator/\\elsewhere.example": "/operator/tenants",
            "https://elsewhere.example": "/operator/tenants",
        }.items():
            with subtests.test(given):
                shown = Page(await http.get("/operator/sign-in", params={"next": given}))
                assert shown.form("sign-in").fields["next"] == page

    async def test_the_first_page_leads_to_the_tenants(self, http: httpx2.AsyncClient) -> None:
        for address in ("/", "/operator"):
            assert (await http.get(address)).headers["location"] == "/operator/tenants"


class TestWhoMaySeeThem:
    @pytest.mark.proves("security: operator-pages")
    async def test_every_page_asks_for_a_session_and_every_form_for_its_token(
        self, reader: PageReader, operator_api: RunningGateway, operator_settings: Settings, subtests: pytest.Subtests
    ) -> None:
        origin = {"Origin": operator_api.url}
        routes = list(page_routes(operator_settings))
        assert len(routes) >= 15
        for method, address in routes:
            with subtests.test(f"{method} {address}"):
                async with operator_api.http() as nobody:
                    refused = await nobody.request(method, address, headers=origin)
                    assert refused.headers["location"].startswith("/operator/sign-in")
                    assert (refused.status_code, refused.content) == (303, b"")
                if method == "POST":
                    for fields in ({}, {"form_token": "0" * 64}):
                        forged = await reader.http.post(address, data={"typed": SLUG, **fields}, headers=origin)
                        assert forged.status_code == 403, forged.text

    @pytest.mark.proves("security: operator-pages")
    async def test_other_sites_neither_send_forms_nor_frame_a_page(self, reader: PageReader) -> None:
        shown = await reader.open_address("/operator/new-plan")
        policy = shown.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"):
            assert part in policy
        assert "unsafe" not in policy
        elsewhere = {"Origin": "https://elsewhere.example"}
        name = f"crossed-{token_hex(4)}"
        fields = shown.form("new-plan").fields | {"name": name}
        assert (await reader.http.post("/operator/new-plan", data=fields, headers=elsewhere)).status_code == 403
        assert name not in (await reader.open_address("/operator/plans")).text

    @pytest.mark.proves("security: operator-pages")
    async def test_the_api_takes_no_cookie_and_the_pages_no_key(
        self, reader: PageReader, operator_api: RunningGateway, operator_key: str
    ) -> None:
        assert (await reader.http.get("/operator/v1/tenants")).status_code == 401
        async with operator_api.http(operator_key) as with_key:
            assert (await with_key.get("/operator/tenants")).status_code == 303

    async def test_a_process_that_asks_for_no_key_has_no_pages(self, settings: Settings) -> None:
        paths = {route.path for route in create_app(settings, as_owner=True).routes}
        assert {path for path in paths if path.startswith("/operator/")} == {
            path for path in paths if path.startswith("/operator/v1")
        }


class TestTenants:
    async def test_the_list_is_searched_filtered_and_paged(
        self, reader: PageReader, operator: Operator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mark = token_hex(4)
        first, second, third = [
            (await tenants.create_tenant(operator, f"{mark}-{letter}", f"Name {mark.upper()}", plan="free")).slug
            for letter in "abc"
        ]
        await tenants.set_plan(operator, second, "team")
        await tenants.suspend_tenant(operator, third, read_only=True)

        async def listed(**filters: Any) -> list[str]:
            shown = await reader.open_address("/operator/tenants", **filters)
            return [text for text in shown.links() if text.startswith(mark)]

        assert await listed(search=mark) == [first, second, third]
        assert await listed(search=f"name {mark}") == [first, second, third], "a name, in upper or lower case"
        assert await listed(search=mark, plan="team") == [second]
        assert await listed(search=mark, state="read_only") == [third]
        assert await listed(search=mark, state="active", plan="free") == [first]
        assert await listed(search=mark, state="deleted") == []
        monkeypatch.setattr(tenant_pages, "PAGE", 2)
        shown = await reader.open_address("/operator/tenants", search=mark)
        assert [text for text in shown.links() if text.startswith(mark)] == [first, second]
        after = await reader.open_address(shown.links()["Next page"])
        assert [text for text in after.links() if text.startswith(mark)] == [third]

    async def test_use_is_compared_with_the_plan(
        self, reader: PageReader, operator: Operator, tenant: Tenant, owner: asyncpg.Connection
    ) -> None:
        await tenants.set_plan(operator, tenant.slug, "free")
        await owner.execute(
            "UPDATE graph_heads SET entities = 8000, facts = 1000, observations = 70000 WHERE tenant_id = $1", tenant.id
        )
        shown = await reader.open_address("/operator/tenants", search=tenant.slug)
        assert "90 % of nodes per graph" in shown.text
        page = await reader.open_address(f"/operator/tenants/{tenant.slug}")
        rows = [row.text for row in page.all("tr")]
        assert [text for text in rows if text.startswith("nodes per graph9,00010,000")]
        assert [text for text in rows if text.startswith("observations70,000100,000")]

    async def test_its_plan_is_changed_and_the_log_says_by_whom(
        self, reader: PageReader, operator: Operator, tenant: Tenant
    ) -> None:
        shown = await reader.open_address(f"/operator/tenants/{tenant.slug}")
        changed = await reader.send(shown, f"{tenant.slug}/plan", plan="team")
        assert "The plan is changed." in changed.text
        assert (await tenants.find_tenant(operator, tenant.slug)).plan == "team"
        outdated = await reader.send(shown, f"{tenant.slug}/plan", status=409, plan="free")
        assert "Somebody changed this" in outdated.text
        assert (await tenants.find_tenant(operator, tenant.slug)).plan == "team"
        [latest] = [row for row in outdated.all("tr") if "tenant.plan_changed" in row.text]
        assert "operator_key:" in latest.text
        assert "127.0.0.1" in latest.text

    async def test_a_suspension_asks_for_the_slug(self, reader: PageReader, operator: Operator, tenant: Tenant) -> None:
        address = f"/operator/tenants/{tenant.slug}"
        asked = await reader.open_address((await reader.open_address(address)).links()["Suspend…"])
        refused = await reader.send(asked, "suspend", status=400, typed="another", kind="whole")
        assert f"Type {tenant.slug} to confirm" in refused.text
        assert [e.attributes["value"] for e in refused.all("input", name="kind") if "checked" in e.attributes] == [
            "whole"
        ]
        assert (await tenants.find_tenant(operator, tenant.slug)).status == "active"
        for kind, status in (("read_only", "read_only"), ("whole", "suspended")):
            asked = await reader.open_address(f"{address}/suspend")
            suspended = await reader.send(asked, "suspend", typed=tenant.slug, kind=kind)
            assert (await tenants.find_tenant(operator, tenant.slug)).status == status
        resumed = await reader.send(suspended, "resume")
        assert "The tenant is active again." in resumed.text
        assert (await tenants.find_tenant(operator, tenant.slug)).status == "active"

    async def test_a_deletion_asks_for_the_slug_and_is_undone(
        self, reader: PageReader, operator: Operator, tenant: Tenant
    ) -> None:
        address = f"/operator/tenants/{tenant.slug}"
        asked = await reader.open_address(f"{address}/delete")
        for wrong in ({"typed": "another"}, {"days": "0"}, {"days": "nan"}, {"days": "366"}):
            refused = await reader.send(asked, "delete", status=400, **{"typed": tenant.slug, **wrong})
            assert refused.all("div", role="alert")
        assert (await tenants.find_tenant(operator, tenant.slug)).status == "active"
        deleted = await reader.send(asked, "delete", typed=tenant.slug, days="2")
        found = await tenants.find_tenant(operator, tenant.slug)
        assert (found.status, "It is deleted" in deleted.text) == ("deleted", True)
        assert found.erase_at is not None
        kept = await reader.send(deleted, "restore")
        assert (await tenants.find_tenant(operator, tenant.slug)).status == "active"
        assert "tenant.restored" in kept.text

    async def test_a_request_for_deletion_is_listed_and_taken_back(
        self, reader: PageReader, operator: Operator, tenant: Tenant, owner: asyncpg.Connection
    ) -> None:
        await owner.execute(
            "INSERT INTO deletion_requests (tenant_id, requested_by) VALUES ($1, gen_random_uuid())", tenant.id
        )
        shown = await reader.open_address("/operator/tenants", search=tenant.slug, state="requested")
        assert "deletion requested due" in shown.text
        page = await reader.open_address(shown.links()[tenant.slug])
        kept = await reader.send(page, "restore")
        assert "is taken back" in kept.text
        assert "An owner requested the deletion" not in kept.text
        assert await owner.fetchval("SELECT count(*) FROM deletion_requests WHERE tenant_id = $1", tenant.id) == 0
        emptied = await reader.open_address("/operator/tenants", search=tenant.slug, state="requested")
        assert tenant.slug not in emptied.links()

    async def test_what_is_stored_stays_text(
        self, reader: PageReader, operator: Operator, tenant: Tenant, owner: asyncpg.Connection
    ) -> None:
        await owner.execute("UPDATE tenants SET name = $2 WHERE id = $1", tenant.id, HOSTILE)
        await owner.execute(
            """INSERT INTO operator_log (actor, action, subject, details)
            VALUES ($1, 'test.made', $2, jsonb_build_object('text', $1::text, 'list', jsonb_build_array($1::text)))""",
            HOSTILE,
            f"tenant:{tenant.slug}",
        )
        for address in (
            f"/operator/tenants?search={tenant.slug}",
            f"/operator/tenants/{tenant.slug}",
            f"/operator/log?subject=tenant:{tenant.slug}",
        ):
            page = await reader.open_address(address)
            assert HOSTILE in page.text
            assert [script.attributes.get("src", "")[:8] for script in page.all("script")] == ["/assets/"]
            assert [image for image in page.all("img") if not image.attributes["src"].startswith("/assets/")] == []
        nowhere = await reader.open_address("/operator/tenants", search=HOSTILE)
        assert nowhere.all("input", id="filter-search")[0].attributes["value"] == HOSTILE

    async def test_what_is_not_there_is_a_page(self, reader: PageReader) -> None:
        missing = await reader.open_address("/operator/tenants/no-such-tenant", status=404)
        assert "There is no tenant 'no-such-tenant'." in missing.text
        assert missing.links()["Back to the tenants"] == "/operator/tenants"


class TestPlans:
    async def test_a_plan_is_made_and_changed(self, reader: PageReader) -> None:
        name = f"plan-{token_hex(4)}"
        form = await reader.open_address("/operator/new-plan")
        refused = await reader.send(form, "new-plan", status=400, name=name, graphs="many", observations="5")
        assert "Graphs: a whole number" in refused.text
        assert refused.form("new-plan").fields["observations"] == "5"
        listed = await reader.send(refused, "new-plan", graphs="1,234")
        assert "The plan is saved." in listed.text
        shown = await reader.open_address(listed.links()[name])
        assert (shown.form(name).fields["graphs"], shown.form(name).fields["observations"]) == ("1234", "5")
        await reader.send(shown, name, graphs="", observations="7")
        changed = (await reader.open_address(f"/operator/plans/{name}")).form(name).fields
        assert (changed["graphs"], changed["observations"]) == ("", "7")
        again = await reader.send(await reader.open_address("/operator/new-plan"), "new-plan", status=409, name=name)
        assert "There is already a plan" in again.text

    async def test_of_two_who_make_a_plan_of_one_name_at_once_the_second_is_refused(
        self, reader: PageReader, operator: Operator, owner: asyncpg.Connection
    ) -> None:
        name = f"plan-{token_hex(4)}"
        form = await reader.open_address("/operator/new-plan")

        async def waits_or_is_done() -> bool:
            return sending.done() or bool(await owner.fetchval(WAITS))

        async with operator.transaction():
            await plans.set_plan(operator, name, {"graphs": 3})
            sending = asyncio.create_task(
                reader.send(form, "new-plan", status=409, name=name, graphs="4", observations="5")
            )
            await eventually(waits_or_is_done)
        refused = await sending
        assert f"There is already a plan '{name}'" in refused.text
        assert refused.form("new-plan").fields["observations"] == "5", "what was entered is shown again"
        assert Plan(name, graphs=3) in await plans.list_plans(operator)

    async def test_the_plan_without_limits_has_no_form(self, reader: PageReader) -> None:
        page = await reader.open_address("/operator/plans/unlimited")
        assert "can have none" in page.text
        assert [form.action for form in page.forms if "plans" in form.action] == []


class TestTheDeployment:
    async def test_cells_and_moves_are_listed(self, reader: PageReader, owner: asyncpg.Connection) -> None:
        slug = f"moved-{token_hex(4)}"
        move = uuid4()
        await owner.execute(
            "INSERT INTO tenant_moves (id, slug, source, target, step) VALUES ($1, $2, 'home', 'b', 'hold')", move, slug
        )
        try:
            page = await reader.open_address("/operator/cells")
        finally:
            await owner.execute("DELETE FROM tenant_moves WHERE id = $1", move)
        [home] = [row for row in page.all("tr") if row.text.startswith("home")]
        assert home.text.endswith("ready")
        assert "writes are refused" in page.text
        for option in ("--continue", "--undo"):
            assert f"recollect tenants move {slug} {option}" in page.text

    async def test_health_tells_numbers_of_all_tenants(
        self, reader: PageReader, owner: asyncpg.Connection, tenant: Tenant
    ) -> None:
        kind = f"made_{token_hex(4).translate(str.maketrans('0123456789', 'ghijklmnop'))}"
        await owner.execute(
            """INSERT INTO jobs (tenant_id, id, kind, status, error_code, error_message, created_by, finished_at)
            VALUES ($1, gen_random_uuid(), $2, 'failed', 'made_up', $3, 'test', now()),
                ($1, gen_random_uuid(), $2, 'failed', 'made_up', $3, 'test', now()),
                ($1, gen_random_uuid(), $2, 'failed', 'old', $3, 'test', now() - interval '25 hours')""",
            tenant.id,
            kind,
            HOSTILE,
        )
        page = await reader.open_address("/operator/health")
        rows = [row.text for row in page.all("tr") if kind.replace("_", " ") in row.text]
        assert len(rows) == 1, "what failed long ago is left out"
        assert "made_up2" in rows[0]
        assert HOSTILE not in page.text, "no text of a tenant"
        assert f"Recollect {__version__}" in page.text
        assert "schema of this version" in page.text
        queues = [row.text for row in page.all("tr")]
        for queue in ("Passages without a vector", "Jobs that are due", "Deliveries of webhooks that are due"):
            assert [text for text in queues if text.startswith(queue)]

    async def test_the_log_is_paged(
        self, reader: PageReader, operator: Operator, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log, "PAGE", 1)
        await tenants.set_plan(operator, tenant.slug, "free")
        await tenants.set_plan(operator, tenant.slug, "team")
        first = await reader.open_address("/operator/log", subject=f"tenant:{tenant.slug}")
        assert ("plan: team" in first.text, "plan: free" in first.text) == (True, False)
        second = await reader.open_address(first.links()["Next page"])
        assert "plan: free" in second.text
        assert (await reader.open_address("/operator/log", status=400, cursor="x")).text
