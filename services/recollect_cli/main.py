"""The root of the `recollect` command: its subcommands, and how errors are printed."""

import sys
from typing import NoReturn

from cyclopts import App

from recollect import __version__
from recollect.errors import RecollectError
from recollect.printable import printable

COMMANDS = {
    "local": ("local:local", "Start PostgreSQL, Valkey, gateway and worker here."),
    "gateway": ("serve:gateway", "Serve MCP and the management API."),
    "worker": ("serve:worker", "Embed what was remembered, do jobs, tell webhooks, and do what is regular."),
    "migrate": ("migrate:migrate", "Bring a database to this version."),
    "tenants": ("tenants:app", "Create, list, suspend, resume, delete and erase tenants, and give them plans."),
    "plans": ("plans:app", "List, make and change plans: what tenants may have and ask for."),
    "operator": ("operator:app", "Serve the operator API, make keys for it, and read its log."),
    "keys": ("keys:app", "Create, list and revoke a tenant's API keys."),
    "members": ("members:app", "Invite, list, change and remove a tenant's members."),
    "identity-providers": ("identity_providers:app", "List, set up, disable and delete a tenant's identity providers."),
    "domains": ("domains:app", "List, claim, verify and drop the e-mail domains by which people join a tenant."),
    "issuers": ("issuers:app", "List, trust, change and delete issuers whose access tokens a tenant accepts."),
    "audit": ("audit:app", "List and export who administered what of a tenant, and when."),
    "people": ("people:app", "Help people who cannot sign in, and delete accounts."),
    "jobs": ("jobs:app", "List, watch and cancel jobs: exports, imports, searches for duplicates."),
    "webhooks": ("webhooks:app", "List, make and delete webhooks, and replay what was sent to them."),
    "import": ("transfer:import_file", "Import a file into a graph, which is made where it is not there."),
    "export": ("transfer:export_file", "Export a graph: entities, then relations, all as of one moment."),
    "stdio": ("stdio:stdio", "Bridge a local MCP client to a gateway."),
    "reference": ("reference.commands:app", "Print pages of the documentation that are made from the code."),
}
"""Where each command is, and its help. A command is loaded when it is used: loading all of them takes seconds."""

app = App(name="recollect", help="Hosted memory for AI agents.", version=__version__)
for command, (target, summary) in COMMANDS.items():
    app.command(f"recollect_cli.{target}", name=command, help=summary)


def main() -> None:
    """Run one command; an error is one plain sentence and exit code 1."""
    try:
        app()
    except RecollectError as error:
        _exit_with(error)
    except ValueError as error:
        from recollect.settings import wrong_setting  # Imported late, since it takes long to load.

        setting_error = wrong_setting(error)
        if setting_error is None:
            raise
        _exit_with(setting_error)


def _exit_with(error: RecollectError) -> NoReturn:
    from rich.console import Console

    message = printable(f"recollect: {error}", lines=True)
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
