"""Events that webhooks get: everything that happened, once, and nothing that people stored."""

import asyncio
import json
from uuid import UUID

import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey
from recollect.accounts.members import service as members
from recollect.accounts.tenants import service as tenants
from recollect.caller import Role
from recollect.cells.databases import Databases
from recollect.errors import ErrorCode
from recollect.jobs import leases
from recollect.jobs import service as jobs
from recollect.jobs.model import Failure, Job, JobBounds, NewJob, StepResult
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect.webhooks.deliveries.model import MAX_CHANGES, MAX_IDS
from recollect.webhooks.events.model import EventType
from recollect_workers.jobs import cleanup
from recollect_workers.jobs import webhooks as worker
from tests.support.erasures import erase_now
from tests.support.people import joined
from tests.support.plans import AS_JSON, looked_at, steps
from tests.support.webhooks import Receiver, WebhookDesk

KIND = "of_nobody"
"""A kind of job that no worker knows."""

BOUNDS = JobBounds.of(Settings())


async def default_id(desk: WebhookDesk) -> UUID:
    found: UUID = await desk.owner.fetchval(
        "SELECT id FROM graphs WHERE tenant_id = $1 AND name = 'default'", desk.caller.tenant_id
    )
    return found


OF_GRAPHS = {"graph_heads", "webhook_cursors", "audit_log"}
"""Tables with a row for each graph, or each act on one."""


async def sweep(desk: WebhookDesk) -> tuple[float, bool]:
    """The rows that the search for tenants with news looks at, and whether it finds this tenant."""
    body = await desk.owner.fetchval("SELECT prosrc FROM pg_proc WHERE proname = 'tenants_with_webhook_news'")
    body = body.replace("overlap", "interval '10 minutes'")
    await desk.owner.execute("SET enable_seqscan = off; SET enable_sort = off")  # As in the function.
    [explained] = json.loads(await desk.owner.fetchval(f"EXPLAIN ({AS_JSON}) {body}"))
    found = [row["id"] for row in await desk.owner.fetch(body)]
    rows = sum(
        looked_at(step | {"Plans": []}) for step in steps(explained["Plan"]) if step.get("Relation Name") in OF_GRAPHS
    )
    return rows, desk.caller.tenant_id in found


async def test_a_look_compares_the_graphs_that_were_written_since_the_last_one(
    desk: WebhookDesk, receiver: Receiver
) -> None:
    await desk.write("before")
    made = await desk.make(receiver.url, EventType.GRAPH_CHANGED, EventType.GRAPH_DELETED)
    await desk.tell()
    await desk.owner.execute(
        """INSERT INTO audit_log (tenant_id, id, at, actor, action, objects)
        SELECT $1, gen_random_uuid(), now() - interval '1 day', 'test', 'key.created', ARRAY['key:' || n]
        FROM generate_series(1, 5000) AS n""",
        desk.caller.tenant_id,
    )
    # The statistics know of no tenant with many graphs.
    await desk.owner.execute("ANALYZE audit_log, webhook_cursors, graph_heads")
    few, _ = await sweep(desk)
    await desk.owner.execute(
        """WITH graph AS (
            INSERT INTO graphs (tenant_id, id, name, created_by)
            SELECT $1, gen_random_uuid(), 'graph-' || n, 'test' FROM generate_series(1, 500) AS n RETURNING id
        ), head AS (
            INSERT INTO graph_heads (tenant_id, graph_id, written_around)
            SELECT $1, id, now() - interval '1 hour' FROM graph)
        INSERT INTO webhook_cursors (tenant_id, webhook_id, graph_id, revision) SELECT $1, $2, id, 0 FROM graph""",
        desk.caller.tenant_id,
        made.webhook.id,
    )
    many, found = await sweep(desk)
    assert (many < few + 50, found) == (True, False)
    await desk.write("after", graph="graph-7")
    many, found = await sweep(desk)
    assert (many < few + 50, found) == (True, True)


