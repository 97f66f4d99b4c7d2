"""`recollect issuers …`: other issuers whose access tokens a tenant accepts. Needs an admin's key."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from cyclopts import App, Parameter

from recollect.errors import InvalidInput
from recollect_cli.files import name_of, opened
from recollect_cli.gateway import ApiKey, Url, body_of, connected
from recollect_cli.tables import AsJson, echo, show, show_items, show_json

app = App(name="issuers", help="List, trust, update and delete the issuers whose access tokens a tenant accepts.")

MAX_RULE_BYTES = 256 * 1024

RulesFile = Annotated[
    str | None,
    Parameter(
        allow_leading_hyphen=True,
        help='File with rules as JSON, or - for standard input: [{"value": "…", "scopes": ["memory:read"], '
        '"graphs": null}]',
    ),
]


class IssuerView(msgspec.Struct, frozen=True):
    """The fields of an issuer that commands show."""

    id: UUID
    name: str
    issuer: str
    algorithm: str
    claim: str
    rules: list[Any]
    resource: str
    disabled_at: datetime | None


@app.command(name="list")
def list_issuers(*, json: AsJson = False, url: Url = None, api_key: ApiKey = None) -> None:
    """List the trusted issuers of the tenant. --json also shows their rules."""
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", "/trusted-issuers")
    show_items(
        answer,
        IssuerView,
        ("id", "name", "issuer", "algorithm", "claim", "rules", "enabled"),
        lambda i: (
            str(i.id),
            i.name,
            i.issuer,
            i.algorithm,
            i.claim,
            str(len(i.rules)),
            "no" if i.disabled_at else "yes",
        ),
        json=json,
        empty="There are no trusted issuers.",
    )


@app.command
def trust(
    name: str,
    issuer: str,
    *,
    algorithm: str | None = None,
    claim: str | None = None,
    rules: RulesFile = None,
    json: AsJson = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Trust an issuer, and print the resource for which its access tokens must be issued.

    Parameters
    ----------
    name
        Name of the issuer in Recollect.
    issuer
        Issuer, exactly as its tokens name it, such as https://login.example.com.
    algorithm
        Algorithm that signs its tokens, such as ES256. Default: RS256.
    claim
        Claim that the rules check, such as groups. Default: scope.
    """
    body = body_of(name=name, issuer=issuer, algorithm=algorithm, claim=claim, rules=_rules(rules))
    with connected(url, api_key) as gateway:
        answer = gateway.send("POST", "/trusted-issuers", body)
    if json:
        show_json(answer)
        return
    view = msgspec.json.decode(answer, type=IssuerView)
    show(("id", "resource"), [(str(view.id), view.resource)])


@app.command(name="set")
def change(
    issuer_id: UUID,
    *,
    name: str | None = None,
    algorithm: str | None = None,
    claim: str | None = None,
    rules: RulesFile = None,
    enabled: bool | None = None,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Update, enable or disable a trusted issuer. Applies from the next request on.

    Parameters
    ----------
    issuer_id
        The issuer's id, as `recollect issuers list` shows it.
    name
        Name of the issuer in Recollect.
    algorithm
        Algorithm that signs its tokens.
    claim
        Claim that the rules check.
    enabled
        Whether its tokens are accepted.
    """
    body = body_of(name=name, algorithm=algorithm, claim=claim, rules=_rules(rules), enabled=enabled)
    with connected(url, api_key) as gateway:
        gateway.send("PATCH", f"/trusted-issuers/{issuer_id}", body)
    echo(f"The issuer {issuer_id} was changed.")


@app.command
def delete(issuer_id: UUID, *, url: Url = None, api_key: ApiKey = None) -> None:
    """Delete a trusted issuer. Its tokens are no longer accepted.

    Parameters
    ----------
    issuer_id
        The issuer's id, as `recollect issuers list` shows it.
    """
    with connected(url, api_key) as gateway:
        gateway.send("DELETE", f"/trusted-issuers/{issuer_id}")
    echo(f"The issuer {issuer_id} was deleted.")


def _rules(file: str | None) -> Any:
    """The rules in a file, which the gateway validates. Raises InvalidInput where they are no JSON."""
    if file is None:
        return None
    with opened(file) as source:
        text = source.read(MAX_RULE_BYTES + 1)
    try:
        if len(text) > MAX_RULE_BYTES:
            raise ValueError
        return msgspec.json.decode(text)
    except ValueError:  # DecodeError and UnicodeDecodeError are ValueErrors.
        raise InvalidInput(f"{name_of(file)} is not JSON, or is too large", path="rules") from None
