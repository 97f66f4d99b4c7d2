"""`recollect domains …`: e-mail domains whose users can join a tenant. Needs an admin's key."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
from cyclopts import App

from recollect_cli.gateway import ApiKey, Url, connected
from recollect_cli.tables import AsJson, echo, show, show_items, show_json

app = App(name="domains", help="List, claim, verify and drop the e-mail domains whose users can join a tenant.")

JoiningRole = Literal["member", "reader"]


class DomainView(msgspec.Struct, frozen=True):
    """The fields of a claim that commands show."""

    id: UUID
    domain: str
    role: str
    record_name: str
    record_value: str
    verified_at: datetime | None


@app.command(name="list")
def list_domains(*, json: AsJson = False, url: Url = None, api_key: ApiKey = None) -> None:
    """List the domains that the tenant has claimed."""
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", "/email-domains")
    show_items(
        answer,
        DomainView,
        ("id", "domain", "role", "verified"),
        lambda c: (str(c.id), c.domain, c.role, f"{c.verified_at:%Y-%m-%d %H:%M}" if c.verified_at else "-"),
        json=json,
        empty="There are no claimed domains.",
    )


@app.command
def claim(
    domain: str,
    *,
    role: JoiningRole = "member",
    json: AsJson = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Claim a domain, and print the DNS TXT record that proves the claim.

    Parameters
    ----------
    domain
        Domain of e-mail addresses, such as example.com.
    role
        Role of people who join by this domain: member or reader.
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
    """Verify a claim: look up its TXT record in the DNS.

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
    """Change the role of people who join by a domain from now on.

    Parameters
    ----------
    domain_id
        The claim's id, as `recollect domains list` shows it.
    role
        Role: member or reader.
    """
    with connected(url, api_key) as gateway:
        gateway.send("PATCH", f"/email-domains/{domain_id}", msgspec.json.encode({"role": role}))
    echo(f"People who join by the domain {domain_id} become {role} from now on.")


@app.command
def drop(domain_id: UUID, *, url: Url = None, api_key: ApiKey = None) -> None:
    """Drop a claim. People who joined by the domain stay members.

    Parameters
    ----------
    domain_id
        The claim's id, as `recollect domains list` shows it.
    """
    with connected(url, api_key) as gateway:
        gateway.send("DELETE", f"/email-domains/{domain_id}")
    echo(f"The claim {domain_id} was dropped.")