@pytest.mark.parametrize(("seconds", "moves"), [(30, False), (90, True)])
async def test_a_head_notes_when_it_was_written_once_a_minute(desk: WebhookDesk, seconds: int, moves: bool) -> None:
    """The column is indexed: an update that leaves it as it is stays heap-only."""
    await desk.write("before")
    row = await desk.owner.fetchrow(
        """UPDATE graph_heads n SET revision = n.revision + 1, at = o.written_around + make_interval(secs => $2)
        FROM graph_heads o
        WHERE n.tenant_id = $1 AND o.tenant_id = n.tenant_id AND o.graph_id = n.graph_id
        RETURNING o.written_around, n.at, n.written_around""",
        desk.caller.tenant_id,
        seconds,
    )
    assert row is not None
    before, at, after = row
    assert after == (at if moves else before)


class TestChanges:
    async def test_several_changes_are_sent_in_one_request(self, desk: WebhookDesk, receiver: Receiver) -> None:
        await desk.write("before")
        made = await desk.make(receiver.url)
        await desk.write("Ada", "Grace", "Lise")
        await desk.tell()
        [event] = receiver.events(made.secret)
        graph = str(await default_id(desk))
        assert event["type"] == "graph.changed"
        assert {name: event["data"][name] for name in ("graph", "after_revision", "revision")} == {
            "graph": graph,
            "after_revision": 1,
            "revision": 4,
        }
        assert [change["revision"] for change in event["data"]["changes"]] == [2, 3, 4]
        change = event["data"]["changes"][0]
        assert (change["operation"], change["actor"]) == ("create_entities", desk.caller.subject)
        assert (change["counts"]["entities_added"], len(change["ids"]), change["more_ids"]) == (1, 2, False)

    async def test_each_change_is_sent_once_despite_concurrent_workers(
        self, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        made = await desk.make(receiver.url)
        for number in range(3):
            await desk.write(f"{number}a", f"{number}b")
            await asyncio.gather(*(worker.collect(desk.worker) for _ in range(4)))
        await desk.tell()
        told = [change["revision"] for event in receiver.events(made.secret) for change in event["data"]["changes"]]
        assert sorted(told) == [1, 2, 3, 4, 5, 6]
        await desk.tell()
        assert len(receiver.ids) == len(set(receiver.ids))

    async def test_a_bulk_writer_causes_few_requests_of_limited_size(
        self, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        made = await desk.make(receiver.url)
        await desk.owner.execute(
            """WITH graph AS (SELECT tenant_id, id FROM graphs WHERE tenant_id = $1 AND name = 'default'), log AS (
                INSERT INTO changes SELECT tenant_id, id, n, now(), 'key:x', 'create_entities',
                    ARRAY(SELECT gen_random_uuid() FROM generate_series(1, 200)), '{"nodes_added": 200}'
                FROM graph, generate_series(1, $2) AS n)
            UPDATE graph_heads SET revision = $2 FROM graph WHERE graph_heads.graph_id = graph.id""",
            desk.caller.tenant_id,
            2 * MAX_CHANGES + 1,
        )
        for _ in range(4):
            await desk.tell()
        events = receiver.events(made.secret)
        assert [len(event["data"]["changes"]) for event in events] == [MAX_CHANGES, MAX_CHANGES, 1]
        assert {len(change["ids"]) for event in events for change in event["data"]["changes"]} == {MAX_IDS}
        assert all(change["more_ids"] for event in events for change in event["data"]["changes"])
        assert max(len(body) for _, body in receiver.server.requests) < 64 * 1024

    async def test_a_backlog_is_collected_however_long_ago_it_was_written(
        self, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        made = await desk.make(receiver.url)
        await desk.owner.execute(
            """WITH graph AS (SELECT tenant_id, id FROM graphs WHERE tenant_id = $1 AND name = 'default'), log AS (
                INSERT INTO changes SELECT tenant_id, id, n, now(), 'key:x', 'create_entities', '{}', '{}'
                FROM graph, generate_series(1, $2) AS n), look AS (
                UPDATE webhooks SET looked_at = now() - interval '2 hours' WHERE tenant_id = $1)
            UPDATE graph_heads
            SET revision = $2, at = now() - interval '1 hour', written_around = now() - interval '1 hour'
            FROM graph WHERE graph_heads.graph_id = graph.id""",
            desk.caller.tenant_id,
            2 * MAX_CHANGES + 1,
        )
        for _ in range(4):
            await desk.tell()
        told = [change["revision"] for event in receiver.events(made.secret) for change in event["data"]["changes"]]
        assert told == list(range(1, 2 * MAX_CHANGES + 2))

    @pytest.mark.proves("security: event-content")
    async def test_no_stored_text_or_name_is_sent(self, desk: WebhookDesk, receiver: Receiver) -> None:
        await desk.make(receiver.url, *EventType, description="qzx")
        await desk.graph("qzx-graph")
        await desk.write("qzx Ada", graph="qzx-graph")
        await desk.delete_graph("qzx-graph")
        await desk.write("qzx Grace")
        await desk.tell()
        assert receiver.ids
        assert not [body for _, body in receiver.server.requests if b"qzx" in body or b"likes tea" in body]
        stored = await desk.owner.fetch("SELECT to_jsonb(d)::text AS row FROM webhook_deliveries d")
        assert not [row for row in stored if "qzx" in row["row"]]

    async def test_only_changes_of_chosen_graphs_are_sent(self, desk: WebhookDesk, receiver: Receiver) -> None:
        chosen = await desk.graph("chosen")
        made = await desk.make(receiver.url, graph_ids=[chosen])
        await desk.write("Ada")
        await desk.write("Grace", graph="chosen")
        await desk.tell()
        assert [event["data"]["graph"] for event in receiver.events(made.secret)] == [str(chosen)]

    async def test_a_reenabled_webhook_gets_what_happened_meanwhile(
        self, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        made = await desk.make(receiver.url)
        await desk.change(made.webhook.id, enabled=False)
        await desk.write("Ada", "Grace")
        await desk.tell()
        assert receiver.ids == []
        assert (await desk.look(made.webhook.id)).disabled_reason == "asked"
        await desk.change(made.webhook.id, enabled=True)
        await desk.tell()
        [event] = receiver.events(made.secret)
        assert len(event["data"]["changes"]) == 2

    async def test_a_newly_chosen_type_is_sent_from_then_on(self, desk: WebhookDesk, receiver: Receiver) -> None:
        made = await desk.make(receiver.url, EventType.JOB_FAILED)
        await desk.write("before")
        await desk.change(made.webhook.id, event_types=(EventType.GRAPH_CHANGED,))
        await desk.write("after")
        await desk.tell()
        [event] = receiver.events(made.secret)
        assert [change["revision"] for change in event["data"]["changes"]] == [2]

    async def test_changes_from_before_a_configuration_are_sent_by_the_old_one(
        self, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        made = await desk.make(receiver.url)
        await desk.write("before")
        await desk.change(made.webhook.id, event_types=(EventType.JOB_FAILED,))
        await desk.write("after")
        await desk.tell()
        [event] = receiver.events(made.secret)
        assert [change["revision"] for change in event["data"]["changes"]] == [1]

    async def test_a_writer_writes_nothing_for_webhooks(self, desk: WebhookDesk, receiver: Receiver) -> None:
        await desk.make(receiver.url)
        before = await desk.owner.fetch("SELECT * FROM webhook_cursors ORDER BY graph_id")
        await desk.write("Ada")
        assert await desk.owner.fetch("SELECT * FROM webhook_cursors ORDER BY graph_id") == before
        assert await desk.owner.fetchval("SELECT count(*) FROM webhook_deliveries") == 0


class TestGraphs:
    async def test_new_and_deleted_graphs_are_sent_by_id(self, desk: WebhookDesk, receiver: Receiver) -> None:
        made = await desk.make(receiver.url, EventType.GRAPH_CREATED, EventType.GRAPH_DELETED)
        graph = await desk.graph("new")
        await desk.tell()
        await desk.delete_graph("new")
        await desk.tell()
        await desk.tell()
        told = [(event["type"], event["data"]["graph"]) for event in receiver.events(made.secret)]
        assert told == [("graph.created", str(graph)), ("graph.deleted", str(graph))]

    async def test_deleting_a_graph_removes_its_pending_events(self, desk: WebhookDesk, receiver: Receiver) -> None:
        made = await desk.make(receiver.url)
        await desk.graph("short")
        await desk.write("Ada", graph="short")
        await worker.collect(desk.worker)
        assert len(await desk.deliveries(made.webhook.id)) == 1
        await desk.delete_graph("short")
        await desk.tell()
        assert (await desk.deliveries(made.webhook.id), receiver.ids) == ([], [])

    async def test_changes_of_a_new_graph_are_sent_from_the_first(self, desk: WebhookDesk, receiver: Receiver) -> None:
        made = await desk.make(receiver.url)
        await desk.write("Ada", graph="made-by-writing")
        await desk.tell()
        await desk.tell()
        [event] = receiver.events(made.secret)
        assert [change["revision"] for change in event["data"]["changes"]] == [1]


async def begun(desk: WebhookDesk, graph_id: UUID | None = None) -> Job:
    async with desk.db.transaction(desk.caller) as tx:
        await jobs.schedule(tx, NewJob(KIND, graph_id, unique=False))
        job = await leases.claim_job(tx, [KIND], BOUNDS)
    assert job is not None
    return job


async def fail(tx: Transaction, job: Job) -> None:
    await leases.record_failure(tx, job, Failure(ErrorCode.INVALID_INPUT, "secret text", is_retryable=False), BOUNDS)


async def ended(desk: WebhookDesk, *, fails: bool, graph_id: UUID | None = None) -> Job:
    job = await begun(desk, graph_id)
    async with desk.db.transaction(desk.caller) as tx:
        if fails:
            await fail(tx, job)
        else:
            await leases.record_step(tx, job, StepResult({}, 1, 1, finished=True, result={"secret": 1}), BOUNDS)
    return job


class TestJobs:
    async def test_the_end_of_a_job_is_sent_once(self, desk: WebhookDesk, receiver: Receiver) -> None:
        await ended(desk, fails=True)
        made = await desk.make(receiver.url, EventType.JOB_FINISHED, EventType.JOB_FAILED)
        good, bad = await ended(desk, fails=False), await ended(desk, fails=True)
        for _ in range(3):
            await desk.tell()
        told = {event["data"]["job"]: event for event in receiver.events(made.secret)}
        assert set(told) == {str(good.id), str(bad.id)}
        assert told[str(good.id)]["type"] == "job.finished"
        assert told[str(bad.id)]["data"] == {
            "job": str(bad.id),
            "kind": KIND,
            "graph": None,
            "status": "failed",
            "error_code": "invalid_input",
            "created_by": desk.caller.subject,
        }
        assert len(receiver.ids) == 2
        assert "secret" not in json.dumps(list(told.values()))

    async def test_a_job_that_commits_later_than_its_recorded_time_is_not_missed(
        self, desk: WebhookDesk, receiver: Receiver
    ) -> None:
        made = await desk.make(receiver.url, EventType.JOB_FAILED)
        late = await begun(desk)
        async with desk.db.transaction(desk.caller) as tx:
            await fail(tx, late)
            seen = await ended(desk, fails=True)
            await desk.tell()
            assert [event["data"]["job"] for event in receiver.events(made.secret)] == [str(seen.id)]
        await desk.tell()
        assert [event["data"]["job"] for event in receiver.events(made.secret)] == [str(seen.id), str(late.id)]

    async def test_only_jobs_of_chosen_graphs_are_sent(self, desk: WebhookDesk, receiver: Receiver) -> None:
        chosen = await desk.graph("chosen")
        made = await desk.make(receiver.url, EventType.JOB_FINISHED, graph_ids=[chosen])
        await ended(desk, fails=False, graph_id=await default_id(desk))
        await ended(desk, fails=False)
        job = await ended(desk, fails=False, graph_id=chosen)
        await desk.tell()
        assert [event["data"]["job"] for event in receiver.events(made.secret)] == [str(job.id)]


class TestPeopleAndKeys:
    async def test_keys_are_sent_by_id(self, desk: WebhookDesk, receiver: Receiver) -> None:
        made = await desk.make(receiver.url, EventType.KEY_CREATED, EventType.KEY_REVOKED)
        async with desk.db.transaction(desk.caller) as tx:
            key = (await identity.create_key(tx, NewKey("qzx laptop"), pepper=b"pepper")).key
        await desk.tell()
        async with desk.db.transaction(desk.caller) as tx:
            await identity.revoke_key(tx, key.id)
        for _ in range(2):
            await desk.tell()
        told = [(event["type"], event["data"]) for event in receiver.events(made.secret)]
        data = {"key": str(key.id), "kind": "agent", "created_by": desk.caller.subject}
        assert told == [("key.created", data), ("key.revoked", data)]

    @pytest.mark.proves("security: event-content")
    async def test_a_new_member_is_sent_without_name_or_address(self, desk: WebhookDesk, receiver: Receiver) -> None:
        made = await desk.make(receiver.url, EventType.MEMBER_JOINED)
        person = await joined(Databases(desk.db), desk.caller, Role.MEMBER, pepper=desk.pepper)
        for _ in range(2):
            await desk.tell()
        [event] = receiver.events(made.secret)
        assert (event["type"], event["data"]) == (
            "member.joined",
            {"person": str(person.id), "role": "member"},
        )

    async def test_each_removal_of_a_member_is_sent(self, desk: WebhookDesk, receiver: Receiver) -> None:
        made = await desk.make(receiver.url, EventType.MEMBER_REMOVED)
        person = await joined(Databases(desk.db), desk.caller, Role.READER, pepper=desk.pepper)
        for role in (Role.READER, Role.MEMBER):
            async with desk.db.transaction(desk.caller) as tx:
                await members.add_member(tx, person.id, role)
                await members.remove_member(tx, person.id)
            for _ in range(2):
                await desk.tell()
        told = [(event["type"], event["data"]) for event in receiver.events(made.secret)]
        assert told == [("member.removed", {"person": str(person.id), "role": role}) for role in ("reader", "member")]


class TestStorage:
    async def test_events_beyond_the_limit_of_deliveries_wait_in_their_tables(
        self, desk: WebhookDesk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recollect.webhooks.deliveries.service.MAX_PENDING", 2)
        made = await desk.make(receiver.url)
        for name in "abc":
            await desk.graph(name)
            await desk.write("Ada", graph=name)
        for _ in range(3):
            await worker.collect(desk.worker)
        assert len(await desk.deliveries(made.webhook.id)) == 2
        await desk.tell()
        await desk.tell()
        assert len({event["data"]["graph"] for event in receiver.events(made.secret)}) == 3

    async def test_the_oldest_finished_deliveries_are_deleted_beyond_a_limit(
        self, desk: WebhookDesk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recollect.webhooks.deliveries.service.MAX_STORED", 2)
        made = await desk.make(receiver.url)
        for name in "abcd":
            await desk.write(name)
            await desk.tell()
        await desk.owner.execute("UPDATE webhook_deliveries SET created_at = now() - interval '2 hours'")
        kept = [delivery.id for delivery in await desk.deliveries(made.webhook.id)][:2]
        await desk.write("e")
        await worker.collect(desk.worker)
        assert [delivery.id for delivery in await desk.deliveries(made.webhook.id)][1:] == kept

    async def test_old_deliveries_are_deleted(self, desk: WebhookDesk, receiver: Receiver) -> None:
        made = await desk.make(receiver.url)
        await desk.write("Ada")
        await desk.tell()
        await desk.write("Grace")
        await worker.collect(desk.worker)
        [young, _] = await desk.deliveries(made.webhook.id)
        await desk.owner.execute(
            "UPDATE webhook_deliveries SET created_at = now() - interval '15 days' WHERE id <> $1", young.id
        )
        await cleanup.delete_old_deliveries(desk.worker)
        assert [delivery.id for delivery in await desk.deliveries(made.webhook.id)] == [young.id]


@pytest.mark.proves("security: webhook-turns")
async def test_a_suspended_tenant_gets_no_events(desk: WebhookDesk, receiver: Receiver, operator: Operator) -> None:
    made = await desk.make(receiver.url)
    await desk.test(made.webhook.id)
    await desk.write("Ada")
    await tenants.suspend_tenant(operator, desk.caller.tenant)
    await desk.tell()
    assert await worker._claim(desk.worker, desk.caller.tenant_id) == [], "also where it was found due before"
    assert receiver.ids == []
    await tenants.resume_tenant(operator, desk.caller.tenant)
    await desk.tell()
    assert sorted(event["type"] for event in receiver.events(made.secret)) == ["graph.changed", "webhook.test"]


async def test_erasing_a_tenant_erases_its_webhooks(desk: WebhookDesk, receiver: Receiver, operator: Operator) -> None:
    await desk.make(receiver.url)
    await desk.write("Ada")
    await desk.tell()
    erased = await erase_now(operator, desk.caller.tenant)
    assert (erased["webhooks"], erased["webhook_cursors"], erased["webhook_deliveries"]) == (1, 1, 1)
