"""`recollect local`: everything on one machine."""

import sys
from pathlib import Path

from recollect_local.stack import LocalOptions, run_local


def local(
    *, host: str = "127.0.0.1", port: int = 8787, data_dir: Path | None = None, ready_file: Path | None = None
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
    """
    sys.exit(run_local(LocalOptions(data_dir=data_dir, host=host, port=port, ready_file=ready_file)))
