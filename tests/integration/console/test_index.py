"""The way into the console, what it loads, and where its components are shown."""

import re

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_gateway.app import create_app
from tests.conftest import NewTenant
from tests.support.console import visiting
from tests.support.gateway import RunningGateway


async def test_one_organisation_is_opened_and_of_several_one_is_chosen(
    gateway: RunningGateway,
    db: Database,
    databases: Databases,
    settings: Settings,
    caller: Caller,
    new_tenant: NewTenant,
    operator: Operator,
) -> None:
    other = await new_tenant()
    async with visiting(gateway, databases, settings, caller) as visitor:
        own = f"/app/{caller.tenant}/default/memory"
        assert (await visitor.http.get("/app")).headers["location"] == own
        assert (await visitor.http.get(f"/app/{caller.tenant}")).headers["location"] == own
        assert (await visitor.http.get(f"/app/{caller.tenant}/team")).headers["location"].endswith("/team/memory")
        async with db.transaction(operator_caller(other)) as tx:
            secret = (await members.invite(tx, visitor.person.email, Role.READER, pepper=settings.pepper)).secret
        await members.join(
            databases, await members.open_invitation(databases, secret, pepper=settings.pepper), visitor.person
        )
        chosen = await visitor.open_address("/app")
        assert chosen.links()[other.name] == f"/app/{other.slug}/default/memory"
        assert (await visitor.open_address(chosen.links()[other.name])).status == 200
        await tenants.suspend_tenant(operator, other.slug)
        assert (await visitor.http.get("/app")).headers["location"] == own, "a suspended one is not offered"
        await visitor.open_address(f"/app/{other.slug}/default/memory", status=404)


async def test_a_graph_that_is_not_there_is_not_found_but_the_default_one_is_empty(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> None:
    async with visiting(gateway, databases, settings, caller, Role.READER) as visitor:
        assert "Nothing is remembered here yet" in (await visitor.open("memory")).text
        assert "no graph" in (await visitor.open("memory", graph="nope", status=404)).text.lower()


async def test_what_a_page_loads_is_kept_for_good_at_the_address_of_its_version(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> None:
    async with visiting(gateway, databases, settings, caller) as visitor:
        source = (await visitor.open("memory")).source
        for address in set(re.findall(r'(?:src|href)="(/assets/[^"#]+)', source)):
            plain = await visitor.http.get(address, headers={"Accept-Encoding": "identity"})
            packed = await visitor.http.get(address, headers={"Accept-Encoding": "gzip"})
            assert (plain.status_code, plain.content) == (200, packed.content), address
            assert "content-encoding" not in plain.headers
            assert packed.headers["content-encoding"] == "gzip"
            assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
            other = await visitor.http.get(f"{address.partition('?')[0]}?v=0")
            assert other.headers["cache-control"] == "public, max-age=3600"


def test_components_are_shown_on_this_machine_alone(settings: Settings) -> None:
    public = settings.model_copy(update={"public_url": "https://memory.example.com"})
    for served, is_shown in ((settings, True), (public, False)):
        assert ("/app/components" in {route.path for route in create_app(served).routes}) is is_shown
