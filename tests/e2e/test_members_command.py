"""`recollect members …` and `recollect people …` as an operator types them, from the first owner on."""

import asyncio
import os
import subprocess
import sys

import asyncpg
import pytest

from recollect.accounts.people import service as people
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller, Role
from recollect.platform.cells.service import Cells
from recollect.platform.db import Database
from recollect.settings import Settings
from tests.support.gateway import RunningGateway
from tests.support.mail_server import mail_server
from tests.support.people import PASSWORD, browser, joined, new_email, sign_in, submit
from tests.support.workers import environment

SECONDS = 60


@pytest.fixture
def settings_of_operators(settings: Settings) -> dict[str, str]:
    """Variables of somebody who operates the tests' database, whatever the machine's own say."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    return own | environment(settings)


def typed(variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """The command at its end."""
    command = [sys.executable, "-m", "recollect_cli.main", *words]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False)


async def test_the_first_owner_is_invited_on_the_command_line(
    gateway: RunningGateway, tenant: Tenant, settings_of_operators: dict[str, str]
) -> None:
    async def join(role: str) -> str:
        email = new_email()
        link = typed(settings_of_operators, "members", "invite", tenant.slug, email, "--role", role).stdout.strip()
        async with browser(gateway) as http:
            answer = await submit(http, "/join/" + link.rpartition("/")[2], name="Ada", password=PASSWORD)
        assert answer.status_code == 303
        return email

    def listed() -> dict[str, tuple[str, str]]:
        lines = typed(settings_of_operators, "members", "list", tenant.slug).stdout.splitlines()
        return {email: (person_id, role) for person_id, email, _, role in (line.split("\t") for line in lines)}

    first = await join("owner")
    second = await join("reader")
    people_by_email = listed()
    assert {email: role for email, (_, role) in people_by_email.items()} == {first: "owner", second: "reader"}
    last = typed(settings_of_operators, "members", "remove", tenant.slug, people_by_email[first][0])
    assert (last.returncode, "last owner" in last.stderr) == (1, True)
    assert (
        typed(settings_of_operators, "members", "set-role", tenant.slug, people_by_email[second][0], "owner").returncode
        == 0
    )
    assert typed(settings_of_operators, "members", "remove", tenant.slug, people_by_email[first][0]).returncode == 0
    assert {email: role for email, (_, role) in listed().items()} == {second: "owner"}


async def test_an_operator_helps_who_forgot_a_password(
    gateway: RunningGateway, db: Database, caller: Caller, settings: Settings, settings_of_operators: dict[str, str]
) -> None:
    pepper = settings.key_secret.get_secret_value().encode()
    person = await joined(db, caller, Role.READER, pepper=pepper)
    link = typed(settings_of_operators, "people", "reset-password", person.email).stdout.strip()
    async with browser(gateway) as http:
        await submit(http, "/reset/" + link.rpartition("/")[2], password="seven lanterns over harbour mud")
        assert (await sign_in(http, person.email)).status_code == 401
    nobody = typed(settings_of_operators, "people", "reset-password", "nobody@example.com")
    assert (nobody.returncode, "no account" in nobody.stderr) == (1, True)


async def test_an_operator_deletes_the_account_of_who_cannot(
    gateway: RunningGateway, db: Database, caller: Caller, settings: Settings, settings_of_operators: dict[str, str]
) -> None:
    pepper = settings.key_secret.get_secret_value().encode()
    person = await joined(db, caller, Role.READER, pepper=pepper)
    for more in ((), ("--yes",)):
        refused = typed(settings_of_operators, "people", "delete", person.email, *more)
        assert (refused.returncode, f"({caller.tenant})" in refused.stderr) == (1, True), refused.stderr
    assert typed(settings_of_operators, "members", "remove", caller.tenant, str(person.id)).returncode == 0
    asked = typed(settings_of_operators, "people", "delete", person.email)
    assert (asked.returncode, "Say --yes" in asked.stderr) == (1, True)
    assert await people.is_known(db, person.email)
    done = typed(settings_of_operators, "people", "delete", person.email.upper(), "--yes")
    assert done.returncode == 0, done.stderr
    assert not await people.is_known(db, person.email)
    nobody = typed(settings_of_operators, "people", "delete", person.email, "--yes")
    assert (nobody.returncode, "no account" in nobody.stderr) == (1, True)


async def test_whose_account_an_operator_deletes_is_told(db: Database, settings_of_operators: dict[str, str]) -> None:
    person = await people.register(db, new_email(), "Ada", PASSWORD)
    async with mail_server() as mail:
        sending = {
            "RECOLLECT_MAIL_URL": f"smtp://127.0.0.1:{mail.port}",
            "RECOLLECT_MAIL_FROM": "memory@example.com",
        }
        words = "people", "delete", person.email, "--yes"
        done = await asyncio.to_thread(typed, settings_of_operators | sending, *words)
        assert done.returncode == 0, done.stderr
        await mail.wait_for_messages(1)
    [message] = mail.messages
    assert (message["To"], message["Subject"]) == (person.email, "Your account was deleted on Recollect")
    assert "by an operator of Recollect" in message.get_content()


async def test_an_operator_of_several_cells_deletes_every_copy(
    celled: Settings, cells: Cells, resident: Caller, owner_b: asyncpg.Connection
) -> None:
    person = await joined(cells, resident, Role.READER, pepper=b"pepper")
    own = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    variables = own | environment(celled)
    refused = typed(variables, "people", "delete", person.email, "--yes")
    assert (refused.returncode, f"({resident.tenant})" in refused.stderr) == (1, True), refused.stderr
    assert typed(variables, "members", "remove", resident.tenant, str(person.id)).returncode == 0
    done = typed(variables, "people", "delete", person.email, "--yes")
    assert done.returncode == 0, done.stderr
    assert await owner_b.fetchval("SELECT count(*) FROM people WHERE id = $1", person.id) == 0
    assert not await people.is_known(cells, person.email)
