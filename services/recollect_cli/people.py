"""`recollect people …`: the accounts of people who sign in, in all tenants."""

from typing import Annotated

from cyclopts import App, Parameter

from recollect.accounts.people import deletion, notices, resets
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Credentials
from recollect.cells.databases import Databases
from recollect.errors import Conflict, NotFound
from recollect.outbound.mail import Mailer
from recollect.postgres.database import Database
from recollect_cli.operations import as_all_cells, pepper
from recollect_cli.running import operator_settings, run_to_end
from recollect_cli.tables import echo

app = App(name="people", help="Reset passwords and delete accounts of people.")


@app.command
def reset_password(email: str, *, tenant: str | None = None) -> None:
    """Print a link with which a person sets a new password. It can be used once and is valid for an hour.

    The link removes passkeys and other ways to sign in that the account has so far. Whoever uses it counts as the
    person of this address in every tenant from then on, so make sure whom you give it to.

    Parameters
    ----------
    email
        E-mail address of the account. Give the link only to its owner.
    tenant
        Slug of the tenant of which the account is, if it is of one alone. Required if the address has several accounts.
    """

    async def work(databases: Databases) -> str:
        account = _chosen(await resets.find_accounts(databases, email, tenant=tenant), tenant)
        return await resets.begin_reset(databases, account.id, pepper=pepper(), within=account.confined_to)

    print(f"{operator_settings().base_url}/reset/{as_all_cells(work)}")


@app.command
def delete(email: str, *, yes: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Delete the account of a person and the invitations to their address, and notify them by e-mail.

    The person must not be a member of a tenant: remove them with `recollect members remove` first. Without a mail
    server, no e-mail is sent.

    Parameters
    ----------
    email
        E-mail address of the account.
    yes
        Confirm the deletion. It cannot be undone.
    """

    async def work(databases: Databases) -> Credentials:
        account = await _account(databases.home, email)
        if yes:
            await deletion.delete_account(databases, account.id)
        else:
            deletion.require_no_member(await people.list_memberships(databases, account.id, within=None, strict=True))
        return account

    account = as_all_cells(work)
    if not yes:
        raise SystemExit(f"This permanently deletes the account of {account.email!r}. Confirm with --yes.")
    mailer = Mailer.of(operator_settings())
    if mailer is not None:
        run_to_end(notices.notify_of_deletion(mailer, account.email, address=None))
    echo(f"The account of {account.email} was deleted.")


def _chosen(accounts: list[Credentials], tenant: str | None) -> Credentials:
    """The account of this tenant, or the only one, or the one of no single tenant. Raises NotFound, Conflict."""
    found = [account for account in accounts if tenant is None or account.tenant == tenant]
    if not found:
        raise NotFound("There is no account with this address.")
    if len(found) > 1 and found[0].tenant is not None:
        tenants = ", ".join(str(account.tenant) for account in found)
        raise Conflict(f"This address has accounts of several tenants: {tenants}. Name one with --tenant.")
    return found[0]


async def _account(db: Database, email: str) -> Credentials:
    account = await resets.find_account(db, email)
    if account is None:
        raise NotFound("There is no account with this address.")
    return account
