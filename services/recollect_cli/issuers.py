"""`recollect issuers …`: issuers whose access tokens a tenant accepts beside our own. Needs an admin's key."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from cyclopts import App, Parameter

from recollect.errors import InvalidInput
from recollect_cli.files import name_of, opened
from recollect_cli.gateway import ApiKey, Url, body_of, connected
from recollect_cli.tables import AsJson, show, show_json

app = App(name="issuers", help="List, trust, change and delete issuers whose access tokens a tenant accepts.")

MAX_RULE_BYTES = 256 * 1024

RulesFile = Annotated[
    str | None,
    Parameter(
        allow_leading_hyphen=True,
        help='A file of rules as JSON, or - for standard input: [{"value": "…", "scopes": ["memory:read"], '
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


class IssuerPage(msgspec.Struct, frozen=True):
    """A page of issuers."""

    items: list[IssuerView]


@app.command(name="list")
def list_issuers(*, json: AsJson = False, url: Url = None, api_key: ApiKey = None) -> None:
    """The issuers that the tenant trusts. Their rules are shown by --json."""
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", "/trusted-issuers")
    if json:
        show_json(answer)
        return
    rows = [
        (
            str(view.id),
            view.name,
            view.issuer,
            view.algorithm,
            view.claim,
            str(len(view.rules)),
            "no" if view.disabled_at else "yes",
        )
        for view in msgspec.json.decode(answer, type=IssuerPage).items
    ]
    show(("id", "name", "issuer", "algorithm", "claim", "rules", "enabled"), rows)


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
    """Accept an issuer's access tokens, and print the resource that they must be for.

    Parameters
    ----------
    name
        What it is called here.
    issuer
        The issuer, such as https://login.example.com, letter by letter as its tokens say.
    algorithm
        The one by which they are signed, such as RS256 or ES256.
    claim
        The claim that the rules look at, such as groups. Default: scope.
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
    """Change how far an issuer is trusted, disable or enable it; in force with the next request.

    Parameters
    ----------
    issuer_id
        Its id, as `recollect issuers list` shows it.
    name
        What it is called here.
    algorithm
        The one by which its tokens are signed.
    claim
        The claim that the rules look at.
    enabled
        Whether its tokens are accepted; `--no-enabled` accepts none.
    """
    body = body_of(name=name, algorithm=algorithm, claim=claim, rules=_rules(rules), enabled=enabled)
    with connected(url, api_key) as gateway:
        gateway.send("PATCH", f"/trusted-issuers/{issuer_id}", body)


@app.command
def delete(issuer_id: UUID, *, url: Url = None, api_key: ApiKey = None) -> None:
    """Accept none of an issuer's tokens any more.

    Parameters
    ----------
    issuer_id
        Its id, as `recollect issuers list` shows it.
    """
    with connected(url, api_key) as gateway:
        gateway.send("DELETE", f"/trusted-issuers/{issuer_id}")


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
        raise InvalidInput(f"{name_of(file)} holds no rules as JSON", path="rules") from None
