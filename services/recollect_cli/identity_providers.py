"""`recollect identity-providers …`: identity providers for the people of a tenant. Needs an admin's key."""

from datetime import datetime
from uuid import UUID

import msgspec
from cyclopts import App

from recollect_cli.gateway import ApiKey, Url, body_of, connected
from recollect_cli.standard_input import SecretFile, read_secret
from recollect_cli.tables import AsJson, echo, show, show_items, show_json

app = App(name="identity-providers", help="List, add, update and delete the identity providers of a tenant.")


class ProviderView(msgspec.Struct, frozen=True):
    """The fields of a provider that commands show."""

    id: UUID
    name: str
    issuer: str
    client_id: str
    algorithm: str
    redirect_uri: str
    disabled_at: datetime | None


@app.command(name="list")
def list_providers(*, json: AsJson = False, url: Url = None, api_key: ApiKey = None) -> None:
    """List the tenant's identity providers."""
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", "/identity-providers")
    show_items(
        answer,
        ProviderView,
        ("id", "name", "issuer", "client id", "algorithm", "enabled"),
        lambda p: (str(p.id), p.name, p.issuer, p.client_id, p.algorithm, "no" if p.disabled_at else "yes"),
        json=json,
        empty="There are no identity providers.",
    )


@app.command
def add(
    name: str,
    issuer: str,
    client_id: str,
    *,
    algorithm: str | None = None,
    secret_file: SecretFile = None,
    json: AsJson = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Add an identity provider, and print its id and the redirect URI to register with it.

    The client secret is read from standard input, or from --secret-file.

    Parameters
    ----------
    name
        Label of its button on the sign-in page.
    issuer
        Issuer of the provider, such as https://login.example.com.
    client_id
        Client id of Recollect at the provider.
    algorithm
        Algorithm that signs its ID tokens, such as ES256. Default: RS256.
    """
    secret = read_secret(secret_file, "client_secret")
    body = body_of(name=name, issuer=issuer, client_id=client_id, client_secret=secret, algorithm=algorithm)
    with connected(url, api_key) as gateway:
        answer = gateway.send("POST", "/identity-providers", body)
    if json:
        show_json(answer)
        return
    provider = msgspec.json.decode(answer, type=ProviderView)
    show(("id", "redirect URI"), [(str(provider.id), provider.redirect_uri)])


@app.command(name="set")
def change(
    provider_id: UUID,
    *,
    name: str | None = None,
    client_id: str | None = None,
    algorithm: str | None = None,
    enabled: bool | None = None,
    secret: bool = False,
    secret_file: SecretFile = None,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Update, enable or disable an identity provider.

    Parameters
    ----------
    provider_id
        The provider's id, as `recollect identity-providers list` shows it.
    name
        Label of its button on the sign-in page.
    client_id
        Client id of Recollect at the provider.
    algorithm
        Algorithm that signs its ID tokens.
    enabled
        Whether people can sign in with it; `--no-enabled` also ends its sessions.
    secret
        Read a new client secret from standard input.
    """
    client_secret = read_secret(secret_file, "client_secret") if secret or secret_file else None
    body = body_of(name=name, client_id=client_id, client_secret=client_secret, algorithm=algorithm, enabled=enabled)
    with connected(url, api_key) as gateway:
        gateway.send("PATCH", f"/identity-providers/{provider_id}", body)
    echo(f"The identity provider {provider_id} was changed.")


@app.command
def delete(provider_id: UUID, *, url: Url = None, api_key: ApiKey = None) -> None:
    """Delete an identity provider, with its sessions and the identities of people at it.

    Parameters
    ----------
    provider_id
        The provider's id, as `recollect identity-providers list` shows it.
    """
    with connected(url, api_key) as gateway:
        gateway.send("DELETE", f"/identity-providers/{provider_id}")
    echo(f"The identity provider {provider_id} was deleted.")
