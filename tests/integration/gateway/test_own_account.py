"""The account page: ending grants, leaving organisations, and deleting the account."""

import re
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import Approval, TokenTimes, authorization_server
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import Unauthenticated
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway
from tests.support.people import PASSWORD, browser, joined, sign_in, submit

RESOURCE = "https://memory.example.com/mcp"
CLIENT = "https://client.example.com/oauth.json"
DELETE = "/account/delete"


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def other_caller(new_tenant: NewTenant) -> Caller:
    """The operator of another tenant."""
    return operator_caller(await new_tenant())


@pytest.fixture
async def person(databases: Databases, caller: Caller, pepper: bytes) -> Person:
    """A member of the test's tenant."""
    return await joined(databases, caller, Role.MEMBER, pepper=pepper)


@pytest.fixture
async def http(gateway: RunningGateway, person: Person) -> AsyncIterator[httpx2.AsyncClient]:
    """The person's browser, signed in."""
    async with browser(gateway) as client:
        assert (await sign_in(client, person.email)).status_code == 303
        yield client


async def give_grant(
    databases: Databases,
    caller: Caller,
    person: Person,
    pepper: bytes,
    *,
    name: str = "Claude",
    graph: str | None = None,
) -> str:
    """An access token of a grant that the person gave to a client in the caller's tenant."""
    [membership] = [
        each
        for each in await people.list_memberships(databases, person.id, within=None)
        if each.tenant_id == caller.tenant_id
    ]
    async with databases.home.transaction(grants.approving(membership, person.id)) as tx:
        ids = (await graphs.get_graph(tx, graph)).id if graph else None
        code = await grants.approve(
            tx,
            Approval(
                person.id, CLIENT, name, ("memory:read",), (ids,) if ids else None, None, RESOURCE, "http://x", "c"
            ),
            pepper=pepper,
        )
    async with databases.home.transaction(authorization_server(caller.tenant_id)) as tx:
        presented = await grants.present_code(tx, code, CLIENT, pepper=pepper)
        assert presented is not None
        times = TokenTimes.of(Settings())
        return (await grants.redeem_code(tx, presented, refreshes=True, times=times, pepper=pepper)).access


async def holds(databases: Databases, token: str, pepper: bytes) -> bool:
    try:
        await grants.authenticate(databases, token, resource=RESOURCE, pepper=pepper)
    except Unauthenticated:
        return False
    return True


async def post(http: httpx2.AsyncClient, action: str, token: str | None = None) -> httpx2.Response:
    shown = (await http.get("/account")).text
    token = token or re.findall(r'name="form_token" value="(\w+)"', shown)[0]
    return await http.post(action, data={"form_token": token})


def ends(page: str) -> list[str]:
    return re.findall(r'action="(/account/grants/[0-9a-f-]+/end)"', page)


class TestGrants:
    @pytest.mark.proves("security: clients-of-a-person")
    async def test_grants_are_listed_and_ended(
        self,
        http: httpx2.AsyncClient,
        db: Database,
        databases: Databases,
        caller: Caller,
        person: Person,
        pepper: bytes,
    ) -> None:
        async with db.transaction(caller) as tx:
            await graphs.create_graph(tx, NewGraph("notebook"))
        token = await give_grant(databases, caller, person, pepper, name="<Claude>", graph="notebook")
        shown = (await http.get("/account")).text
        for told in ("&lt;Claude&gt;", "memory:read", "notebook"):
            assert told in shown
        [action] = ends(shown)
        assert (await post(http, action, "0" * 64)).status_code == 403
        assert await holds(databases, token, pepper)
        assert (await post(http, action)).status_code == 303
        assert not await holds(databases, token, pepper)
        assert ends((await http.get("/account")).text) == []
        async with db.transaction(caller, read_only=True) as tx:
            [grant] = await grants.list_grants(tx, person_id=person.id)
        assert grant.revoked_by == f"person:{person.id}"

    @pytest.mark.proves("security: clients-of-a-person")
    async def test_grants_in_every_tenant_are_listed_and_nobody_elses(
        self,
        http: httpx2.AsyncClient,
        db: Database,
        databases: Databases,
        caller: Caller,
        other_caller: Caller,
        person: Person,
        pepper: bytes,
    ) -> None:
        neighbour = await joined(databases, caller, Role.MEMBER, pepper=pepper)
        stranger = await joined(databases, other_caller, Role.OWNER, pepper=pepper)
        theirs = [
            await give_grant(databases, caller, neighbour, pepper, name="Neighbours client"),
            await give_grant(databases, other_caller, stranger, pepper, name="Strangers client"),
        ]
        mine = await give_grant(databases, caller, person, pepper)
        shown = (await http.get("/account")).text
        assert "Neighbours" not in shown
        assert "Strangers" not in shown
        [action] = ends(shown)
        for each, tenant in ((neighbour, caller), (stranger, other_caller)):
            async with db.transaction(tenant, read_only=True) as tx:
                [grant] = await grants.list_grants(tx, person_id=each.id)
            foreign = await post(http, f"/account/grants/{grant.id}/end")
            unknown = await post(http, f"/account/grants/{uuid4()}/end")
            assert (foreign.status_code, foreign.text) == (404, unknown.text)
        assert [await holds(databases, token, pepper) for token in (*theirs, mine)] == [True, True, True]
        assert (await post(http, action)).status_code == 303


