"""`recollect plans` and `recollect tenants set-plan` as an operator types them."""

from pathlib import Path

import pytest

from recollect.accounts.plans.model import LIMITS
from recollect.accounts.tenants.model import Tenant
from recollect.settings import Settings
from tests.support.commands import Shell


@pytest.fixture
def shell(settings: Settings, tmp_path: Path) -> Shell:
    """The shell of an operator."""
    variables = {
        "RECOLLECT_DATABASE_URL": settings.database_url,
        "RECOLLECT_OWNER_DATABASE_URL": settings.migration_url,
    }
    return Shell(tmp_path, variables)


async def rows(shell: Shell, *words: str) -> list[list[str]]:
    done = await shell.run(*words)
    assert done.code == 0, done.err
    return [line.split("\t") for line in done.out.decode().splitlines()]


async def test_a_plan_is_created_changed_and_assigned(shell: Shell, tenant: Tenant) -> None:
    [made] = await rows(shell, "plans", "set", "trial", "--graphs", "2", "--stored-bytes", "1000000")
    assert dict(zip(LIMITS, made[1:], strict=True)) == dict.fromkeys(LIMITS, "none") | {
        "graphs": "2",
        "stored_bytes": "1000000",
    }
    [changed] = await rows(shell, "plans", "set", "trial", "--graphs", "none", "--concurrent-calls", "4")
    assert (changed[1], changed[4], changed[8]) == ("none", "1000000", "4")
    assert changed in await rows(shell, "plans", "list")
    [given] = await rows(shell, "tenants", "set-plan", tenant.slug, "trial")
    assert given[:4] == [tenant.slug, tenant.name, "active", "trial"]
    [created] = await rows(shell, "tenants", "create", "on-trial", "--plan", "trial")
    assert created[3] == "trial"
    assert [row[3] for row in await rows(shell, "tenants", "list") if row[0] in (tenant.slug, "on-trial")] == [
        "trial",
        "trial",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plans", "set", "trial", "--graphs", "0"), "graphs: A limit is a number from 1"),
        (("plans", "set", "Trial"), "name: A plan's name has"),
        (("plans", "set", "trial", "--graphs", "some"), "some"),
        (("tenants", "create", "of-no-plan", "--plan", "no-such"), "There is no plan 'no-such'"),
    ],
)
async def test_each_error_is_one_sentence(shell: Shell, words: tuple[str, ...], said: str) -> None:
    done = await shell.run(*words)
    assert done.code != 0
    assert said in done.err + done.out.decode()
    assert "Traceback" not in done.err
