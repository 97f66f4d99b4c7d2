"""`recollect members …` as an operator types it: the first owner is invited, joins, and makes way for another."""

import os
import subprocess
import sys

import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.settings import Settings
from tests.support.gateway import RunningGateway
from tests.support.people import PASSWORD, browser, new_email, submit
from tests.support.workers import environment

SECONDS = 60


@pytest.fixture
def settings_of_operators(settings: Settings) -> dict[str, str]:
    """Variables of somebody who operates the tests' database, whatever the machine's own say."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    return own | environment(settings)


def typed(variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """The command at its end."""
    command = [sys.executable, "-m", "recollect_cli.main", "members", *words]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False)


async def test_the_first_owner_is_invited_on_the_command_line(
    gateway: RunningGateway, tenant: Tenant, settings_of_operators: dict[str, str]
) -> None:
    async def join(role: str) -> str:
        email = new_email()
        link = typed(settings_of_operators, "invite", tenant.slug, email, "--role", role).stdout.strip()
        async with browser(gateway) as http:
            answer = await submit(http, "/join/" + link.rpartition("/")[2], name="Ada", password=PASSWORD)
        assert answer.status_code == 303
        return email

    def listed() -> dict[str, tuple[str, str]]:
        lines = typed(settings_of_operators, "list", tenant.slug).stdout.splitlines()
        return {email: (person_id, role) for person_id, email, _, role in (line.split("\t") for line in lines)}

    first = await join("owner")
    second = await join("reader")
    people = listed()
    assert {email: role for email, (_, role) in people.items()} == {first: "owner", second: "reader"}
    last = typed(settings_of_operators, "remove", tenant.slug, people[first][0])
    assert (last.returncode, "last owner" in last.stderr) == (1, True)
    assert typed(settings_of_operators, "set-role", tenant.slug, people[second][0], "owner").returncode == 0
    assert typed(settings_of_operators, "remove", tenant.slug, people[first][0]).returncode == 0
    assert {email: role for email, (_, role) in listed().items()} == {second: "owner"}
