"""`recollect domains …`: domains whose addresses let people join a tenant by themselves. Needs an admin's key."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
from cyclopts import App

from recollect_cli.gateway import ApiKey, Url, connected
from recollect_cli.tables import AsJson, show, show_json

app = App(name="domains", help="List, claim, verify and drop the e-mail domains by which people join a tenant.")

JoiningRole = Literal["member", "reader"]


class DomainView(msgspec.Struct, frozen=True):
    """The fields of a claim that commands show."""

    id: UUID
    domain: str
    role: str
    record_name: str
    record_value: str
    verified_at: datetime | None


class DomainPage(msgspec.Struct, frozen=True):
    """A page of claims."""

    items: list[DomainView]


@app.command(name="list")
def list_domains(*, json: AsJson = False, url: Url = None, api_key: ApiKey = None) -> None:
    """The domains that the tenant claims."""
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", "/email-domains")
    if json:
        show_json(answer)
        return
    rows = [
        (str(claim.id), claim.domain, claim.role, f"{claim.verified_at:%Y-%m-%d %H:%M}" if claim.verified_at else "-")
        for claim in msgspec.json.decode(answer, type=DomainPage).items
    ]
    show(("id", "domain", "joins as", "verified"), rows)


@app.command
def claim(
    domain: str,
    *,
    role: JoiningRole = "member",
    json: AsJson = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Claim a domain, and print the TXT record that is to prove it.

    Parameters
    ----------
    domain
        Such as example.com.
    role
        As what people join by it: member or reader.
    """
    with connected(url, api_key) as gateway:
        answer = gateway.send("POST", "/email-domains", msgspec.json.encode({"domain": domain, "role": role}))
    if json:
        show_json(answer)
        return
    view = msgspec.json.decode(answer, type=DomainView)
    show(("id", "TXT record", "value"), [(str(view.id), view.record_name, view.record_value)])


@app.command
def verify(domain_id: UUID, *, url: Url = None, api_key: ApiKey = None) -> None:
    """Ask the DNS for the record of a claim.

    Parameters
    ----------
    domain_id
        The claim's id, as `recollect domains list` shows it.
    """
    with connected(url, api_key) as gateway:
        answer = gateway.send("POST", f"/email-domains/{domain_id}/verify")
    print(f"{msgspec.json.decode(answer, type=DomainView).domain} is verified")


@app.command
def set_role(domain_id: UUID, role: JoiningRole, *, url: Url = None, api_key: ApiKey = None) -> None:
    """Give another role to who joins from now on.

    Parameters
    ----------
    domain_id
        The claim's id, as `recollect domains list` shows it.
    role
        member or reader.
    """
    with connected(url, api_key) as gateway:
        gateway.send("PATCH", f"/email-domains/{domain_id}", msgspec.json.encode({"role": role}))


@app.command
def drop(domain_id: UUID, *, url: Url = None, api_key: ApiKey = None) -> None:
    """Claim a domain no more. Who joined by it stays a member.

    Parameters
    ----------
    domain_id
        The claim's id, as `recollect domains list` shows it.
    """
    with connected(url, api_key) as gateway:
        gateway.send("DELETE", f"/email-domains/{domain_id}")
