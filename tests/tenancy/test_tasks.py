"""A task of another tenant looks like an unknown one when it is read, subscribed to or cancelled."""

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.jobs import service as jobs
from recollect.jobs.kinds import REINDEX_PASSAGES
from recollect.jobs.model import Job, NewJob
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.integration.gateway.test_subscriptions import acknowledged
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.guards import Attacked, ids_of
from tests.support.tasks import KNOWS_TASKS, NOBODYS, TaskClient
from tests.tenancy.conftest import Neighbour

Neighbours = tuple[Neighbour, Neighbour]
METHODS = ("tasks/get", "tasks/update", "tasks/cancel")


async def test_a_task_of_another_tenant_looks_like_an_unknown_one(
    gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant
) -> None:
    owners, strangers = [(await issue(operator_caller(await new_tenant()))).secret for _ in range(2)]
    async with gateway.http(owners) as http, gateway.http(strangers) as other:
        owner, stranger = TaskClient(http), TaskClient(other)
        for client in (owner, stranger):
            await client.call("create_entities", entities=[{"name": "A", "entityType": "t", "observations": []}])
        task_id, own = await owner.begin("reindex"), await stranger.begin("reindex")
        for method in METHODS:
            assert await stranger.refusal(method, task_id) == await stranger.refusal(method, NOBODYS)
        assert (await owner.get(task_id))["status"] == "working"
    told = await acknowledged(gateway, strangers, {"taskIds": [task_id, NOBODYS, own]}, KNOWS_TASKS)
    assert told == {"taskIds": [own]}


@pytest.mark.proves("security: tasks")
async def test_with_each_guard_alone_no_task_is_revealed_or_ended(
    attacked: Attacked, issue: NewApiKey, db: Database, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    assert await _attack(attacked, issue, db, neighbours, owner) == (set(), False)


async def test_without_guards_the_task_is_revealed_and_ended(
    unguarded: Attacked, issue: NewApiKey, db: Database, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    """This shows that the guards are what hides it."""
    assert await _attack(unguarded, issue, db, neighbours, owner) == (set(METHODS), True)


async def _attack(
    attacked: Attacked, issue: NewApiKey, db: Database, neighbours: Neighbours, owner: asyncpg.Connection
) -> tuple[set[str], bool]:
    """The methods that answer a stranger about a victim's task, and whether the task is ended then."""
    stranger, victim = neighbours
    job = await _job_of(db, victim)
    ids = await ids_of(db, stranger.caller), await ids_of(db, victim.caller)
    key = (await issue(stranger.caller)).secret
    async with attacked.gateway.http(key) as http:
        with attacked.by(*ids):
            answers = {method: await TaskClient(http).ask(method, str(job.id)) for method in METHODS}
    status = await owner.fetchval("SELECT status FROM jobs WHERE id = $1", job.id)
    return {method for method, answer in answers.items() if "result" in answer}, status == "cancelled"


async def _job_of(db: Database, victim: Neighbour) -> Job:
    graph_id = (await ids_of(db, victim.caller))["graph"]
    async with db.transaction(victim.caller) as tx:
        return await jobs.schedule(tx, NewJob(REINDEX_PASSAGES, graph_id, {}))
