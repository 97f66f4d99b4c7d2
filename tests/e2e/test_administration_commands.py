"""`recollect audit`, `issuers`, `domains` and `providers` as an admin types them, against a gateway that listens."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect_cli.main import app
from tests.support.dns_server import NameServer, name_server
from tests.support.gateway import RunningGateway, serving

SECRET = "typed-nowhere"


@dataclass(frozen=True)
class Terminal:
    """A terminal with an admin's key. Commands run in this process, because starting one takes long."""

    gateway: RunningGateway
    key: str
    capsys: pytest.CaptureFixture[str]

    async def rows(self, *words: str) -> list[list[str]]:
        """The output of a command, in columns."""
        return [line.split("\t") for line in (await self.output(*words)).splitlines()]

    async def output(self, *words: str) -> str:
        """The output of a command; its errors are raised."""
        given = [*words, "--url", self.gateway.url, "--api-key", self.key]
        await asyncio.to_thread(app, given, exit_on_error=False, result_action="return_value")
        return self.capsys.readouterr().out


@pytest.fixture(scope="module")
async def dns() -> AsyncIterator[NameServer]:
    async with name_server() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(settings: Settings, dns: NameServer) -> Iterator[RunningGateway]:
    """A gateway that asks this name server."""
    with serving(settings.model_copy(update={"dns_servers": [dns.address]})) as running:
        yield running


@pytest.fixture
def terminal(gateway: RunningGateway, admin_key: str, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(gateway, admin_key, capsys)


async def test_a_provider_is_set_up_changed_and_deleted(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\n"))
    new = ("identity-providers", "add", "Acme Login", "https://login.acme.example", "recollect")
    [[provider_id, address]] = await terminal.rows(*new)
    assert address == f"{terminal.gateway.url}/sign-in/callback/{provider_id}"
    secret = tmp_path / "secret"
    secret.write_text("another-secret\n")
    changed = ("identity-providers", "set", provider_id, "--no-enabled", "--secret-file", str(secret))
    assert await terminal.rows(*changed) == []
    listed = await terminal.rows("identity-providers", "list")
    assert listed == [[provider_id, "Acme Login", "https://login.acme.example", "recollect", "RS256", "no"]]
    [entry] = json.loads(await terminal.output("audit", "list", "--action", "identity_provider.changed", "--json"))[
        "items"
    ]
    assert entry["details"] == {"fields": ["disabled_at", "client_secret"]}
    assert await terminal.rows("identity-providers", "delete", provider_id) == []
    assert await terminal.rows("identity-providers", "list") == []


@pytest.mark.parametrize("given", [["--secret-file", "/nowhere"], []], ids=["no file", "no line"])
async def test_a_provider_needs_a_secret(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, given: list[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    with pytest.raises(InvalidInput, match="client_secret"):
        await terminal.output("identity-providers", "add", "Acme", "https://login.acme.example", "recollect", *given)
    assert await terminal.rows("identity-providers", "list") == []


async def test_an_issuer_is_trusted_by_the_rules_in_a_file(terminal: Terminal, tmp_path: Path, tenant: Tenant) -> None:
    rules, file = [{"value": "readers", "scopes": ["memory:read"], "graphs": None}], tmp_path / "rules.json"
    file.write_text(json.dumps(rules))
    new = ("issuers", "trust", "Acme", "https://machines.acme.example", "--claim", "groups", "--rules", str(file))
    [[issuer_id, resource]] = await terminal.rows(*new)
    assert resource.endswith(f"/t/{tenant.slug}/mcp")
    assert await terminal.rows("issuers", "set", issuer_id, "--no-enabled", "--name", "Machines") == []
    rows = await terminal.rows("issuers", "list")
    assert rows == [[issuer_id, "Machines", "https://machines.acme.example", "RS256", "groups", "1", "no"]]
    assert json.loads(await terminal.output("issuers", "list", "--json"))["items"][0]["rules"] == rules
    file.write_text("no JSON")
    with pytest.raises(InvalidInput, match=r"rules.json is not JSON"):
        await terminal.output("issuers", "set", issuer_id, "--rules", str(file))
    assert await terminal.rows("issuers", "delete", issuer_id) == []
    assert await terminal.rows("issuers", "list") == []


async def test_a_domain_is_claimed_verified_and_dropped(terminal: Terminal, dns: NameServer, tenant: Tenant) -> None:
    domain = f"{tenant.slug}.example"
    [[domain_id, name, value]] = await terminal.rows("domains", "claim", domain)
    with pytest.raises(InvalidInput):
        await terminal.output("domains", "verify", domain_id)
    dns.records[name] = [value]
    assert await terminal.rows("domains", "verify", domain_id) == [[f"{domain} is verified"]]
    assert await terminal.rows("domains", "set-role", domain_id, "reader") == []
    [[_, listed, role, verified]] = await terminal.rows("domains", "list")
    assert (listed, role, verified != "-") == (domain, "reader", True)
    assert await terminal.rows("domains", "drop", domain_id) == []
    assert await terminal.rows("domains", "list") == []


async def test_the_audit_log_is_filtered_and_exported(terminal: Terminal, tmp_path: Path) -> None:
    await terminal.output("domains", "claim", "acme.example")
    [row] = await terminal.rows("audit", "list", "--action", "email_domain.claimed", "--since", "2026-01-01")
    assert [row[1].partition(":")[0], row[2], row[3].partition(":")[0]] == [
        "key",
        "email_domain.claimed",
        "email_domain",
    ]
    assert await terminal.rows("audit", "list", "--object", row[3], "--until", "2026-01-01") == []
    file = tmp_path / "log.jsonl"
    assert await terminal.rows("audit", "export", str(file), "--object", row[3]) == []
    [entry] = [json.loads(line) for line in file.read_text().splitlines()]
    assert (entry["action"], entry["objects"], entry["actor"]) == (row[2], [row[3]], row[1])
    assert json.loads((await terminal.output("audit", "export")).splitlines()[0])["action"] == "audit.exported"
    with pytest.raises(InvalidInput):
        await terminal.output("audit", "list", "--action", "key.painted")
