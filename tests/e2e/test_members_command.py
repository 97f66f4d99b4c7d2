"""`recollect members …` and `recollect people …` as an operator types them, from the first owner on."""

import os
import subprocess
import sys

import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller, Role
from recollect.platform.db import Database
from recollect.settings import Settings
from tests.support.gateway import RunningGateway
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
    people = listed()
    assert {email: role for email, (_, role) in people.items()} == {first: "owner", second: "reader"}
    last = typed(settings_of_operators, "members", "remove", tenant.slug, people[first][0])
    assert (last.returncode, "last owner" in last.stderr) == (1, True)
    assert typed(settings_of_operators, "members", "set-role", tenant.slug, people[second][0], "owner").returncode == 0
    assert typed(settings_of_operators, "members", "remove", tenant.slug, people[first][0]).returncode == 0
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
