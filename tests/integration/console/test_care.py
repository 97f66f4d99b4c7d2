"""Care for a graph: duplicates, what expires or was set aside, problems, jobs, files in and out, and erasure."""

import json
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.curation.duplicates import proposals, store
from recollect.graph.entities.model import NewEntity
from recollect.jobs import service as jobs
from recollect.jobs.kinds import IMPORT_GRAPH
from recollect.jobs.model import MAX_CHUNK, NewJob
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.support.console import Page, Visitor, visiting
from tests.support.dismissals import ids_of, propose
from tests.support.gateway import RunningGateway, eventually
from tests.support.jobs import employed
from tests.support.memories import Agent

LINES = b"""{"type": "entity", "name": "Grace", "entityType": "person", "observations": ["Grace writes compilers"]}
no JSON at all
{"type": "relation", "from": "Grace", "to": "Ada", "relationType": "knows"}
"""


@pytest.fixture
async def agent(db: Database, caller: Caller) -> Agent:
    """An agent with two entities that may be the same, and a third that knows one of them."""
    agent = Agent(db, caller)
    await agent.create(
        NewEntity("Ada Lovelace", "person", ("Ada likes tea", "Ada writes programs"), tags=("taste",)),
        NewEntity("Ada Lovelance", "person", ("Ada likes green tea",)),
        NewEntity("Babbage", "person", ()),
    )
    await agent.relate(("Babbage", "Ada Lovelance", "knows"))
    return agent


@pytest.fixture
async def visitor(
    gateway: RunningGateway, databases: Databases, settings: Settings, agent: Agent
) -> AsyncIterator[Visitor]:
    async with visiting(gateway, databases, settings, agent.caller) as visitor:
        yield visitor


async def propose_named(agent: Agent, one: str, other: str) -> tuple[UUID, UUID]:
    """Propose two entities as duplicates; their ids."""
    ids = await ids_of(agent)
    await propose(agent, ids[one], ids[other], 0.93)
    return ids[one], ids[other]


