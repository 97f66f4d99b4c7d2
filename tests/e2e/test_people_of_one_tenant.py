"""`recollect people reset-password` for an address with accounts of several tenants."""

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.people import resets
from recollect.caller import Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.e2e.test_members_command import operators
from tests.support.commands import Shell
from tests.support.gateway import RunningGateway
from tests.support.people import PASSWORD, browser, new_email, sign_in, submit

ANOTHER = "seven lanterns over harbour mud"

__all__ = ["operators"]


async def test_an_operator_names_the_tenant_of_the_account(
    gateway: RunningGateway,
    db: Database,
    databases: Databases,
    new_tenant: NewTenant,
    settings: Settings,
    operators: Shell,
    subtests: pytest.Subtests,
) -> None:
    email, tenants = new_email(), [await new_tenant() for _ in range(2)]
    for tenant in tenants:
        async with db.transaction(operator_caller(tenant)) as tx:
            issued = await members.invite(tx, email, Role.READER, pepper=settings.pepper)
        invitation = await members.open_invitation(databases, issued.secret, pepper=settings.pepper)
        await members.join_with_new_account(databases, invitation, "Ada", PASSWORD)
    with subtests.test("no tenant is named"):
        refused = await operators.run("people", "reset-password", email)
        assert refused.code == 1
        assert all(tenant.slug in refused.err for tenant in tenants)
        assert "--tenant" in refused.err
    with subtests.test("the link proves the address for that account"):
        words = ("people", "reset-password", email, "--tenant", tenants[1].slug)
        link = (await operators.run(*words)).text.strip()
        async with browser(gateway) as http:
            await submit(http, "/reset/" + link.rpartition("/")[2], password=ANOTHER)
            assert (await sign_in(http, email, ANOTHER)).status_code == 303
            account = (await http.get("/account")).text
        assert tenants[1].slug in account
        assert tenants[0].slug not in account
        found = [account.tenant for account in await resets.find_accounts(databases, email)]
        assert found == [None, tenants[0].slug]
