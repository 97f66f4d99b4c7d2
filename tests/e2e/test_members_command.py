"""`recollect members …` and `recollect people …` as an operator types them, from the first owner on."""

from pathlib import Path

import asyncpg
import pytest

from recollect.accounts.people import service as people
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.commands import Shell
from tests.support.gateway import RunningGateway
from tests.support.mail_server import mail_server
from tests.support.people import PASSWORD, browser, joined, new_email, sign_in, submit
from tests.support.workers import environment


@pytest.fixture
def operators(settings: Settings, tmp_path: Path) -> Shell:
    """A shell of an operator of the tests' database."""
    return Shell(tmp_path, environment(settings))


async def test_the_first_owner_is_invited_on_the_command_line(
    gateway: RunningGateway, tenant: Tenant, operators: Shell
) -> None:
    async def join(role: str) -> str:
        email = new_email()
        link = (await operators.run("members", "invite", tenant.slug, email, "--role", role)).text.strip()
        async with browser(gateway) as http:
            answer = await submit(http, "/join/" + link.rpartition("/")[2], name="Ada", password=PASSWORD)
        assert answer.status_code == 303
        return email

    async def listed() -> dict[str, tuple[str, str]]:
        lines = (await operators.run("members", "list", tenant.slug)).text.splitlines()
        return {email: (person_id, role) for person_id, email, _, role in (line.split("\t") for line in lines)}

    first = await join("owner")
    second = await join("reader")
    people_by_email = await listed()
    assert {email: role for email, (_, role) in people_by_email.items()} == {first: "owner", second: "reader"}
    last = await operators.run("members", "remove", tenant.slug, people_by_email[first][0])
    assert (last.code, "last owner" in last.err) == (1, True)
    assert (await operators.run("members", "set-role", tenant.slug, people_by_email[second][0], "owner")).code == 0
    assert (await operators.run("members", "remove", tenant.slug, people_by_email[first][0])).code == 0
    assert {email: role for email, (_, role) in (await listed()).items()} == {second: "owner"}


async def test_an_operator_resets_a_forgotten_password(
    gateway: RunningGateway, databases: Databases, caller: Caller, settings: Settings, operators: Shell
) -> None:
    pepper = settings.key_secret.get_secret_value().encode()
    person = await joined(databases, caller, Role.READER, pepper=pepper)
    link = (await operators.run("people", "reset-password", person.email)).text.strip()
    async with browser(gateway) as http:
        await submit(http, "/reset/" + link.rpartition("/")[2], password="seven lanterns over harbour mud")
        assert (await sign_in(http, person.email)).status_code == 401
    nobody = await operators.run("people", "reset-password", "nobody@example.com")
    assert (nobody.code, "no account" in nobody.err) == (1, True)


async def test_an_operator_deletes_an_account_once_it_has_no_memberships(
    gateway: RunningGateway, db: Database, databases: Databases, caller: Caller, settings: Settings, operators: Shell
) -> None:
    pepper = settings.key_secret.get_secret_value().encode()
    person = await joined(databases, caller, Role.READER, pepper=pepper)
    for more in ((), ("--yes",)):
        refused = await operators.run("people", "delete", person.email, *more)
        assert (refused.code, f"({caller.tenant})" in refused.err) == (1, True), refused.err
    assert (await operators.run("members", "remove", caller.tenant, str(person.id))).code == 0
    asked = await operators.run("people", "delete", person.email)
    assert (asked.code, "Confirm with --yes" in asked.err) == (1, True)
    assert await people.is_known(db, person.email)
    done = await operators.run("people", "delete", person.email.upper(), "--yes")
    assert done.code == 0, done.err
    assert not await people.is_known(db, person.email)
    nobody = await operators.run("people", "delete", person.email, "--yes")
    assert (nobody.code, "no account" in nobody.err) == (1, True)


async def test_a_person_is_notified_when_an_operator_deletes_their_account(
    databases: Databases, operators: Shell
) -> None:
    person = await people.register(databases, new_email(), "Ada", PASSWORD)
    async with mail_server() as mail:
        sending = {
            "RECOLLECT_MAIL_URL": f"smtp://127.0.0.1:{mail.port}",
            "RECOLLECT_MAIL_FROM": "memory@example.com",
        }
        words = "people", "delete", person.email, "--yes"
        done = await operators.with_variables(**sending).run(*words)
        assert done.code == 0, done.err
        await mail.wait_for_messages(1)
    [message] = mail.messages
    assert (message["To"], message["Subject"]) == (person.email, "Your account was deleted on Recollect")
    assert "by an operator of Recollect" in message.get_content()


async def test_an_operator_of_several_cells_deletes_every_copy(
    celled: Settings, cells: Databases, resident: Caller, owner_b: asyncpg.Connection, tmp_path: Path
) -> None:
    person = await joined(cells, resident, Role.READER, pepper=b"pepper")
    operators = Shell(tmp_path, environment(celled))
    refused = await operators.run("people", "delete", person.email, "--yes")
    assert (refused.code, f"({resident.tenant})" in refused.err) == (1, True), refused.err
    assert (await operators.run("members", "remove", resident.tenant, str(person.id))).code == 0
    done = await operators.run("people", "delete", person.email, "--yes")
    assert done.code == 0, done.err
    assert await owner_b.fetchval("SELECT count(*) FROM people WHERE id = $1", person.id) == 0
    assert not await people.is_known(cells.home, person.email)
