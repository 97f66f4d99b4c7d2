"""Every page with a new password looks it up among breached ones."""

import hashlib

import pytest

from recollect.accounts.members import service as members
from recollect.accounts.people import resets
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.gateway import serving
from tests.support.people import PASSWORD, browser, joined, new_email, sign_in, submit
from tests.support.web_server import plain, web_server

BREACHED = "ochre kettle beneath the pier"


@pytest.mark.proves("security: breached-passwords")
async def test_every_page_with_a_new_password_looks_it_up(
    db: Database, databases: Databases, caller: Caller, settings: Settings
) -> None:
    suffix = hashlib.sha1(BREACHED.encode()).hexdigest()[5:].upper()
    pepper = settings.key_secret.get_secret_value().encode()
    person = await joined(databases, caller, Role.READER, pepper=pepper)
    reset = f"/reset/{await resets.begin_reset(databases, person.id, pepper=pepper)}"
    async with db.transaction(caller) as tx:
        join = f"/join/{(await members.invite(tx, new_email(), Role.READER, pepper=pepper)).secret}"
    async with web_server(plain(f"{suffix}:9".encode(), "Content-Type: text/plain")) as server:
        update = {
            "breached_passwords_url": f"http://127.0.0.1:{server.port}/range",
            "outbound_networks": ["127.0.0.0/8"],
        }
        with serving(settings.model_copy(update=update)) as gateway:
            async with browser(gateway) as http:
                answers = [
                    await submit(http, reset, password=BREACHED),
                    await submit(http, join, name="Grace", password=BREACHED),
                ]
                await sign_in(http, person.email)
                fields = {"old_password": PASSWORD, "password": BREACHED}
                answers.append(await submit(http, "/account", "/account/password", **fields))
    assert [answer.status_code for answer in answers] == [400, 400, 400]
    assert all("stolen from another service" in answer.text for answer in answers)
    assert len(server.requests) == 3