@pytest.fixture
async def worker(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    async with employed(settings, db) as context:
        yield context


async def work(worker: WorkerContext, page: Page, visitor: Visitor) -> Page:
    """Let the worker do all jobs, and look at the page of one again."""
    await job_loop.sweep(worker)
    return await visitor.open_address(page.address.partition("?")[0])


async def test_duplicates_are_compared_dismissed_and_merged(visitor: Visitor, agent: Agent) -> None:
    empty = await visitor.open("care")
    assert "No duplicates are proposed" in empty.text
    assert not empty.all("span", class_="count")
    kept, other = await propose_named(agent, "Ada Lovelace", "Ada Lovelance")
    page = await visitor.open("care")
    assert page.all("span", class_="count")[0].text == "1"
    assert (await visitor.open("connect")).all("span", class_="count"), "each page shows the number"
    assert "93% alike" in page.text
    marked = {element.text for kind in ("ins", "del") for element in page.all(kind)}
    assert {"Lovelace", "Lovelance"} <= marked
    assert "tea" not in marked, "words that both have are not marked"
    tried = await visitor.open(f"care/merge/{kept}/{other}")
    assert "Ada Lovelace stays" in tried.text
    assert len((await visitor.open("care")).all("section", class_="card pair")) == 1, "trying changes nothing"
    gone = await visitor.send(page, "/different/")
    assert "They are different, for everybody" in gone.text
    assert not gone.all("span", class_="count")
    await visitor.send(page, "/different/")
    await propose_named(agent, "Ada Lovelace", "Ada Lovelance")
    assert not (await visitor.open("care")).all("section", class_="card pair"), "a later pass does not propose it"
    different = await visitor.open("care/different")
    assert len(different.all("tr")) == 2, "a head, and the pair once"
    assert visitor.person.name in different.text
    taken_back = await visitor.send(different, "/propose/")
    assert "Nothing is said to be different" in taken_back.text
    await visitor.send(different, "/propose/", status=404)
    assert "93% alike" in (await visitor.open("care")).text, "it is proposed as before"
    merged = await visitor.send(tried, "/merge/")
    assert "They are one now" in merged.text
    node = await visitor.open(f"node/{kept}")
    assert "Ada likes green tea" in node.text
    assert "Babbage" in (await visitor.open_address(node.links()["Relations"])).text
    await visitor.open(f"care/merge/{kept}/{other}", status=404)
    await visitor.open(f"care/merge/{kept}/{kept}", status=404)


@pytest.mark.proves("security: console-stored-text")
async def test_names_and_texts_of_a_pair_stay_text(visitor: Visitor, agent: Agent) -> None:
    names = ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(2)>")
    await agent.create(*(NewEntity(name, "person", (f"{name} says so",)) for name in names))
    one, other = await propose_named(agent, *names)
    for page in (await visitor.open("care"), await visitor.open(f"care/merge/{one}/{other}")):
        assert "onerror=alert(1)>" in page.text
        assert not page.all("img", src="x")


async def test_proposals_are_counted_up_to_a_bound_and_those_of_lost_entities_are_not(agent: Agent) -> None:
    await propose_named(agent, "Ada Lovelace", "Ada Lovelance")
    await propose_named(agent, "Ada Lovelace", "Babbage")
    async with agent.writing() as (tx, revision):
        assert await proposals.count_proposals(tx, revision.graph.id) == 2
        assert await store.count_duplicates(tx, revision.graph.id, searched=1_000, limit=1) == 1
        assert await store.count_duplicates(tx, revision.graph.id, searched=1, limit=10) == 1
    await agent.delete("Babbage")
    async with agent.writing() as (tx, revision):
        assert await proposals.count_proposals(tx, revision.graph.id) == 1


async def test_a_cursor_outside_the_calendar_is_none_of_ours(visitor: Visitor) -> None:
    for time in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00"):
        await visitor.open("care/expiring", status=400, cursor=f"{time}~{uuid4()}")


async def test_memories_that_expire_are_renewed_and_those_set_aside_come_back(visitor: Visitor, agent: Agent) -> None:
    await agent.remember(NewMemory("the offer holds until Friday", about=("Babbage",), ttl_days=5.0))
    await agent.remember(NewMemory("a fact of next week", ttl_days=7.0))
    await agent.remember(NewMemory("a fact of next year", ttl_days=300.0))
    page = await visitor.open("care/expiring")
    assert page.text.index("until Friday") < page.text.index("next week"), "the first to expire comes first"
    assert "next year" not in page.text
    then = (await visitor.open("care/expiring", as_of=(await agent.head()).revision)).text
    assert "until Friday" in then
    renewed = await visitor.send(page, "care/keep/", action="renew")
    assert "It is kept for 90 days more" in renewed.text
    assert "until Friday" not in renewed.text
    archived = await visitor.send(renewed, "care/keep/", action="archive", back="care/aside", aside="archived")
    assert "a fact of next week" in archived.text
    back = await visitor.send(archived, "care/keep/")
    assert "It is active again" in back.text
    assert "Nothing is archived" in back.text
    assert "a fact of next week" in (await visitor.open("care/expiring")).text
    await visitor.send(page, "care/keep/", status=400, action="burn")


async def test_problems_of_a_graph_are_listed(visitor: Visitor, agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.relate(("Babbage", "Nobody yet", "waits for"))
    async with agent.writing() as (tx, revision):
        job = await jobs.schedule(tx, NewJob(IMPORT_GRAPH, revision.graph.id, {"format": "json", "strategy": "skip"}))
    await owner.execute(
        """UPDATE jobs SET status = 'failed', finished_at = now(), expires_at = now() + interval '1 day',
        error_code = 'invalid_input', error_message = 'The file broke.' WHERE id = $1""",
        job.id,
    )
    page = await visitor.open("care/problems")
    assert "The file broke." in page.text
    assert "Nobody yet" not in page.text
    assert "Nobody yet" in (await visitor.open_address(page.links()["Look for them"])).text


async def test_a_file_is_tried_then_imported_and_exported(visitor: Visitor, worker: WorkerContext) -> None:
    page = await visitor.open("transfer")
    tried = await send_file(visitor, page, "memory.jsonl", mode="check")
    assert "queued" in tried.text
    state = tried.all("section", id="state")[0].attributes
    assert state["hx-trigger"] == "load delay:2s", "the page asks again by itself"
    last = await visitor.open_address(tried.address.partition("?")[0], polls=100)
    assert "hx-get" not in last.all("section", id="state")[0].attributes, "but not for ever"
    done = await work(worker, tried, visitor)
    assert "succeeded" in done.text
    assert "line 2" in done.text
    assert "It was tried" in done.text
    assert "Grace" not in (await visitor.open("memory")).text
    token = page.form("transfer/import").fields["form_token"]
    started = await visitor.http.post(
        visitor.path("transfer/file"),
        params={"name": "memory.jsonl", "mode": "import"},
        content=LINES,
        headers={
            "Content-Type": "application/octet-stream",
            "X-Recollect-Form-Token": token,
            "Origin": str(visitor.http.base_url).rstrip("/"),
        },
    )
    assert started.status_code == 202, started.text
    done = await work(worker, await visitor.open_address(started.json()["job"]), visitor)
    assert "succeeded" in done.text
    assert "Grace" in (await visitor.open("memory")).text
    problems = await visitor.http.get(done.links()["Download the list"])
    assert json.loads(problems.text.splitlines()[0])["path"] == "line 2"
    assert problems.headers["content-disposition"].startswith("attachment")
    assert "Import (tried)" in (await visitor.open("jobs")).text
    row = await visitor.part(f"jobs/{done.address.rsplit('/', 1)[1]}/row", "this")
    assert "succeeded" in row.text
    exported = await visitor.http.get(visitor.path("transfer/export"), params={"format": "json"})
    assert "Grace writes compilers" in exported.text
    assert ".json" in exported.headers["content-disposition"]
    earlier = await visitor.http.get(visitor.path("transfer/export"), params={"format": "json", "as_of": 1})
    assert "Grace" not in earlier.text
    job = await visitor.send(page, "transfer/export", format="csv")
    done = await work(worker, job, visitor)
    assert "Grace" in (await visitor.http.get(done.links()["Download the file"])).text
    assert "Its file is deleted" in (await visitor.send(done, "/delete")).text


@pytest.mark.proves("security: console-files")
async def test_files_that_cannot_be_read_are_refused_with_what_was_entered(visitor: Visitor) -> None:
    page = await visitor.open("transfer")
    refused = await send_file(visitor, page, "memory.docx", status=400, strategy="replace")
    assert "does not tell its format" in refused.all("div", role="alert")[0].text
    assert refused.form("transfer/import").fields["strategy"] == "replace"
    assert "Choose a file first" in (await send_file(visitor, page, "", status=400)).text
    await send_file(visitor, page, "memory.jsonl", status=403, form_token="0" * 64)


@pytest.mark.proves("security: console-streams")
async def test_a_file_is_received_only_while_its_sender_is_a_member(
    visitor: Visitor, owner: asyncpg.Connection
) -> None:
    token = (await visitor.open("transfer")).form("transfer/import").fields["form_token"]

    async def status() -> str | None:
        found: str | None = await owner.fetchval(
            "SELECT j.status FROM jobs j JOIN tenants t ON t.id = j.tenant_id WHERE t.slug = $1", visitor.tenant
        )
        return found

    async def is_received() -> bool:
        return await status() is not None

    async def parts() -> AsyncIterator[bytes]:
        yield b"\n" * MAX_CHUNK
        await eventually(is_received)  # The file is being received: else the page itself would not be found.
        await owner.execute("DELETE FROM members WHERE person_id = $1", visitor.person.id)
        yield b"\n" * MAX_CHUNK

    answer = await visitor.http.post(
        visitor.path("transfer/file"),
        params={"name": "memory.jsonl", "mode": "import"},
        content=parts(),
        headers={"X-Recollect-Form-Token": token, "Origin": str(visitor.http.base_url).rstrip("/")},
    )
    assert answer.status_code == 404, answer.text
    assert await status() == "cancelled"


async def test_jobs_are_started_and_cancelled(visitor: Visitor, worker: WorkerContext, agent: Agent) -> None:
    await agent.create(
        NewEntity("Analytical Engine", "thing", ("It computes",), tags=("engine",)),
        NewEntity("Analytical Engines", "thing", ("It computes",), tags=("engine",)),
    )
    page = await visitor.open("jobs")
    for kind in ("deduplicate", "reindex_passages", "reembed_passages"):
        started = await visitor.send(page, "jobs/start", kind=kind)
        assert "It is started" in started.text, kind
    cancelled = await visitor.send(started, "/cancel")
    assert "cancelled" in cancelled.text
    asked = await visitor.open("jobs/compact")
    assert "There is nothing to remove" in asked.text
    assert not [form for form in asked.forms if "/start" in form.action], "nothing to confirm"
    started = await visitor.send(await visitor.open("jobs"), "jobs/start", kind="compact_graph")
    compacted = await work(worker, started, visitor)
    assert "succeeded" in compacted.text
    proposed = (await visitor.open("care")).all("span", class_="count")
    assert proposed, "the job that looks for duplicates has found two"
    assert len((await visitor.open_address(visitor.path("jobs") + "?status=cancelled")).all("tr")) == 2
    await visitor.send(page, "jobs/start", status=400, kind="forget_statistics")


@pytest.mark.proves("security: console-erasure")
async def test_a_person_is_erased_after_a_trial_and_the_name_again(visitor: Visitor) -> None:
    form = await visitor.open("erasure")
    unknown = await visitor.send(form, "erasure/check", status=400, name="Nobody at all")
    assert unknown.form("erasure/check").fields["name"] == "Nobody at all"
    tried = await visitor.send(form, "erasure/check", name="Ada Lovelace")
    assert "Would go" in tried.text
    assert "Backups" in tried.text
    wrong = await visitor.send(tried, "/erasure", status=400, confirmed="Ada")
    assert "Nothing is erased" in wrong.text
    assert "Ada Lovelace" in (await visitor.open("memory")).text
    receipt = await visitor.send(wrong, "/erasure", confirmed="Ada Lovelace")
    assert "It is erased" in receipt.text
    assert "Ada Lovelace" not in (await visitor.open("memory")).text
    sent = receipt.form("erasure/receipt")
    origin = {"Origin": str(visitor.http.base_url).rstrip("/")}
    file = await visitor.http.post(sent.action, data=sent.fields, headers=origin)
    assert file.headers["content-disposition"].startswith("attachment")
    assert file.json()["dry_run"] is False
    assert file.json()["names"] == ["Ada Lovelace"]
    broken = await visitor.http.post(sent.action, data=sent.fields | {"receipt": "{}"}, headers=origin)
    assert broken.status_code == 400


async def test_readers_see_and_change_nothing(
    gateway: RunningGateway, databases: Databases, settings: Settings, agent: Agent
) -> None:
    await propose_named(agent, "Ada Lovelace", "Ada Lovelance")
    async with visiting(gateway, databases, settings, agent.caller, Role.READER) as reader:
        page = await reader.open("care")
        assert "93% alike" in page.text
        assert not [form for form in page.forms if "/care/" in form.action]
        assert "Import into" not in (await reader.open("transfer")).text
        assert not [form for form in (await reader.open("jobs")).forms if "/start" in form.action]


async def send_file(visitor: Visitor, page: Page, name: str, *, status: int = 200, **fields: str) -> Page:
    """Send the form with a file, as a browser without scripts does."""
    form = page.form("transfer/import")
    origin = {"Origin": str(visitor.http.base_url).rstrip("/")}
    sent = {field: value for field, value in (form.fields | fields).items() if field != "file"}
    files = {"file": (name, LINES, "application/octet-stream")}
    answer = await visitor.http.post(form.action, data=sent, files=files, headers=origin)
    if answer.status_code == 303:
        return await visitor.open_address(answer.headers["location"], status=status)
    assert answer.status_code == status, answer.text
    return Page(answer)
