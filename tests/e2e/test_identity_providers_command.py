"""`recollect identity-providers …` as an operator types it: a provider is set up, disabled and deleted."""

import os
import subprocess
import sys

import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.settings import Settings
from tests.support.workers import environment

SECONDS = 60
SECRET = "typed-nowhere"


@pytest.fixture
def settings_of_operators(settings: Settings) -> dict[str, str]:
    """Variables of somebody who operates the tests' database, whatever the machine's own say."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    return own | environment(settings)


def typed(variables: dict[str, str], *words: str, line: str = "") -> subprocess.CompletedProcess[str]:
    """The command at its end; `line` is what it reads."""
    command = [sys.executable, "-m", "recollect_cli.main", "identity-providers", *words]
    return subprocess.run(
        command, env=variables, input=line, capture_output=True, text=True, timeout=SECONDS, check=False
    )


async def test_a_provider_is_set_up_on_the_command_line(tenant: Tenant, settings_of_operators: dict[str, str]) -> None:
    new = ("add", tenant.slug, "Acme Login", "https://login.acme.example", "recollect")
    added = typed(settings_of_operators, *new, line=f"{SECRET}\n")
    assert "/sign-in/callback/" in added.stdout, added.stderr
    provider_id = added.stdout.strip().rpartition("/")[2]
    changed = typed(settings_of_operators, "set", tenant.slug, provider_id, "--no-enabled", "--algorithm", "ES256")
    assert changed.returncode == 0, changed.stderr
    listed = typed(settings_of_operators, "list", tenant.slug).stdout
    assert listed.split("\t")[0] == provider_id
    assert listed.rstrip().split("\t")[-2:] == ["ES256", "no"]
    assert SECRET not in listed
    assert typed(settings_of_operators, "delete", tenant.slug, provider_id).returncode == 0
