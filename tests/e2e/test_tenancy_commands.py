"""`recollect keys` and `recollect members` by a gateway, as the admin of a tenant types them, and for operators."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.commands import Shell
from tests.support.gateway import RunningGateway, eventually
from tests.support.people import joined, new_email
from tests.support.workers import environment


@dataclass(frozen=True)
class Shells:
    """An admin, who has the address of a gateway and a key, and an operator, who has the database."""

    admin: Shell
    operator: Shell

    async def rows(self, shell: Shell, *words: str) -> list[list[str]]:
        done = await shell.run(*words)
        assert done.code == 0, done.err
        return [line.split("\t") for line in done.text.splitlines()]


@pytest.fixture
def shells(gateway: RunningGateway, admin_key: str, settings: Settings, tmp_path: Path) -> Shells:
    admin = Shell(tmp_path, {"RECOLLECT_URL": gateway.url, "RECOLLECT_API_KEY": admin_key})
    return Shells(admin, Shell(tmp_path, environment(settings)))


async def test_an_admin_manages_keys_without_the_database(
    shells: Shells, gateway: RunningGateway, tenant: Tenant
) -> None:
    made = await shells.admin.run(
        "keys", "create", "laptop of Ada", "--scope", "memory:read", "--graph", "default", "--expires", "2099-01-31"
    )
    assert made.code == 0, made.err
    secret = made.text.strip()
    assert made.err.startswith("Created the key 'laptop of Ada' with the id ")
    async with gateway.http(secret) as http:
        answer = (await http.get("/v1/tenant")).json()
    assert answer["slug"] == tenant.slug

    async def all_were_used() -> bool:
        return all(row[4] != "never" for row in await shells.rows(shells.admin, "keys", "list"))

    await eventually(all_were_used)  # That a key was used is written after its call.
    rows = await shells.rows(shells.admin, "keys", "list")
    [listed] = [row for row in rows if row[1] == "laptop of Ada"]
    assert (listed[3], listed[5]) == ("memory:read", "active")
    assert await shells.rows(shells.operator, "keys", "list", tenant.slug) == rows, "the database has the same"
    document = json.loads((await shells.admin.run("keys", "list", "--json")).out)
    assert [key["id"] for key in document["items"]] == [row[0] for row in rows]
    [[newer]] = await shells.rows(shells.admin, "keys", "rotate", listed[0], "--overlap-hours", "0")
    assert newer.startswith("rcl_agent_")
    assert newer != secret
    [revoked] = await shells.rows(shells.admin, "keys", "revoke", listed[0])
    assert (revoked[0], revoked[5]) == (listed[0], "revoked")


async def test_an_admin_manages_members_without_the_database(
    shells: Shells, databases: Databases, caller: Caller, tenant: Tenant, settings: Settings
) -> None:
    pepper, email = settings.key_secret.get_secret_value().encode(), new_email()
    owner = await joined(databases, caller, Role.OWNER, pepper=pepper)
    reader = await joined(databases, caller, Role.READER, pepper=pepper)
    [[link]] = await shells.rows(shells.admin, "members", "invite", email, "--role", "member")
    assert "/join/" in link
    rows = await shells.rows(shells.admin, "members", "list")
    assert await shells.rows(shells.operator, "members", "list", tenant.slug) == rows
    by_email = {row[1]: row for row in rows}
    assert by_email.keys() == {owner.email, reader.email, email}
    assert by_email[email][2].startswith("(invited until ")
    changed = await shells.admin.run("members", "set-role", str(reader.id), "member")
    assert (changed.code, changed.out, changed.err) == (0, b"", f"{reader.id} is member now.\n")
    removed = await shells.admin.run("members", "remove", str(reader.id))
    assert (removed.code, removed.err) == (0, f"{reader.id} is no longer a member.\n")
    assert {row[1] for row in await shells.rows(shells.admin, "members", "list")} == {owner.email, email}


async def test_wrong_words_are_answered_with_the_usage(shells: Shells, subtests: pytest.Subtests) -> None:
    wrong = {
        ("keys", "create"): "Usage: recollect keys create [TENANT] NAME",
        ("keys", "revoke", "a", "b", "c"): "Usage: recollect keys revoke [TENANT] KEY-ID",
        ("keys", "revoke", "nonsense"): "'nonsense' is not the id of a key, as `recollect keys list` shows it",
        ("keys", "list", "acme", "--json"): "--json prints the answer of a gateway: leave the tenant out",
        ("members", "set-role", "x"): "Usage: recollect members set-role [TENANT] PERSON-ID ROLE",
        ("members", "set-role", "01a21c9f-f000-7000-8000-0123456789ab", "boss"): "'boss' is not a role: owner, admin",
    }
    for words, told in wrong.items():
        with subtests.test(" ".join(words)):
            done = await shells.admin.run(*words)
            assert (done.code, done.err.startswith(f"recollect: {told}")) == (1, True), done.err


async def test_a_named_tenant_needs_the_database(shells: Shells) -> None:
    """The key is for one tenant: a named one is never taken for it."""
    for command, *words in (("create", "acme", "agents"), ("list", "acme")):
        done = await shells.admin.run("keys", command, *words)
        assert (done.code, "This command needs the database" in done.err) == (1, True), done.err
        both = await shells.operator.run("keys", command, *words, "--url", "https://memory.example.com")
        assert (both.code, "leave the tenant out" in both.err) == (1, True), both.err


async def test_a_tenant_is_deleted_only_with_a_confirmation(shells: Shells, tenant: Tenant) -> None:
    asked = await shells.operator.run("tenants", "delete", tenant.slug)
    assert (asked.code, asked.out, "--yes" in asked.err) == (1, b"", True)
    [row] = [row for row in await shells.rows(shells.operator, "tenants", "list") if row[0] == tenant.slug]
    assert row[2] == "active"
