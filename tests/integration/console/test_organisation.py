"""Usage, the audit log, and webhooks of an organisation."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action
from recollect.accounts.usage import store as usage_store
from recollect.accounts.usage.model import Counter, Counts, count_duration
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.webhooks.endpoints import service as webhooks
from tests.support.console import Page, Visitor, visiting
from tests.support.gateway import RunningGateway


@pytest.fixture
async def visitor(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    async with visiting(gateway, databases, settings, caller, Role.ADMIN) as visitor:
        yield visitor


def fault(page: Page) -> str:
    return page.all("div", role="alert")[0].text


async def test_usage_is_summed_over_the_range_of_the_address(visitor: Visitor, db: Database, caller: Caller) -> None:
    now = datetime.now(UTC)
    async with db.transaction(caller) as tx:
        for hours, calls in ((1, 1_200), (24 * 20, 34)):
            hour = int((now - timedelta(hours=hours)).timestamp()) // 3600
            await usage_store.add_usage(
                tx, {Counter(hour, "tool", "recall"): Counts(calls, 5, 6, 2_048, count_duration(0.3))}
            )
    month = await visitor.open("usage")
    assert "1,234" in month.text
    assert sum(int(row.attributes["data-calls"]) for row in month.all("tr") if "data-at" in row.attributes) == 1_234
    assert "4.0 KiB" in month.text
    [recall] = [row.text for row in month.all("tr") if "1,234" in row.text]
    assert recall.endswith("375 ms488 ms"), "within which half, and 95 %, were answered"
    day = await visitor.open_address(month.links()["24 hours"])
    assert "1,200" in day.text
    assert "1,234" not in day.text
    assert len([row for row in day.all("tr") if "data-at" in row.attributes]) in (24, 25)
    assert "unlimited" in day.text
    weeks = [row for row in (await visitor.open("usage", range="year")).all("tr") if "data-at" in row.attributes]
    assert len(weeks) in (53, 54)
    assert sum(int(row.attributes["data-calls"]) for row in weeks) == 1_234
    assert {datetime.fromtimestamp(int(row.attributes["data-at"]), UTC).weekday() for row in weeks} == {0}
    await visitor.open("usage", status=400, range="century")


async def test_the_audit_log_is_filtered_and_shows_details(visitor: Visitor) -> None:
    await visitor.send(await visitor.open("connect"), "connect/keys", name="laptop", kind="agent")
    page = await visitor.open("audit", action="key.created")
    [key] = [text for text in page.links() if text.startswith("key:")]
    assert "session.started" not in [e.text for e in page.all("td")]
    assert str(visitor.person.id) in page.text, "its details say who"
    of_key = await visitor.open("audit", object=key)
    assert "key.created" in of_key.links()
    assert "No act passes these filters" in (await visitor.open("audit", actor="person:nobody")).text
    today = datetime.now(UTC).date()
    around = await visitor.open("audit", since=str(today - timedelta(days=1)), until=str(today + timedelta(days=1)))
    assert "key.created" in around.links()
    assert "No act" in (await visitor.open("audit", until=str(today - timedelta(days=2)))).text
    assert "A day is written" in fault(await visitor.open("audit", status=400, since="yesterday"))
    assert "no such kind" in fault(await visitor.open("audit", status=400, action="key.eaten"))


async def test_a_long_audit_log_is_paged(visitor: Visitor, db: Database, caller: Caller) -> None:
    async with db.transaction(caller) as tx:
        for n in range(51):
            await audit.record(tx, Action.TENANT_CHANGED, f"tenant:{n}")
    first = await visitor.open("audit", action="tenant.changed")
    second = await visitor.open_address(first.links()["Next page"])
    assert "tenant.changed" in second.links()
    assert "Next page" not in second.links()
    entries = [{row.text for row in page.all("tr")} for page in (first, second)]
    assert len(entries[0] & entries[1]) == 1, "the head alone is on both"


@pytest.mark.proves("security: console-secrets")
async def test_a_webhook_is_made_changed_paused_tested_replayed_and_deleted(
    visitor: Visitor, db: Database, caller: Caller
) -> None:
    form = await visitor.open("webhooks/new")
    refused = await visitor.send(form, "webhooks", status=400, url="http://plain.example", description="index")
    assert "https" in fault(refused)
    assert refused.form("webhooks").fields["description"] == "index"
    none = await visitor.send(refused, "webhooks", status=400, url="https://hooks.example.com/x")
    assert "at least one event" in fault(none)
    made = await visitor.send(none, "webhooks", events="graph.changed")
    secret = made.all("code", id="webhook-secret")[0].text
    assert secret.startswith("whsec_")
    listed = await visitor.open("webhooks")
    assert secret not in listed.source
    edit = await visitor.open_address(listed.links()["Edit"])
    assert edit.form("/edit").fields["events"] == "graph.changed"
    saved = await visitor.send(edit, "/edit", url="https://hooks.example.com/y", events="job.failed")
    assert "https://hooks.example.com/y" in saved.links()
    outdated = await visitor.send(edit, "/edit", status=409, url="https://hooks.example.com/z", events="job.failed")
    assert outdated.form("/edit").fields["url"] == "https://hooks.example.com/z"
    assert "https://hooks.example.com/y" in outdated.text
    detail = await visitor.open_address(saved.links()["https://hooks.example.com/y"])
    tested = await visitor.send(detail, "/test")
    assert "webhook.test" in tested.text
    again = await visitor.send(tested, "/deliveries/")
    assert "It is sent again" in again.text
    failed = await visitor.open_address(again.links()["Failed"])
    assert "No deliveries with this status" in failed.text
    assert "No delivery failed" in (await visitor.send(again, f"{_id(detail)}/replay")).text
    rotated = await visitor.send(again, "/secret")
    assert rotated.all("code", id="webhook-secret")[0].text != secret
    paused = await visitor.send(await visitor.open("webhooks"), "/switch")
    assert "It is paused" in paused.text
    assert "Enable it first" in fault(await visitor.send(again, "/test", status=409))
    async with db.transaction(caller, read_only=True) as tx:
        assert not (await webhooks.list_webhooks(tx))[0].enabled
    gone = await visitor.send(await visitor.open_address(paused.links()["Delete"]), "/delete")
    assert "No webhook is set up" in gone.text


def _id(detail: Page) -> str:
    return detail.form("/test").action.split("/")[-2]