class TestLeaving:
    @pytest.mark.proves("security: clients-of-a-person")
    async def test_a_person_who_leaves_loses_membership_and_grants(
        self, http: httpx2.AsyncClient, databases: Databases, caller: Caller, person: Person, pepper: bytes
    ) -> None:
        token = await give_grant(databases, caller, person, pepper)
        action = f"/account/organisations/{caller.tenant}/leave"
        assert action in (await http.get("/account")).text
        assert (await post(http, action, "0" * 64)).status_code == 403
        assert (await post(http, action)).status_code == 303
        shown = (await http.get("/account")).text
        assert f"/t/{caller.tenant}/mcp" not in shown
        assert not await holds(databases, token, pepper)

    async def test_the_last_owner_cannot_leave(
        self, gateway: RunningGateway, databases: Databases, caller: Caller, pepper: bytes
    ) -> None:
        owner = await joined(databases, caller, Role.OWNER, pepper=pepper)
        async with browser(gateway) as http:
            await sign_in(http, owner.email)
            answer = await post(http, f"/account/organisations/{caller.tenant}/leave")
            assert (answer.status_code, "last owner" in answer.text) == (409, True)
            assert f"/t/{caller.tenant}/mcp" in (await http.get("/account")).text

    @pytest.mark.proves("security: clients-of-a-person")
    async def test_another_tenant_looks_like_one_that_does_not_exist(
        self, http: httpx2.AsyncClient, other_caller: Caller
    ) -> None:
        foreign = await post(http, f"/account/organisations/{other_caller.tenant}/leave")
        unknown = await post(http, "/account/organisations/nowhere/leave")
        assert (foreign.status_code, foreign.text) == (404, unknown.text)


class TestDeleting:
    async def test_a_person_without_memberships_deletes_their_account_with_their_password(
        self, http: httpx2.AsyncClient, gateway: RunningGateway, databases: Databases, caller: Caller, person: Person
    ) -> None:
        async with browser(gateway) as elsewhere:
            await sign_in(elsewhere, person.email)
            await post(http, f"/account/organisations/{caller.tenant}/leave")
            wrong = await submit(http, "/account", DELETE, password="violet tractor under grass")
            assert (wrong.status_code, "not your current password" in wrong.text) == (400, True)
            deleted = await submit(http, "/account", DELETE, password=PASSWORD)
            assert (deleted.status_code, "Your account is deleted" in deleted.text) == (200, True)
            for each in (http, elsewhere):
                assert (await each.get("/account")).headers["location"].startswith("/sign-in"), "signed out everywhere"
        assert "session" not in " ".join(http.cookies)
        assert (await sign_in(http, person.email)).status_code == 401
        again = await joined(databases, caller, Role.READER, pepper=b"pepper", email=person.email)
        assert (await sign_in(http, person.email)).status_code == 303
        assert again.id != person.id

    async def test_a_member_must_leave_before_deleting_the_account(
        self, http: httpx2.AsyncClient, db: Database, caller: Caller, person: Person
    ) -> None:
        shown = (await http.get("/account")).text
        assert "First leave every organisation" in shown
        assert DELETE not in shown
        refused = await submit(http, "/account", DELETE, password=PASSWORD)
        assert (refused.status_code, f"({caller.tenant})" in refused.text) == (409, True)
        assert await people.is_known(db, person.email)

    async def test_a_form_of_another_site_deletes_nothing(
        self, http: httpx2.AsyncClient, db: Database, caller: Caller, person: Person
    ) -> None:
        await post(http, f"/account/organisations/{caller.tenant}/leave")
        forged = await http.post(DELETE, data={"form_token": "0" * 64, "password": PASSWORD})
        assert forged.status_code == 403
        assert await people.is_known(db, person.email)


async def test_no_table_has_an_empty_heading(http: httpx2.AsyncClient) -> None:
    """Screen readers read the heading with each cell."""
    headings = re.findall(r"<th\b[^>]*>(.*?)</th>", (await http.get("/account")).text)
    assert "Browser" in headings
    assert all(headings)


async def test_a_person_who_is_not_signed_in_cannot_end_anything(gateway: RunningGateway) -> None:
    async with browser(gateway) as http:
        shown = (await http.get("/sign-in")).text
        token = re.findall(r'name="form_token" value="(\w+)"', shown)[0]
        for action in (f"/account/grants/{uuid4()}/end", "/account/organisations/acme/leave"):
            answer = await http.post(action, data={"form_token": token})
            assert answer.status_code == 303
