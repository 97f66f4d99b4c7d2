"""`recollect people …`: those who sign in, whichever tenants they are members of."""

from cyclopts import App

from recollect.accounts.people import resets
from recollect.errors import NotFound
from recollect.platform.db import Database
from recollect.settings import Settings
from recollect_cli.operations import as_system, pepper

app = App(name="people", help="Help people who cannot sign in.")


@app.command
def reset_password(email: str) -> None:
    """Print a link by which somebody takes another password. It is used once, and holds for an hour.

    Parameters
    ----------
    email
        The address of the account. Give the link to nobody else.
    """

    async def work(db: Database) -> str:
        account = await resets.find_account(db, email)
        if account is None:
            raise NotFound("There is no account with this address.")
        return await resets.begin_reset(db, account.id, pepper=pepper())

    print(f"{Settings().base_url}/reset/{as_system(work)}")
