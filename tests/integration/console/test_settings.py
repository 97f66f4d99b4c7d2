"""Settings of an organisation, its graphs, and the issuers that it trusts."""

from collections.abc import AsyncIterator

import pytest

from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.console import Page, Visitor, visiting
from tests.support.gateway import RunningGateway
from tests.support.memories import Agent


@pytest.fixture
async def visitor(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    async with visiting(gateway, databases, settings, caller, Role.ADMIN) as visitor:
        yield visitor


def fault(page: Page) -> str:
    return page.all("div", role="alert")[0].text


async def test_settings_are_changed_unless_somebody_was_faster(visitor: Visitor, db: Database, caller: Caller) -> None:
    page = await visitor.open("settings")
    saved = await visitor.send(page, "settings", name="Acme & Sons", time_zone="Europe/Berlin", retention_days="30")
    assert "The settings are changed" in saved.text
    async with db.transaction(caller, read_only=True) as tx:
        tenant = await tenants.own_tenant(tx)
    assert (tenant.name, tenant.time_zone, tenant.retention_days) == ("Acme & Sons", "Europe/Berlin", 30)
    outdated = await visitor.send(page, "settings", status=409, name="Mine", time_zone="", retention_days="")
    assert outdated.form("settings").fields["name"] == "Mine"
    assert "30 days" in outdated.text
    assert "The settings are changed" in (await visitor.send(outdated, "settings")).text
    for wrong in ({"time_zone": "Mars/Base"}, {"retention_days": "0.5"}, {"retention_days": "nan"}, {"name": ""}):
        refused = await visitor.send(await visitor.open("settings"), "settings", status=400, **wrong)
        assert refused.form("settings").fields | wrong == refused.form("settings").fields


async def test_readers_see_settings_and_change_nothing(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> None:
    async with visiting(gateway, databases, settings, caller, Role.READER) as reader:
        page = await reader.open("settings")
        assert not [form for form in page.forms if form.action.endswith("/settings")]
        assert "Deletion" not in page.links()
        assert "Make a graph" not in (await reader.open("settings/graphs")).links()
        assert {"Usage", "Settings"} <= set(page.links())
        assert not {"People", "Webhooks", "Audit log"} & set(page.links())


@pytest.mark.proves("security: console-erasure")
async def test_a_graph_is_made_changed_and_erased_by_its_name(visitor: Visitor, db: Database, caller: Caller) -> None:
    form = await visitor.open("settings/graphs/new")
    broken = await visitor.send(form, "settings/graphs", status=400, name="people", metadata="{no json")
    assert broken.form("settings/graphs").fields["metadata"] == "{no json"
    made = await visitor.send(broken, "settings/graphs", metadata='{"team": "research"}', kinds="person\nproject")
    assert "The graph is made" in made.text
    assert "Nothing is remembered here yet" in (await visitor.open("memory", graph="people")).text
    again = await visitor.send(form, "settings/graphs", status=409, name="people")
    assert again.form("settings/graphs").fields["name"] == "people"
    async with db.transaction(caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "people")
    assert (graph.metadata, graph.kind_whitelist) == ({"team": "research"}, ("person", "project"))
    address = f"settings/graphs/{graph.id}"
    edit = await visitor.open(address)
    saved = await visitor.send(edit, address, name="staff", kinds="", time_zone="Europe/Paris")
    assert "staff" in saved.links()
    outdated = await visitor.send(edit, address, status=409, name="crew")
    assert outdated.form(address).fields["name"] == "crew"
    assert "As it is now" in outdated.text
    await Agent(db, caller, "staff").create(NewEntity("Ada", "person", ("writes programs",)))
    question = await visitor.open(f"{address}/delete")
    lost = dict(zip((e.text for e in question.all("dt")), (e.text for e in question.all("dd")), strict=True))
    assert lost["nodes"] == "1"
    wrong = await visitor.send(question, "/delete", status=400, typed="stuff")
    assert "Type the name" in fault(wrong)
    assert "The graph is erased" in (await visitor.send(wrong, "/delete", typed="staff")).text
    await visitor.open(address, status=404)


async def test_an_issuer_is_trusted_disabled_and_deleted(visitor: Visitor) -> None:
    page = await visitor.open("settings/issuers")
    entered = {"name": "Acme", "issuer": "https://login.acme.example", "claim": "groups", "rules": "agents"}
    refused = await visitor.send(page, "settings/issuers", status=400, **entered)
    assert "A rule is a line" in fault(refused)
    assert {name: refused.form("settings/issuers").fields[name] for name in entered} == entered
    added = await visitor.send(refused, "settings/issuers", rules="agents = memory:read memory:write")
    assert "agents" in [e.text for e in added.all("td")]
    off = await visitor.send(added, "/switch")
    assert "refused from now on" in off.text
    gone = await visitor.send(await visitor.open_address(off.links()["Delete"]), "/delete")
    assert "It is no longer trusted" in gone.text


async def test_what_an_operator_does_to_delete_the_organisation_is_told(visitor: Visitor) -> None:
    page = await visitor.open("settings/delete")
    assert f"recollect tenants delete {visitor.tenant} --grace-days 30 --yes" in page.text
    assert f"recollect tenants restore {visitor.tenant}" in page.text
