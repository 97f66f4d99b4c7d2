"""`recollect identity-providers …`: identity providers by which a tenant's people sign in. Needs an admin's key."""

from datetime import datetime
from uuid import UUID

import msgspec
from cyclopts import App

from recollect_cli.gateway import ApiKey, Url, body_of, connected
from recollect_cli.standard_input import SecretFile, read_secret
from recollect_cli.tables import AsJson, show, show_json

app = App(name="identity-providers", help="List, set up, disable and delete the identity providers of a tenant.")


class ProviderView(msgspec.Struct, frozen=True):
    """The fields of a provider that commands show."""

    id: UUID
    name: str
    issuer: str
    client_id: str
    algorithm: str
    redirect_uri: str
    disabled_at: datetime | None


class ProviderPage(msgspec.Struct, frozen=True):
    """A page of providers."""

    items: list[ProviderView]


@app.command(name="list")
def list_providers(*, json: AsJson = False, url: Url = None, api_key: ApiKey = None) -> None:
    """The tenant's identity providers."""
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", "/identity-providers")
    if json:
        show_json(answer)
        return
    rows = [
        (str(view.id), view.name, view.issuer, view.client_id, view.algorithm, "no" if view.disabled_at else "yes")
        for view in msgspec.json.decode(answer, type=ProviderPage).items
    ]
    show(("id", "name", "issuer", "client id", "algorithm", "enabled"), rows)


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
    """Set up a provider, and print its id and the address to register there.

    The client secret is read from standard input, or from --secret-file.

    Parameters
    ----------
    name
        What the button of the sign-in page says.
    issuer
        The provider's issuer, such as https://login.example.com.
    client_id
        What Recollect is called there.
    algorithm
        The one by which its ID tokens are signed, such as RS256 or ES256.
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
    """Change, enable or disable a provider.

    Parameters
    ----------
    provider_id
        Its id, as `recollect identity-providers list` shows it.
    name
        What the button says.
    client_id
        What Recollect is called there.
    algorithm
        The one by which its ID tokens are signed.
    enabled
        Whether people sign in by it; `--no-enabled` ends its sessions, too.
    secret
        Read another client secret from standard input.
    """
    client_secret = read_secret(secret_file, "client_secret") if secret or secret_file else None
    body = body_of(name=name, client_id=client_id, client_secret=client_secret, algorithm=algorithm, enabled=enabled)
    with connected(url, api_key) as gateway:
        gateway.send("PATCH", f"/identity-providers/{provider_id}", body)


@app.command
def delete(provider_id: UUID, *, url: Url = None, api_key: ApiKey = None) -> None:
    """Delete a provider: its sessions end, and nobody is known by it any more.

    Parameters
    ----------
    provider_id
        Its id, as `recollect identity-providers list` shows it.
    """
    with connected(url, api_key) as gateway:
        gateway.send("DELETE", f"/identity-providers/{provider_id}")
