"""`recollect people …`: the accounts of people who sign in, in all tenants."""

from typing import Annotated

from cyclopts import App, Parameter

from recollect.accounts.people import deletion, notices, resets
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Credentials
from recollect.errors import NotFound
from recollect.platform.db import Database
from recollect.platform.mail import Mailer
from recollect.settings import Settings
from recollect_cli.operations import as_all_cells, as_system, pepper
from recollect_cli.running import run_to_end

app = App(name="people", help="Reset passwords and delete accounts of people.")


@app.command
def reset_password(email: str) -> None:
    """Print a link with which a person sets a new password. It can be used once and is valid for an hour.

    Parameters
    ----------
    email
        E-mail address of the account. Give the link only to its owner.
    """

    async def work(db: Database) -> str:
        account = await _account(db, email)
        return await resets.begin_reset(db, account.id, pepper=pepper())

    print(f"{Settings().base_url}/reset/{as_system(work)}")


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

    async def work(db: Database) -> Credentials:
        account = await _account(db, email)
        if yes:
            await deletion.delete_account(db, account.id)
        else:
            deletion.require_no_member(await people.list_memberships(db, account.id, within=None, strict=True))
        return account

    account = as_all_cells(work)
    if not yes:
        raise SystemExit(f"This permanently deletes the account of {account.email!r}. Confirm with --yes.")
    mailer = Mailer.of(Settings())
    if mailer is not None:
        run_to_end(notices.tell_of_deletion(mailer, account.email, address=None))


async def _account(db: Database, email: str) -> Credentials:
    account = await resets.find_account(db, email)
    if account is None:
        raise NotFound("There is no account with this address.")
    return account
