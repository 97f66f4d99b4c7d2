"""Quotas are isolated by tenant: the use of others neither counts, nor is shown, nor waits."""

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.quotas import store
from recollect.accounts.quotas.service import EMBEDDING, STORING
from recollect.caller import Caller
from recollect.errors import QuotaExceeded
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.quotas import limit
from tests.tenancy.conftest import Neighbour


async def use(http: httpx2.AsyncClient) -> dict[str, tuple[int | None, int | None]]:
    """The limit and the use of each quota, from /v1/plan."""
    return {one["quota"]: (one["limit"], one["used"]) for one in (await http.get("/v1/plan")).json()["quotas"]}


async def test_the_use_of_another_tenant_is_neither_counted_nor_shown(
    neighbours: tuple[Neighbour, Neighbour], operator: Operator
) -> None:
    """Both tenants have equal rows, and then one has many more."""
    mine, other = neighbours
    await other.observe("Ada", *(f"number {n}" for n in range(90)))
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        totals = await store.count_totals(tx)
    plan = await limit(operator, mine.caller.tenant, observations=totals.observations + 1)
    await limit(operator, other.caller.tenant, observations=1)
    await mine.observe("Ada", "there is room for one")
    with pytest.raises(QuotaExceeded) as refused:
        await mine.observe("Ada", "and for no other")
    assert refused.value.message.startswith(
        f"The plan {plan!r} allows {totals.observations + 1} observations. "
        f"There are {totals.observations + 1}, and this would add 1."
    )


@pytest.mark.proves("security: quotas")
@pytest.mark.parametrize("what", [STORING, EMBEDDING])
async def test_a_tenant_does_not_wait_for_the_lock_of_another(
    neighbours: tuple[Neighbour, Neighbour], what: str
) -> None:
    mine, other = neighbours
    async with other.db.transaction(other.caller) as theirs, mine.db.transaction(mine.caller) as tx:
        await store.lock_quota(theirs, what)
        await store.lock_quota(tx, what)


async def test_a_confined_key_and_another_tenant_do_not_see_the_use(
    gateway: RunningGateway,
    key: str,
    db: Database,
    caller: Caller,
    issue: NewApiKey,
    new_tenant: NewTenant,
) -> None:
    entities = [{"name": f"e{n}", "entityType": "thing", "observations": ["says so"]} for n in range(5)]
    async with gateway.http(key) as http:
        assert (await http.post("/v1/graphs/closed/import", json={"entities": entities})).status_code == 200
        told = await use(http)
    assert (told["observations"], told["graphs"]) == ((None, 5), (None, 2))
    async with db.transaction(caller, read_only=True) as tx:
        ids = await graphs.graph_ids(tx, ["default"])
    async with gateway.http((await issue(caller, graph_ids=tuple(ids.values()))).secret) as confined:
        told = await use(confined)
        assert told == dict.fromkeys(told, (None, None)) | {"nodes_per_graph": (None, 0)}
    async with gateway.http((await issue(operator_caller(await new_tenant()))).secret) as other:
        told = await use(other)
        assert told == dict.fromkeys(told, (None, 0)) | {"graphs": (None, 1)}
