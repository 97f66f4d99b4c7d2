"""`recollect identity-providers …`: by whom else a tenant's people sign in."""

from uuid import UUID

from cyclopts import App

from recollect.accounts.identity_providers import service as providers
from recollect.accounts.identity_providers.model import (
    DEFAULT_ALGORITHM,
    IdentityProvider,
    NewProvider,
    ProviderChange,
)
from recollect.platform.db import Transaction
from recollect.platform.issuers import Issuers
from recollect.platform.outbound import Outbound
from recollect.settings import Settings
from recollect_cli.operations import for_tenant, pepper
from recollect_cli.standard_input import read_secret
from recollect_cli.tables import show

app = App(name="identity-providers", help="List, set up, disable and delete a tenant's identity providers.")


@app.command(name="list")
def list_providers(tenant: str) -> None:
    """A tenant's identity providers.

    Parameters
    ----------
    tenant
        The tenant's slug.
    """
    found = for_tenant(tenant, providers.list_providers)
    rows = [
        (str(each.id), each.name, each.issuer, each.client_id, each.algorithm, "no" if each.disabled_at else "yes")
        for each in found
    ]
    show(("id", "name", "issuer", "client id", "algorithm", "enabled"), rows)


@app.command
def add(tenant: str, name: str, issuer: str, client_id: str, *, algorithm: str = DEFAULT_ALGORITHM) -> None:
    """Set up a provider, and print the address to register there. The client secret is read from standard input.

    Parameters
    ----------
    tenant
        The tenant's slug.
    name
        What the button of the sign-in page says.
    issuer
        The provider's issuer, such as https://login.example.com.
    client_id
        What Recollect is called there.
    algorithm
        The one by which its ID tokens are signed, such as RS256 or ES256.
    """
    Issuers(Outbound(Settings())).require_address(issuer, path="issuer")
    new = NewProvider(name, issuer, client_id, read_secret(None, "client_secret"), algorithm)

    async def work(tx: Transaction) -> IdentityProvider:
        return await providers.add_provider(tx, new, pepper=pepper())

    print(f"{Settings().base_url}/sign-in/callback/{for_tenant(tenant, work).id}")


@app.command(name="set")
def change(
    tenant: str,
    provider_id: UUID,
    *,
    name: str | None = None,
    client_id: str | None = None,
    algorithm: str | None = None,
    enabled: bool | None = None,
    secret: bool = False,
) -> None:
    """Change, enable or disable a provider.

    Parameters
    ----------
    tenant
        The tenant's slug.
    provider_id
        Its id, from `recollect identity-providers list`.
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
    wanted = ProviderChange(name, client_id, read_secret(None, "client_secret") if secret else None, algorithm, enabled)
    for_tenant(tenant, lambda tx: providers.change_provider(tx, provider_id, wanted, pepper=pepper()))


@app.command
def delete(tenant: str, provider_id: UUID) -> None:
    """Delete a provider: its sessions end, and nobody is known by it any more.

    Parameters
    ----------
    tenant
        The tenant's slug.
    provider_id
        Its id, from `recollect identity-providers list`.
    """
    for_tenant(tenant, lambda tx: providers.delete_provider(tx, provider_id))
