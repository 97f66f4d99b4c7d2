"""`recollect local`: everything on one machine."""

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from recollect.errors import InvalidInput, Unavailable
from recollect.settings import read_settings
from recollect_local.data_folder import DataFolder
from recollect_local.platforms import why_no_servers
from recollect_local.welcome import clients_text


def local(
    *,
    host: str = "127.0.0.1",
    port: int = 8787,
    data_dir: Path | None = None,
    ready_file: Path | None = None,
    clients: Annotated[bool, Parameter(negative=())] = False,
    invite: str | None = None,
) -> None:
    """Run PostgreSQL, Valkey, a gateway and a worker on this machine.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0 chooses a free one.
    data_dir
        Folder of the data, which is kept across restarts. Default: the user's data folder.
    ready_file
        File that is written when everything is ready: JSON with mcp_url, management_url, api_key (for
        agents), admin_key and tenant.
    clients
        Start nothing: print how clients connect to what runs, and its keys.
    invite
        Start nothing: print a link with which the person with this e-mail address signs in as an owner.
    """
    if clients and invite is not None:
        raise InvalidInput("Set one of --clients and --invite.")
    if clients:
        from recollect_local.running import require_endpoint

        print(clients_text(require_endpoint(_folder(data_dir))))
    elif invite is not None:
        _invite(invite, data_dir)
    else:
        if sys.platform == "win32" and (reason := why_no_servers()):
            raise Unavailable(reason)
        from recollect_local.stack import LocalOptions, run_local  # Imported late: it needs modules that Windows lacks.

        sys.exit(run_local(LocalOptions(data_dir=data_dir, host=host, port=port, ready_file=ready_file)))


def _folder(data_dir: Path | None) -> DataFolder:
    return DataFolder(data_dir or read_settings().data_dir)


def _invite(email: str, data_dir: Path | None) -> None:
    from recollect.caller import Role
    from recollect_cli.members import invite_as_operator
    from recollect_local.running import require_endpoint, settings_of_running

    if data_dir is not None:
        os.environ["RECOLLECT_DATA_DIR"] = str(data_dir)  # By it, commands of operators find the stack.
    endpoint = require_endpoint(_folder(data_dir))
    sent = invite_as_operator(endpoint.tenant, email, Role.OWNER, settings_of_running(read_settings()))
    print(f"Sent to {sent.invitation.email}." if sent.link is None else sent.link)
